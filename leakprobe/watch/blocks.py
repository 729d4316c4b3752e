"""Which lines' native blocks grow: those of numpy, torch, CUDA and pinned memory, from the ledger's
survivors.
"""

import dataclasses
from collections.abc import Sequence

from leakprobe import _core
from leakprobe.evidence.readings import spans_of, survivors_of_series
from leakprobe.judge.enlarging import unsettled_enlargement
from leakprobe.judge.looks import Suspect, Unsettled, unsettled
from leakprobe.judge.same_lines import Part, group_by, judged_together, line_of_site, unsettled_together
from leakprobe.judge.verdicts import ASKED, judge
from leakprobe.model.bounds import FOLLOWED_BYTES, MOST_LARGE, MOST_LINES
from leakprobe.model.frames import SELF_SITE
from leakprobe.model.history import History
from leakprobe.model.media import family
from leakprobe.model.thresholds import LEAST_RATE
from leakprobe.model.verdict import Verdict
from leakprobe.watch.followed import Line
from leakprobe.watch.in_flight import InFlight


class Blocks:
    """The lines of one watch that native blocks come from."""

    def __init__(self, warmup: int, media: frozenset[str], flight: InFlight):
        self._warmup, self._media, self._flight = warmup, media, flight
        self._lines: dict[tuple[str, int], Line] = {}
        self.large: list[Suspect] = []  # as of the last look, whatever the verdict
        self.unsettled: list[Unsettled] = []
        self.judged: set[tuple[str, int]] = set()

    def look(self, step: int, epochs: tuple[int, ...]) -> list[Suspect]:
        """What is kept, or gives way to larger ones, as of this mark."""
        rows = {
            (row.medium, row.site): row
            for row in _core.ledger_groups(self._warmup, step, 0)
            if family(row.medium) in self._media and row.site != SELF_SITE
        }
        for key in self._lines.keys() - rows.keys():
            self._lines[key].totals.add(step, 0, 0)
        if len(self._lines) > MOST_LINES:
            self._lines = {key: line for key, line in self._lines.items() if key in rows}
        least = LEAST_RATE * (step - self._warmup)
        found = [
            self._suspect(step, epochs, key, row)
            for key, row in rows.items()
            if row.bytes >= FOLLOWED_BYTES or row.window_bytes >= least
        ]
        lines = group_by(found, lambda s: (s.medium, line_of_site(s.site)))
        found = [one for parts in lines for one in together(parts)]
        self.judged = {(s.medium, s.site) for s in found}
        self.large = sorted(found, key=lambda s: -s.live_bytes)[:MOST_LARGE]
        self.unsettled = unsettled_of(found)
        return [suspect for suspect in found if suspect.judgement.verdict in ASKED]

    def _suspect(
        self, step: int, epochs: tuple[int, ...], key: tuple[str, int], row: _core.BlockGroup
    ) -> Suspect:
        series = _core.ledger_series(*key)
        line = self._lines.setdefault(key, Line())
        line.add(step, row.count, row.bytes, survivors_of_series(step, series, warmup=self._warmup))
        age = self._flight.age_of(key[1])
        history = dataclasses.replace(self._history(key, line, epochs), age=age, flight=age)
        judgement = judge(history)
        return Suspect(("block", *key), key[0], None, history, judgement, row.count, row.bytes, series)

    def _history(self, key: tuple[str, int], line: Line, epochs: tuple[int, ...]) -> History:
        """By the live counts of each mark; where none are kept, by the totals of the looks."""
        plain, counts = line.history(self._warmup, epochs), _core.line_series(*key)
        if counts is None:
            return plain
        spans = spans_of(_core.series_state(), counts).since(self._warmup + 1)
        return dataclasses.replace(plain, live=counts.live, spans=spans, deaths=counts.births - counts.live)


def together(parts: list[Suspect]) -> list[Suspect]:
    """The sites of one line, with their shares of its verdict where that is that it leaks."""
    shares = judged_together([s.history for s in parts]) if len(parts) > 1 else None
    if shares is None:
        return parts
    return [dataclasses.replace(s, judgement=share) for s, share in zip(parts, shares)]


def unsettled_of(found: Sequence[Suspect]) -> list[Unsettled]:
    """Lines of which what is kept may be growth and may be none: alone, or all of a medium together."""
    alone = [unsettled(s.medium, s.site, s.history, s.judgement) for s in found]
    parts: dict[str, list[Part]] = {}
    for s in found:
        parts.setdefault(s.medium, []).append((s.site, s.history, s.judgement))
    together = [unsettled_together(medium, every) for medium, every in parts.items()]
    over = (s for s in found if s.judgement.verdict is Verdict.TURNOVER)
    larger = [unsettled_enlargement(s.medium, s.site, s.history) for s in over]
    return [one for one in (*alone, *together, *larger) if one is not None]
