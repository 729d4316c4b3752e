"""What a step mark costs, and a census of everything over one gc.collect() of the same heap.

Mark: probe.step() at 2,000 live sites (2,000 functions that each keep a list, and a tensor where torch is
there), of marks at which no look was due.  "Followed": each mark reads the counts, as the first ones of a
loop do and few of a long one; "skipped": none does.  Census: the heap of the graph benchmark, made under the
hook, interleaved with gc.collect() and with objgraph's count of types; minimum over minimum of processor
time.
"""

import gc
import importlib.util
import statistics
import time

from benchmarks import graph, heaps, pairs


def add_arguments(parser) -> None:
    parser.add_argument("--units", type=int, default=105_000, help="16 objects each")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--sites", type=int, default=2000)
    parser.add_argument("--marks", type=int, default=400)


def functions(count: int) -> list:
    """Functions of one line each, and so as many sites: each keeps a tensor where torch is there, and gives a
    list that it keeps.
    """
    torch = importlib.util.find_spec("torch") is not None
    body = ("kept.append(empty(8)); " if torch else "") + "kept.append([1, 2, 3]); return kept[-1]"
    scope = {"kept": []}
    if torch:
        from torch import empty

        scope["empty"] = empty
    exec(compile("".join(f"def f{i}():\n    {body}\n" for i in range(count)), "<sites>", "exec"), scope)
    return [scope[f"f{i}"] for i in range(count)]


class Always:
    """In place of what says which marks are read: all of them, or none."""

    def __init__(self, is_due: bool):
        self._is_due = is_due

    def is_due(self, step: int, always: bool) -> bool:
        return self._is_due


def mark_times(sites: int, marks: int, followed: bool) -> list:
    """Microseconds of the marks between looks, all of them followed or skipped."""
    import leakprobe

    found, makers = [], functions(sites)
    with leakprobe.watch() as probe:
        probe._following = Always(followed)
        for make in makers:
            make()
        for _ in range(marks):
            before = (probe.progress() or {}).get("looked")
            began = time.perf_counter()
            probe.step()
            took = time.perf_counter() - began
            if (probe.progress() or {}).get("looked") == before:
                found.append(took * 1e6)
    return found


def censuses() -> dict:
    from leakprobe import _core

    most = 2**32 - 1
    calls = {
        "gc.collect()": gc.collect,
        "census": lambda: _core.census(False, 0, most, 3),
        "full census": lambda: _core.census(True, 0, most, 3),
    }
    if importlib.util.find_spec("objgraph"):
        import objgraph

        calls["objgraph typestats()"] = lambda: objgraph.typestats(shortnames=False)
    return calls


def run(args) -> dict:
    from leakprobe import _core
    from leakprobe.model.frames import PACKAGE_DIR

    times_of = {
        name: mark_times(args.sites, args.marks, name == "followed") for name in ("followed", "skipped")
    }
    _core.start(16, PACKAGE_DIR)
    gc.disable()
    kept = heaps.mixed(args.units)
    gc.collect()
    times = graph.measure(censuses(), args.repetitions)
    objects = _core.census(True, 0, 2**32 - 1, 3).object_count
    rows = graph.rows_of(times, objects)
    gc.enable()
    _core.stop()
    facts = {
        "objects": objects,
        **{f"{name} mark, us": statistics.median(times) for name, times in times_of.items()},
        **{f"{name} mark, us, least": min(times) for name, times in times_of.items()},
        "sites": args.sites,
        "units": len(kept),
    }
    return {"benchmark": "marks", "machine": pairs.machine(), "rows": rows, "facts": facts}


table = graph.table
