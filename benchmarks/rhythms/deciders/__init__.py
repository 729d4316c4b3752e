"""The deciders that are measured, by name."""

from benchmarks.rhythms.deciders import first_engine, rivals

DECIDERS = {
    decider.name: decider
    for decider in (
        first_engine.FIRST_ENGINE,
        rivals.SCALENE,
        rivals.SLOPE,
        rivals.SNAPSHOTS,
        rivals.ALWAYS,
    )
}
