"""Every number that decides whether something grows, each with where it comes from and what was measured.

Shares are of the loops of ``python -m benchmarks rhythms`` in which a verdict is owed; "own" are kinds of
turnover made up beside them. benchmarks/rhythms/model.md has how the shares move with each number.
"""

#: The newest birth steps are not judged: a batch and the one that was fetched ahead of it are still in use.
#: Physical.
LAG = 2

#: Growth is judged from so many steps since its onset on: the contract owes a verdict from 8 births, between
#: which lie as many.  From 8 to 40 no share at 300 steps moves.
LEAST_STEPS = 7

#: Pauses shorter than so many steps are no rest, and epochs shorter than this none: rhythms of a few steps
#: (accumulation, logging) are one growth.  From 10 to 40 no share at 300 steps moves.
LEAST_REST = 20

#: ... and from so many steps with births on that are kept.  The contract owes a verdict from 8; one may still
#: be within LAG.  At 4 a pool that is as large as demand ever was is called a leak, at 10 a twentieth of the
#: growth of 100 steps is missed.
LEAST_EVENTS = 7

#: Rises below this share of the middle one, by amount, do not end a rest: what a library kept now and then,
#: before a leak of thirty times as much began, had made it begin there.  Of 1,300 simulated loops no share
#: moves; at 0.1, the onset of one in a hundred.
LITTLE = 0.05

#: A rest ends growth, or separates it from what was kept before, when it is longer than this many times the
#: longest other one: a rhythm with a period, and one of uneven epochs up to 1 : 2, never rests so long.  At 1
#: one onset in 200 more is wrong.
GAP_FACTOR = 2

#: What chance brings less often than this has a cause.  It is asked three ways, each of the events of this
#: site alone: of a rest within the run, which then dates the onset, and of the one at its end (events at
#: random leave so long a gap: a Poisson process whose rate is known from the events); and of the ramps that
#: were lost before the onset (a ramp that ends at random outlasts them so far).  The contract allows one
#: false finding in 1,000 loops.  From 0.01 to 0.00001 no share moves by more than 0.005.
RISK = 1e-3

#: Survivors stand for what is kept if growth has gone on for so many times the age of the oldest item that is
#: known to have died. At 1 a ring that has just been filled would do (3.5 % of own loops of 300 steps); 2
#: leaves as long a time again in which one could have died and none did (0.9 %); 3 finds a twentieth less
#: growth at 100 steps.
OUTLIVE = 2

#: The mean time of what is kept, as a share of the time since onset: steady growth 1/2; where the last half
#: brings half of what the first did 3/8 (a rate that falls in a line: 0.389; as a power of time: 0.369; a
#: step down to a third: 0.375); keys met at random
#: 0.19, places at random 0.23, 1 / sqrt(time) 1/3.  At 0.32 twice as many own false alarms, at 0.4 a
#: fortieth less growth.
LEAST_CENTROID = 0.36

#: The exponent of what is kept as a power of time.  Steady growth 1, a rate that falls to half in a line 0.86;
#: distinct words of texts 0.4 to 0.6 and keys drawn by Zipf's law up to 0.8 (Heaps, Information Retrieval,
#: 1978): a cache of them slows without an end.  It counts only where a power of time is likelier than a step
#: down, which for a third has 0.74.  At 0.7 twice as many own false alarms at 100 steps (3.7 % for 1.7 %), at
#: 0.85 a fiftieth less growth of 300 steps.
LEAST_EXPONENT = 0.8

#: Standard deviations of the interval that is printed beside a rate and that decides on a slope, 19 in 20; and
#: by which growth must slow down, so that a handful of events makes no FILLING: one-sided 2.5 %.  At 2.5 half
#: as many own false alarms more (2.5 % for 1.7 % at 100 steps), at 1.5 a sixtieth less own growth of 100.
DEVIATIONS = 1.96

#: The variance of a time that is drawn evenly, as a share of the square of the span.  A law.
EVEN_VARIANCE = 1 / 12

#: The variance of the square of what is drawn evenly about 0, as a share of the square of its mean: (1 / 5 -
#: 1 / 9) * 9.  A law.
SQUARES_VARIANCE = 4 / 5

#: Two accounts of one thing agree if the smaller is at least this share of the larger; halves of a time.
#: Nothing was tuned here.
HALF = 1 / 2

#: The largest first threshold of the garbage collector that a version of CPython starts with: 700 up to 3.12,
#: 2,000 since 3.13 (gc.get_threshold() of each).  Above it somebody has raised it.
LARGEST_THRESHOLD = 2000

#: What is kept though old items die climbs if it does so from each of the compared parts of the time since
#: its onset to the next, with rests between them.  Of own loops with a ring that is widened three times, 13
#: of 30 pass three parts, one passes four; with more, a backlog at 100 steps is missed more often.
PARTS, COMPARED = 7, (0, 2, 4, 6)

#: Bins of birth steps in one span: growth that began an eighth of the run ago has 8 spans, and must show
#: LEAST_EVENTS.
FINENESS = 4

#: Points of a plain number beyond this are thinned, so that a slope takes at most 2,016 pairs.  Bounds work.
MOST_POINTS = 64

#: Rows of a scan beyond this are put together, by powers of two of birth steps: as fine as the bins of the
#: longest span.  Bounds work.
MOST_ROWS = 256

#: Of lines that grow more slowly than this, in bytes a step, holders are not asked; several of them together
#: may exceed the least limit that is of use.
LEAST_RATE = 12.0

#: Spans in which the floor of a site rose, before its survivors are scanned: fewer can't have LEAST_EVENTS
#: where spans are wide.  Bounds work.
LEAST_RISES = 3

#: Bytes of the largest block that CPython's own allocator serves: the size of an item that no walk has met,
#: and from where on a column of numbers lies in malloc's memory.  Physical.
SMALL_BYTES = 512

#: Totals smaller than this, in bytes, are not followed.  Bounds work.
FOLLOWED_BYTES = 16 * 1024

#: Lines whose blocks a walk asks for although they do not grow, those with most bytes: garbage that is freed
#: now and then may keep them.  Bounds work.
MOST_LARGE = 16

#: Bytes that a library's pool may have taken from the system before the watch and hand out in it: chunks of
#: mimalloc 2.2 have 32 MiB, of jemalloc 5 2 MiB.  Objects that say what they own are believed up to these and
#: twice what the process grew by.  Physical.
POOL_CHUNK = 32 * 1024 * 1024
