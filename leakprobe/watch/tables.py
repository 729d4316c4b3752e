"""Whose items fill the tables of containers: one gets larger by what is put into it, and while old items are
replaced by new ones it is only laid out anew.
"""

from collections.abc import Iterable

from leakprobe.judge.entries import Seen
from leakprobe.judge.looks import Key
from leakprobe.model.entry import Entry


class Tables:
    """What walks have met in containers, of one watch."""

    def __init__(self) -> None:
        self._items: dict[int, frozenset[Key]] = {}  # address of a container => what grew in it

    def note(self, seen: Iterable[Seen], growing: set[Key]) -> None:
        """Remember of each holder what grows in it now; of others what did before."""
        for one in seen:
            items = growing.intersection(member.key for member in one.entry.members)
            if one.entry.holder is not None and items:
                self._items[one.entry.holder.address] = frozenset(items)

    def is_filled(self, entry: Entry, growing: set[Key]) -> bool:
        """True if the member shown is a container that lines have filled of which nothing grows any more."""
        items = self._items.get(entry.address)
        return items is not None and not items & growing
