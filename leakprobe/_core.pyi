"""The C core.  Sizes are bytes, times nanoseconds; steps are numbered from 1, 0 is before the first mark.

Rows are named tuples that the core makes; dicts are described by TypedDicts, which exist for checkers only.
A site is the number of an allocation site, which site_frames() decodes; below SITE_FIRST it is no line of code.
Errors raised on purpose are LeakprobeError.  mypy.stubtest checks this file against the module (.ci/lint).
"""

import builtins
import sys
from collections.abc import Callable, Sequence
from typing import Final, TypedDict, TypeVar, final, type_check_only

from _typeshed import structseq
from typing_extensions import Self, disjoint_base

SITE_UNKNOWN: Final = 0
"""Born before the watch."""
SITE_NATIVE: Final = 1
"""No Python frame was running."""
SITE_SELF: Final = 2
"""An object of leakprobe's own."""
SITE_RECYCLED: Final = 3
"""An object from a free list: its line was not seen."""
SITE_OVERFLOW: Final = 4
"""The table of sites was full."""
SITE_FIRST: Final = 16
"""The first site that is a line of code."""

TENSOR_HAS_GRAPH: Final = 1
"""TensorBlock.bits: has a grad_fn."""
TENSOR_IS_GRAD: Final = 2
"""TensorBlock.bits: is some tensor's .grad."""
TENSOR_IS_SAVED: Final = 4
"""TensorBlock.bits: saved by an autograd graph."""
TENSOR_IS_INNER: Final = 8
"""TensorBlock.bits: no Python object before; only a graph or another tensor has it."""

# ---- rows ----

@final
class Frame(structseq[str | int], tuple[str, int, str]):
    """One frame of a stack."""

    __match_args__: Final = ("filename", "lineno", "function")
    @property
    def filename(self) -> str: ...
    @property
    def lineno(self) -> int:
        """1-based; 0 if unknown."""

    @property
    def function(self) -> str:
        """Qualified name, where the version of Python has it."""

@final
class Birth(structseq[int], tuple[int, int, int]):
    """Where and when an object was born; the steps differ where only a range of them is known."""

    __match_args__: Final = ("site", "first_step", "last_step")
    @property
    def site(self) -> int: ...
    @property
    def first_step(self) -> int: ...
    @property
    def last_step(self) -> int: ...

@final
class StepRange(structseq[int], tuple[int, int]):
    """Steps whose births are kept as one, as if of the last."""

    __match_args__: Final = ("first_step", "last_step")
    @property
    def first_step(self) -> int: ...
    @property
    def last_step(self) -> int: ...

@final
class Gap(structseq[int | str], tuple[int, int, str]):
    """Steps in which births were not seen."""

    __match_args__: Final = ("first_step", "last_step", "why")
    @property
    def first_step(self) -> int: ...
    @property
    def last_step(self) -> int: ...
    @property
    def why(self) -> str: ...

@final
class Cohort(structseq[int], tuple[int, int, int]):
    """What is alive of the births of one step, of one site."""

    __match_args__: Final = ("step", "count", "bytes")
    @property
    def step(self) -> int: ...
    @property
    def count(self) -> int: ...  # type: ignore[override]  # the field, not tuple.count()
    @property
    def bytes(self) -> int: ...

@final
class CensusGroup(structseq[str | int], tuple[str, int, int, int, int, int, int, int, int, int]):
    """Live objects of one type and site; the window is what census() was asked about."""

    __match_args__: Final = (
        "type",
        "type_id",
        "site",
        "count",
        "bytes",
        "window_count",
        "window_bytes",
        "window_steps",
        "first_step",
        "last_step",
    )
    @property
    def type(self) -> str: ...
    @property
    def type_id(self) -> int:
        """The type's id()."""

    @property
    def site(self) -> int: ...
    @property
    def count(self) -> int: ...  # type: ignore[override]  # the field, not tuple.count()
    @property
    def bytes(self) -> int: ...
    @property
    def window_count(self) -> int: ...
    @property
    def window_bytes(self) -> int: ...
    @property
    def window_steps(self) -> int:
        """Steps of the window with births that survive."""

    @property
    def first_step(self) -> int: ...
    @property
    def last_step(self) -> int: ...

@final
class Container(structseq[int | str], tuple[int, str, int, int, int, int]):
    """One of the largest containers."""

    __match_args__: Final = ("address", "type", "length", "bytes", "site", "first_step")
    @property
    def address(self) -> int:
        """Its id()."""

    @property
    def type(self) -> str: ...
    @property
    def length(self) -> int:
        """Number of items."""

    @property
    def bytes(self) -> int: ...
    @property
    def site(self) -> int: ...
    @property
    def first_step(self) -> int:
        """Step of birth."""

@final
class BlockGroup(structseq[str | int], tuple[str, int, int, int, int, int, int, int, int]):
    """Live native blocks of one medium and base site."""

    __match_args__: Final = (
        "medium",
        "site",
        "count",
        "bytes",
        "window_count",
        "window_bytes",
        "window_steps",
        "first_step",
        "last_step",
    )
    @property
    def medium(self) -> str: ...
    @property
    def site(self) -> int: ...
    @property
    def count(self) -> int: ...  # type: ignore[override]  # the field, not tuple.count()
    @property
    def bytes(self) -> int: ...
    @property
    def window_count(self) -> int: ...
    @property
    def window_bytes(self) -> int: ...
    @property
    def window_steps(self) -> int:
        """Steps of the window with births that survive."""

    @property
    def first_step(self) -> int: ...
    @property
    def last_step(self) -> int: ...

@final
class Block(structseq[int | str], tuple[int, int, str, int, int]):
    """A live native block."""

    __match_args__: Final = ("address", "bytes", "medium", "site", "step")
    @property
    def address(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def medium(self) -> str: ...
    @property
    def site(self) -> int: ...
    @property
    def step(self) -> int:
        """Step of birth."""

@final
class Event(structseq[int | str], tuple[int, int, str, int, int]):
    """A native block that was born or died."""

    __match_args__: Final = ("address", "bytes", "medium", "site", "step")
    @property
    def address(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Negative: it was freed."""

    @property
    def medium(self) -> str: ...
    @property
    def site(self) -> int: ...
    @property
    def step(self) -> int: ...

@final
class Events(structseq[list[Event] | int], tuple[list[Event], int]):
    """The last births and deaths of native blocks."""

    __match_args__: Final = ("events", "total")
    @property
    def events(self) -> list[Event]:
        """Oldest first."""

    @property
    def total(self) -> int:
        """How many there were in all; the older ones are forgotten."""

@final
class TensorBlock(structseq[int], tuple[int, int, int]):
    """A tensor and the block of the ledger it lies on."""

    __match_args__: Final = ("tensor", "block", "bits")
    @property
    def tensor(self) -> int:
        """Its id()."""

    @property
    def block(self) -> int:
        """Address of the block."""

    @property
    def bits(self) -> int:
        """TENSOR_* bits."""

@final
class MemoryAccount(structseq[int], tuple[int, int, int, int, int, int]):
    """Private memory of the process at one moment, in bytes; 0 or less where not known."""

    __match_args__: Final = ("in_use", "free", "pool_touched", "pool_mapped", "resident", "mapped")
    @property
    def in_use(self) -> int:
        """Malloc's live bytes without the probe's."""

    @property
    def free(self) -> int:
        """What malloc keeps for later."""

    @property
    def pool_touched(self) -> int:
        """Anonymous memory beyond malloc's, CPython's and the probe's."""

    @property
    def pool_mapped(self) -> int:
        """The same of all that can be written, touched or not."""

    @property
    def resident(self) -> int:
        """All of the process, without the probe's and what malloc keeps."""

    @property
    def mapped(self) -> int:
        """The same of all that can be written, touched or not."""

@final
class ResourceCounts(structseq[int], tuple[int, int]):
    """What the process has open."""

    __match_args__: Final = ("descriptors", "threads")
    @property
    def descriptors(self) -> int: ...
    @property
    def threads(self) -> int: ...

@final
class LedgerRow(structseq[str | int], tuple[str, int, int, int, int, int, int]):
    """A row of a Snapshot: what is alive of one medium, type and base site."""

    __match_args__: Final = ("medium", "type_id", "site", "first_step", "last_step", "count", "bytes")
    @property
    def medium(self) -> str: ...
    @property
    def type_id(self) -> int:
        """id() of the type; 0 for native blocks."""

    @property
    def site(self) -> int: ...
    @property
    def first_step(self) -> int: ...
    @property
    def last_step(self) -> int: ...
    @property
    def count(self) -> int: ...  # type: ignore[override]  # the field, not tuple.count()
    @property
    def bytes(self) -> int: ...

@final
class LedgerDiff(structseq[str | int], tuple[str, int, int, int, int]):
    """A row of the difference of two snapshots."""

    __match_args__: Final = ("medium", "type_id", "site", "count_diff", "size_diff")
    @property
    def medium(self) -> str: ...
    @property
    def type_id(self) -> int:
        """id() of the type; 0 for native blocks."""

    @property
    def site(self) -> int: ...
    @property
    def count_diff(self) -> int: ...
    @property
    def size_diff(self) -> int:
        """Bytes."""

@final
class TypeTally(structseq[str | int], tuple[str, int, int]):
    """Objects of one type."""

    __match_args__: Final = ("type", "count", "bytes")
    @property
    def type(self) -> str: ...
    @property
    def count(self) -> int: ...  # type: ignore[override]  # the field, not tuple.count()
    @property
    def bytes(self) -> int: ...

@final
class SiteTally(structseq[int], tuple[int, int, int]):
    """Objects and blocks of one site."""

    __match_args__: Final = ("site", "count", "bytes")
    @property
    def site(self) -> int: ...
    @property
    def count(self) -> int: ...  # type: ignore[override]  # the field, not tuple.count()
    @property
    def bytes(self) -> int: ...

@final
class GraphGroup(structseq[str | None | int], tuple[str, str | None, int, int, int]):
    """Nodes of one medium, type and site; its number is its place in Graph.groups()."""

    __match_args__: Final = ("medium", "type", "site", "count", "bytes")
    @property
    def medium(self) -> str: ...
    @property
    def type(self) -> str | None:
        """None: buffers."""

    @property
    def site(self) -> int: ...
    @property
    def count(self) -> int: ...  # type: ignore[override]  # the field, not tuple.count()
    @property
    def bytes(self) -> int: ...

@final
class RetainedType(structseq[str | None | int], tuple[str | None, int]):
    """What the objects of a type keep."""

    __match_args__: Final = ("type", "bytes")
    @property
    def type(self) -> str | None:
        """None: buffers."""

    @property
    def bytes(self) -> int:
        """Without what is below another of the same type."""

@final
class GraphNode(structseq[str | None | int], tuple[str | None, str, int, int, int, int]):
    """An object or a buffer of a frozen graph."""

    __match_args__: Final = ("type", "medium", "group", "bytes", "retained", "dominator")
    @property
    def type(self) -> str | None:
        """None: a buffer."""

    @property
    def medium(self) -> str: ...
    @property
    def group(self) -> int:
        """Place of its group in groups()."""

    @property
    def bytes(self) -> int:
        """Its own."""

    @property
    def retained(self) -> int:
        """Bytes that would go with it."""

    @property
    def dominator(self) -> int:
        """Its immediate dominator, or the node itself."""

@final
class HolderTally(structseq[int], tuple[int, int, int, int]):
    """What a node holds of one group."""

    __match_args__: Final = ("group", "holder", "count", "bytes")
    @property
    def group(self) -> int:
        """Place of the group in groups()."""

    @property
    def holder(self) -> int:
        """Number of the node."""

    @property
    def count(self) -> int: ...  # type: ignore[override]  # the field, not tuple.count()
    @property
    def bytes(self) -> int: ...

@final
class GraphTaken(
    structseq[Graph | list[GarbageCycle] | dict[int, list[PathElement]] | Census | None],
    tuple[Graph, list[GarbageCycle], dict[int, list[PathElement]], Census | None],
):
    """What graph_take() found."""

    __match_args__: Final = ("graph", "cycles", "names", "census")
    @property
    def graph(self) -> Graph: ...
    @property
    def cycles(self) -> list[GarbageCycle]:
        """As find_cycles() has them."""

    @property
    def names(self) -> dict[int, list[PathElement]]:
        """Node => path to it, for those that hold or retain most."""

    @property
    def census(self) -> Census | None:
        """The groups of the objects of the graph; None without analysis."""

@final
class Pages(structseq[int], tuple[int, int]):
    """Pages of a region as a process has them."""

    __match_args__: Final = ("pages", "private")
    @property
    def pages(self) -> int: ...
    @property
    def private(self) -> int:
        """Of these, such as no other process has."""

@final
class SeriesState(structseq[int | bool], tuple[int, int, int, int, int, int, bool, int]):
    """Which spans of steps the series of sites have: at most 64, of equal width.

    Whenever they run out, neighbours are joined and the width doubles.
    """

    __match_args__: Final = (
        "first_step",
        "width",
        "closed",
        "open_steps",
        "rows",
        "overflow_sites",
        "sees_deaths",
        "exact_since",
    )
    @property
    def first_step(self) -> int:
        """The first step of the first span."""

    @property
    def width(self) -> int:
        """Steps of a closed span."""

    @property
    def closed(self) -> int:
        """Spans that are closed."""

    @property
    def open_steps(self) -> int:
        """Marks in the open span, which is the last of a series if this is not 0."""

    @property
    def rows(self) -> int:
        """Sites with a series of their own."""

    @property
    def overflow_sites(self) -> int:
        """Sites beyond those; they share the series of SITE_OVERFLOW."""

    @property
    def sees_deaths(self) -> bool:
        """Live counts are exact."""

    @property
    def exact_since(self) -> int:
        """The step since which they are; what was born before it is in no count."""

@final
class SiteSeries(
    structseq[int | None | tuple[int, ...]],
    tuple[int, int, int, int | None, tuple[int, ...], tuple[int, ...], tuple[int, ...]],
):
    """Live counts of one base site over the run, by span; SeriesState says which steps the spans have."""

    __match_args__: Final = ("site", "live", "births", "rises", "low", "high", "born")
    @property
    def site(self) -> int: ...
    @property
    def live(self) -> int:
        """Alive at the last mark."""

    @property
    def births(self) -> int:
        """In all, modulo 2**32."""

    @property
    def rises(self) -> int | None:
        """How often the floor rose, None from site_series()."""

    @property
    def low(self) -> tuple[int, ...]:
        """The lowest live count at a mark."""

    @property
    def high(self) -> tuple[int, ...]:
        """The highest live count at a mark."""

    @property
    def born(self) -> tuple[int, ...]:
        """Births."""

@final
class Backing(structseq[int], tuple[int, int, int, int, int, int, int, int, int]):
    """The largest block that a base site made or grew, of those over 512 bytes: an object, or what a
    container owns.
    """

    __match_args__: Final = (
        "site",
        "bytes",
        "first_bytes",
        "first_step",
        "last_step",
        "record_steps",
        "extended_steps",
        "family",
        "lines",
    )
    @property
    def site(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def first_bytes(self) -> int:
        """The largest of the first step with one."""

    @property
    def first_step(self) -> int:
        """That step."""

    @property
    def last_step(self) -> int:
        """The last step with a block larger than all before."""

    @property
    def record_steps(self) -> int:
        """How many such steps there were; instructions of one line are added up."""

    @property
    def extended_steps(self) -> int:
        """Of these, those in which an object of an earlier step was extended, with what was in it."""

    @property
    def family(self) -> int:
        """The same of all lines that extended one another's blocks; 0: none did."""

    @property
    def lines(self) -> int:
        """How many lines it is of; ``site`` is that of the largest block."""

@final
class Survivors(structseq[int], tuple[int, int, int, int]):
    """What is alive of one base site and step; the steps differ where only a range of them is known."""

    __match_args__: Final = ("site", "first_step", "last_step", "count")
    @property
    def site(self) -> int: ...
    @property
    def first_step(self) -> int: ...
    @property
    def last_step(self) -> int: ...
    @property
    def count(self) -> int: ...  # type: ignore[override]  # the field, not tuple.count()

@final
class FoundType(structseq[int | str | None], tuple[int, str | None, int, int]):
    """Survivors of a site that are of one type, in round numbers where there are thousands; ``type``: None of
    blocks in which no object was found.
    """

    __match_args__: Final = ("site", "type", "count", "bytes")
    @property
    def site(self) -> int: ...
    @property
    def type(self) -> str | None: ...
    @property
    def count(self) -> int: ...  # type: ignore[override]  # the field, not tuple.count()
    @property
    def bytes(self) -> int: ...

@final
class Scan(structseq[int | list[Survivors]], tuple[int, int, list[Survivors]]):
    """Who is alive of the sites that scan_begin() was asked for."""

    __match_args__: Final = ("begun_step", "as_of_step", "rows")
    @property
    def begun_step(self) -> int:
        """Births before this step are counted, later ones are not."""

    @property
    def as_of_step(self) -> int:
        """The step in which they are alive: that of scan_result()."""

    @property
    def rows(self) -> list[Survivors]:
        """In no order."""

@final
class Confirmed(structseq[int], tuple[int, int, int, int]):
    """Stamps of one base site, of births before this step."""

    __match_args__: Final = ("site", "met", "unreached", "corrected")
    @property
    def site(self) -> int: ...
    @property
    def met(self) -> int:
        """Their object was met in the census."""

    @property
    def unreached(self) -> int:
        """Of live objects that nothing in reach refers to."""

    @property
    def corrected(self) -> int:
        """Of no object: a buffer of one; where objects are hooked, a stamp left behind, counted no more."""

@final
class Confirmation(structseq[Census | list[Confirmed]], tuple[Census, list[Confirmed]]):
    """What confirm() found."""

    __match_args__: Final = ("census", "sites")
    @property
    def census(self) -> Census:
        """A full one, of the same walk."""

    @property
    def sites(self) -> list[Confirmed]:
        """Each base site once, in the order asked for."""

@final
class Medium(structseq[str | int], tuple[str, str, int, str, int, str]):
    """Where bytes live; a row of src/ledger/medium.h."""

    __match_args__: Final = ("name", "module", "on_cuda", "memory", "has_owners", "meaning")
    @property
    def name(self) -> str:
        """Of the family: "cuda" for all devices."""

    @property
    def module(self) -> str:
        """Whose import brings the libraries that a hook patches; empty for a medium without a hook."""

    @property
    def on_cuda(self) -> int:
        """1: only where the program has started CUDA, and never in a worker process."""

    @property
    def memory(self) -> str:
        """What its bytes count against: "malloc" (memory of the process that malloc serves), "private" (other
        memory of the process), "shared", "children" (of child processes), "device", or "": it is counted.
        """

    @property
    def has_owners(self) -> int:
        """1: a walk sees which object owns a block.  0: nothing can be said of what keeps one."""

    @property
    def meaning(self) -> str:
        """What lives there, as users read it."""

MEDIA: Final[tuple[Medium, ...]]
"""All media, in the order of the table."""

# ---- watches: what begins and ends whole ----

_Result = TypeVar("_Result")
_Entered = TypeVar("_Entered", bound=Watch)

@disjoint_base
class Watch:
    """A watch: begins and ends whole, whatever is raised meanwhile (src/python/watch/states.h)."""

    def __enter__(self) -> Self:
        """Begin the watch; what raises in here leaves it off."""
    def __exit__(self, kind: object = None, error: object = None, traceback: object = None, /) -> None:
        """End the watch; it is off after this, whatever is raised."""
    def step(self) -> None:
        """Mark the end of a step, from any thread.  Errors: "not_active" outside of the watch."""
    def _step_if_on(self) -> None:
        """step(), or nothing where the watch is not on."""
    def is_active(self) -> bool:
        """True between entering and leaving the watch."""
    def _in_turn(self, function: Callable[..., _Result], /, *args: object) -> _Result:
        """Call it while nothing marks."""
    @property
    def _state(self) -> str:
        """The name of the state."""
    @property
    def _has_begun(self) -> bool:
        """True once all that it takes was taken."""

def start_watch(watch: _Entered, /) -> _Entered:
    """Enter it, and keep it until it ends; the watch."""

def stop_watch() -> Watch | None:
    """End the watch that is on, from any thread, and give it, or None."""

def give_way(watch: Watch | None, /) -> None:
    """From now on it ends where another one is entered, and hears of each by its ``_gave_way_to(watch)``;
    None: none does.
    """

def active_watch() -> Watch | None:
    """The watch that is on in this process, or None."""

@final
@type_check_only
class TurnHolder:
    """A turn that is held for a block."""

    def __enter__(self) -> TurnHolder:
        """Wait for the turn."""
    def __exit__(self, *exception: object) -> None:
        """Give it back."""

@final
class Turn:
    """A lock that a signal handler in the same thread may take again."""

    def held(self) -> TurnHolder:
        """`with turn.held():` holds it for the block."""
    def acquire(self) -> bool:
        """Wait for it; the same thread may take it again."""
    def release(self) -> None:
        """Undo one acquire().  Errors: RuntimeError."""

@final
class QuietCollector:
    """Keeps the collector from running on account of the probe's own objects; its state is put back."""

    def __enter__(self) -> QuietCollector:
        """Switch the collector off."""
    def __exit__(self, *exception: object) -> None:
        """Put its state back."""
    @staticmethod
    def is_on_outside() -> bool:
        """True if the program has the collector on, whatever such blocks do at present."""

@final
class Descriptor:
    """A descriptor and the file it was opened for: it is closed only while it still is that file."""

    def __new__(cls, number: int, /) -> Self:
        """The descriptor of that number, which must be open.  Errors: OSError."""
    def is_own(self) -> bool:
        """True while the number still is the file that it was."""
    def close(self) -> None:
        """Close it if it still is that file; again as often as one likes."""
    def forget(self) -> None:
        """Leave it to whoever has it."""
    def fileno(self) -> int:
        """The number, or -1."""

@final
class SharedMap:
    """A file mapped for reading and writing, as a buffer; it keeps no descriptor."""

    def __new__(cls, descriptor: int, size: int, /) -> Self:
        """Map the first ``size`` bytes of the file.  Errors: OSError, ValueError where it is shorter."""
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview:
            """Its bytes."""

# ---- object hooks ----

@type_check_only
class HookStatus(TypedDict):
    """How births of Python objects are seen.  dropped, site_overflow: births that no table had room for.
    backing_dropped_at: the last step in which a line's block of more than 512 bytes found no room; -1: none.

    sees_deaths: live counts are exact, for what was born in step exact_since or later.
    """

    mechanism: str
    active: bool
    why_not: str | None
    gaps: list[Gap]
    grown_at: bool
    dropped: int
    site_overflow: int
    backing_dropped_at: int
    sites: int
    sees_deaths: bool
    exact_since: int

def start(stack_depth: int, package_dir: str, /) -> None:
    """Hook births of objects; code below package_dir is leakprobe's own.

    Errors: "bad_argument", "already_active".
    """

def stop() -> None:
    """Remove the hooks and forget all stamps."""

def is_active() -> bool:
    """True between start() and stop()."""

def mark() -> int:
    """End the step; the number of the new one.  Errors: "not_active"."""

def forget_looked_up_names() -> None:
    """Empty CPython's cache of attribute lookups, which keeps names that nothing else does."""

def follow_frees(on: bool, /) -> bool:
    """Let walks look for objects that nothing refers to; False if deaths are not seen.

    It ends with the next start().  Errors: "not_active".
    """

def step() -> int:
    """The number of the current step."""

def hook_status() -> HookStatus:
    """How births are seen, and where they were not."""

def site_of(obj: object, /) -> Birth | None:
    """The birth of a live object, None if it was not seen."""

def site_frames(site: int, /) -> list[Frame]:
    """The stack of a site, innermost first.  Errors: "bad_argument"."""

def site_base(site: int, /) -> int:
    """The site that counts are kept under."""

def site_children(site: int, /) -> list[int]:
    """The sites with whole stacks below a site."""

def set_deep(site: int, /) -> None:
    """Capture whole stacks from now on for births at a site."""

# ---- live counts by site, and scans of the stamps ----

def series_state() -> SeriesState:
    """Which spans of steps the series have."""

def series_begin_at(step: int, /) -> None:
    """After so many steps, those of a warm-up, the spans are of one step again if they are wider by then."""

def site_series(site: int, /) -> SiteSeries | None:
    """The series of a base site; None before it has had births in two steps.  Errors: "bad_argument"."""

def line_series(medium: str, site: int, /) -> SiteSeries | None:
    """The series of the native blocks of one medium and base site; None before it has had births in two
    steps.  Errors: "bad_argument".
    """

def series_rising(since_step: int, min_rises: int, /) -> list[SiteSeries]:
    """The series whose floor rose at least min_rises times in spans that begin at since_step or later.

    The floor at a span is the lowest live count from it on, so it rises only by what was never given back.
    """

def live_counts() -> dict[int, int]:
    """By site, how many objects born there since the hooks are alive now; sites with none are left out."""

def live_of(sites: Sequence[int], /) -> dict[int, int]:
    """By base site, how many objects born there since the hooks are alive now, of these base sites.

    Errors: "bad_argument".
    """

def backing_records(since_step: int, min_steps: int, /) -> list[Backing]:
    """Sites whose largest block grew in at least min_steps steps, and last in since_step or later; then those
    that extended one another's blocks, all of these lines together.

    It shows containers that are filled with what lived before, of which live counts know nothing.
    """

def follow_large(wanted: bool, /) -> None:
    """Note each large object that is made in backing_records(), or no more: from 3.13 on only those that are
    resized are noted without it, as objects have no length yet where their births are seen.

    It costs a call an object.  Nothing happens before 3.13, or with another allocator on top of ours.
    """

def scan_begin(sites: Sequence[int], /) -> None:
    """Ask who is alive of these sites and of those that count under them; a scan that runs ends.

    Errors: "not_active", "bad_argument", "no_memory".
    """

def scan_slice(budget_ns: int, /) -> bool:
    """Go on for about so long; True when all stamps were visited.

    Errors: "no_scan", "scan_too_long" (over more than 1,000 steps), "no_memory".
    """

def scan_result() -> Scan:
    """Survivors by site and step of birth, exact as of now.

    Errors: "no_scan", "scan_too_long", "no_memory".
    """

def scan_leaf_bytes(since: int, /) -> dict[int, float | None]:
    """{site: mean bytes of a survivor} of births in the step ``since`` or later; None of a site that has more
    than floats, ints, texts, bytes and tuples of these.

    Errors: "no_scan", "scan_too_long", "no_memory".
    """

def scan_types() -> list[FoundType]:
    """The types and sizes of the survivors of each site: all are read where they are few, else a sample.

    Errors: "no_scan", "scan_too_long", "no_memory".
    """

def scan_end() -> None:
    """Give the memory of the scan back."""

def confirm(sites: Sequence[int], first_step: int, last_step: int, min_steps: int, /) -> Confirmation:
    """A full census, and whether what the stamps of these sites call alive was met in it.

    The window is as for census().  Ends a scan that runs.  Errors: "bad_argument", "collecting", "no_memory".
    """

# ---- census ----

@final
class Census:
    """Survivors by type, allocation site and birth step, from one pass over the heap."""

    @property
    def full(self) -> bool:
        """Whether untracked objects were counted too."""

    @property
    def object_count(self) -> int:
        """Objects counted."""

    @property
    def total_bytes(self) -> int:
        """Their bytes."""

    @property
    def large_bytes(self) -> int:
        """Of these, bytes in blocks over 512 bytes, which malloc serves."""

    @property
    def blocks(self) -> int:
        """Full: blocks of Python's allocator behind what the heap refers to, leakprobe's own too."""

    @property
    def old_count(self) -> int:
        """Objects born before the hooks; they are in no group."""

    @property
    def old_bytes(self) -> int:
        """Their bytes."""

    @property
    def bad_pointer_count(self) -> int:
        """References that a faulty extension type made up."""

    @property
    def dropped_count(self) -> int:
        """Objects in no group for want of memory."""

    @property
    def duration_ns(self) -> int:
        """How long the pass stopped the program."""

    @property
    def groups(self) -> list[CensusGroup]:
        """Groups with survivors from at least min_steps steps of the window."""

    @property
    def containers(self) -> list[Container]:
        """The largest containers."""

    def top(self, n: int, /) -> list[CensusGroup]:
        """The n groups with most bytes, whatever the window.  Errors: "bad_input"."""

    def series(self, type_id: int, site: int, /) -> list[Cohort]:
        """Survivors of a type and site, by rising step."""

def census(
    full: bool,
    first_step: int,
    last_step: int,
    min_steps: int,
    group_old: bool = False,
    /,
) -> Census:
    """Count what is alive; the window of its groups is the births of first_step to last_step.

    full: untracked objects too.  group_old: objects from before the hooks too, by type, under SITE_UNKNOWN.
    Errors: "collecting", "no_memory".
    """

def size_of(obj: object, /) -> int:
    """Shallow bytes of an object with the blocks that are its own."""

def allocated_blocks() -> int:
    """Blocks that pymalloc holds for Python."""

def python_bytes() -> int:
    """Arena bytes taken since the arena hook was installed; without it, blocks times their mean size."""

# ---- native hooks and the ledger of native blocks ----

@type_check_only
class MediumStatus(TypedDict):
    """Whether a medium is hooked, by what, and why not."""

    medium: str
    mechanism: str | None
    active: bool
    why_not: str | None

@type_check_only
class Totals(TypedDict):
    """Blocks of a medium.  unmatched: frees of unknown blocks; overwritten: births of known ones."""

    live_bytes: int
    peak_bytes: int
    recent_peak_bytes: int  # since begin_peaks()
    live_count: int
    unmatched: int
    overwritten: int
    dropped: int

@type_check_only
class CudaSum(TypedDict):
    """Blocks of a device, or pinned ones."""

    live_bytes: int
    peak_bytes: int
    live_count: int

@type_check_only
class CudaOutOfMemory(TypedDict):
    """The last report of an allocation that a device had no room for; count: how many there were."""

    count: int
    wanted_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    device: int

@type_check_only
class CudaMemory(TypedDict):
    """segments: by device.  registered: memory the program pinned.  malloc_bytes: of pinned blocks that are
    malloc's.  beyond: events of devices from 16 on.
    """

    segments: dict[int, CudaSum]
    registered: CudaSum
    malloc_bytes: int
    oom: CudaOutOfMemory | None
    beyond: int

def native_install(media: Sequence[str], mechanism: str | None = None, /) -> None:
    """Hook the named media, now or once their module is imported.  Errors: "bad_argument"."""

def native_uninstall() -> None:
    """Turn all native hooks into pass-throughs."""

def native_rescan() -> bool:
    """Hook what was loaded since; True if a medium became active."""

def native_status() -> list[MediumStatus]:
    """One for each medium that can be hooked."""

def cuda_memory() -> CudaMemory:
    """What the CUDA hooks know beyond the ledger."""

def ledger_sizes() -> int:
    """How many different sizes native blocks have had since the start; too few where there are thousands."""

def ledger_totals() -> dict[str, Totals]:
    """By medium, for those that had blocks."""

def ledger_groups(first: int, last: int, min_steps: int, /) -> list[BlockGroup]:
    """Groups with survivors of at least min_steps steps of the window, steps first to last."""

def ledger_series(medium: str, site: int, /) -> list[Cohort]:
    """Survivors of a medium and base site, by rising step.  Errors: "bad_argument"."""

def ledger_blocks() -> list[Block]:
    """All live native blocks."""

def ledger_events(first_step: int = 0, /) -> Events:
    """The last births and deaths of native blocks, of the step first_step and later ones."""

def begin_peaks() -> None:
    """From now on recent_peak_bytes of ledger_totals() is the most that has been live since now."""

def ledger_holds(address: int, /) -> bool:
    """True if a native block that is known begins at this address."""

def tensor_blocks() -> list[TensorBlock]:
    """Tensors on blocks of the ledger.  Errors: "already_active", "gc_running"."""

def instances(types: list[type], /) -> list[object]:
    """The tracked objects whose type is one of these.  Errors: "gc_running", "no_memory"."""

def theil_sen(points: list[tuple[float, float]], spread: float, /) -> tuple[float, float, float] | None:
    """(median, low, high) of the slopes between each two points (x, y).

    Ranks beside the median by half of ``spread`` bound the interval; a side that the points can't bound is
    infinite.  None if fewer than two pairs differ in x.
    """

def merged_epochs() -> list[StepRange]:
    """Births that are known by a range of steps only; a census counts them at the last step."""

def overhead_bytes() -> int:
    """Bytes that the probe's own tables take."""

# ---- the process as the kernel and malloc count it ----

@type_check_only
class ProcessMemory(TypedDict, total=False):
    """Bytes; what the kernel does not say is left out."""

    rss: int
    shared_rss: int
    pss: int
    private: int
    shared: int
    anonymous: int

@type_check_only
class MallocInfo(TypedDict):
    """Bytes of the allocator that serves malloc, by its name (``source``).

    ``mapped``: in maps of their own; ``top``: unused at the heap's end; ``probe``: ours.  ``rounding``:
    blocks take up to this share more than was asked for.
    """

    source: str
    in_use: int
    mapped: int
    free: int
    top: int
    probe: int
    rounding: float

@type_check_only
class Segments(TypedDict):
    """Segments of shared memory: their number and bytes; ``closed``: those that have outlived mapping and
    descriptor; ``lines``: base site => how many of the named.
    """

    own: int
    own_bytes: int
    named: int
    named_bytes: int
    others: int
    lines: dict[int, int]
    closed: int

@type_check_only
class Resources(TypedDict, total=False):
    """Counts; all or none are there."""

    descriptors: int
    descriptors_by_kind: dict[str, int]
    threads: int
    children: int
    segments: int
    semaphores: int

def rss_bytes() -> int | None:
    """Resident bytes of the process, None where the system does not say."""

def open_descriptors() -> int:
    """How many are open where the kernel tells that at once, else the number that the next one gets."""

def process_memory() -> ProcessMemory:
    """Memory of this process."""

def process_memory_of(pid: int, /) -> ProcessMemory:
    """Memory of another process; {} if it can't be read."""

def malloc_info() -> MallocInfo | None:
    """What malloc says of itself, or None where it can't be had."""

def malloc_beyond_ledger() -> int:
    """Bytes of malloc's live blocks without the probe's own and without tensor and array buffers."""

def malloc_why_not() -> str | None:
    """Why malloc_info() is None, or None."""

def resources() -> Resources:
    """What the process has open; {} where it can't be had."""

def child_processes() -> int:
    """Child processes of this process; -1 where they can't be had."""

def resource_counts() -> ResourceCounts | None:
    """The two that are cheap enough for every mark, or None."""

def segments(since: int, /) -> Segments | None:
    """Segments of shared memory that this process maps or has open ("own"), that it made under a name and
    does neither ("named"), and other files of this user in /dev/shm; of names those made since ``since``
    (seconds of the wall clock).  None where they can't be had.
    """

def follow_names(on: bool, /) -> bool:
    """Note from now on which files of /dev/shm this process makes, by patched slots of shm_open() and open();
    again for libraries that were loaded since.  False while that is not done.
    """

def shared_memory() -> tuple[int, int, int]:
    """(files and segments, bytes) that all processes have in /dev/shm and in System V segments, and the bytes
    of what this one maps beside private memory that can be written: while these stand, so do its segments.
    """

def shared_memory_count() -> int:
    """The first of these."""

def shared_memory_bytes() -> int:
    """The second, and what this process has touched of files, segments and huge pages."""

def memory_account() -> MemoryAccount:
    """Malloc's bytes, pools beyond it and all private memory, of one reading."""

def thread_touched_bytes() -> int:
    """Bytes of pages that this thread was the first to touch, ever, and the process's huge pages."""

# ---- samples of native blocks ----

def native_follow(mean_bytes: int, /) -> bool:
    """Sample what the allocating functions give out, one block in so many bytes; False where that can't be
    done.
    """

def native_unfollow() -> int:
    """Put the slots back and forget the samples; how many slots are left below another tool."""

def native_counts() -> tuple[int, int, int, int]:
    """Follow libraries that were loaded since; (samples taken, live, whose death was missed, dropped)."""

def native_samples() -> list[tuple[int, int, int, int]]:
    """Live samples: (base site, step, bytes that it stands for, address of the caller)."""

def native_symbol(address: int, /) -> tuple[str, str]:
    """(library, function) at an address, "" where it is not known."""

def is_preloaded() -> bool:
    """Whether the program was started under the library that sees every call of the allocating functions."""

# ---- snapshots ----

@final
class Snapshot:
    """What was alive when it was taken, by medium, type and base site."""

    def rows(self) -> list[LedgerRow]:
        """Sorted by medium, type and site."""

    def diff(self, older: Snapshot, /) -> list[LedgerDiff]:
        """What differs.  Errors: "bad_argument"."""

@final
class KeptText:
    """A text in memory of the probe's own."""

    def get(self) -> str:
        """The text, as a new str."""

def keep_text(text: str, /) -> KeptText:
    """Keep a text where no later look takes it for the program's.  Errors: "bad_argument", "no_memory"."""

def snapshot_new(rows: Sequence[tuple[int, int, int, int, int, int]] = (), /) -> Snapshot:
    """The ledger's groups, and rows of objects (type_id, site, first_step, last_step, count, bytes)."""

# ---- the graph: who keeps what grows ----

@type_check_only
class PathElement(TypedDict):
    """A step of a path: what it is in words, how the one before refers to it, and its type."""

    text: str
    edge: str
    type: str | None

@type_check_only
class TraceHolder(TypedDict):
    """The object whose contents grow.  length, bound: items, and the most there can be, where it has such.

    table_bytes: what a list, dict, set or deque itself takes for its items.  filled: places of a list
    whose items were born in the steps that were asked for; None of anything else.
    """

    text: str
    type: str
    length: int | None
    bound: int | None
    address: int
    grown_at_site: int
    grown_at_step: int
    item_site: int
    site: int
    step: int
    table_bytes: int
    filled: int | None

@type_check_only
class TraceMember(TypedDict):
    """Traced objects or blocks of one group below a holder.  type, type_id: None and 0 for blocks."""

    type: str | None
    type_id: int
    medium: str
    site: int
    deep_site: int
    count: int
    bytes: int
    series: list[Cohort]

@type_check_only
class TraceView(TypedDict):
    """A view on the path: bytes of what it shows, of its storage if any, of the block that it keeps."""

    type: str
    viewed_bytes: int | None
    storage_bytes: int | None
    block_bytes: int

@type_check_only
class TraceEntry(TypedDict):
    """What one holder keeps, or what nothing does.

    kind: held, outside (held by C or C++), garbage or lost (a reference that no referrer explains).
    sample: place of the member that the path leads to.  grown_site: the line that last enlarged that object,
    or 0.  address: of that object or block.  holder_count: how many holders were joined.
    """

    kind: str
    path: list[PathElement]
    holder: TraceHolder | None
    members: list[TraceMember]
    cycle: list[PathElement] | None
    collectable: bool | None
    has_graph: bool
    sample: int
    grown_site: int
    address: int
    view: TraceView | None
    holder_count: int

@type_check_only
class CountAndBytes(TypedDict):
    """How many, and their bytes."""

    count: int
    bytes: int

@type_check_only
class Trace(TypedDict):
    """holders, most bytes first; rest: what none of them keeps; complete: all of torch's edges were read."""

    nodes: int
    edges: int
    raw_ns: int
    torch_ns: int
    skipped: int
    wrappers: int
    complete: bool
    why_not: str | None
    holders: list[TraceEntry]
    rest: CountAndBytes
    owned: list[tuple[int, int, float, bool]]
    """(type_id, site, bytes that one object owns outside of Python, whether these are beside data that is a
    block of its own) of the groups.
    """

def trace(
    object_groups: list[tuple[int, int]],
    block_groups: list[tuple[str, int]],
    first_step: int,
    last_step: int,
    *,
    torch: bool = True,
    node_budget: int = 0,
    torch_budget: int = 20000,
    autograd_marks: list[tuple[int, int]] = [],
    older: bool = False,
    by_keeper: bool = False,
) -> Trace:
    """Who keeps the members of these groups that were born in steps first_step to last_step.

    object_groups: (type_id, base site); block_groups: (medium, base site).  autograd_marks: (torch's next
    number for an autograd node, the step that the mark began), both rising: with it, autograd nodes born in
    these steps are members too, of medium "native" and site 0.  older: so are containers from before the
    hooks that a group's line enlarged last, as if born in step 0.  by_keeper: members are told by the step of
    the oldest object above them that was born in these steps.
    Errors: "graph_limit", "gc_running", "already_active", "bad_argument".
    """

# ---- garbage and retention ----

@type_check_only
class LackingEdge(TypedDict):
    """The reference that the collector can't see, from an object of type source."""

    source: str
    text: str
    edge: str
    type: str

@type_check_only
class GarbageCycle(TypedDict):
    """A cycle of garbage and what only it keeps.  bytes: by medium; held_by: place of the cycle above it."""

    path: list[PathElement]
    members: int
    tracked: int
    objects: list[TypeTally]
    bytes: dict[str, int]
    collectable: bool
    lacks: LackingEdge | None
    held_by: int | None
    sites: list[SiteTally]

@type_check_only
class Collectable(TypedDict):
    """What a collection would free; path: of the largest cycle, empty if there is none."""

    bytes: int
    count: int
    path: list[PathElement]

def collectable(medium: str, /) -> Collectable:
    """Of a medium, a family of media, or all of the host's ("").  Errors: as of find_cycles()."""

def find_cycles(torch: bool = True, node_budget: int = 0, max_bytes: int = 0) -> list[GarbageCycle]:
    """All garbage that only a collection would free, or that the collector cannot free; nothing is changed.

    Errors: "graph_limit", "gc_running", "already_active".
    """

def why(obj: object, most: int = 8, max_bytes: int = 0, /) -> list[list[PathElement]]:
    """At most ``most`` paths from a root to the object, the nearest root first.

    Errors: "only_this_call", "shared_object", "dead_object", "bad_argument", "graph_limit", "gc_running".
    """

def retained_size(obj: object, max_bytes: int = 0, /) -> int:
    """Bytes that would be freed if obj went: the object and all that only it leads to, buffers included."""

# ---- frozen object graphs ----

@type_check_only
class GraphInfo(TypedDict):
    """Counts, bytes of memory that the graph takes, and nanoseconds of each stage."""

    nodes: int
    edges: int
    roots: int
    bytes: int
    walk_ns: int
    freeze_ns: int
    cycles_ns: int
    dominators_ns: int
    garbage_roots: int

@type_check_only
class GraphParts(TypedDict):
    """A graph as files keep it: arrays as bytes; groups: [type, site, medium] by number."""

    row: builtins.bytes
    edge: builtins.bytes
    flag: builtins.bytes
    address: builtins.bytes
    bytes: builtins.bytes
    group: builtins.bytes
    root: builtins.bytes
    groups: list[list[int]]
    types: list[str]
    named: int
    alive: int

@final
class Graph:
    """The object graph at one moment; keeps no object alive.  A node is a number; blocks come first."""

    def groups(self) -> list[GraphGroup]:
        """By number."""

    def retained_by_type(self) -> list[RetainedType]:
        """What each type keeps, below the first of its type only.  Errors: "bad_argument"."""

    def largest(self, n: int, /) -> list[int]:
        """The nodes with the largest retained sizes, dominators first."""

    def node(self, i: int, /) -> GraphNode:
        """What is known of a node.  Errors: "bad_argument"."""

    def path(self, i: int, /) -> list[int]:
        """The nodes from a root to node i."""

    def referents(self, i: int, /) -> list[int]:
        """The nodes that node i refers to, one for each reference."""

    def holders(self, older: Graph | None, /) -> list[HolderTally]:
        """Who holds the nodes that older lacks; all of them for None."""

    def info(self) -> GraphInfo:
        """Counts, memory and times."""

    def parts(self) -> GraphParts:
        """All that graph_load() needs."""

def graph_take(torch: bool = True, max_bytes: int = 0, analyse: bool = True) -> GraphTaken:
    """The object graph of now.  analyse=False: types, sizes and edges only.

    Errors: "graph_limit", "gc_running", "already_active".
    """

def graph_load(parts: GraphParts, /) -> Graph:
    """A Graph from what parts() gave.  Errors: "bad_graph"."""

# ---- what objects reach, and its pages ----

@type_check_only
class Region(TypedDict):
    """What one object reaches and none before it did."""

    count: int
    bytes: int
    array_bytes: int
    pages: int
    types: list[TypeTally]

@type_check_only
class CopiedPages(TypedDict):
    """Pages of a region as a forked process has them; types in the order of Region."""

    pages: int
    present: int
    private: int
    tracked_pages: int
    tracked_private: int
    types: list[Pages]

@final
class Reach:
    """What objects reach, with the pages of their reference counts."""

    def add(self, obj: object, /) -> int:
        """The number of the region of what obj reaches and no region before it did."""

    def finish(self) -> None:
        """No more regions; memory of the walk is given back."""

    def region(self, number: int, /) -> Region:
        """Errors: "bad_argument"."""

    def copied(self, number: int, pid: int, /) -> CopiedPages | None:
        """The region in a forked process, or None if it can't be read.  Errors: "bad_argument"."""

    def pages_with(self, number: int, kinds: int, /) -> int:
        """Pages with an object of these types; bit N stands for type N of the region."""

def keep_walks(nodes: int, /) -> None:
    """Memory of walks of the heap with more nodes is given back at once."""

def reach_new(most: int, /) -> Reach:
    """A Reach of at most so many objects, 0 for no limit."""
