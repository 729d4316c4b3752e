"""From plain data, which may come from anywhere, back to a Report: what has the wrong type is an error."""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, TypedDict, TypeVar, cast

from leakprobe.errors import LeakprobeError
from leakprobe.model.finding import Finding, HolderRow, Lives, Note, PathRow
from leakprobe.model.frames import Frame, FrameTuple
from leakprobe.model.report import READABLE_VERSIONS, Report
from leakprobe.model.roles import SHOWN_ROLES
from leakprobe.model.rows import (
    LineRow,
    MediumBytes,
    MediumRow,
    MemoryRow,
    PeakPart,
    PeakRow,
    SiteRow,
    Span,
    TimelineRow,
)

#: An object of JSON, whose values may be anything: what reads them says what is wrong.
Data = dict[str, Any]
T = TypeVar("T")
#: What a report has lists of.
Item = TypeVar("Item", Finding, Note)
#: Rows that have a step.
RowOfStep = TypeVar("RowOfStep", TimelineRow, MemoryRow)

NUMBER: tuple[type[float], ...] = (int, float)
#: More than any count of bytes: sums of some stay finite.
MOST = 1e24
#: The seconds of a date that can be written: to the end of the year 9999.
DATES = (0, 253_402_300_799)
#: Field of a finding or note => the types it may have.
TYPES: dict[str, tuple[type, ...]] = {
    "fingerprint": (str,),
    "kind": (str,),
    "pattern": (str,),
    "text": (str,),
    "evidence": (str,),
    "cause": (str,),
    "medium": (str,),
    "type": (str,),
    "fix": (str,),
    "bytes_per_step": NUMBER,
    "count_per_step": NUMBER,
    "live_bytes": NUMBER,
    "live_count": NUMBER,
    "confidence": NUMBER,
    "onset_step": (int,),
    "withdrawn": (int,),
}
#: Fields that may be null: of a finding, and all of a note's but these.
NULL_IN_FINDING = ("type", "allocation", "holder", "path", "cycle", "fix", "onset_step", "withdrawn")
NEVER_NULL_IN_NOTE = ("kind", "text")
VERDICTS = ("growing", "steady", "inconclusive")


class LackRow(PathRow):
    """The reference that the collector can't see, from an object of type ``source``."""

    source: str


class CycleRow(TypedDict):
    """A cycle of a saved graph; ``sites``: (frames, count, bytes)."""

    path: list[PathRow]
    members: int
    tracked: int
    objects: list[tuple[str, int, int]]
    bytes: dict[str, int]
    collectable: bool
    lacks: LackRow | None
    held_by: int | None
    sites: list[tuple[tuple[FrameTuple, ...], int, int]]


def parse_report(data: object) -> Report:
    """The Report of Report.to_dict().  Errors: LeakprobeError "wrong_schema" or "unreadable_file"."""
    if not isinstance(data, dict) or data.get("schema_version") not in READABLE_VERSIONS:
        raise LeakprobeError(
            f"this is not a leakprobe report of schema version {' or '.join(map(str, READABLE_VERSIONS))}",
            "wrong_schema",
        )
    try:
        steps = {key: whole(data["steps"][key]) for key in ("warmup", "measured")}
        return Report(
            as_of_step=whole(data.get("as_of_step", sum(steps.values()))),
            verdict=one_of(data["verdict"], VERDICTS),
            steps=steps,
            findings=[parse_item(Finding, f) for f in data["findings"]],
            notes=[parse_item(Note, n) for n in data["notes"]],
            lines=[line_row(row) for row in data["lines"]],
            media={str(name): medium_row(row) for name, row in data["media"].items()},
            timeline=rising([timeline_row(row) for row in data["timeline"]]),
            memory=rising([memory_row(row) for row in data["memory"]]),
            sites=[site_row(row) for row in data.get("sites", [])],
            peaks=[peak_row(row) for row in data.get("peaks", [])],
            run={
                str(k): v
                for k, v in data.get("run", {}).items()
                if is_fact(v) and (k != "started" or is_date(v))
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise LeakprobeError(
            f"this report is damaged: {type(error).__name__}: {error}", "unreadable_file"
        ) from error


def parse_item(kind: type[Item], data: Data) -> Item:
    """A Finding or Note of its dict; unknown keys are left out."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in data:
            values[field.name] = parse_field(kind, field.name, data[field.name])
    return kind(**values)


def parse_field(kind: type[Finding] | type[Note], name: str, value: Any) -> object:
    if value is None:
        if name in NULL_IN_FINDING if kind is Finding else name not in NEVER_NULL_IN_NOTE:
            return None
        raise TypeError(f"{name} is null")
    if name == "allocation":
        return frame(value)
    if name == "allocation_stack":
        return [frame(f) for f in value]
    if name in ("path", "cycle"):
        return [element(e) for e in value]
    if name == "holder":
        return holder(value)
    return number(value) if TYPES[name] is NUMBER else of_type(value, TYPES[name])


def frame(value: Data) -> Frame:
    return Frame(text(value["filename"]), whole(value["lineno"]), text(value["function"]))


def element(value: Data) -> PathRow:
    kind = value["type"]
    row: PathRow = {
        "text": text(value["text"]),
        "edge": text(value["edge"]),
        "type": None if kind is None else text(kind),
    }
    if "lives" in value:
        row["lives"] = cast(Lives, text(value["lives"]))  # what is neither "yes" nor "no" is not known
    if "why" in value:
        row["why"] = text(value["why"])
    return row


def holder(value: Data) -> HolderRow:
    grown_at, length, kind = value.get("grown_at"), value.get("length"), value.get("type")
    return {
        "text": text(value["text"]),
        "type": None if kind is None else text(kind),
        "grown_at": None if grown_at is None else frame(grown_at).to_dict(),
        "length": None if length is None else whole(length),
    }


def stack(frames: Iterable[Iterable[object]]) -> tuple[FrameTuple, ...]:
    """Frames (filename, lineno, function) of a snapshot, from lists of three."""
    return tuple((text(filename), whole(lineno), text(function)) for filename, lineno, function in frames)


def snapshot_row(row: Data) -> dict[str, Any]:
    """The fields of a SnapshotRow."""
    kind = row["type"]
    return {
        "medium": text(row["medium"]),
        "type": None if kind is None else text(kind),
        "stack": stack(row["stack"]),
        **{key: whole(row[key]) for key in ("first_step", "last_step", "count", "size")},
    }


def elements(path: Sequence[Data]) -> list[PathRow]:
    """A path that leads somewhere."""
    if not path:
        raise ValueError("a path without elements")
    return [element(e) for e in path]


def named_paths(names: dict[str, Sequence[Data]], nodes: int) -> dict[int, list[PathRow]]:
    """The paths of a saved graph by node."""
    made = {int(node): elements(path) for node, path in names.items()}
    if any(not 0 <= node < nodes for node in made):
        raise ValueError("a path to an object that is not there")
    return made


def cycle_row(row: Data, number: int) -> CycleRow:
    """What the core found of the cycle with this number; another that holds it comes before it."""
    held_by, lacks = row["held_by"], row["lacks"]
    if held_by is not None and not 0 <= whole(held_by) < number:
        raise ValueError("a cycle that is held by one that is not there")
    return {
        "path": elements(row["path"]),
        "members": whole(row["members"]),
        "tracked": whole(row["tracked"]),
        "objects": [(text(name), whole(count), whole(size)) for name, count, size in row["objects"]],
        "bytes": {text(medium): whole(size) for medium, size in row["bytes"].items()},
        "collectable": bool(row["collectable"]),
        "lacks": None if lacks is None else {"source": text(lacks["source"]), **element(lacks)},
        "held_by": held_by,
        "sites": [(stack(frames), whole(count), whole(size)) for frames, count, size in row["sites"]],
    }


def line_row(row: Data) -> LineRow:
    return {
        "filename": text(row["filename"]),
        "lineno": whole(row["lineno"]),
        "bytes_per_step": number(row["bytes_per_step"]),
        "live_bytes": count(row["live_bytes"]),
    }


def medium_row(row: Data) -> MediumRow:
    return {
        "mechanism": text_or_none(row["mechanism"]),
        "active": bool(row["active"]),
        "why_not": text_or_none(row["why_not"]),
        "live_bytes": count(row["live_bytes"]),
        "as_of_step": whole(row["as_of_step"]),
        "unmatched_events": whole(row["unmatched_events"]),
    }


def timeline_row(row: Data) -> TimelineRow:
    media: dict[str, MediumBytes] = {
        str(name): {"live_bytes": count(of_one["live_bytes"]), "peak_bytes": count(of_one["peak_bytes"])}
        for name, of_one in row["media"].items()
    }
    return {
        "step": whole(row["step"]),
        "epoch": whole(row["epoch"]),
        "time": number(row["time"]),
        "media": media,
    }


def memory_row(row: Data) -> MemoryRow:
    whole(row["step"])
    if row["rss"] is not None:
        number(row["rss"])
    for key in ("python_heap", "native_accounted", "probe_overhead"):
        number(row[key])
    return {
        text(key): value if value is None or isinstance(value, str) else number(value)
        for key, value in row.items()
    }


def rising(rows: list[RowOfStep]) -> list[RowOfStep]:
    for before, row in itertools.pairwise(rows):
        if row["step"] < before["step"]:
            raise ValueError(f"step {row['step']} after step {before['step']}")
    return rows


def site_row(row: Data) -> SiteRow:
    rate, kind, user = row["bytes_per_step"], row["type"], row["allocation"]
    return {
        "medium": text(row["medium"]),
        "type": None if kind is None else text(kind),
        "live_bytes": count(row["live_bytes"]),
        "live_count": count(row["live_count"]),
        "bytes_per_step": None if rate is None else number(rate),
        "survivors": [survivors(span) for span in row["survivors"]],
        "allocation": None if user is None else frame(user),
        "allocation_stack": [frame(f) for f in row["allocation_stack"]],
    }


def peak_row(row: Data) -> PeakRow:
    return {
        "medium": text(row["medium"]),
        "step": count(row["step"]),
        "bytes": count(row["bytes"]),
        "parts": [peak_part(part) for part in row["parts"]],
    }


def peak_part(row: Data) -> PeakPart:
    user = row["allocation"]
    return {
        "role": one_of(row["role"], SHOWN_ROLES),
        "allocation": None if user is None else frame(user),
        "count": count(row["count"]),
        "bytes": count(row["bytes"]),
    }


def survivors(span: Iterable[object]) -> Span:
    first, last, number_of, size = map(count, span)
    if last < first:
        raise ValueError(f"steps {first} to {last} where a rising range belongs")
    return [first, last, number_of, size]


def is_fact(value: object) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, NUMBER) and abs(value) <= MOST)


def is_date(value: object) -> bool:
    return isinstance(value, NUMBER) and DATES[0] <= value <= DATES[1]


def of_type(value: object, types: tuple[type[T], ...]) -> T:
    if not isinstance(value, types) or isinstance(value, bool):
        raise TypeError(f"{value!r:.40} where {' or '.join(t.__name__ for t in types)} belongs")
    return value


def text(value: object) -> str:
    return of_type(value, (str,))


def text_or_none(value: object) -> str | None:
    return of_type(value, (str, type(None)))


def number(value: object) -> float:
    found = of_type(value, NUMBER)
    if not abs(found) <= MOST:
        raise ValueError(f"{value!r:.40} where a finite number belongs")
    return found


def count(value: object) -> int:
    """A number of bytes or of things; one with a fraction is taken as it is."""
    return cast(int, number(value))


def whole(value: object) -> int:
    return int(number(of_type(value, (int,))))


def one_of(value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise ValueError(f"{value!r:.40} is none of {', '.join(choices)}")
    return value
