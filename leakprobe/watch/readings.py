"""What a watch reads its marks with: the engine, and the timeline of what each mark said."""

import dataclasses

from leakprobe.watch.engine import Engine, Settings
from leakprobe.watch.timeline import Timeline


@dataclasses.dataclass(frozen=True, slots=True)
class Readings:
    """Of one watch, from its beginning on."""

    engine: Engine
    timeline: Timeline

    @classmethod
    def begin(cls, settings: Settings, heap_bytes: int) -> "Readings":
        """``heap_bytes``: of CPython's heap, before the hooks."""
        timeline, engine = Timeline(), Engine(settings, heap_bytes)
        # no reference back to the probe: one that nobody can reach must go at once
        keepers = (timeline, engine.autograd_steps, engine.account)
        engine.resources.other_columns = lambda: [column for keeper in keepers for column in keeper.columns()]
        return cls(engine, timeline)
