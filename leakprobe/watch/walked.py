"""Which of what grows the walks of a watch were asked about and have met: none is taken for what is known."""

from collections.abc import Container, Sequence

from leakprobe.judge.crowds import Crowd
from leakprobe.judge.looks import Key, Suspect, Walk
from leakprobe.model.thresholds import HALF, LEAST_EVENTS
from leakprobe.watch.objects import Growing


class Walked:
    """Sites of objects, and keys of native blocks."""

    def __init__(self) -> None:
        self._asked: set[Key | int] = set()
        self._met: set[Key | int] = set()  # by the last walk, in a holder, with births enough for a verdict

    def note(
        self, asked: Sequence[Growing], blocks: Sequence[Suspect], crowds: Sequence[Crowd], walk: Walk | None
    ) -> None:
        """What grew when a walk was taken, and what that walk met; who keeps a crowd is asked once."""
        replaced = [crowd.fastest.key for crowd in crowds]
        self._asked.update((g.site for g in asked), (s.key for s in blocks), replaced)
        held = (one.entry for one in walk.seen if one.entry.holder is not None) if walk is not None else ()
        members = [member for entry in held for member in entry.members]
        told = [member for member in members if len(member.series) >= LEAST_EVENTS]
        self._met = {m.key if m.type is None else m.site for m in told} | set(replaced)

    def is_new(self, asked: Sequence[Growing], blocks: Sequence[Suspect]) -> bool:
        """True if a good part of the growth is of lines that no walk was asked about yet."""
        return rate_beside(self._asked, asked, blocks) > HALF * rate_beside((), asked, blocks)

    def is_met(self, asked: Sequence[Growing], blocks: Sequence[Suspect]) -> bool:
        """True if most of the growth is of lines that the last walk met in a holder."""
        return rate_beside(self._met, asked, blocks) < HALF * rate_beside((), asked, blocks)


def rate_beside(known: Container[Key | int], asked: Sequence[Growing], blocks: Sequence[Suspect]) -> float:
    """Bytes a step that grow, but for the known."""
    rates: list[tuple[float, Key | int]] = [(g.rate, g.site) for g in asked]
    rates += [(s.rate, s.key) for s in blocks]
    return sum(rate for rate, what in rates if what not in known)
