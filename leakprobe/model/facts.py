"""Sizes, formats and laws of others (CPython, the kernel, glibc, torch, statistics), and formats of our own.

None of them was chosen so that something grows or does not: each is as it is, with where that is written.
"""

import sys

from leakprobe.model.units import KIB, MIB

# ---- statistics ----

#: The variance of a time that is drawn evenly, as a share of the square of the span.
EVEN_VARIANCE = 1 / 12
#: The variance of the square of what is drawn evenly about 0, as a share of the square of its mean: (1 / 5 -
#: 1 / 9) * 9.
SQUARES_VARIANCE = 4 / 5
#: Standard deviations of a normal distribution in its median absolute deviation: 1 / 0.6745.
DEVIATIONS_IN_MAD = 1.4826
#: Laplace's rule of succession adds one event of each outcome to those that were seen: kept, not kept.
OUTCOMES = 2

# ---- CPython ----

#: Bytes of the largest block that CPython's own allocator serves (Objects/obmalloc.c): the size of an item
#: that no walk has met, and from where on a column of numbers lies in malloc's memory.
SMALL_BYTES = 512
#: The largest first threshold of the garbage collector that a version of CPython starts with: 700 up to 3.12,
#: 2,000 since 3.13 (gc.get_threshold() of each).  Above it somebody has raised it.
LARGEST_THRESHOLD = 2000
#: itertools.tee keeps items in blocks of so many; a block goes when every iterator is past it.
TEE_BLOCK_ITEMS = 57
#: A list is enlarged by this part of its length, and so many items more (Objects/listobject.c).
ROOM_OF_A_LIST, LEAST_ROOM = 8, 6
#: The flag of a class made by a class statement: Py_TPFLAGS_HEAPTYPE.
HEAP_TYPE = 1 << 9
#: Ids for sys.monitoring: those that CPython's documentation gives to no kind of tool.
TOOL_IDS = (3, 4)
#: Bytes by which the buffers of a file, one for reading and one for writing, are larger since 3.14: 128 KiB
#: each.
LARGER_BUFFERS = 0 if sys.version_info < (3, 14) else 256 * KIB
#: Priority among what multiprocessing runs when a worker ends: its own is 10 at most, and ends queues.
FIRST_AT_EXIT = 100

# ---- the core ----

#: CUDA devices that have a medium each (LP_CUDA_DEVICES).
CUDA_DEVICES = 16

# ---- the kernel and malloc ----

#: A page, on all platforms that are built for but some of ARM.
PAGE_BYTES = 4096
#: Minor page faults among the fields of /proc/PID/stat behind the name: proc(5), field 10.
MINOR_FAULTS = 7
#: A line of the processor's caches.
CACHE_LINE = 64
#: Bytes in memory whose page tables the kernel goes through in a second.
PAGE_TABLE_RATE = 80e9
#: Processor time of other threads, in seconds, below which none of them ran: two clocks are read one after
#: the other, and a switch between threads takes a few microseconds.
IDLE_S = 50e-6
#: malloc gives blocks from this size on a mapping of their own.
MAPPED_BLOCK_BYTES = 128 * KIB
#: Bytes that a library's pool may have taken from the system before the watch and hand out in it: chunks of
#: mimalloc 2.2 have 32 MiB, of jemalloc 5 2 MiB.  Objects that say what they own are believed up to these and
#: twice what the process grew by.
POOL_CHUNK = 32 * MIB

# ---- torch ----

#: A DataLoader's prefetch_factor where it was not given.
PREFETCH_FACTOR = 2
#: oneDNN keeps what it prepares for so many shapes, the last ones used (ONEDNN_PRIMITIVE_CACHE_CAPACITY).
CACHED_SHAPES = 1024

# ---- formats of our own ----

#: The version of docs/report.schema.json.
REPORT_VERSION = 2
#: Hex digits of a finding's fingerprint.
FINGERPRINT_DIGITS = 12
#: Areas of a worker's slot on the board: the newest report, and the one that is being written.
AREAS = 2

#: The normal deviate of Student's t is (8 free + 1) / (8 free + 3) * sqrt(free * log(1 + t * t / free)), to
#: 0.02 from five degrees of freedom on (D. L. Wallace, Annals of Mathematical Statistics 30, 1959).
WALLACE_FACTOR, WALLACE_ABOVE, WALLACE_BELOW = 8, 1, 3

#: Containers from before the watch that a census counts under the line which last enlarged them.
COUNTED_WHERE_ENLARGED = frozenset({"list", "collections.deque", "bytearray", "array.array"})
