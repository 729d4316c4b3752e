"""Numbers of the watch that bound work or name a line, each with where it comes from."""

#: Steps that are followed from line to line.  The first only fills the tables, so that they don't grow in the
#: others; three that agree leave one line in thousands to chance where each gains at random.
MEASURED_STEPS = 4

#: So many are followed at most, where other threads gain something in some.  Bounds work.
MOST_STEPS = 16

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

#: Samples of native blocks that a step of what grows shall bring: 200 after a dozen steps, with which the
#: rate
#: of a line is known to 7 % (the square root of their number); all blocks where there are fewer.
SAMPLES_A_STEP = 16

#: Bytes between two samples, at least: smaller ones take every block.
LEAST_MEAN = 64

#: Seconds that a sample takes, with a stack of 16 frames, and the share of the time that samples may take.
SAMPLE_S, SAMPLES_SHARE = 2e-6, 0.01

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
