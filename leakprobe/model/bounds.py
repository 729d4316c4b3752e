"""Bounds of work and the schedule: how much is kept, sent, shown, and when it is looked, with the reasons.

None of them makes a verdict another one.  A bound that is met says so where something is left out; a schedule
moves when a verdict comes.  The numbers that decide stand in thresholds.py, what is simply so in facts.py.
"""

from leakprobe.model.units import KIB, MIB

# ---- defaults and ranges of the public functions ----

#: Steps that are not judged: the first ones build what stays (optimizer state, workspaces, caches of code).
WARMUP, LONGEST_WARMUP = 5, 10**9
#: Frames kept of a stack, and shown of one.
STACK_FRAMES, MOST_STACK_FRAMES = 16, 64
#: Paths that why() gives, as the core has it (LP_RETENTION_MOST).
MOST_PATHS = 64
#: Seconds that a rank waits for the reports of the others, at least for each of them, and between two looks.
RANKS_TIMEOUT_S, LEAST_WAIT_S, POLL_S = 30.0, 0.01, 0.02

# ---- series ----

#: What is thinned keeps one of so many, once there are as many times the number that is kept.
THINNING = 2
#: Points of a plain number beyond this are thinned, so that a slope takes at most 2,016 pairs.
MOST_POINTS = 64
#: Rows of a scan beyond this are put together, by powers of two of birth steps: as fine as the bins of the
#: longest span.
MOST_ROWS = 256
#: Trainings and evaluations whose steps are kept, the last ones; of more epochs those too short to be judged
#: are forgotten.
MOST_PHASES = 512
#: Marks that are kept, of the timeline and of autograd nodes: more are thinned.
MOST_MARKS = 4096
#: A scan is kept once the next one comes at so many times its step, and so many before the newest.
SCAN_STRETCH, KEPT_SCANS = 1.2, 3
#: Lengths of a holder that are kept, those of the last walks.
KEPT_LENGTHS = 9

# ---- lines and groups ----

#: Totals smaller than this, in bytes, are not followed.
FOLLOWED_BYTES = 16 * KIB
#: Lines whose blocks a walk asks for although they do not grow, those with most bytes: garbage that is freed
#: now and then may keep them.
MOST_LARGE = 16
#: Lines of blocks that are remembered, before those of which nothing is alive are forgotten.
MOST_LINES = 4096
#: Sites of objects that are scanned, those that may have grown most, and that are followed.
MOST_SITES, FOLLOWED_SITES = 256, 1024
#: Groups with most bytes whose totals are followed from walk to walk.
FOLLOWED_GROUPS = 192
#: Groups that are traced at most, the fastest first, and autograd nodes that are read.
TRACED_GROUPS, TORCH_BUDGET = 256, 100_000
#: A link of a chain is so many references at most: a partial, its tuple, an item of that.
LONGEST_LINK = 4
#: Names of classes, and of files, of which is known what they are.
CACHED_NAMES, CACHED_FILES = 256, 4096
#: Containers below an optimizer's state are followed so deep.
STATE_DEPTH = 4

# ---- processes ----

#: Processes that a program starts with multiprocessing, and that are watched: the ranks of a machine, and not
#: all of a program that starts one a step, each of which pays for a watch and a recording.
MOST_PROCESSES = 64

#: Child processes that nobody watches and whose memory is read, 20 us each.
MOST_CHILDREN = 32

# ---- what a report has room for ----

#: The confidence of a rise is half of what it may be after so many steps from point to point.
POINTS_TO_BELIEVE = 3
#: A limit that is further away than so many times the steps that were watched is no news: a job is seldom a
#: hundred times as long as what was watched of it.
HORIZON = 100
#: Sites of a look that grow, and of the objects and blocks that take most bytes; spans of steps of each.
SITES_GROWING, SITES_OF_OBJECTS, SITES_OF_BLOCKS, SITE_SPANS = 16, 10, 10, 96
#: Ranks that a note names, outliers first.
SHOWN_RANKS = 16
#: Rows of the timeline, and findings, that a rank sends to the others.
SENT_ROWS, SENT_FINDINGS = 64, 20
#: Owners that are named where memory runs out, nodes of a cycle, and how often it is told: a program that
#: handles it may meet it at every step.
SHOWN_OWNERS, SHOWN_NODES, TOLD_TIMES = 8, 6, 3

#: Folders with blanks in their names that are looked for one by one in the texts of a redacted page.
NAMED_FOLDERS = 64
#: Lines of source that are shown above and below, the largest file that is read, characters of a line.
SOURCE_AROUND, SOURCE_BYTES, SOURCE_WIDTH = 4, MIB, 400

# ---- looks and walks ----

#: Seconds at any time, share of the time that goes by, distance to the next as a share of the measured steps:
#: of looks, of walks, and of walks in a DataLoader worker, each of which copies pages of its parent.  With
#: looks a fifth apart, of half the price, what was let go before the last steps was reported as growing, and
#: no look fell into some epochs; with 0.12 (in a loop of 640 steps 36 looks, not 54, and 1 % less time), the
#: rate of segments of shared memory was 7 to 18 % too low.  A look takes 2 to 10 ms beside torch, all of its
#: slices together: of 0.25 s at any time, looks would come a fifth apart on a busy machine.
LOOK_PRICE, WALK_PRICE, WORKER_WALK_PRICE = (0.5, 0.01, 0.08), (2.0, 0.02, 0.35), (1.2, 0.02, 0.4)
#: Steps from a look to the next at least, in the loop: one at each of the first steps cost a clean loop of
#: 640 steps 1 % of its time.
LOOK_STEPS = 3
#: What is dear is spread over so many times the measured steps at the first of it, before only the share of
#: time is left.
REACH = 20.0
#: malloc's bytes must rise over this share of the measured steps before the heap is walked for it within the
#: loop.  As of two looks in a row, one or two steps apart in the beginning, what torch makes in the first
#: steps of a training loop was walked for twice, 0.1 s each.
MALLOC_SPREAD = 0.2
#: And by so many bytes, if no count rises beside them: torch's first steps and the probe's own tables took 7
#: to 19 KiB of ten clean training loops, six of which were walked for less than 16, 0.15 s each.
LEAST_RISEN = 32 * KIB
#: A walk that takes so many seconds is only taken again after REACH times the steps, where the one before met
#: what grows.  One of 0.2 s, of 2 million objects, comes after eleven times the steps: two in 300, and the
#: last; one of 5 ms after 1.35 times, as all did before.
DEAR_S = 0.25
#: Marks are followed one by one for twice so many measured steps, then ever fewer, but one in so many seconds
#: at least: one costs half a millisecond in a loop whose steps push it out of the processor's caches.
FOLLOWED_MARKS, FOLLOW_S = 12, 0.2
#: A slice of a scan, in processor time, and one that is not cut short.  The clock is read between blocks of
#: the table: where 0.8 ms are asked, the median slice takes 1.09 ms.
SLICE_NS, WHOLE_NS = 800_000, 1 << 50

# ---- the process: malloc, tables of /proc, pages ----

#: Pages and devices are read after so many measured steps, then whenever half as many more went by.
MEMORY_STEPS = 8
#: The probe's own memory is read after so many steps, then whenever this share of the steps went by: the
#: kernel is asked about each page of the shadow.
OVERHEAD_STEPS, OVERHEAD_STRETCH = 16, 1 / 4
#: Readings of the process between a mark and twice as many steps.
READINGS = 32
#: malloc is read at marks within this many seconds, and this share of the time that went by.
MALLOC_ALLOWANCE_S, READING_SHARE = 0.1, 0.003
#: /proc's tables of mappings, descriptors and children are read between looks, and those of pages after
#: looks, within so many seconds and this share.
TABLES_ALLOWANCE_S, TABLES_SHARE = 0.005, READING_SHARE
#: Segments are listed anew at looks within so many seconds and the same share: the kernel's totals change
#: with any program's, and a listing goes through all mappings, 2 to 4 ms beside torch.  Of 0.05 s, a clean
#: loop of 640 short steps paid 15 ms for six.  They come at TABLES_STRETCH: on a virtual machine with
#: listings of 2.3 ms in a loop of 1 s, nine at the first 30 steps left none for the other 270.
LISTING_ALLOWANCE_S = 0.02
#: What reading the page tables may cost at any time, in seconds.
SMALL_PRICE_S = 0.001
#: Tables are read once in this share of the measured steps, malloc in that one: it goes through its bins,
#: 0.2 ms; at 1/32 a loop of 640 steps paid for 133 readings, now for 75.
TABLES_STRETCH, MALLOC_STRETCH = 1 / 4, 1 / 16
#: So many full censuses are taken while malloc's bytes rise, then one in this share of the measured steps.
FULL_CENSUSES, FULL_STRETCH = 12, 0.25
#: From this many bytes a step on, a full census is taken where malloc's rise is steady, and large objects are
#: followed one by one where it is not, in case that one of Python's is replaced by a larger one.
LEAST_ENLARGED = 512.0

# ---- samples of native blocks, lines that are traced ----

#: Samples of native blocks that a step of what grows shall bring: 77 after a dozen steps of a line that
#: makes a tenth of it, whose rate is known to 11 % then (the square root of their number); all blocks where
#: there are fewer.
SAMPLES_A_STEP = 64
#: Samples after which it is decided whether they take too much time: how often they come is known to 10 %.
SAMPLES_TO_DECIDE = 96
#: Samples that live from which on fewer are taken: three quarters of what the core keeps, which are 65,536.
#: A table that is full takes none, and what leaks later would not be seen.
SAMPLES_KEPT = 49_152
#: Bytes between two samples, at least: smaller ones take every block.
LEAST_MEAN = 64
#: Seconds that a sample takes, with a stack of 16 frames, and the share of the time that samples may take.
SAMPLE_S, SAMPLES_SHARE = 2e-6, 0.01
#: Seconds beyond this share, once in a watch: 10,000 samples.  Of loops with quick steps, which end in less
#: than a second, too few were left: a line of 20,000 bytes a step read 15 % off in one of six runs.
SAMPLES_ALLOWANCE_S = 0.02
#: Looks in a row at which native memory did not grow before its blocks are sampled no more.
PATIENCE = 3
#: Steps that are followed from line to line at most, where it does not grow in each, or other threads gain
#: something in some: growth at each eighth step brings three.
TRACED_STEPS = 32
#: Lines passed in one step beyond this: no more is followed.
TRACED_EVENTS = 20_000

# ---- DataLoader workers ----

#: Sets of ended workers that are kept for the report, the last ones, and those in which something grew.
KEPT_SETS, KEPT_SETS_WITH_FINDINGS = 64, 128
#: Loaders that a loop reads side by side.
LOADERS_AT_ONCE = 3
#: Batches that a worker may have built beyond what its loader's prefetch_factor says.
SPARE_BATCHES = 1
#: Findings posted by one worker, the fastest first, and bytes of a report of one.
WORKER_FINDINGS, WORKER_REPORT_BYTES = 12, 96 * KIB
#: How often a report is read that its worker writes meanwhile; and a look at workers' memory in vain, each.
TRIES = 3
#: A worker must have had so many page faults, a copied page is one, before its dataset is walked.
WALK_FROM_FAULTS = 256
#: Processor time that may go into what workers copy: seconds, and a share of the time that went by.
COPIES_ALLOWANCE_S, COPIES_SHARE = 0.15, 0.01
#: A set is looked at again after this part of the steps that it has lived.
COPIES_STRETCH = 1 / 6
#: Objects followed in one dataset; beyond this it is said that it can't be walked.
DATASET_OBJECTS = 60_000_000
#: Attributes of attributes are told apart down to this depth, and the items of containers up to this length.
DATASET_DEPTH, DATASET_ITEMS = 5, 16

# ---- roles and automatic steps ----

#: Readings of roles take at most this share of the time that went by: a tenth of what a watch of 5,000 short
#: steps may take in all (docs/internals.md, targets).
ROLE_SHARE = 0.003
#: What the readings of the first steps may take beyond it, in seconds: some three of a model of a hundred
#: tensors, at 3 ms each.
ROLE_ALLOWANCE_S = 0.01
#: Searches for Modules, after the first, take at most this share: one takes 12 ms beside torch alone, 30 ms
#: with 2 million lists, and each new optimizer asks for one.
SEARCH_SHARE = 0.01
#: Steps from a reading to the next, as a share of those since the first: the highest of a loop of hundreds is
#: met by one in a few dozen, and a step that is asked is read as a whole mark.  A loop of 640 steps paid for
#: 124 readings.
ROLE_STRETCH = 0.25
#: A reading needs the births of the step that ended, and of the one before it, whose gradients die in it.
ROLE_STEPS = 2
#: Lines that a report names of what was alive at a medium's highest point: those of a model of 25 layers are
#: most often its parameters, one line of optimizer.step() and one of backward().
PEAK_PARTS = 20
#: Batches, or steps of other optimizers, that the leading one lets by before it counts as resting, where it
#: has not let by more before: a validation of eight batches between two steps ends no step.
RESTING_BATCHES = 8
#: Its last gaps, whose middle one is the usual: four evaluations among them do not change it.
KEPT_GAPS = 9
