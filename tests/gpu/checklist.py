"""What must hold on a machine with an NVIDIA GPU and a CUDA build of torch: one command, a row each.

    python tests/gpu/checklist.py [ROW ...] [--json FILE]

Each row runs in a process of its own, so that a crash or a hang is a row too.  Exit code 0: all rows passed
or were skipped with a reason; 1: one failed; 3: there is no GPU, or torch has no CUDA (nothing was run).
The same rows are `pytest -m gpu tests/gpu`.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])] if (HERE.parents[1] / "leakprobe").is_dir() else [str(HERE)]
TIMEOUT_S = 300


class Skip(Exception):
    """The row says nothing here, and why."""


# ---- what the rows share ----


def core():
    from leakprobe import _core

    return _core


def status(medium):
    return next(row for row in core().native_status() if row["medium"] == medium)


def totals(medium="cuda:0"):
    empty = dict.fromkeys(("live_bytes", "live_count", "unmatched", "overwritten", "dropped"), 0)
    return {**empty, **core().ledger_totals().get(medium, {})}


def allocated():
    """Bytes that torch's own counters give."""
    import torch

    return torch.cuda.memory_stats().get("allocated_bytes.all.current", 0)


def hooked(*media):
    """CUDA started, the hooks installed and proven."""
    import torch

    torch.cuda.init()
    torch.empty(1, device="cuda")
    core().start(16, "leakprobe")
    core().native_install(list(media or ("cuda", "pinned")))
    core().native_rescan()
    return torch


def is_fake():
    return bool(os.environ.get("FAKE_CUDA"))


def prepare_convolutions():
    """On the fake runtime torch's own kernels, since cuDNN opens the device by itself."""
    import torch

    if is_fake():
        torch.backends.cudnn.enabled = False


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


# ---- rows: the hooks ----


def row_slots():
    import torch
    import wheel_slots

    lines = []
    missing = wheel_slots.check(pathlib.Path(torch.__file__).parent / "lib", lines.append)
    expect(missing == 0, "\n".join(lines))
    return f"torch {torch.__version__}: {sum('JUMP_SLOT' in line or 'GLOB_DAT' in line for line in lines)} slots, none missing"


def row_not_started():
    """Installing never starts CUDA; the canary waits, and is run at the first mark after."""
    import torch

    core().native_install(["cuda", "pinned"])
    core().native_rescan()
    expect(not torch.cuda.is_initialized(), "leakprobe started CUDA")
    before = status("cuda")
    expect(not before["active"] and before["mechanism"] and "not initialised" in before["why_not"], before)
    torch.empty(1, device="cuda")
    expect(core().native_rescan() is True, core().native_status())
    return f"proven once CUDA was up: {status('cuda')['mechanism']}; {status('pinned')['mechanism']}"


def row_canary():
    hooked()
    for medium in ("cuda", "pinned"):
        expect(status(medium)["active"], status(medium))
    expect(totals()["live_count"] == 0, totals())
    return "one block seen being made and freed, none left in the ledger"


def row_exact():
    """Eight threads, random sizes, frees and streams: the ledger against torch's own counter."""
    torch = hooked()
    import random
    import threading

    base = allocated()

    def work(seed):
        rng, kept = random.Random(seed), []
        stream = torch.cuda.Stream()
        for _ in range(5000):
            if kept and rng.random() < 0.5:
                tensor = kept.pop(rng.randrange(len(kept)))
                if rng.random() < 0.1:
                    tensor.record_stream(stream)
                del tensor
            else:
                kept.append(
                    torch.empty(
                        rng.choice((1, 700, 5000, 100_000, 3_000_000)), dtype=torch.uint8, device="cuda"
                    )
                )
        all_kept.append(kept)

    all_kept = []
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = totals()
    expect(
        seen["live_bytes"] == allocated() - base, f"ledger {seen['live_bytes']}, torch {allocated() - base}"
    )
    expect(seen["live_count"] == sum(map(len, all_kept)), seen)
    expect(seen["overwritten"] == seen["dropped"] == 0, seen)
    all_kept.clear()
    expect(totals()["live_bytes"] == 0, totals())
    return f"{seen['live_count']} blocks, {seen['live_bytes']:,} bytes alive after 40,000 events: equal to memory_stats"


def row_record_stream():
    torch = hooked("cuda")
    side = torch.cuda.Stream()
    x = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    address = x.data_ptr()
    with torch.cuda.stream(side):
        if not is_fake():
            torch.cuda._sleep(200_000_000)
        else:
            __import__("ctypes").CDLL(None).fake_hold_events(1)
        x.record_stream(side)
    del x
    expect(totals()["live_count"] == 0, "the free is counted when it is asked for")
    y = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    expect(y.data_ptr() != address, "the address is not used again yet")
    if is_fake():
        __import__("ctypes").CDLL(None).fake_hold_events(0)
    torch.cuda.synchronize()
    expect(totals()["live_count"] == 1 and totals()["unmatched"] == 0, totals())
    return "free counted at the request; the address came back only later"


def row_caching_off():
    torch = hooked("cuda")
    mechanism = status("cuda")["mechanism"]
    expect(status("cuda")["active"] and mechanism.startswith("cudaMalloc"), status("cuda"))
    x = torch.empty(5000, dtype=torch.uint8, device="cuda")
    expect(totals()["live_bytes"] == 5000, totals())
    del x
    expect(totals()["live_count"] == 0, totals())
    return f"served by: {mechanism}"


def row_malloc_async():
    import torch

    torch.empty(1, device="cuda")
    expect(torch.cuda.get_allocator_backend() == "cudaMallocAsync", torch.cuda.get_allocator_backend())
    return row_caching_off()


def row_expandable():
    torch = hooked("cuda")
    base = allocated()
    kept = [torch.empty(n << 20, dtype=torch.uint8, device="cuda") for n in (1, 7, 30)]
    expect(
        status("cuda")["active"] and totals()["live_bytes"] == allocated() - base,
        (totals(), allocated() - base),
    )
    del kept
    expect(totals()["live_bytes"] == 0, totals())
    return "blocks exact; segments are not seen by slots, as documented"


def row_graph_capture():
    torch = hooked("cuda")
    static = torch.zeros(1000, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        (static * 2 + 1).sum()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = static * 2 + 1
    before, base = totals(), allocated()
    for _ in range(20):
        graph.replay()
    torch.cuda.synchronize()
    expect(totals() == before and allocated() == base, "a replay allocates nothing")
    live = totals()["live_bytes"]
    del kept, graph, static
    torch.cuda.synchronize()
    expect(totals()["unmatched"] == totals()["overwritten"] == 0, totals())
    return f"{live:,} bytes after the capture, the same after 20 replays"


def row_segments():
    torch = hooked("cuda")
    reserved = torch.cuda.memory_reserved()
    kept = [torch.empty(n << 20, dtype=torch.uint8, device="cuda") for n in (3, 40, 100)]
    seen = core().cuda_memory()["segments"][0]["live_bytes"]
    expect(seen == torch.cuda.memory_reserved() - reserved, (seen, torch.cuda.memory_reserved() - reserved))
    del kept
    torch.cuda.empty_cache()
    left = core().cuda_memory()["segments"][0]["live_bytes"]
    expect(left <= seen, (left, seen))
    return f"{seen:,} bytes by slots = growth of memory_reserved"


def row_second_device():
    import torch

    if torch.cuda.device_count() < 2:
        raise Skip("one device only")
    hooked("cuda")
    x = torch.empty(9000, dtype=torch.uint8, device="cuda:1")
    expect(totals("cuda:1")["live_bytes"] == 9216 and totals()["live_bytes"] == 0, core().ledger_totals())
    expect(
        core().cuda_memory()["segments"][1]["live_bytes"] == torch.cuda.memory_reserved(1),
        core().cuda_memory(),
    )
    del x
    return "blocks and segments of device 1 apart from those of device 0"


def row_fork():
    torch = hooked()
    kept = torch.empty(1000, device="cuda")
    pid = os.fork()
    if pid == 0:
        fine = False
        try:
            core().native_rescan()
            torch.empty(1000)
            fine = totals()["live_count"] == 1
        finally:
            os._exit(0 if fine else 1)
    expect(os.waitpid(pid, 0)[1] == 0, "the child failed")
    del kept
    return "the child allocated CPU memory, and touched no CUDA"


def row_deadlock():
    """One thread frees tensors with the GIL held, three allocate: the hook must wait for nothing that needs
    the GIL.
    """
    torch = hooked()
    import threading

    stop = threading.Event()

    def allocate():
        while not stop.is_set():
            [torch.empty(1000 + i, device="cuda") for i in range(50)]

    threads = [threading.Thread(target=allocate) for _ in range(3)]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    rounds = 0
    while time.monotonic() - began < 10:
        kept = [torch.empty(500, device="cuda") for _ in range(200)]
        kept.clear()
        rounds += 1
    stop.set()
    for thread in threads:
        thread.join()
    expect(totals()["overwritten"] == totals()["dropped"] == 0, totals())
    return f"{rounds} rounds of 200 tensors in 10 s beside three threads"


def row_pinned():
    """The first article's loop: a small tensor of each pinned batch is kept, as numpy.

    It is pinned before the image is, when the last one is free: torch before 2.5 gives it that block.
    """
    torch = hooked()
    seen, kept = [], []
    for _ in range(30):
        small = torch.empty(8, dtype=torch.uint8, pin_memory=True)
        image = torch.empty(3 << 20, dtype=torch.uint8, pin_memory=True)
        kept.append(small.numpy())
        del image, small
        torch.cuda.synchronize()
        seen.append(totals("pinned")["live_bytes"])
    growth = (seen[-1] - seen[9]) / 20
    text = f"torch {torch.__version__}: pinned memory grows by {growth:,.0f} bytes a step"
    stats = getattr(torch.cuda, "host_memory_stats", dict)()
    if "active_bytes.current" in stats:  # before, "allocated" was what is handed out
        owned = stats["allocated_bytes.current"]
        text += f"; host_memory_stats says {owned:,} owned, the hook {seen[-1]:,}"
        expect(owned == seen[-1], text)
    return text


def row_out_of_memory():
    torch = hooked("cuda")
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        pass
    oom = core().cuda_memory()["oom"]
    expect(oom and oom["count"] == 1 and oom["wanted_bytes"] == 1 << 50 and oom["device"] == 0, oom)
    return f"reported: {oom['wanted_bytes']:,} bytes wanted on cuda:{oom['device']}"


# ---- rows: what is found ----

SIMPLE_LEAK = """
class Node:
    pass
def step(i):
    node = Node()
    node.me, node.data = node, torch.empty(4 << 20, dtype=torch.uint8, device="cuda")
"""
AWAITABLE_LEAK = """
class Awaitable:
    def __init__(self, tensor):
        self.tensor = tensor
        self.done = lambda: self.finish()
    def finish(self):
        return self.tensor
def step(i):
    Awaitable(torch.empty(4 << 20, dtype=torch.uint8, device="cuda")).done()
"""
KEPT_LOSS = """
weight, history = torch.ones(1 << 16, device="cuda", requires_grad=True), []
def step(i):
    history.append((weight * 2).sum())
"""
NO_ZERO_GRAD = """
import torch.nn as nn
class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1))
    def forward(self, x):
        return x + self.net(x)
model = nn.Sequential(nn.Conv2d(3, 32, 3), *[Block(32) for _ in range(6)], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
def step(i):
    loss = model(torch.randn(16, 3, 64, 64, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
"""


def watched(code, steps=25, **options):
    """The report of a loop over step()."""
    import torch

    import leakprobe

    space = {"torch": torch, "__name__": "watched"}
    path = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"leakprobe-checklist-{os.getpid()}.py"
    exec(compile(code, str(path), "exec"), space)
    with leakprobe.watch(**options) as probe:
        for i in range(steps):
            space["step"](i)
            probe.step()
    return probe.report()


def found(code, medium="cuda:0", **options):
    report = watched(code, **options)
    finding = next((f for f in report.findings if f.medium == medium or medium in str(f.evidence)), None)
    expect(
        report.verdict == "growing" and finding is not None,
        f"{report.verdict}: {[(f.kind, f.medium, f.cause) for f in report.findings]} {[n.text for n in report.notes]}",
    )
    expect(finding.path or finding.cycle, "no path")
    where = " -> ".join(p["text"] for p in (finding.cycle or finding.path)[:6])
    return f"{finding.kind}, {finding.bytes_per_step:,.0f} B/step, cause {finding.cause}: {where}"


def row_simple_leak():
    """The collector counts objects, not bytes: here it does not wake within the loop."""
    import gc

    gc.set_threshold(100_000)
    return found(SIMPLE_LEAK, warmup=3)


def row_awaitable_leak():
    import gc

    gc.set_threshold(100_000)
    return found(AWAITABLE_LEAK, warmup=3)


def row_kept_loss():
    return found(KEPT_LOSS, warmup=3)


def row_no_zero_grad():
    prepare_convolutions()
    report = watched(NO_ZERO_GRAD, steps=40)
    expect(
        report.verdict == "steady", [(f.kind, f.medium, f.cause, f.bytes_per_step) for f in report.findings]
    )
    return "steady"


def row_limit():
    """A limit below what is in use: told at the first mark, with the owner and what a collection would
    free.
    """
    torch = hooked()
    core().native_uninstall()
    core().stop()
    import leakprobe

    told, kept = [], []
    with leakprobe.watch(memory_limit=1 << 20, on_growth=told.append) as probe:
        for _ in range(2):
            kept.append(torch.empty(8 << 20, dtype=torch.uint8, device="cuda"))
            probe.step()
    expect(len(told) == 1, "on_growth was not called once")
    notes = [n.text for n in told[0].notes if n.kind == "memory_pressure" and n.medium == "cuda:0"]
    expect(notes and "cuda:0 in use" in notes[0] and "kept" in notes[1], notes)
    return "; ".join(notes)


def row_export():
    """The pickle of the blocks, opened by torch's own viewer."""
    import tempfile

    torch = hooked("cuda", "cpu")
    import leakprobe

    kept = [torch.empty(1 << 20, device="cuda"), torch.empty(1000)]
    path = os.path.join(tempfile.mkdtemp(), "map.pickle")
    leakprobe.memory_map().to_memory_viz(path)
    for action in ("stats", "trace_plot", "segment_plot"):
        output = [] if action == "stats" else ["-o", f"{path}.html"]
        done = subprocess.run(
            [sys.executable, "-m", "torch.cuda._memory_viz", action, path, *output],
            capture_output=True,
            text=True,
        )
        expect(done.returncode == 0, f"{action}: {done.stderr[-500:]}")
    del kept
    return "stats, trace_plot and segment_plot open it"


# ---- rows: cost ----


def training_step(batch=16):
    """A small network on the device, as a function of no arguments."""
    import torch

    prepare_convolutions()
    space = {"torch": torch}
    exec(NO_ZERO_GRAD.replace("randn(16,", f"randn({batch},"), space)
    return lambda: (space["step"](0), torch.cuda.synchronize())


def long_step(least_s=0.02):
    """The same with batches so large that the device takes that long, within its memory."""
    batch = 16
    while True:
        step = training_step(batch)
        timed(step, 3)
        if timed(step, 5) >= 5 * least_s or batch >= 4096 or is_fake():
            return step, batch
        batch *= 2


def timed(step, count):
    began = time.perf_counter()
    for _ in range(count):
        step()
    return time.perf_counter() - began


def ratio(step, switch_on, switch_off, *, pairs=9, count=20):
    """Median of on / off over interleaved pairs."""
    import statistics

    ratios = []
    for _ in range(pairs):
        off = timed(step, count)
        switch_on()
        on = timed(step, count)
        switch_off()
        ratios.append(on / off)
    return statistics.median(ratios), min(ratios), max(ratios)


def overhead(step, *, pairs, before, count):
    """A training step with the probe on over one without, once a watch has been on for ``before`` steps: what
    its first looks cost is within their budget of seconds.
    """
    import leakprobe

    state = {"mark": lambda: None}

    def on():
        probe = leakprobe.watch().__enter__()
        state.update(probe=probe, mark=probe.step)
        timed(marked, before)

    def off():
        state["mark"] = lambda: None
        state["probe"].__exit__(None, None, None)

    def marked():
        step()
        state["mark"]()

    return ratio(marked, on, off, pairs=pairs, count=count)


def history_overhead(step, *, pairs, count):
    """The same of torch's own history of Python stacks."""
    import torch

    record = torch.cuda.memory._record_memory_history
    return ratio(step, lambda: record("all", stacks="python"), lambda: record(None), pairs=pairs, count=count)


def judged_overhead(what, ours, theirs, target):
    text = f"{what}: leakprobe {ours[0]:.3f}x ({ours[1]:.3f} to {ours[2]:.3f}), _record_memory_history {theirs[0]:.3f}x ({theirs[1]:.3f} to {theirs[2]:.3f})"
    if is_fake():
        return text + "; not judged: no kernel ran"
    expect(ours[0] <= target, f"target {target}x: {text}")
    return text


def row_overhead():
    """Steps that take the processor longer than the device; the target is that of a loop bound by Python."""
    step = training_step()
    times = sorted(timed(step, 1) for _ in range(50))
    what = f"steps of {times[25] * 1e3:.1f} ms"
    ours = overhead(step, pairs=9, before=200, count=100)
    return judged_overhead(what, ours, history_overhead(step, pairs=9, count=100), 1.04)


def row_overhead_long():
    """Steps of 20 ms and more, which take the device longer than the processor."""
    step, batch = long_step()
    times = sorted(timed(step, 1) for _ in range(10))
    what = f"steps of {times[5] * 1e3:.1f} ms, batches of {batch}"
    ours = overhead(step, pairs=3, before=200, count=50)
    return judged_overhead(what, ours, history_overhead(step, pairs=3, count=50), 1.01)


def row_event_cost():
    """Nanoseconds that the hook adds to an allocation and free."""
    torch = hooked("cuda")
    make = lambda: torch.empty(1000, device="cuda")
    timed(make, 2000)
    on = min(timed(make, 20000) for _ in range(5))
    core().native_uninstall()
    off = min(timed(make, 20000) for _ in range(5))
    return f"{off / 20000 * 1e9:,.0f} ns without, {(on - off) / 20000 * 1e9:+,.0f} ns with the hook and its stack"


def row_history():
    """torch's own history beside the hook on the same run: the same births and deaths; what each costs."""
    import random

    torch = hooked("cuda")
    rng, kept, sizes = random.Random(7), [], [512 * n for n in (1, 3, 40, 700)]
    record = torch.cuda.memory._record_memory_history
    record("all", stacks="python")
    seen_before = core().ledger_events().total
    for _ in range(2000):
        if kept and rng.random() < 0.5:
            kept.pop(rng.randrange(len(kept)))
        else:
            kept.append(torch.empty(rng.choice(sizes), dtype=torch.uint8, device="cuda"))
    found = core().ledger_events()
    ours = [(e.address, e.bytes) for e in found.events[-(found.total - seen_before) :]]
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    signs = {"alloc": 1, "free_requested": -1}
    theirs = [(e["addr"], signs[e["action"]] * e["size"]) for e in trace if e["action"] in signs]
    record(None)
    expect(ours == theirs, (len(ours), len(theirs), ours[:3], theirs[:3]))
    kept.clear()
    costs = cost_of_an_event(lambda: torch.empty(1000, device="cuda"), record)
    return f"{len(ours)} births and deaths, each with the same address and bytes; {costs}"


def cost_of_an_event(make, record):
    """Processor time of a birth and death: with neither, with torch's history, with the hook; medians."""
    import statistics

    def spent():
        began = time.process_time()
        for _ in range(2000):
            make()
        return (time.process_time() - began) / 2000 * 1e9

    rows = []
    for _ in range(15):
        hook = spent()
        core().native_uninstall()
        off = spent()
        record("all", stacks="python")
        rows.append((hook - off, spent() - off, off))
        record(None)
        core().native_install(["cuda"])
        core().native_rescan()
    hook, history, off = map(statistics.median, zip(*rows))
    return f"{off:,.0f} ns without, {hook:+,.0f} with the hook, {history:+,.0f} with _record_memory_history"


#: Row => environment that it needs.
ROWS = {
    "slots": {}, "not_started": {}, "canary": {}, "exact": {}, "record_stream": {},
    "caching_off": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    "malloc_async": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "graph_capture": {}, "segments": {}, "second_device": {}, "fork": {}, "deadlock": {}, "pinned": {},
    "out_of_memory": {}, "simple_leak": {}, "awaitable_leak": {}, "kept_loss": {}, "no_zero_grad": {}, "limit": {}, "export": {},
    "overhead": {}, "overhead_long": {}, "event_cost": {}, "history": {},
}  # fmt: skip


def run_row(name):
    """(result, text) of a row in this process: "pass", "skip" or "FAIL"."""
    try:
        return "pass", str(globals()[f"row_{name}"]())
    except Skip as reason:
        return "skip", str(reason)
    except Exception as error:
        import traceback

        where = traceback.extract_tb(error.__traceback__)[-1]
        return "FAIL", f"{type(error).__name__} at line {where.lineno}: {error}"[:2000]


def run_apart(name):
    """(result, text) of a row in a process of its own."""
    environment = {**os.environ, **ROWS[name], "PYTHONFAULTHANDLER": "1"}
    command = [sys.executable, str(pathlib.Path(__file__).resolve()), "--one", name]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return "FAIL", f"did not end within {TIMEOUT_S} s: a deadlock?"
    last = done.stdout.strip().splitlines()[-1:] or [""]
    if done.returncode != 0 or not last[0].startswith("{"):
        return "FAIL", f"exit {done.returncode}: {done.stderr.strip()[-1500:]}"
    answer = json.loads(last[0])
    return answer["result"], answer["text"]


def why_no_gpu():
    """Why nothing can be run here, or None.  Asks in a process of its own, so that a broken driver can't end
    this one.
    """
    code = "import torch; print('no CUDA build of torch' if torch.version.cuda is None else '' if torch.cuda.is_available() else 'no usable GPU or driver')"
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "asking torch for a GPU did not end within 120 s"
    if done.returncode != 0:
        return f"torch can't be imported: {done.stderr.strip()[-200:]}"
    return done.stdout.strip() or None


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of: {', '.join(ROWS)}")
    parser.add_argument("--json", metavar="FILE", help="write the table as JSON too")
    parser.add_argument("--one", metavar="ROW", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        result, text = run_row(options.one)
        print("\n" + json.dumps({"result": result, "text": text}))
        return 0
    unknown = sorted(set(options.rows) - set(ROWS))
    if unknown:
        parser.error(f"unknown row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    reason = why_no_gpu()
    if reason:
        print(f"not run on a GPU: {reason}")
        return 3
    table = []
    for name in options.rows or ROWS:
        result, text = run_apart(name)
        table.append({"row": name, "result": result, "text": text})
        print(f"{result:<5} {name:<16} {text}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(table, indent=1) + "\n")
    counts = {r: sum(row["result"] == r for row in table) for r in ("pass", "skip", "FAIL")}
    print(
        f"{counts['pass']} passed, {counts['skip']} skipped, {counts['FAIL']} failed"
        + ("; on a runtime without a GPU" if is_fake() else "")
    )
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
