"""Which lines' native blocks grow: those of numpy, torch, CUDA and pinned memory, from the ledger's survivors."""

import dataclasses

from leakprobe import _core
from leakprobe.evidence.readings import history_of_total, survivors_of_series
from leakprobe.judge.looks import Suspect
from leakprobe.judge.verdicts import judge
from leakprobe.model.frames import SELF_SITE
from leakprobe.model.history import History
from leakprobe.model.media import family
from leakprobe.model.thresholds import FOLLOWED_BYTES, LEAST_RATE, MOST_POINTS
from leakprobe.watch.followed import Followed, Totals
from leakprobe.watch.objects import ASKED


class Blocks:
    """The lines of one watch that native blocks come from."""

    def __init__(self, warmup: int, media: frozenset):
        self._warmup, self._media = warmup, media
        self._totals: dict[tuple[str, int], Totals] = {}
        self._followed: dict[tuple[str, int], Followed] = {}

    def look(self, step: int, epochs: tuple[int, ...]) -> list[Suspect]:
        """What is kept, or gives way to larger ones, as of this mark."""
        found = []
        seen = set()
        for row in _core.ledger_groups(self._warmup, step, 0):
            if family(row.medium) not in self._media or row.site == SELF_SITE:
                continue
            key = row.medium, row.site
            seen.add(key)
            if row.bytes >= FOLLOWED_BYTES or row.window_bytes >= LEAST_RATE * (step - self._warmup):
                found.append(self._suspect(step, epochs, key, row))
        for key in self._totals.keys() - seen:
            self._totals[key].add(step, 0, 0, MOST_POINTS)
        self._forget(seen)
        return [suspect for suspect in found if suspect.judgement.verdict in ASKED]

    def _suspect(self, step: int, epochs: tuple[int, ...], key: tuple[str, int], row) -> Suspect:
        totals = self._totals.setdefault(key, Totals())
        totals.add(step, row.count, row.bytes, MOST_POINTS)
        series = _core.ledger_series(*key)
        followed = self._followed.setdefault(key, Followed())
        followed.add(survivors_of_series(step, series))
        history = self._history(step, epochs, totals, followed)
        judgement = judge(history)
        followed.stand(judgement)
        return Suspect(("block", *key), key[0], None, history, judgement, row.count, row.bytes, series)

    def _history(self, step: int, epochs, totals: Totals, followed: Followed) -> History:
        plain = history_of_total(totals.counts, self._warmup, MOST_POINTS)
        return dataclasses.replace(
            plain,
            survivors=followed.scans[-1],
            earlier=tuple(followed.scans[:-1]),
            sizes=tuple(totals.points),
            epochs=epochs,
        )

    def _forget(self, alive: set) -> None:
        """Lines of which nothing has been alive for long."""
        if len(self._totals) > 4096:
            self._totals = {key: totals for key, totals in self._totals.items() if key in alive}
            self._followed = {key: followed for key, followed in self._followed.items() if key in alive}
