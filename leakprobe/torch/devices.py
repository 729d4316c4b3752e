"""The cache of CUDA's allocator over time: real growth, fragmentation, and memory outside PyTorch told
apart.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence

from leakprobe import _core
from leakprobe.evidence.series import every_second
from leakprobe.evidence.trends import slope
from leakprobe.model.bounds import MOST_POINTS, THINNING
from leakprobe.model.finding import Note
from leakprobe.model.media import of_family
from leakprobe.model.thresholds import AGREEING, HALF, SLIGHT
from leakprobe.model.units import format_rate, format_size
from leakprobe.torch import device_memory

#: A point of a device: the step, and a row of device_memory.read().
Point = tuple[int, dict[str, int]]

#: Numbers of a row that go to the report's rows of memory.
SHOWN = ("allocated", "reserved", "used", "outside")


class Devices:
    """Points of each device, taken at looks."""

    def __init__(self, warmup: int, limit: float):
        self._warmup, self._limit = warmup, limit
        self.points: dict[str, list[Point]] = {}  # by name, as "cuda:0"
        self._with_memory: list[int] | None = None  # device_memory.with_memory() as of the last look
        self._numbers: list[int] = []  # of these and those of the ledger

    def look(self, step: int) -> dict[str, int]:
        """Take a point; {"cuda:0 reserved": bytes, ...} for the row of this mark."""
        shown = {}
        self._with_memory = device_memory.with_memory()
        self._find()
        for name, row in device_memory.read(self._numbers).items():
            points = self.points.setdefault(name, [])
            points.append((step, row))
            if len(points) > THINNING * MOST_POINTS:
                self.points[name] = every_second(points)
            shown.update({f"{name} {key}": row[key] for key in SHOWN})
        return shown

    def usage(self, anew: bool) -> dict[str, tuple[int, int]]:
        """{"cuda:0": (bytes in use, bytes in all)} of the devices that the program uses.  ``anew``: devices
        that it began to use are looked for; without, it is cheap enough for each mark.
        """
        if device_memory.started() is None:
            return {}
        if self._with_memory is None:
            self._with_memory, anew = device_memory.with_memory(), True
        if anew:
            self._find()
        return device_memory.usage(self._numbers)

    def _find(self) -> None:
        """The devices that have had blocks since the hooks came, or that torch has memory of."""
        self._numbers = sorted({*numbers_in_ledger(), *(self._with_memory or ())})

    def notes(self) -> list[Note]:
        return [note for name in self.points for note in self._notes_of(name)]

    def _notes_of(self, name: str) -> Iterator[Note]:
        points = [p for p in self.points[name] if p[0] >= self._warmup]
        if len(points) < AGREEING:
            return
        rise = {
            key: slope([(step, row[key]) for step, row in points])
            for key in ("allocated", "reserved", "split", "peak", "outside")
        }
        last = points[-1][1]
        if (
            rise["reserved"] > self._limit
            and rise["allocated"] < SLIGHT * rise["reserved"]
            and rises(points, "reserved")
        ):
            yield cache_note(name, rise, last)
        if rise["outside"] > self._limit and rises(points, "outside"):
            text = (
                f"memory of {name} outside PyTorch grows by {format_rate(rise['outside'])}, to {format_size(last['outside'])}: "
                "it belongs to other processes, or to libraries that allocate without torch (NCCL, cuDNN, "
                "cuBLAS, CUDA's contexts)"
            )
            yield Note(
                kind="gap",
                text=text,
                medium=name,
                bytes_per_step=round(rise["outside"], 1),
                live_bytes=last["outside"],
            )


def rises(points: Sequence[Point], key: str) -> bool:
    """True if most steps from point to point are not down, and two at least are up."""
    steps = [b[1][key] - a[1][key] for a, b in itertools.pairwise(points)]
    return sum(s > 0 for s in steps) > 1 and sum(s < 0 for s in steps) <= SLIGHT * len(steps)


def cache_note(name: str, rise: dict[str, float], last: dict[str, int]) -> Note:
    free = last["reserved"] - last["allocated"]
    text = f"the cache of {name} grows by {format_rate(rise['reserved'])} while what is allocated is level: not a leak; {format_size(free)} reserved and not in use"
    if rise["peak"] >= HALF * rise["reserved"]:
        text += (
            f"; a step has more and more at its highest point ({format_rate(rise['peak'])}), and lets it go: "
            "batches or temporaries get larger"
        )
    elif rise["split"] >= HALF * rise["reserved"]:
        text += ", most of it between blocks in use (fragmentation): sizes that vary do that, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps"
    else:
        text += ", which torch.cuda.empty_cache() gives back"
    return Note(
        kind="allocator_retention",
        text=text,
        medium=name,
        bytes_per_step=round(rise["reserved"], 1),
        live_bytes=free,
    )


def number_of(name: str) -> int:
    """1 for "cuda:1"."""
    return int(name.partition(":")[-1])


def numbers_in_ledger() -> set[int]:
    return {number_of(name) for name in of_family("cuda", _core.ledger_totals())}


def read_one(name: str) -> dict[str, int] | None:
    """The row of device_memory.read() of a device that has blocks."""
    return device_memory.read([number_of(name)]).get(name)


def totals(native_rows: "Iterable[_core.MediumStatus]") -> dict[str, tuple[int, str]]:
    """device_memory.totals() of the media of ``_core.native_status()`` that were asked for and that nothing
    serves.
    """
    return device_memory.totals(
        {
            row["medium"]
            for row in native_rows
            if row["mechanism"] is None and row["why_not"] != "not asked for"
        }
    )
