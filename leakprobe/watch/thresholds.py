"""Numbers of the watch that bound work or name a line, each with where it comes from."""

import sys

#: Steps that are followed from line to line.  The first only fills the tables, so that they don't grow in the
#: others; three that agree leave one line in thousands to chance where each gains at random.
MEASURED_STEPS = 4

#: So many are followed at most, where it does not grow in each, or other threads gain something in some:
#: growth at each eighth step brings three.  Bounds work.
MOST_STEPS = 32

#: Lines passed in one step beyond this: no more is followed.  Bounds work.
MAX_EVENTS = 20_000

#: Ids for sys.monitoring: those that CPython's documentation gives to no kind of tool.
TOOL_IDS = (3, 4)

#: A line is named when it gains the first share of the growth, and no other gains or loses the second.
MOST, SOME = 0.75, 0.2

#: Frames of a stack that are shown.  Bounds work.
STACK_FRAMES = 16

#: Processor time of other threads, in seconds, below which none of them ran: two clocks are read one after
#: the other, and a switch between threads takes a few microseconds.
IDLE_S = 50e-6

#: Samples of native blocks that a step of what grows shall bring: 77 after a dozen steps of a line that
#: makes a tenth of it, whose rate is known to 11 % then (the square root of their number); all blocks where
#: there are fewer.
SAMPLES_A_STEP = 64

#: Samples after which it is decided whether they take too much time: how often they come is known to 10 %.
SAMPLES_TO_DECIDE = 96

#: Bytes between two samples, at least: smaller ones take every block.
LEAST_MEAN = 64

#: Seconds that a sample takes, with a stack of 16 frames, and the share of the time that samples may take.
SAMPLE_S, SAMPLES_SHARE = 2e-6, 0.01

#: Seconds beyond this share, once in a watch: 10,000 samples.  Of loops with quick steps, which end in less
#: than a second, too few were left: a line of 20,000 bytes a step read 15 % off in one of six runs.
SAMPLES_ALLOWANCE_S = 0.02

#: Looks in a row at which native memory did not grow before its blocks are sampled no more.
PATIENCE = 3

#: Lines with less than this share of native growth are not told apart from the rest of it: a
#: twentieth is what residual growth is told from, too.
LEAST_SHARE = 0.05

#: A limit that is further away than so many times the steps that were watched is no news: a job is seldom a
#: hundred times as long as what was watched of it.
HORIZON = 100

#: Readings of the process between a mark and twice as many steps.  Bounds work.
READINGS = 32

#: Private memory that rises by less than this many bytes a step is never unexplained growth: of 34 clean
#: programs the account of one rose at all, by 974 bytes a step; four pages.
LEAST_UNEXPLAINED = 16384

#: Nor where it rose over fewer steps: at the least rate these are 1 MiB, no more than a thread's arena or a
#: library's tables take once.  A precaution: without it, too, none of 37 clean programs was reported.
LEAST_ACCOUNTED = 64

#: Samples explain native growth if they add up to it within this share; deaths not seen make more.
AGREE = 0.25

#: Marks are followed one by one for twice so many measured steps, then ever fewer, but one in so many seconds
#: at least: one costs half a millisecond in a loop whose steps push it out of the processor's caches.
FOLLOWED_MARKS, FOLLOW_S = 12, 0.2

#: Priority among what multiprocessing runs when a worker ends: its own is 10 at most, and ends queues.
FIRST_AT_EXIT = 100

#: malloc is read at marks within this many seconds, and this share of the time that went by.
MALLOC_ALLOWANCE_S, READING_SHARE = 0.1, 0.003

#: /proc's tables of mappings, descriptors and children are read between looks, and those of pages after
#: looks, within so many seconds and this share.
TABLES_ALLOWANCE_S, TABLES_SHARE = 0.005, READING_SHARE

#: Segments are listed anew at looks within so many seconds and the same share: the kernel's totals change
#: with any program's, and a listing goes through all mappings, 2 to 4 ms beside torch.
LISTING_ALLOWANCE_S = 0.05

#: Bytes in memory whose page tables the kernel goes through in a second, and what that may cost at any time.
PAGE_TABLE_RATE, SMALL_PRICE_S = 80e9, 0.001

#: Native growth below this many bytes a step is never reported: malloc's own headers, rounding, small caches.
LEAST_NATIVE = 4096.0

#: From this many on, a full census is taken for it, in case that one object of Python is replaced by a larger
#: one.
LEAST_ENLARGED = 512.0

#: Native growth up to these many bytes is the bookkeeping of other things that grow.
PER_BLOCK, PER_MAPPED_BLOCK, PER_THREAD = 2048.0, 4096.0 + 2048.0, 64 * 1024.0
PER_DESCRIPTOR = 32 * 1024.0 if sys.version_info < (3, 14) else 288 * 1024.0

#: oneDNN keeps what it prepares for so many shapes, the last ones used (ONEDNN_PRIMITIVE_CACHE_CAPACITY).
CACHED_SHAPES = 1024

#: malloc gives blocks from this size on a mapping of their own.
MAPPED_BLOCK_BYTES = 128 * 1024

#: Totals must rise over so many times the batches that can be in flight.
FLIGHTS = 4

#: Descriptors, threads, processes and segments count from this many a step: at one in twenty steps the usual
#: limit of 1,024 descriptors is met after 20,000.  Of 49 clean programs none was reported.
LEAST_COUNT = 0.05

#: Tables are read once in this share of the measured steps, malloc in that one.  Bounds work: a reading of
#: malloc goes through its bins, 0.2 ms; at 1/32 a loop of 640 steps paid for 133, now for 75.
TABLES_STRETCH, MALLOC_STRETCH = 1 / 4, 1 / 16

#: So many full censuses are taken while malloc's bytes rise, then one in this share of the measured steps.
#: Bounds work.
FULL_CENSUSES, FULL_STRETCH = 12, 0.25

#: Python's large blocks are level if they rise by less than this share of malloc's rise; else they must have
#: been known over that share of the steps, to be taken off it.
LEVEL_SHARE, KNOWN_SHARE = 0.02, 0.4

#: What is always so, is so at this share of the marks; what never is, at the rest of them.
NEARLY_ALL = 0.9

#: malloc rounds Python's large blocks up by this share at most.
LARGE_ROUNDING = 0.15

#: Bytes that torch keeps beside each byte of an autograd node that a walk has met, with the node.
NODE_SHARE = 1.5

#: What is dear is spread over so many times the measured steps at the first of it, before only the share of
#: time is left.  Bounds work.
REACH = 20.0

#: malloc's bytes must rise over this share of the measured steps before the heap is walked for it within the
#: loop.  As of two looks in a row, one or two steps apart in the beginning, what torch makes in the first
#: steps of a training loop was walked for twice, 0.1 s each.
MALLOC_SPREAD = 0.2

#: A walk that takes so long is only taken again after REACH times the steps, where the one before met what
#: grows.  One of 0.2 s, of 2 million objects, comes after eleven times the steps: two in 300, and the last;
#: one of 5 ms after 1.35 times, as all did before.
DEAR_S = 0.25

#: Seconds at any time, share of the time that goes by, distance to the next as a share of the measured steps:
#: of looks, of walks, and of walks in a DataLoader worker, each of which copies pages of its parent.  With
#: looks a fifth apart, of half the price, what was let go before the last steps was reported as growing, and
#: no look fell into some epochs.
LOOK_PRICE, WALK_PRICE, WORKER_WALK_PRICE = (0.25, 0.01, 0.08), (2.0, 0.02, 0.35), (1.2, 0.02, 0.4)
