"""What evidence and renderers ask of a memory map, which leakprobe.memory_map has."""

from collections.abc import Sequence
from typing import Protocol

from leakprobe.model.frames import FrameTuple


class Placed(Protocol):
    """Memory at an address, as of ``step``."""

    @property
    def address(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def step(self) -> int: ...


class Event(Placed, Protocol):
    """A birth, or with a negative size a death, of a block in ``step``."""

    @property
    def site(self) -> int: ...


class EventOfMedium(Event, Protocol):
    """An event of a MemoryMap."""

    @property
    def medium(self) -> str: ...


class LiveBlock(Placed, Protocol):
    """A BlockRow of a MemoryMap."""

    @property
    def medium(self) -> str: ...
    @property
    def stack(self) -> Sequence[FrameTuple]: ...
    @property
    def role(self) -> str: ...
    @property
    def owner(self) -> str | None: ...
    def where(self) -> str: ...


class Blocks(Protocol):
    """A MemoryMap."""

    @property
    def rows(self) -> Sequence[LiveBlock]: ...
    @property
    def events(self) -> Sequence[EventOfMedium]: ...
    @property
    def step(self) -> int: ...
    @property
    def events_lost(self) -> int: ...
