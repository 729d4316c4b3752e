"""Which of what grows the walks of a watch were asked about and have met: none is taken for what is known."""

import dataclasses
from collections.abc import Container

from leakprobe.judge.crowds import Crowd
from leakprobe.judge.looks import Key, Suspect, Walk
from leakprobe.model.thresholds import HALF, LEAST_EVENTS
from leakprobe.watch.objects import Growing


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What a look asks a walk about: lines of objects, native blocks, and what is replaced in ever more
    places.
    """

    objects: tuple[Growing, ...]
    blocks: tuple[Suspect, ...]
    crowds: tuple[Crowd, ...]

    def __bool__(self) -> bool:
        return bool(self.objects or self.blocks or self.crowds)

    @property
    def native(self) -> tuple[Suspect, ...]:
        """The native blocks, crowds among them."""
        return (*self.blocks, *(crowd.fastest for crowd in self.crowds))

    def rate(self, known: Container[Key | int] = ()) -> float:
        """Bytes a step that grow, but for the known."""
        rates: list[tuple[float, Key | int]] = [(g.rate, g.site) for g in self.objects]
        rates += [(s.rate, s.key) for s in self.native]
        return sum(rate for rate, what in rates if what not in known)


class Walked:
    """Sites of objects, and keys of native blocks."""

    def __init__(self) -> None:
        self._asked: set[Key | int] = set()
        self._met: set[Key | int] = set()  # by the last walk, in a holder, with births enough for a verdict

    def note(self, wanted: Wanted, walk: Walk | None) -> None:
        """What grew when a walk was taken, and what that walk met; who keeps a crowd is asked once."""
        replaced = [crowd.fastest.key for crowd in wanted.crowds]
        self._asked.update((g.site for g in wanted.objects), (s.key for s in wanted.native))
        held = (one.entry for one in walk.seen if one.entry.holder is not None) if walk is not None else ()
        members = [member for entry in held for member in entry.members]
        told = [member for member in members if len(member.series) >= LEAST_EVENTS]
        self._met = {m.key if m.type is None else m.site for m in told} | set(replaced)

    def is_new(self, wanted: Wanted) -> bool:
        """True if a good part of the growth is of lines that no walk was asked about yet."""
        return wanted.rate(self._asked) > HALF * wanted.rate()

    def is_met(self, wanted: Wanted) -> bool:
        """True if most of the growth is of lines that the last walk met in a holder."""
        return wanted.rate(self._met) < HALF * wanted.rate()
