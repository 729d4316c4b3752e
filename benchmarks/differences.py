"""The difference of two snapshots of a million rows, one in a hundred changed, beside tracemalloc's
compare_to().

A row of leakprobe is one type and site; one of tracemalloc is a traceback of one frame.  Both are made from
tables, not from a million allocations.  "leakprobe.diff()" is what a user calls: the core's pass and the
Python rows of what changed; what tracemalloc gives is one StatisticDiff for every row.  Seconds of processor
time, the least of the repetitions, interleaved.
"""

import statistics
import tracemalloc

from benchmarks import graph, marks, pairs


def add_arguments(parser) -> None:
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--every", type=int, default=100, help="one row in so many changed (default 100)")


def ours(rows: int, every: int):
    """(older, newer) as core snapshots: 1,000 sites, and as many types as it takes."""
    from leakprobe import _core
    from leakprobe.model.frames import PACKAGE_DIR

    _core.start(16, PACKAGE_DIR)
    sites = [_core.site_of(make())[0] for make in marks.functions(1000)]
    _core.stop()

    def rows_of(added):
        return [
            (1 + i // 1000, sites[i % 1000], 1, 9, 5 + (added if i % every == 0 else 0), 640)
            for i in range(rows)
        ]

    return _core.snapshot_new(rows_of(0)), _core.snapshot_new(rows_of(1))


def theirs(rows: int, every: int):
    files = [f"/app/file{k}.py" for k in range(1000)]

    def traces(added):
        return [
            (0, 640 + (64 * added if i % every == 0 else 0), ((files[i % 1000], 1 + i // 1000),), 1)
            for i in range(rows)
        ]

    return tracemalloc.Snapshot(traces(0), 1), tracemalloc.Snapshot(traces(1), 1)


def run(args) -> dict:
    import leakprobe

    names = {k: f"type{k}" for k in range(1, 2 + args.rows // 1000)}
    older, newer = ours(args.rows, args.every)
    first, second = (leakprobe.Snapshot(None, step, core, names) for step, core in enumerate((older, newer)))
    old_traces, new_traces = theirs(args.rows, args.every)
    calls = {
        "leakprobe, the core's pass": lambda: newer.diff(older),
        "leakprobe.diff()": lambda: leakprobe.diff(first, second),
        "tracemalloc compare_to('lineno')": lambda: new_traces.compare_to(old_traces, "lineno"),
        "tracemalloc compare_to('traceback')": lambda: new_traces.compare_to(old_traces, "traceback"),
    }
    times = graph.measure(calls, args.repetitions)
    rows = {
        name: {"ms": min(s) * 1000, "of medians, ms": statistics.median(s) * 1000, "spread": pairs.spread(s)}
        for name, s in times.items()
    }
    facts = {"rows": args.rows, "changed": len(newer.diff(older))}
    return {"benchmark": "differences", "machine": pairs.machine(), "rows": rows, "facts": facts}


table = graph.table
