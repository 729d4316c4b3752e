"""Who keeps what the suspects are about, asked of the heap."""

from collections.abc import Iterable, Sequence

from leakprobe import _core
from leakprobe.judge.crowds import Crowd, crowd_of
from leakprobe.judge.entries import Seen
from leakprobe.judge.looks import Key, Ranges, Suspect
from leakprobe.model.bounds import TORCH_BUDGET
from leakprobe.model.entry import Entry, entries_of, with_owned
from leakprobe.model.thresholds import HALF
from leakprobe.watch.worker_paths import from_dataset


class Holders:
    """The traces of one watch's walks; within a worker, by paths from its dataset."""

    def __init__(self, warmup: int) -> None:
        self._warmup = warmup
        self.dataset: str | None = None  # of a worker: the name of its type

    def of(
        self,
        suspects: Iterable[Suspect],
        born: range,
        marks: Iterable[tuple[int, int]] = (),
        grew_by: int = 0,
        *,
        older: bool = False,
        by_keeper: bool = False,
    ) -> tuple[Entry, ...]:
        """What each holder keeps of what was born in these steps.

        ``marks``: those of autograd nodes.  ``grew_by``: bytes that the process has more than after the
        warm-up.  ``older``, ``by_keeper``: as of _core.trace().
        """
        keys = [s.key for s in suspects]
        entries = run_trace(keys, born, list(marks), grew_by, older=older, by_keeper=by_keeper)
        return tuple(from_dataset(entry, self.dataset) for entry in entries)

    def enlarged(self, step: int, suspects: Sequence[Suspect], merged: Ranges) -> tuple[Seen, ...]:
        """Holders of single blocks, with the verdicts on these; one that is enlarged in place is as old as
        the loop.
        """
        known = {s.key: s for s in suspects}
        entries = self.of(suspects, range(self._warmup, step + 1))
        met = {member.key for entry in entries for member in entry.members}
        older = [suspect for suspect in suspects if suspect.key not in met]
        entries += self.of(older, range(step + 1), older=True) if older else ()
        found = []
        for entry in entries:
            among = [known[m.key] for m in entry.members if m.key in known]
            fastest = max(among, key=lambda suspect: suspect.rate, default=None)
            if fastest is not None and not is_another(fastest, entry) and has_most(entry, fastest):
                base = {fastest.key: fastest.history}
                line = line_of_growth(fastest, entry)
                found.append(Seen(entry, step, base, tuple(merged), fastest.judgement, line))
        return tuple(found)

    def crowded(self, step: int, crowds: Sequence[Crowd], merged: Ranges) -> tuple[Seen, ...]:
        """Holders of what is replaced all the time in ever more places, line by line."""
        parts = [part for crowd in crowds for part in crowd.parts]
        entries = self.of(parts, range(self._warmup, step + 1), by_keeper=True)
        found = (crowd_of(entries, crowd, step, self._warmup, merged) for crowd in crowds)
        return tuple(one for one in found if one is not None)


def run_trace(
    keys: Sequence[Key],
    born: range,
    autograd_marks: list[tuple[int, int]],
    grew_by: int,
    *,
    older: bool,
    by_keeper: bool,
) -> tuple[Entry, ...]:
    """_core.trace over groups given by their keys, and over autograd nodes by their age."""
    traced = _core.trace(
        [(int(type_id), site) for kind, type_id, site in keys if kind == "object"],
        [(str(medium), site) for kind, medium, site in keys if kind == "block"],
        born.start,
        born.stop - 1,
        torch_budget=TORCH_BUDGET,
        autograd_marks=autograd_marks,
        older=older,
        by_keeper=by_keeper,
    )
    return with_owned(entries_of(traced), traced["owned"], grew_by)


def is_another(suspect: Suspect, entry: Entry) -> bool:
    """True if the object met was enlarged by another line than those that may have enlarged what grows."""
    wanted = set(map(_core.site_base, suspect.grown_sites))
    return entry.grown_site not in {0, *wanted} and bool(wanted)


def line_of_growth(suspect: Suspect, entry: Entry) -> int:
    """The line that enlarges it, by its memory where two of one size have different lines; or 0."""
    sites = suspect.grown_sites
    if not sites and suspect.older_count:
        return suspect.site
    met = [site for site in sites if _core.site_base(site) == entry.grown_site]
    if not met and len(sites) == 1:
        return sites[0]
    return met[0] if met else 0


def has_most(entry: Entry, suspect: Suspect) -> bool:
    """True if it holds a block of the few that gets larger."""
    *_, (_, _, size) = suspect.history.sizes or ((0, 0, suspect.live_bytes),)
    return entry.bytes >= HALF * size
