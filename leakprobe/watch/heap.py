"""What a walk of the heap says of the lines that grow: types, bytes, and whether all that is counted is
there.
"""

from collections.abc import Mapping, Sequence

from leakprobe import _core
from leakprobe.evidence.readings import of_part, survivors_of_series
from leakprobe.judge.looks import Key, Suspect
from leakprobe.judge.same_lines import group_by, judged_together
from leakprobe.judge.verdicts import ASKED, judge, replaced
from leakprobe.model.bounds import FOLLOWED_BYTES, FOLLOWED_GROUPS
from leakprobe.model.entry import Series
from leakprobe.model.facts import COUNTED_WHERE_ENLARGED
from leakprobe.model.frames import FIRST_SITE, SELF_SITE
from leakprobe.model.history import Facts, History, judged_steps
from leakprobe.model.thresholds import HALF, LAG, LEAST_RATE
from leakprobe.model.verdict import Judgement
from leakprobe.watch.followed import Followed, Line, Totals
from leakprobe.watch.objects import Growing
from leakprobe.watch.records import Records


class Heap:
    """The walks of one watch."""

    def __init__(self, warmup: int):
        self._warmup = warmup
        self._totals: dict[Key, Totals] = {}
        self._lines: dict[Key, Line] = {}  # where live counts are not exact
        self._census: _core.Census | None = None
        self._step = 0
        self.top: list[_core.CensusGroup] = []  # those with most bytes, as of the last walk
        self.suspects: list[Suspect] = []  # as of the last walk, by type
        self.enlarged: list[Suspect] = []  # single objects that give way to larger ones

    def census_at(self, step: int) -> "_core.Census | None":
        """The census of a walk at this mark, if there was one."""
        return self._census if self._step == step else None

    def heap_bytes(self) -> int:
        """Bytes of CPython's heap as of the last walk, without what its arenas grew by since the start."""
        assert self._census is not None
        return self._census.total_bytes - _core.python_bytes()

    def confirm(
        self, step: int, asked: list[Growing], followed: dict[int, Followed], records: Records
    ) -> list[Suspect]:
        """The suspects by type, judged on what was met of them."""
        _core.forget_looked_up_names()
        numbers = [g.site for g in asked]
        found = self._meet(step, numbers)
        if any(c.unreached > HALF * c.met for c in found.sites):
            if _core.follow_frees(True):  # what nothing refers to is met from now on
                found = self._meet(step, numbers)
        self._keep(step, found.census)
        groups: dict[int, list[_core.CensusGroup]] = {}
        for group in found.census.groups:
            groups.setdefault(group.site, []).append(group)
        note_sizes(groups, followed)
        merged = _core.merged_epochs()
        lines = group_by(asked, lambda g: g.sites or (g.site,))
        self.suspects = [
            s for parts in lines for s in self._by_type(step, parts, found.census, groups, merged)
        ]
        self._follow(step, records)
        return self.suspects

    def _keep(self, step: int, census: "_core.Census") -> None:
        self._census, self._step, self.top = census, step, census.top(FOLLOWED_GROUPS)

    def count_all(self, step: int, epochs: tuple[int, ...], records: Records) -> list[Suspect]:
        """The suspects of all lines, where deaths are not seen and a walk is the only count of what is
        alive.
        """
        _core.forget_looked_up_names()
        within = judged_steps(self._warmup, step)
        census = _core.census(True, within.start, within.stop - 1, 1)
        self._keep(step, census)
        least = LEAST_RATE * (step - self._warmup)
        merged = _core.merged_epochs()
        found = []
        for group in census.groups:
            if group.site < FIRST_SITE or group.site == SELF_SITE or group.window_bytes < least:
                continue
            key: Key = ("object", group.type_id, group.site)
            series = census.series(group.type_id, group.site)
            line = self._lines.setdefault(key, Line())
            line.add(step, group.count, group.bytes, survivors_of_series(step, series, merged, self._warmup))
            history = line.history(self._warmup, epochs)
            judgement = judge(history)
            if judgement.verdict in ASKED:
                found.append(
                    Suspect(key, "python", group.type, history, judgement, group.count, group.bytes, series)
                )
        self.suspects = found
        self._follow(step, records)
        return found

    def _meet(self, step: int, numbers: list[int]) -> "_core.Confirmation":
        within = judged_steps(self._warmup, step)
        return _core.confirm(numbers, within.start, within.stop - 1, 1)

    def _by_type(
        self,
        step: int,
        parts: list[Growing],
        census: _core.Census,
        groups: Mapping[int, Sequence[_core.CensusGroup]],
        merged: list[_core.StepRange],
    ) -> list[Suspect]:
        """The suspects among the types of one line, site by site."""
        found: list[Suspect] = []
        known = {g.site: g.history for g in parts}
        every = [group for site in known for group in groups.get(site, ())]
        older = max(0, sum(group.count for group in every) - round(sum(h.live for h in known.values())))
        for same in group_by(every, lambda group: group.type_id):
            if sum(group.window_bytes for group in same) < LEAST_RATE * (step - self._warmup):
                continue
            series = [census.series(group.type_id, group.site) for group in same]
            kept = [survivors_of_series(step, one, merged, self._warmup) for one in series]
            bases = [of_part(known[group.site], step, one, Facts()) for group, one in zip(same, kept)]
            for group, one, judgement in zip(same, series, judged_each(bases)):
                if judgement.verdict in ASKED:
                    found.append(suspect_of(group, known[group.site], judgement, one, older))
        return found

    def _large(self, records: Records) -> list[_core.CensusGroup]:
        """The groups with most bytes, and those of the lines that made ever larger blocks: what a program
        imports in the watch is more than a buffer that has just begun to grow.
        """
        missing = {record.site for record in records.growing}.difference(group.site for group in self.top)
        if not missing or self._census is None:
            return self.top
        return [*self.top, *(group for group in self._census.groups if group.site in missing)]

    def _follow(self, step: int, records: Records) -> None:
        """Totals of the largest groups: those whose few objects give way to ever larger ones, by their own
        totals or by the records of large blocks.
        """
        known = {s.key for s in self.suspects}
        self.enlarged = []
        for group in self._large(records):
            key: Key = ("object", group.type_id, group.site)
            if group.site < FIRST_SITE or group.site == SELF_SITE or group.bytes < FOLLOWED_BYTES:
                continue
            totals = self._totals.setdefault(key, Totals())
            totals.add(step, group.count, group.bytes)
            if key in known:
                continue
            plain = totals.history(self._warmup)
            fitting = records.of(group.count, group.bytes) if group.count <= LAG else []
            if fitting:
                plain = fitting[0].history
            judgement = replaced(plain)
            if judgement is not None:
                self.enlarged.append(
                    Suspect(
                        key,
                        "python",
                        group.type,
                        plain,
                        judgement,
                        group.count,
                        group.bytes,
                        (),
                        tuple(record.site for record in fitting),
                        max(0, group.count - _core.live_of([group.site])[group.site]),
                    )
                )


def suspect_of(
    group: _core.CensusGroup, history: History, judgement: Judgement, series: Series, older: int
) -> Suspect:
    """``older``: of its line, how many were alive that the scan does not count."""
    key: Key = ("object", group.type_id, group.site)
    return Suspect(
        key,
        "python",
        group.type,
        history,
        judgement,
        group.count,
        group.bytes,
        series,
        older_count=older if group.type in COUNTED_WHERE_ENLARGED else 0,
    )


def judged_each(histories: Sequence[History]) -> list[Judgement]:
    """The verdicts on one type of the sites of one line: their shares of that on the line, where it leaks."""
    shares = judged_together(histories) if len(histories) > 1 else None
    return shares if shares is not None else [judge(history) for history in histories]


def note_sizes(groups: dict[int, list[_core.CensusGroup]], followed: dict[int, Followed]) -> None:
    """Note the bytes of an item of each site that is followed, all types together: an item is a stamp, and
    the memory of an object may have one of its own.
    """
    for site in groups.keys() & followed.keys():
        series, met = _core.site_series(site), sum(group.count for group in groups[site])
        stamps = max(1.0, series.live / max(1, met)) if series is not None else 1.0
        items = stamps * sum(group.window_count for group in groups[site])
        followed[site].item_bytes = sum(group.window_bytes for group in groups[site]) / max(1.0, items)
        followed[site].is_settled = True
