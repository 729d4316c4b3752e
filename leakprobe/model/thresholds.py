"""Every number that decides what grows and what is reported, with where it comes from and what was measured.

At most 40 (tests/rules/test_numbers.py counts them); what only bounds work stands in bounds.py, what is so in
facts.py.  "Not varied": the reason is all that there is, no ablation was run.

Shares are of the loops of ``python -m benchmarks rhythms`` in which a verdict is owed; "own" are kinds of
turnover made up beside them. benchmarks/rhythms/model.md has how the shares move with each number.
"""

from leakprobe.model.facts import LARGER_BUFFERS, PAGE_BYTES
from leakprobe.model.units import KIB, MIB

# ---- growth of what has births ----

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
#: moves; at 0.1, the onset of one in a hundred.  Lines with less than this share of native growth are not
#: told apart from the rest of it, fewer steps than this share of all do not show that sizes come again, and
#: where more than this share of it was freed after the loop, its samples stay as they were in it.  What a
#: total reached in this share of its readings is no level: of 742 simulated totals with passing peaks that
#: leaked 517 were found, with their highest values 203, and of 6,000 that did not 116 were reported, and 111
#: (sawtooths of one tooth).
LITTLE = 0.05

#: A rest ends growth, or separates it from what was kept before, when it is longer than this many times the
#: longest other one: a rhythm with a period, and one of uneven epochs up to 1 : 2, never rests so long.  At 1
#: one onset in 200 more is wrong.
GAP_FACTOR = 2

#: What chance brings less often than this has a cause.  It is asked of the bytes of blocks that give way to
#: larger ones (a walk at random rises so far), and three ways of the events of this site alone: of a rest
#: within the run, which then dates the onset, and of the one at its end (events at random leave so long a
#: gap: a Poisson process whose rate is known from the events); and of the ramps that were lost before the
#: onset (a ramp that ends at random outlasts them so far).  The contract allows one false finding in 1,000
#: loops.  From 0.01 to 0.00001 no share moves by more than 0.005; of drifts, at 0.01 one false alarm in 200.
RISK = 1e-3

#: Survivors stand for what is kept if growth has gone on for so many times the age of the oldest item that is
#: known to have died.  At 1 a ring that has just been filled would do (3.5 % of own loops of 300 steps); 2
#: leaves as long a time again in which one could have died and none did (0.9 %); 3 finds a twentieth less
#: growth at 100 steps.  A floor stands for it if it has risen by so many times the most that was lost at
#: once: at 1.5 two of 3,900 loops of turnover more pass at 100 steps, at 3 an eighth less of uneven growth.
OUTLIVE = 2

#: The mean time of what is kept, as a share of the time since onset: steady growth 1/2; where the last half
#: brings half of what the first did 3/8 (a rate that falls in a line: 0.389; as a power of time: 0.369; a
#: step down to a third: 0.375); keys met at random
#: 0.19, places at random 0.23, 1 / sqrt(time) 1/3.  At 0.32 twice as many own false alarms, at 0.4 a
#: fortieth less growth.
LEAST_CENTROID = 0.36

#: The exponent of what is kept as a power of time.  Steady growth 1, a rate that falls to half in a line
#: 0.86; distinct words of texts 0.4 to 0.6 and keys drawn by Zipf's law up to 0.8 (Heaps, Information
#: Retrieval, 1978): a cache of them slows without an end.  It counts only where a power of time is likelier
#: than a step down, which for a third has 0.74.  At 0.7 twice as many own false alarms at 100 steps (3.7 %
#: for 1.7 %), at 0.85 a fiftieth less growth of 300 steps.
LEAST_EXPONENT = 0.8

#: Standard deviations of the interval that is printed beside a rate and that decides on a slope, 19 in 20;
#: and by which growth must slow down, so that a handful of events makes no FILLING: one-sided 2.5 %.  At 2.5
#: half as many own false alarms more (2.5 % for 1.7 % at 100 steps), at 1.5 a sixtieth less own growth of
#: 100.
DEVIATIONS = 1.96

#: Two accounts of one thing agree if the smaller is at least this share of the larger; halves of a time.
#: Nothing was tuned here.
HALF = 1 / 2

#: What is kept though old items die climbs if both its lowest and its highest count do so from each of the
#: compared parts of the time since its onset to the next, with rests between them.  Of own loops with a ring
#: that is widened three times, 13 of 30 passed three parts, one passed four, when no part might overlap the
#: one before; with more, a backlog at 100 steps was missed more often.
PARTS = 7
COMPARED = tuple(range(0, PARTS, 2))

#: Bins of birth steps in one span: growth that began an eighth of the run ago has 8 spans, and must show
#: LEAST_EVENTS.
FINENESS = 4

#: Of lines that grow more slowly than this, in bytes a step, holders are not asked; several of them together
#: may exceed the least limit that is of use.
LEAST_RATE = 12.0

#: Spans in which the floor of a site rose, before its survivors are scanned: fewer can't have LEAST_EVENTS
#: where spans are wide.  As many births are too few to be told of as what may become growth, and bytes at
#: fewer scans than these say nothing of how they move.
LEAST_RISES = 3

# ---- growth of plain numbers: malloc's bytes, counts, pages ----

#: So many steps, rests or looks must agree before anything is said of them; the first step that is followed
#: from line to line only fills the tables: three that agree leave one line in thousands to chance where each
#: gains at random.  A container with fewer items than half of the steps that left something below it is short
#: from as many steps on.  Not varied.
AGREEING = 4

#: Two numbers are about the same if they differ by less than this share; a part below it is a small one, the
#: rest is most: a line is named when it gains most of the growth, samples explain native growth if they add
#: up to it within this share (deaths not seen make more), items come with others if their rates agree within
#: it, of two ranks one stands out if the other has less; a count that rises by about the share by which the
#: mean size does is a larger demand (model.md).  The others: not varied.
PART = 0.25

#: What gains or loses less than this share is still: no line but the one that is named gains it, other
#: threads disturb a step with more, a device's cache grows although what is allocated does not with less.
#: Not varied.
SLIGHT = 0.2

#: What is always so, is so at this share of the marks; what never is, at the rest of them.  Where no size is
#: new nothing may rise by more than the rest, and a rank stands out by it.  Not varied.
NEARLY_ALL = 0.9

#: What is level rises by less than this share of what it is compared with: Python's large blocks by that of
#: malloc's rise, a worker that has copied all but this share of its pages has copied all.  Not varied.
LEVEL = 0.02

#: Python's large blocks, where they are not level, must have been known over this share of the steps, to be
#: taken off malloc's.  Not varied.
KNOWN_SHARE = 0.4

#: Native growth below this many bytes a step is never reported: malloc's own headers, rounding, small
#: caches.  A page.  Not varied.
LEAST_NATIVE = 4096.0

#: Native growth up to these many bytes is the bookkeeping of other things that grow: of a block, one with a
#: mapping of its own, a thread, a descriptor.  Not varied.
PER_BLOCK, PER_THREAD, PER_DESCRIPTOR = 2.0 * KIB, 64.0 * KIB, 32.0 * KIB + LARGER_BUFFERS
PER_MAPPED_BLOCK = PAGE_BYTES + PER_BLOCK

#: malloc rounds Python's large blocks up by this share at most.  Not varied.
LARGE_ROUNDING = 0.15

#: Bytes that torch keeps beside each byte of an autograd node that a walk has met, with the node.  Not
#: varied.
NODE_SHARE = 1.5

#: Totals must rise over so many times the batches that can be in flight: between none and all of them hold
#: memory.  Not varied.
FLIGHTS = 4

#: Descriptors, threads, processes and segments count from one in so many steps: shorter pauses are no rest.
#: The usual limit of 1,024 descriptors is met after 20,000.  Of 49 clean programs none was reported.
LEAST_COUNT = 1 / LEAST_REST

#: Private memory that rises by less than this many bytes a step is never unexplained growth: of 34 clean
#: programs the account of one rose at all, by 974 bytes a step; four pages.
LEAST_UNEXPLAINED = 16384

#: Nor where it rose by fewer bytes in all, or over fewer steps than these are at the least rate, unless by
#: more in proportion: a thread's arena or a library's tables are taken once.  Without a least number of steps
#: one clean loop was reported, of 60 steps under AddressSanitizer; of 37 clean programs none was.
LEAST_ACCOUNTED = MIB

# ---- what workers copy, ranks, lines of holders ----

#: Bytes that all workers of a loader will have copied in the end, for a finding.  Not varied.
LEAST_END_BYTES = 4 * MIB

#: And so many must have been copied already in one worker; attributes of fewer pages are not followed.  Not
#: varied.
LEAST_COPIED_BYTES = 256 * KIB
LEAST_PAGES = LEAST_COPIED_BYTES // PAGE_BYTES

#: A type counts as read where its pages have been copied by this share of what those of the most copied type
#: have.  Not varied.
ACTIVE_SHARE = 0.3

#: A collection is the cause where it must have copied this share of what the collector writes to: more than
#: half, with a tenth for what is written to between two readings.
BY_COLLECTION = 0.6

#: Copying is over where nothing more was copied over more than half of the batches seen, and so many.  Not
#: varied.
BATCHES_AT_REST = 10

#: A rank stands out beyond so many deviations of the middle one (Iglewicz and Hoaglin, How to Detect and
#: Handle Outliers, 1993), and by so many bytes a step.  Not varied.
OUTLIER, LEAST_APART = 3.5, 1.0 * KIB

#: Where a holder was last enlarged before this share of what grows in it was born, that tells nothing of it:
#: lists, dicts and sets have room for at most five times what they had then.  Not varied.
EARLY_SHARE = 1 / 8

#: What lies in the places of a list is compared from one walk to a later one once so many are set, and has to
#: be half more.  Of simulated lists whose contents vary as much as their mean (exponential), so many places
#: seem to have a third too little in 1.2 %, 20 in 5 %, 80 in none of 2,500; by half of that, 40 never do.
LEAST_PLACES = 40
