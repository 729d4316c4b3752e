"""The largest and the fastest growing allocation sites of a look, each with its survivors by birth step.

Nothing is judged here: this is what a picture of the heap is drawn from.
"""

import collections
import dataclasses
from collections.abc import Collection, Sequence

from leakprobe import _core
from leakprobe.errors import LeakprobeError
from leakprobe.judge.looks import Key, Ranges, Suspect
from leakprobe.model.bounds import SITE_SPANS, SITES_GROWING, SITES_OF_BLOCKS, SITES_OF_OBJECTS, WHOLE_NS
from leakprobe.model.entry import Series
from leakprobe.model.frames import FIRST_SITE, SELF_SITE
from leakprobe.model.media import family
from leakprobe.model.rows import SiteOfLook, Span


@dataclasses.dataclass(frozen=True, slots=True)
class Alive:
    """Where what is alive of Python's objects is read from: a walk's census with its largest groups, else a
    scan of the stamps, which costs a fraction of it.
    """

    census: _core.Census | None
    top: Sequence[_core.CensusGroup]
    may_scan: bool


def largest(
    alive: Alive, groups: Sequence[Suspect], step: int, merged: Ranges, media: Collection[str]
) -> list[SiteOfLook]:
    """Rows {medium, type, site, live_bytes, live_count, bytes_per_step, survivors} of what is alive at
    ``step``.

    survivors: [first step, last step, count, bytes], by birth.  bytes_per_step: None where nothing grows.
    """
    rows = [
        row(g.medium, g.type, g.site, g.live_count, g.live_bytes, g.series, step, merged, g.rate)
        for g in groups[:SITES_GROWING]
    ]
    known = {g.key for g in groups}
    if "python" in media:
        rows += objects_of(alive, known, step, merged)
    blocks = [
        b
        for b in _core.ledger_groups(0, step, 0)
        if b.site != SELF_SITE and family(b.medium) in media and ("block", b.medium, b.site) not in known
    ]
    for b in sorted(blocks, key=lambda b: -b.bytes)[:SITES_OF_BLOCKS]:
        survivors = _core.ledger_series(b.medium, b.site)
        rows.append(row(b.medium, None, b.site, b.count, b.bytes, survivors, step))
    return rows


def objects_of(alive: Alive, known: Collection[Key], step: int, merged: Ranges) -> list[SiteOfLook]:
    """The largest lines of Python's objects but those of ``known``."""
    if alive.census is not None:
        found = [t for t in alive.top if t.site != SELF_SITE and ("object", t.type_id, t.site) not in known]
        return [
            row(
                "python",
                t.type,
                t.site,
                t.count,
                t.bytes,
                alive.census.series(t.type_id, t.site),
                step,
                merged,
            )
            for t in found[:SITES_OF_OBJECTS]
        ]
    return scanned(step, merged) if alive.may_scan else []


def scanned(step: int, merged: Ranges) -> list[SiteOfLook]:
    """The same by a scan: of a site that makes several types, each is as old as all of them; none where
    memory is short.
    """
    try:
        _core.scan_begin(sorted({_core.site_base(s) for s in _core.live_counts() if s >= FIRST_SITE}))
        while not _core.scan_slice(WHOLE_NS):
            pass
        born, types = _core.scan_result().rows, _core.scan_types()
        _core.scan_end()
    except (LeakprobeError, MemoryError):
        return []
    total = collections.Counter[int]()
    for one in types:
        total[one.site] += one.count
    found = sorted((one for one in types if one.type is not None), key=lambda one: -one.bytes)[
        :SITES_OF_OBJECTS
    ]
    rows = []
    for one in found:
        share, size = one.count / total[one.site], one.bytes / one.count
        ages = [(r.last_step, r.count * share) for r in born if r.site == one.site]
        series = [(last, count, count * size) for last, count in ages]
        rows.append(row("python", one.type, one.site, one.count, one.bytes, series, step, merged))
    return rows


def row(
    medium: str,
    kind: str | None,
    site: int,
    count: int,
    size: int,
    series: Series,
    step: int,
    merged: Ranges = (),
    rate: float = 0.0,
) -> SiteOfLook:
    return {
        "medium": medium,
        "type": kind,
        "site": site,
        "live_bytes": size,
        "live_count": count,
        "bytes_per_step": round(rate, 1) if rate else None,
        "survivors": spans(series, step, merged),
    }


def spans(series: Series, step: int, merged: Ranges = ()) -> list[Span]:
    """[first, last, count, bytes] of a series (step, count, bytes), at most about SITE_SPANS of them.

    ``merged``: (first, last) of steps that are known together only, counted at the last.
    """
    width = -(-(step + 1) // SITE_SPANS)
    starts = {last: first for first, last in merged}
    total: dict[tuple[int, int], list[float]] = {}
    for born, count, size in series:
        if count <= 0:
            continue
        first = starts.get(born, born)
        if first // width == born // width:
            first = born // width * width
            born = min(first + width - 1, step)
        entry = total.setdefault((first, born), [0, 0])
        entry[0] += count
        entry[1] += size
    return [
        [first, last, round(count), round(size)] for (first, last), (count, size) in sorted(total.items())
    ]
