"""The design's targets beside what a run of all benchmarks reached, and the rivals of the same run."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Row:
    """One target, or None where none is asked for.  reached: None where the run has no figure.  unit: put
    after each number.

    measured: the day and the version of Python; is_least: the target is a least number, not a most.
    """

    what: str
    target: float | None
    reached: float | None
    unit: str = ""
    rivals: str = ""
    note: str = ""
    measured: str = ""
    is_least: bool = False

    def met(self) -> str:
        if self.reached is None:
            return "not measured"
        if self.target is None:
            return "no target"
        is_met = self.reached >= self.target if self.is_least else self.reached <= self.target
        return "yes" if is_met else "**no**"


class Results:
    """The parts of a run, and the result of the rhythms; what is missing is None."""

    def __init__(self, result: dict, rhythms: dict | None = None):
        self.parts, self.rhythms = result["parts"], rhythms or {}

    def of(self, part: str, wanted=lambda version: True) -> dict:
        """The first result of a part that did not fail, of a version that is wanted."""
        found = (
            r for version, r in self.parts.get(part, {}).items() if "failed" not in r and wanted(version)
        )
        return next(found, {})

    def row(self, part: str, name: str, column: str):
        return self.of(part).get("rows", {}).get(name, {}).get(column)

    def fact(self, part: str, name: str):
        return self.of(part).get("facts", {}).get(name)

    def rival(self, name: str):
        found = self.of("graph, rivals").get("rivals", {}).get(name)
        return found.get("over gc.collect()") if isinstance(found, dict) else None

    def measured(self, part: str) -> str:
        return measured(self.of(part))


def measured(found: dict) -> str:
    """The day of a result, and its version of Python."""
    return f"{found['date']}, {found['machine']['python']}" if "date" in found else ""


def is_one_state(first: dict, second: dict) -> bool:
    """True if two results are of the same code: of one commit, or, where that is not known, of one day."""
    keys = [key for key in ("commit", "date") if first.get(key) and second.get(key)]
    return bool(keys) and first[keys[0]] == second[keys[0]]


def has_events(version: str) -> bool:
    """True from Python 3.13 on."""
    return tuple(int(n) for n in version.split(".")[:2]) >= (3, 13)


def number(value: float) -> str:
    return (
        f"{value:,.0f}"
        if abs(value) >= 100 or isinstance(value, int)
        else f"{value:.3g}"
        if abs(value) < 1 or abs(value) >= 10
        else f"{value:.2f}"
    )


def known(*pairs) -> str:
    """ "tracemalloc(1) 9.2, memray 6.0" of what is known."""
    return ", ".join(f"{name} {number(value)}" for name, value in pairs if value is not None)


def quotient(value: float | None, by: float | None) -> float | None:
    return None if value is None or by is None else value / by


def interval(row: dict) -> str:
    return f"{row['low']:.2f} to {row['high']:.2f}" if row else ""


#: Where the page has figures that no part of the run gives.
BY_HAND = {
    "PGO": "by hand: below, 'What waits for an address'",
    "snapshots": "by hand: below, 'Snapshots of a heap in random order'",
}
#: label => (which versions, the target of the object hook, of builds with PGO)
VERSIONS = {
    "3.13+": (has_events, 1.09, 1.18),
    "3.10 to 3.12": (lambda version: not has_events(version), 1.13, 1.20),
}


def hook_rows(results: Results):
    names = ("tracemalloc(1)", "tracemalloc(25)", "memray", "table")
    for label, (wanted, target, with_pgo) in VERSIONS.items():
        found = results.of("hooks, depth 10", wanted)
        mean = found.get("geometric_mean", {})
        rivals = known(*((name, mean.get(name)) for name in names))
        what, when = f"object hook, 12 workloads, geometric mean, {label}", measured(found)
        yield Row(what, target, mean.get("leakprobe"), "x", rivals, "", when)
        yield Row(f"the same, builds with PGO, {label}", with_pgo, None, "x", note=BY_HAND["PGO"])
        if wanted is has_events:
            over = quotient(mean.get("leakprobe"), mean.get("empty"))
            yield Row(f"the same over the empty hook, {label}", 1.12, over, "x", "", "", when)
        yield depth_row(label, found, results.of("hooks, depth 60", wanted))


def depth_row(label: str, found: dict, deep: dict) -> Row:
    """Depth 60 over depth 10, where both are of the same code."""
    what = f"at stack depth 60 over depth 10, {label}"
    if found and deep and not is_one_state(found, deep):
        note = f"depth 10 is of {found['date']}, depth 60 of {deep['date']}, of other code"
        return Row(what, 1.03, None, "x", "", note)
    means = [part.get("geometric_mean", {}) for part in (deep, found)]
    ours, theirs = (quotient(*(m.get(name) for m in means)) for name in ("leakprobe", "tracemalloc(1)"))
    note = "the same, within the noise"
    return Row(what, 1.03, ours, "x", known(("tracemalloc(1)", theirs)), note, measured(deep))


def recycled_rows(results: Results):
    what = "wrong lines of leaked recycled objects"
    found = {v: r for v, r in results.parts.get("recycled", {}).items() if "failed" not in r}
    for result in found.values():
        closed = [row for name, row in result["rows"].items() if name.startswith("closed")]
        wrong, right = (sum(row[key] for row in closed) for key in ("wrong", "right"))
        yield Row(what, 0, wrong, "", "", f"{right:,} of 1,200 right", measured(result))
    if not found:
        yield Row(what, 0, None)


def memory_rows(results: Results):
    share = lambda name: results.row("memory", name, "of the heap")
    percent = lambda value: None if value is None else 100 * value
    rivals = known(*((name, percent(share(name))) for name in ("tracemalloc(1)", "memray")))
    when = results.measured("memory")
    yield Row(
        "bookkeeping, of the small-object heap", 25, percent(share("leakprobe")), " %", rivals, "", when
    )
    each = results.fact("native", "bytes a live block")
    yield Row("bookkeeping, bytes a native block", 64, each, " B", measured=results.measured("native"))
    yield Row("the probe's own memory at rest, of Python's heap", 15, None, " %", note="and 8 MiB")
    yield Row("the same while it walks, more for an object", 45, None, " B")
    yield Row("the same after a walk, given back within", 1, None, " s")


#: Parts of the training loop in turns: steps, target, and the ms of a step that the target is for.
LOOPS = {
    "training, in turns": (640, 1.04, 2.5),
    "training, long": (5000, 1.03, 2.5),
    "training, steps of more": (320, 1.01, 20),
}


def loop_rows(results: Results):
    """The loop under all tools in one process, and under watch() alone in two that take turns."""
    ratio = lambda name: results.row("training", f"{name}, processor", "ratio")
    names = ("tracemalloc(1)", "tracemalloc(25)", "memray", "memray, Python's allocators", "Scalene")
    rivals, found = known(*((name, ratio(name)) for name in names)), results.of("training")
    note = interval(found.get("rows", {}).get("watch(), processor", {}))
    yield Row(
        "training loop, all tools in one process",
        1.04,
        ratio("watch()"),
        "x",
        rivals,
        note and f"{note}; {step_note(found, 640, 2.5)}",
        measured(found),
    )
    for part, (steps, target, wanted_ms) in LOOPS.items():
        for label, (wanted, *_) in VERSIONS.items():
            if wanted_ms < 20 or wanted is not has_events:
                yield turns_row(results.of(part, wanted), label, steps, target, wanted_ms)


def step_note(found: dict, steps: int, wanted_ms: float) -> str:
    """How long a plain step took, beside what the target is for."""
    ms = 1000 * found["facts"]["seconds of a plain loop"] / found["facts"].get("batches", steps)
    return f"steps of {ms:.2g} ms, the target is for {wanted_ms:g} ms"


def turns_row(found: dict, label: str, steps: int, target: float, wanted_ms: float) -> Row:
    row, facts = found.get("rows", {}).get("watch(), processor", {}), found.get("facts", {})
    what, note = (
        f"training loop in turns, {steps:,} steps, {label}",
        f"the target is for {wanted_ms:g} ms a step",
    )
    if row:
        looks = f"checks {facts['seconds of the looks']:.2g} s of {facts['seconds of a plain loop']:.2g} s"
        note = f"{interval(row)}; {step_note(found, steps, wanted_ms)}; {looks}"
    return Row(what, target, row.get("ratio"), "x", "", note, measured(found))


def delay_rows(results: Results):
    when = results.measured("delays")
    for born in ("before the watch", "in it"):
        for kind, most, ratio in (("clean", 5, 1.02), ("leaking", 300, 1.25)):
            row = f"born {born}, {kind}"
            name = f"2 million live objects, {row}"
            longest, note = longest_delay(results, row, most)
            yield Row(f"{name}, longest delay", most, longest, " ms", "", note, when)
            over = results.row("delays", row, "over the hooks alone")
            note = "" if over is None else f"{over:.2f} over the hooks alone"
            taken = results.row("delays", row, "ratio")
            yield Row(f"{name}, processor", ratio, taken, "x", "", note, when)
    yield Row("walks in the first 1,000 steps of a leaking loop, 2 million objects", 3, None)
    yield Row("the same later, of the time", 1, None, " %")


def longest_delay(results: Results, row: str, most: float) -> tuple[float | None, str]:
    """The longest of all rounds.  Where only the median of each round's longest is known, it can show that
    the target was missed, not that it was met.
    """
    longest, median = (
        results.row("delays", row, f"{what}, ms") for what in ("longest delay", "longest of a round")
    )
    if longest is not None or median is None:
        return longest, ""
    return median if median > most else None, f"the median of each round's longest: {median:.3g} ms"


def worker_rows(results: Results):
    for part, name in (("workers", "an epoch"), ("workers, long", "a long epoch")):
        found = results.of(part)
        seconds = found.get("machine", {}).get("plain_s")
        for clock in ("clock", "processor"):
            row = found.get("rows", {}).get(f"watch(), {clock}", {})
            note = f"{interval(row)}; {seconds:.0f} s without" if row and seconds else ""
            what = f"{name} with 2 DataLoader workers, {clock}"
            yield Row(what, 1.03, row.get("ratio"), "x", "", note, measured(found))


def native_rows(results: Results):
    added = lambda name: results.row("native", name, "added, ns")
    when = results.measured("native")
    alone, both = added("native hooks, no stack"), added("both, 16 frames")
    what = "native hooks alone, a tensor made and freed, no stack"
    yield Row(what, 100, alone, " ns", "", "less than a watch() does", when)
    what = "all hooks of a watch(), a tensor made and freed, 16 frames"
    yield Row(what, 500, both, " ns", known(("memray", added("memray"))), "", when)
    found = results.of("mallocs")
    blocks = found.get("rows", {})
    for mode, what in (
        ("slots", "native blocks sampled, 2 M of 64 bytes a second"),
        ("preloaded, sampled", "the same under `run --native`"),
    ):
        row = blocks.get(mode, {})
        rivals = known(("memray", blocks.get("memray", {}).get("ratio"))) if mode == "slots" else ""
        yield Row(what, 1.05, row.get("ratio"), "x", rivals, interval(row), measured(found))


def mark_rows(results: Results):
    over = lambda name: results.row("marks", name, "over gc.collect()")
    when, fact = results.measured("marks"), lambda name: results.fact("marks", name)
    mark, skipped = fact("followed mark, us"), fact("skipped mark, us")
    what = "step mark that is followed, 2,000 sites, median"
    yield Row(what, 50, mark, " us", "", "", when if mark is not None else "")
    yield Row("step mark that is skipped, 2,000 sites, median", None, skipped, " us", "", "", when)
    yield Row("longest slice of a census", 1, None, " ms")
    rivals = known(("objgraph typestats", over("objgraph typestats()")))
    yield Row("census", 0.15, over("census"), "x gc", rivals, "", when)
    yield Row("full census", 0.15, over("full census"), "x gc", "", "", when)


#: What a user calls for dominators, and retained sizes of everything.
AS_CALLED = "snapshot(graph=True), as called"


def graph_rows(results: Results):
    names = ("guppy3 heap()", "pympler muppy, summary", "objgraph growth()", "refcycle snapshot()")
    of_types = known(*((name.split()[0], results.rival(name)) for name in names))
    for part, heap in (("graph", "heap in order"), ("graph, shuffled", "shuffled heap")):
        over = lambda name, part=part: results.row(part, name, "over gc.collect()")
        when, first = results.measured(part), part == "graph"
        rivals, note = (of_types, "rivals on a smaller heap") if first else ("", "")
        kinds, bytes_a_node = over("graph with types and sizes"), "bytes/node, types and sizes"
        yield Row(f"graph with types and sizes, {heap}", 0.80, kinds, "x gc", rivals, note, when)
        each = results.fact(part, bytes_a_node)
        yield Row(f"the same, bytes a node, {heap}", 55, each, " B", "", "", when)
        if first:
            rivals = known(("refcycle", results.rival("refcycle snapshot()")))
            yield Row("find_cycles()", 1.8, over("find_cycles()"), "x gc", rivals, "", when)
        called, ns = over(AS_CALLED), results.row(part, AS_CALLED, "ns/node")
        note, when = (BY_HAND["snapshots"], "") if called is None else ("", when)
        yield Row(f"`snapshot(graph=True)` as called, {heap}", 2.5, called, "x gc", "", note, when)
        yield Row(f"the same, each node, {heap}", 300, ns, " ns", "", note, when)
    yield from growth_rows(results)


#: What must be linear to 20 M nodes: the column of the part "graph, growing", what it is called, and whether
#: it is a time, which is taken over gc.collect() of the same heap.
GROWING = {
    "graph with types and sizes, ns/node": ("graph with types and sizes, time a node", True),
    "find_cycles(), ns/node": ("find_cycles(), time a node", True),
    "snapshot graph: dominators, ns/node": ("dominators and retained sizes, time a node", True),
    "peak bytes/node, with dominators": ("the same, memory a node", False),
}


def growth_rows(results: Results):
    """What a node takes on the largest heap over that on the smallest: 1 where growth is linear.  A time is
    taken over the collector's, since what misses the cache slows both.
    """
    found = results.of("graph, growing")
    rows = found.get("rows", {})
    note = " over ".join([list(rows)[-1], list(rows)[0]]) if len(rows) > 1 else ""
    for key, (what, is_time) in GROWING.items():
        over = [
            row[key] / (row["gc.collect(), ns/node"] if is_time else 1) for row in rows.values() if key in row
        ]
        reached = over[-1] / over[0] if len(over) > 1 else None
        name = f"{what}{' over gc.collect()' if is_time else ''}, the largest heap over the smallest"
        yield Row(name, 1.25, reached, "x", "", note, measured(found))


def difference_rows(results: Results):
    least = lambda name: results.row("differences", name, "ms")
    rivals = known(("tracemalloc compare_to", least("tracemalloc compare_to('traceback')")))
    core, when = least("leakprobe, the core's pass"), results.measured("differences")
    yield Row("diff of two snapshots of 1 M rows, the core's pass", 100, core, " ms", rivals, "", when)
    changed = results.fact("differences", "changed")
    note = f"{changed:,} rows changed" if changed else ""
    yield Row("the same, leakprobe.diff()", 100, least("leakprobe.diff()"), " ms", "", note, when)


#: Of programs that were held back: what must be right, and the least share of them.
HELD_BACK = {
    "growth found": 0.97,
    "its line right": 0.95,
    "its cause right": 0.92,
    "its bytes right": 0.85,
    "silent on what does not grow": 1.00,
}


def verdict_rows(results: Results):
    """What the model says of the held-out rhythms; programs are judged elsewhere."""
    totals = results.rhythms.get("deciders", {}).get("model", {}).get("totals", {})
    when = results.rhythms.get("of the model", results.rhythms).get("date", "") if totals else ""
    for what, target, is_least in (("growing", 0.97, True), ("turnover", 0, False)):
        hits, of = totals.get(f"held out, {what}, all steps", {}).get("told", [0, 0])[:2]
        reached, note = (hits / of, f"{hits:,} of {of:,} loops") if of else (None, "")
        name = "found" if is_least else "wrongly reported"
        what = f"held-out rhythms, {'growth' if is_least else what} {name}"
        yield Row(what, target, reached, "", "", note, when, is_least)
    yield Row("rhythms, one finding for each leak", 0.95, None, is_least=True)
    for what, target in HELD_BACK.items():
        yield Row(f"programs that were held back, {what}", target, None, is_least=True)


GROUPS = (
    hook_rows,
    recycled_rows,
    loop_rows,
    delay_rows,
    worker_rows,
    verdict_rows,
    native_rows,
    memory_rows,
    mark_rows,
    graph_rows,
    difference_rows,
)


def rows(result: dict, rhythms: dict | None = None) -> list[Row]:
    results = Results(result, rhythms)
    return [row for group in GROUPS for row in group(results)]


def table(result: dict, rhythms: dict | None = None) -> str:
    """Markdown."""
    lines = ["| what | target | reached | met | rivals | measured | note |", "|---|---|---|---|---|---|---|"]
    for row in rows(result, rhythms):
        reached = "-" if row.reached is None else number(row.reached) + row.unit
        target = "-" if row.target is None else number(row.target) + row.unit
        target = f"at least {target}" if row.is_least else target
        cells = (row.what, target, reached, row.met(), row.rivals, row.measured, row.note)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def cost(result: dict) -> str:
    """What was reached, without targets, as Markdown."""
    lines = ["| what | reached | rivals | measured | note |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.what} | {number(row.reached)}{row.unit} | {row.rivals} | {row.measured} | {row.note} |"
        for row in rows(result)
        if row.reached is not None and row.unit
    ]
    return "\n".join(lines)
