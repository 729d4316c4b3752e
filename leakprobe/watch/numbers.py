"""Numbers of the watch that bound work or name a line, each with where it comes from."""

#: Steps that are followed from line to line.  The first only fills the tables, so that they don't grow in the
#: others; three that agree leave one line in thousands to chance where each gains at random.
MEASURED_STEPS = 4

#: So many are followed at most, where other threads gain something in some.  Bounds work.
MOST_STEPS = 16

#: Lines passed in one step beyond this: no more is followed.  Bounds work.
MAX_EVENTS = 20_000

#: A line is named when it gains the first share of the growth, and no other gains or loses the second.
MOST, SOME = 0.75, 0.2

#: Frames of a stack that are shown.  Bounds work.
STACK_FRAMES = 16

#: Processor time of other threads, in seconds, below which none of them ran: two clocks are read one after
#: the other, and a switch between threads takes a few microseconds.
IDLE_S = 50e-6
