"""The deciders that are measured, by name."""

from benchmarks.rhythms.deciders import first_engine, model, rivals

DECIDERS = {
    decider.name: decider
    for decider in (
        model.MODEL,
        first_engine.FIRST_ENGINE,
        rivals.SCALENE,
        rivals.SLOPE,
        rivals.SNAPSHOTS,
        rivals.ALWAYS,
    )
}
