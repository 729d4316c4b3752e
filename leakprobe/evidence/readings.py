"""Histories from what the core delivers: its series of live counts, its scans, and the ledger's survivors.

The shapes are those of ``_core``: SeriesState, SiteSeries, rows of a Scan, and the ledger's series.  Nothing
is read here.
"""

import bisect
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Protocol

from leakprobe.evidence.cohorts import longest_life
from leakprobe.model.bounds import MOST_POINTS, MOST_ROWS
from leakprobe.model.history import Facts, History, Row, Spans, Survivors


class StateOfSeries(Protocol):
    """Which spans the series have."""

    @property
    def first_step(self) -> int: ...
    @property
    def width(self) -> int: ...


class SeriesOfSite(Protocol):
    """Live counts of one site: by span, the open one last."""

    @property
    def live(self) -> int: ...
    @property
    def births(self) -> int: ...
    @property
    def low(self) -> Sequence[int]: ...
    @property
    def high(self) -> Sequence[int]: ...


def spans_of(state: StateOfSeries, series: SeriesOfSite) -> Spans:
    """The core reads at the end of each step: the first mark lies behind the first step."""
    return Spans(state.first_step + 1, state.width, tuple(series.low), tuple(series.high))


def begin_of_spans(warmup: int) -> int:
    """The step after which the spans of the series and of survivors begin: they begin anew once a warm-up is
    over that is longer than they are many.
    """
    return warmup if warmup >= MOST_POINTS else 0


def folded(step: int, rows: Sequence[Row], warmup: int = 0) -> tuple[Row, ...]:
    """At most MOST_ROWS rows of births before ``step``, those of the same span of birth steps put together,
    and as many of the warm-up where it is long.

    The spans of a later scan are those of this one, or several of them together.
    """
    begin = begin_of_spans(warmup)
    if begin == 0:
        return together(step, rows)
    before = together(begin, [row for row in rows if row[0] <= begin])
    later = [(a - begin - 1, b - begin - 1, count, size) for a, b, count, size in rows if a > begin]
    after = together(step - begin, later)
    return (
        *((a, min(b, begin), count, size) for a, b, count, size in before),
        *((a + begin + 1, b + begin + 1, count, size) for a, b, count, size in after),
    )


def together(steps: int, rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows of so many steps, by spans as wide as it takes for MOST_ROWS of them."""
    width = 1
    while steps > width * MOST_ROWS:
        width += width
    if width == 1:
        return tuple(rows)
    spans: dict[float, tuple[float, float]] = {}
    for first, _, count, size in rows:
        before, bytes_before = spans.get(first // width, (0, 0))
        spans[first // width] = before + count, bytes_before + size
    return tuple((n * width, n * width + width - 1, *spans[n]) for n in sorted(spans))


def survivors_of_scan(
    step: int, rows: Iterable[tuple[int, int, int, int]], size: float, warmup: int = 0
) -> Survivors:
    """Rows (site, first step, last step, count) of one site, in any order, as of a mark; ``size``: bytes of
    one item.

    Rows of the same steps, as sites that read the same have them, are put together.
    """
    counts: dict[tuple[int, int], int] = {}
    for _, first, last, count in rows:
        counts[first, last] = counts.get((first, last), 0) + count
    return Survivors(
        step, folded(step, [(*steps, count, size * count) for steps, count in sorted(counts.items())], warmup)
    )


def survivors_of_series(
    step: int,
    series: Iterable[tuple[int, float, float]],
    merged: Iterable[tuple[int, int]] = (),
    warmup: int = 0,
) -> Survivors:
    """A census' or the ledger's (birth step, count, bytes); ``merged``: (first, last) of steps that are known
    together, at the last.
    """
    return Survivors(step, folded(step, rows_of_series(series, merged), warmup))


def rows_of_series(
    series: Iterable[tuple[int, float, float]], merged: Iterable[tuple[int, int]]
) -> list[Row]:
    """The same, step by step."""
    starts = {last: first for first, last in merged}
    return [(starts.get(s, s), s, count, size) for s, count, size in sorted(series) if count > 0]


def history_of(
    step: int,
    warmup: int,
    state: StateOfSeries,
    series: SeriesOfSite,
    scans: Sequence[Survivors] = (),
    *,
    epochs: Sequence[int] = (),
    facts: Facts | None = None,
) -> History:
    """The history of one site as of a mark; ``scans``: those taken of it, the oldest first, the last one as
    of this mark.
    """
    sizes = tuple((scan.step, scan.count, scan.bytes) for scan in scans)
    return History(
        step=step,
        warmup=warmup,
        live=series.live,
        spans=spans_of(state, series).since(warmup + 1),  # what the warm-up made is no growth
        deaths=series.births - series.live,
        survivors=scans[-1] if scans else None,
        earlier=tuple(scans[:-1]),
        sizes=sizes,
        epochs=tuple(epochs),
        facts=facts or Facts(),
    )


def spans_of_survivors(survivors: Survivors, warmup: int) -> Spans:
    """Counts as if nothing but these had ever been there: of what has no live counts of its own."""
    lows: list[float] = []
    width = max(1, -(-(survivors.step - warmup) // MOST_POINTS))
    total, rows = 0.0, list(survivors.rows)
    for mark in range(warmup + 1, survivors.step + 1, width):
        while rows and rows[0][1] < mark:
            _, _, count, _ = rows.pop(0)
            total += count
        lows.append(total)
    return Spans(warmup + 1, width, tuple(lows), tuple(lows))


def of_uncounted(
    step: int, warmup: int, survivors: Survivors, facts: Facts, met: Sequence[tuple[int, int]] = ()
) -> History:
    """The history of what only walks count, such as autograd nodes.  ``met``: (step, count) of the walks
    before, rising.  From each on as many count as alive, until the next: what died between them is not known.
    """
    spans, walked = spans_of_survivors(survivors, warmup), [at for at, _ in met]
    counts = [0, *(count for _, count in met)]
    lows = tuple(
        max(low, counts[bisect.bisect_right(walked, spans.mark_of(i))]) for i, low in enumerate(spans.lows)
    )
    spans = dataclasses.replace(spans, lows=lows, highs=lows)
    return History(step, warmup, survivors.count, spans, survivors=survivors, facts=facts)


def of_part(base: History, step: int, survivors: Survivors, facts: Facts) -> History:
    """The history of what one holder keeps of a line: its own survivors, before the counts and the deaths of
    the whole line.
    """
    age, facts = longest_life(base), dataclasses.replace(facts, line=base.survivors)
    return dataclasses.replace(
        base, step=step, survivors=survivors, earlier=(), sizes=(), facts=facts, age=age
    )


def history_of_total(points: Sequence[tuple[int, float]], warmup: int, spans: int) -> History:
    """The history of a plain total from [(step, value), ...] at marks, rising, folded into at most so many
    spans.

    A span without a reading has the value of the one before it.
    """
    first, step = points[0][0], points[-1][0]
    width = 1
    while step - first >= width * spans:
        width += width
    lows: list[float] = []
    highs: list[float] = []
    unread: list[int] = []
    last = points[0][1]
    for mark, value in points:
        number = (mark - first) // width
        skipped = [last] * (number - len(lows))
        unread += range(len(lows), number)
        if number >= len(lows):
            lows += [*skipped, value]
            highs += [*skipped, value]
        lows[number], highs[number] = min(lows[number], value), max(highs[number], value)
        last = value
    return History(
        step, warmup, points[-1][1], Spans(first, width, tuple(lows), tuple(highs), frozenset(unread))
    )
