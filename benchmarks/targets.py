"""The design's targets beside what a run of all benchmarks reached, and the rivals of the same run."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Row:
    """One target.  reached: None where the run has no figure.  unit: put after each number."""

    what: str
    target: float
    reached: float | None
    unit: str = ""
    rivals: str = ""
    note: str = ""

    def met(self) -> str:
        return "not measured" if self.reached is None else "yes" if self.reached <= self.target else "**no**"


class Results:
    """The parts of a run; what is missing is None."""

    def __init__(self, result: dict):
        self.parts = result["parts"]

    def of(self, part: str, wanted=lambda version: True):
        """The first result of a part that did not fail, of a version that is wanted."""
        found = (
            r for version, r in self.parts.get(part, {}).items() if "failed" not in r and wanted(version)
        )
        return next(found, None)

    def row(self, part: str, name: str, column: str, wanted=lambda version: True):
        return ((self.of(part, wanted) or {}).get("rows", {}).get(name) or {}).get(column)

    def fact(self, part: str, name: str):
        return (self.of(part) or {}).get("facts", {}).get(name)

    def rival(self, name: str):
        found = (self.of("graph, rivals") or {}).get("rivals", {}).get(name)
        return found.get("over gc.collect()") if isinstance(found, dict) else None


def has_events(version: str) -> bool:
    """True from Python 3.13 on."""
    return tuple(int(n) for n in version.split(".")[:2]) >= (3, 13)


def number(value: float) -> str:
    return (
        f"{value:,.0f}"
        if abs(value) >= 100
        else f"{value:.3g}"
        if abs(value) < 1 or abs(value) >= 10
        else f"{value:.2f}"
    )


def known(*pairs) -> str:
    """ "tracemalloc(1) 9.2, memray 6.0" of what is known."""
    return ", ".join(f"{name} {number(value)}" for name, value in pairs if value is not None)


def hook_rows(results: Results):
    for label, wanted, target, in_all in (
        ("3.13+", has_events, 1.09, True),
        ("3.10 to 3.12", lambda v: not has_events(v), 1.13, False),
    ):
        found = results.of("hooks, depth 10", wanted) or {}
        mean = found.get("geometric_mean", {})
        version = found.get("machine", {}).get("python", "")
        rivals = known(*((n, mean.get(n)) for n in ("tracemalloc(1)", "tracemalloc(25)", "memray", "table")))
        yield Row(
            f"object hook, 12 workloads, geometric mean, {label}",
            target,
            mean.get("leakprobe"),
            "x",
            rivals,
            version,
        )
        if in_all and mean:
            yield Row(
                f"the same over the empty hook, {label}",
                1.12,
                mean["leakprobe"] / mean["empty"],
                "x",
                "",
                version,
            )
        deep = (results.of("hooks, depth 60", wanted) or {}).get("geometric_mean", {})
        if mean and deep:
            rivals = known(("tracemalloc(1)", deep.get("tracemalloc(1)")))
            yield Row(
                f"at stack depth 60 over depth 10, {label}",
                1.03,
                deep["leakprobe"] / mean["leakprobe"],
                "x",
                rivals,
                "the same within the noise",
            )


def recycled_rows(results: Results):
    for version, found in results.parts.get("recycled", {}).items():
        if "failed" not in found:
            wrong = sum(row["wrong"] for name, row in found["rows"].items() if name.startswith("closed"))
            right = sum(row["right"] for name, row in found["rows"].items() if name.startswith("closed"))
            yield Row(
                "wrong lines of leaked recycled objects",
                0,
                wrong,
                "",
                "",
                f"{version}: {right:.0f} of 1,200 right",
            )


def memory_rows(results: Results):
    share = results.row("memory", "leakprobe", "of the heap")
    rivals = [(n, results.row("memory", n, "of the heap")) for n in ("tracemalloc(1)", "memray")]
    rivals = known(*((n, None if v is None else 100 * v) for n, v in rivals))
    yield Row(
        "bookkeeping, of the small-object heap", 25, None if share is None else 100 * share, " %", rivals
    )
    yield Row("bookkeeping, bytes a native block", 64, results.fact("native", "bytes a live block"), " B")


#: Parts of the training loop in turns: the target of each.
LOOPS = {"training, in turns": 1.04, "training, long": 1.03, "training, steps of more": 1.01}


def loop_rows(results: Results):
    names = ("tracemalloc(1)", "tracemalloc(25)", "memray", "memray, Python's allocators", "Scalene")
    rivals = known(*((name, results.row("training", f"{name}, processor", "ratio")) for name in names))
    for part, target in LOOPS.items():
        found, facts = results.of(part) or {}, (results.of(part) or {}).get("facts", {})
        row = found.get("rows", {}).get("watch(), processor", {})
        interval = (
            f"{row['low']:.2f} to {row['high']:.2f}; checks {facts['seconds of the looks']:.2g} s of {facts['seconds of a plain loop']:.2g} s"
            if row
            else ""
        )
        step = f" of {facts['ms of a plain step']:.0f} ms" if facts else ""
        yield Row(
            f"training loop, {facts.get('batches', '')} steps{step}",
            target,
            row.get("ratio"),
            "x",
            rivals if part == "training, in turns" else "",
            interval,
        )


def hooks_note(ratio: float | None) -> str:
    return f"{ratio:.2f} over the hooks alone" if ratio is not None else ""


def delay_rows(results: Results):
    for born in ("before the watch", "in it"):
        for kind, delay, ratio in (("clean", 5, 1.02), ("leaking", 300, 1.25)):
            row = f"born {born}, {kind}"
            name = f"2 million live objects, {row}"
            yield Row(f"{name}, longest delay", delay, results.row("delays", row, "longest delay, ms"), " ms")
            note = hooks_note(results.row("delays", row, "over the hooks alone"))
            yield Row(f"{name}, processor", ratio, results.row("delays", row, "ratio"), "x", note=note)


def worker_rows(results: Results):
    for part, name in (("workers", "an epoch"), ("workers, long", "a long epoch")):
        found = results.of(part) or {}
        seconds = found.get("machine", {}).get("plain_s")
        for clock in ("clock", "processor"):
            row = found.get("rows", {}).get(f"watch(), {clock}", {})
            note = (
                f"{row['low']:.2f} to {row['high']:.2f}; {seconds:.0f} s without" if row and seconds else ""
            )
            yield Row(f"{name} with 2 DataLoader workers, {clock}", 1.03, row.get("ratio"), "x", "", note)


def native_rows(results: Results):
    added = lambda name: results.row("native", name, "added, ns")
    yield Row(
        "native hooks, a tensor made and freed, no stack",
        100,
        added("native hooks, no stack"),
        " ns",
        known(("memray", added("memray"))),
    )
    yield Row("the same with 16 frames, objects' hook included", 500, added("both, 16 frames"), " ns")
    blocks = (results.of("mallocs") or {}).get("rows", {})
    for mode, what in (
        ("slots", "native blocks sampled, 2 M of 64 bytes a second"),
        ("preloaded, sampled", "the same under `run --native`"),
    ):
        row = blocks.get(mode, {})
        interval = f"{row['low']:.2f} to {row['high']:.2f}" if row else ""
        rivals = known(("memray", blocks.get("memray", {}).get("ratio"))) if mode == "slots" else ""
        yield Row(what, 1.05, row.get("ratio"), "x", rivals, interval)


def walk_rows(results: Results):
    over = lambda part, name: results.row(part, name, "over gc.collect()")
    yield Row("step mark, 2,000 sites", 150, results.fact("marks", "mark, us"), " us")
    yield Row(
        "census",
        0.20,
        over("marks", "census"),
        "x gc",
        known(("objgraph typestats", over("marks", "objgraph typestats()"))),
    )
    yield Row("full census", 0.60, over("marks", "full census"), "x gc")
    names = ("guppy3 heap()", "pympler muppy, summary", "objgraph growth()", "refcycle snapshot()")
    rivals = known(*((name.split()[0], results.rival(name)) for name in names))
    yield Row(
        "graph with types and sizes",
        0.80,
        over("graph", "graph with types and sizes"),
        "x gc",
        rivals,
        "rivals on a smaller heap",
    )
    yield Row("the same, bytes a node", 55, results.fact("graph", "bytes/node, types and sizes"), " B")
    yield Row(
        "find_cycles()",
        1.8,
        over("graph", "find_cycles()"),
        "x gc",
        known(("refcycle", results.rival("refcycle snapshot()"))),
    )
    name = "snapshot graph: dominators, all retained sizes, cycles, names"
    yield Row("dominators and retained sizes of everything", 4, over("graph", name), "x gc")
    yield Row("the same, each node", 400, results.row("graph", name, "ns/node"), " ns")
    yield from growth_rows(results)


#: What must be linear to 20 M nodes: the column of the part "graph, growing", and what it is called.
GROWING = {
    "graph with types and sizes, ns/node": "graph with types and sizes, time a node",
    "find_cycles(), ns/node": "find_cycles(), time a node",
    "snapshot graph: dominators, ns/node": "dominators and retained sizes, time a node",
    "peak bytes/node, with dominators": "the same, memory a node",
}


def growth_rows(results: Results):
    """What a node takes on the largest heap over that on the second largest: 1 where growth is linear."""
    rows = (results.of("graph, growing") or {}).get("rows", {})
    for key, what in GROWING.items():
        values = [row[key] for row in rows.values() if key in row]
        reached = values[-1] / values[-2] if len(values) > 1 else None
        yield Row(
            f"{what}, the largest heap over the one before",
            1.25,
            reached,
            "x",
            "",
            " over ".join(list(rows)[:-3:-1]),
        )


def difference_rows(results: Results):
    least = lambda name: results.row("differences", name, "ms")
    rivals = known(("tracemalloc compare_to", least("tracemalloc compare_to('traceback')")))
    yield Row(
        "diff of two snapshots of 1 M rows, the core's pass",
        100,
        least("leakprobe, the core's pass"),
        " ms",
        rivals,
    )
    changed = results.fact("differences", "changed")
    yield Row(
        "the same, leakprobe.diff()",
        100,
        least("leakprobe.diff()"),
        " ms",
        "",
        f"{changed:,} rows changed" if changed else "",
    )


def rows(result: dict) -> list[Row]:
    results, made = Results(result), []
    for group in (
        hook_rows,
        recycled_rows,
        loop_rows,
        delay_rows,
        worker_rows,
        native_rows,
        memory_rows,
        walk_rows,
        difference_rows,
    ):
        made += group(results)
    return made


def table(result: dict) -> str:
    """Markdown."""
    lines = ["| what | target | reached | met | rivals | note |", "|---|---|---|---|---|---|"]
    for row in rows(result):
        reached = "-" if row.reached is None else number(row.reached) + row.unit
        lines.append(
            f"| {row.what} | {number(row.target)}{row.unit} | {reached} | {row.met()} | {row.rivals} | {row.note} |"
        )
    return "\n".join(lines)


def cost(result: dict) -> str:
    """What was reached, without targets, as Markdown."""
    lines = ["| what | reached | rivals |", "|---|---|---|"]
    lines += [
        f"| {row.what} | {number(row.reached)}{row.unit} | {row.rivals} |"
        for row in rows(result)
        if row.reached is not None and row.unit
    ]
    return "\n".join(lines)
