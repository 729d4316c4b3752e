"""Memory limits and reports of memory that could not be had; the devices' caches, from numbers made by
hand.
"""

import json
import subprocess
import sys

import pytest
from cuda_support import standins_of_torch
from native_support import linux_only, needs_torch, run_fresh, skip_on_cuda_build

from leakprobe import LeakprobeError
from leakprobe.model.units import parse_share
from leakprobe.torch.devices import Devices


@pytest.mark.parametrize(
    "text, value", [(None, None), ("90 %", 0.9), ("100%", 1.0), ("8 GiB", 8 << 30), (4096, 4096.0)]
)
def test_memory_limits_are_shares_or_sizes(text, value):
    assert parse_share(text) == value


@pytest.mark.parametrize("text", ["0 %", "101 %", "x %", "much", "90", 90, 0, -1, 0.5, True, []])
def test_other_limits_are_refused(text):
    import leakprobe

    with pytest.raises(LeakprobeError) as error:
        leakprobe.watch(memory_limit=text)
    assert error.value.code == "bad_size"


GARBAGE = """
import gc, sys
import torch
import leakprobe
from cuda_support import Standins
class Node: pass
def leak(size):
    node = Node()
    node.me, node.data = node, torch.empty(size, dtype=torch.uint8)
def told(report):
    return [n for n in report.notes if n.kind == "memory_pressure"]
"""


@linux_only
@needs_torch
def test_a_limit_tells_owners_and_what_a_collection_frees():
    run_fresh(
        GARBAGE
        + """
with leakprobe.watch():  # the first use imports modules: from 3.14 on a class with slots leaves a cycle
    pass
gc.collect()
gc.set_threshold(100_000)
seen, kept = [], []
with leakprobe.watch(memory_limit=4096, on_growth=seen.append) as probe:
    for i in range(3):
        leak(1 << 20)
        kept.append(torch.empty(1 << 16))
        probe.step()
assert len(seen) == 1 and seen[0].steps["measured"] == 0
notes = told(seen[0])
assert "over the limit of 4.0 KiB" in notes[0].text, notes
held = next(n for n in notes if "kept" in n.text)
assert held.medium == "cpu" and held.live_bytes == 4 << 16 and held.allocation.filename == "<string>"
assert "gc.collect() would free 1.0 MiB" in notes[-1].text and "Node" in notes[-1].text
assert len(told(probe.report())) == len(notes), "told once"
"""
    )


@linux_only
def test_out_of_memory_is_told_with_who_holds_it(tmp_path):
    folder = standins_of_torch(tmp_path)
    run_fresh(
        GARBAGE
        + """
cuda = Standins(sys.argv[1])
cuda.runtime.standin_set_capacity(1, 20 << 20)
try:
    with leakprobe.watch(warmup=0) as probe:
        for i in range(50):
            if cuda.alloc(1, 0, 4 << 20) is None:
                raise torch.OutOfMemoryError("as torch does")
            probe.step()
except torch.OutOfMemoryError:
    pass
report = probe.report()
notes = told(report)
assert "out of memory on cuda:1: 4.0 MiB wanted, 20.0 MiB allocated, 20.0 MiB reserved" in notes[0].text, notes
assert notes[1].medium == "cuda:1" and notes[1].text.startswith("20.0 MiB of 20.0 MiB: 5 x"), notes
assert report.media["cuda:1"]["live_bytes"] == 16 << 20 or report.media["cuda:1"]["live_bytes"] == 20 << 20
assert not report.media["cuda:1"]["active"] and "not initialised" in report.media["cuda:1"]["why_not"]
import io
text = io.StringIO(); report.print(text); assert "out of memory on cuda:1" in text.getvalue()
""",
        folder,
    )


RAISES = """
class OutOfMemoryError(RuntimeError):  # as torch has it
    pass
raise OutOfMemoryError("in the first step")
"""


def test_out_of_memory_that_ends_a_program_is_told_without_any_hook(tmp_path):
    path, page = tmp_path / "train.py", tmp_path / "report.json"
    path.write_text(RAISES)
    command = [sys.executable, "-m", "leakprobe", "run", "--json", str(page), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "in the first step" in done.stderr, done.stderr
    notes = [n["text"] for n in json.loads(page.read_text())["notes"] if n["kind"] == "memory_pressure"]
    assert notes[0] == "step 0: out of memory on a device, as torch's exception says", notes
    run_fresh(
        """
import leakprobe
from leakprobe.integrations.session import Session, called_under
session = Session(show=False)
session.begin()
try:
    called_under(session, exec, RAISES)
except RuntimeError:
    pass
assert any("as torch's exception says" in n.text for n in session.report.notes), session.report.notes
""".replace("RAISES", repr(RAISES))
    )


@linux_only
def test_out_of_memory_is_told_in_the_first_step_and_where_no_mark_follows(tmp_path):
    folder = standins_of_torch(tmp_path)
    run_fresh(
        GARBAGE
        + """
cuda = Standins(sys.argv[1])
cuda.runtime.standin_set_capacity(1, 20 << 20)
for marks in range(3):  # the program catches what torch raises
    with leakprobe.watch(warmup=0) as probe:
        for i in range(marks):
            probe.step()
        assert cuda.alloc(1, 0, 32 << 20) is None
    assert f"step {marks}: out of memory on cuda:1" in told(probe.report())[0].text, marks
with leakprobe.watch(warmup=0, media={"cpu", "python"}) as probe:
    probe.step()
assert not told(probe.report()), "that was in another watch"
""",
        folder,
    )


def test_a_look_that_fails_for_lack_of_memory_changes_nothing():
    run_fresh(
        """
import leakprobe
from leakprobe import memory_map
from leakprobe.watch.pressure import Pressure
def fail(*args):
    raise MemoryError
memory_map.__globals__["full_stack"] = memory_map.__globals__["owner_texts"] = fail
with leakprobe.watch(memory_limit=4096) as probe:
    for i in range(3):
        probe.step()
notes = [(n.kind, n.text) for n in probe.report().notes]
assert ("gap", "who holds it could not be read: MemoryError") in notes, notes
Pressure.out_of_memory = fail
try:
    with leakprobe.watch() as probe:
        raise ValueError("the program's")
except (ValueError, MemoryError):
    pass
assert not leakprobe.is_active()
"""
    )


def notes_of(rows):
    devices = Devices(2, 256.0)
    names = ("allocated", "reserved", "split", "outside", "peak")
    devices.points["cuda:0"] = [(step, dict(zip(names, (*row, row[0])))) for step, row in enumerate(rows)]
    return [(n.kind, n.text) for n in devices.notes()]


def test_growth_of_the_cache_fragmentation_and_memory_outside_are_told_apart():
    mib = 1 << 20
    assert notes_of([(5 * mib, 9 * mib, mib, 0)] * 9) == []
    assert (
        notes_of([(i * mib, i * mib, 0, 0) for i in range(9)]) == []
    )  # real growth: a finding, if anybody keeps it
    [(kind, text)] = notes_of([(5 * mib, (9 + 2 * i) * mib, mib, 0) for i in range(9)])
    assert kind == "allocator_retention" and "empty_cache()" in text
    [(kind, text)] = notes_of([(5 * mib, (9 + 2 * i) * mib, 2 * i * mib, 0) for i in range(9)])
    assert kind == "allocator_retention" and "fragmentation" in text
    [(kind, text)] = notes_of([(5 * mib, 9 * mib, 0, i * mib) for i in range(9)])
    assert kind == "gap" and "outside PyTorch" in text


WITHOUT_HOOKS = """
import torch, leakprobe
from leakprobe.torch import device_memory
state = {"up": False, "asked": []}
def stats(device):
    state["asked"].append(device)
    own = device * 1000
    return {name: {"all": {"current": size, "peak": size}} for name, size in
            (("allocated_bytes", own), ("reserved_bytes", 2 * own), ("inactive_split_bytes", 0))}
torch.version.cuda = "13.0"
torch.cuda.is_initialized = lambda: state["up"]
torch.cuda.device_count = lambda: 3
torch.cuda.memory_stats_as_nested_dict = stats
torch.cuda.mem_get_info = lambda device: (state["asked"].append(("info", device)), (100, 90_000))[1]
pinned = {"allocated_bytes.current": 4096}
torch.cuda.host_memory_stats = lambda: pinned
"""


def test_without_slots_totals_are_those_that_torch_counts():
    pytest.importorskip("torch")
    skip_on_cuda_build()
    run_fresh(
        WITHOUT_HOOKS
        + """
with leakprobe.watch(warmup=0) as probe:
    probe.step()
    assert not probe.report().media["pinned"]["active"] and not state["asked"], "CUDA is not started"
    state["up"] = True
    rows = probe.report().media
assert "cuda" not in rows and "cuda:0" not in rows, rows
assert (rows["pinned"]["live_bytes"], rows["cuda:1"]["live_bytes"], rows["cuda:2"]["live_bytes"]) == (4096, 1000, 2000)
assert rows["cuda:1"]["active"] and rows["cuda:1"]["mechanism"] == "totals by torch.cuda.memory_stats(); no lines"
assert rows["pinned"]["mechanism"] == "totals by torch.cuda.host_memory_stats(); no lines"
found = device_memory.read(device_memory.with_memory())
assert sorted(found) == ["cuda:1", "cuda:2"] and found["cuda:2"]["outside"] == 90_000 - 100 - 4000
assert ("info", 0) not in state["asked"], "that would make a context"
pinned.update({"allocated_bytes.current": 10, "reserved_bytes.current": 8192})  # in use, and owned
assert device_memory.totals({"pinned"})["pinned"][0] == 8192
assert probe.report().media["cuda:2"]["live_bytes"] == 2000, "as of the end"
with leakprobe.watch(media={"python"}) as probe:
    probe.step()
assert not probe.report().media["pinned"]["active"] and "cuda:1" not in probe.report().media
"""
    )


def test_each_mark_asks_the_driver_alone_and_of_all_devices_in_use():
    """Also of those whose blocks are all older than the watch; statistics of torch are dear."""
    pytest.importorskip("torch")
    skip_on_cuda_build()
    run_fresh(
        WITHOUT_HOOKS
        + """
state["up"] = True
with leakprobe.watch(warmup=0, memory_limit="50 %") as probe:
    for i in range(3):
        probe.step()
    before = list(state["asked"])
    for i in range(3):
        probe.step()
    assert state["asked"][len(before):] == [("info", 1), ("info", 2)] * 3, state["asked"]
told = [n.medium for n in probe.report().notes if n.kind == "memory_pressure" and "over the limit" in n.text]
assert told == ["cuda:1", "cuda:2"], told
free = {1: 80_000, 2: 80_000}
torch.cuda.mem_get_info = lambda device: (free[device], 90_000)
with leakprobe.watch(warmup=0, memory_limit="50 %") as probe:
    for i in range(1, 400):
        free[2] = 100 if i == 377 else 80_000
        probe.step()
told = [n.text for n in probe.report().notes if "over the limit" in n.text]
assert len(told) == 1 and told[0].startswith("step 377: 87.8 KiB of cuda:2"), "also at marks without a row"
"""
    )


def test_what_lies_free_in_torch_s_cache_can_be_had():
    pytest.importorskip("torch")
    skip_on_cuda_build()
    run_fresh(
        WITHOUT_HOOKS
        + """
from leakprobe.watch.forecast import room_of
state["up"] = True
assert room_of("cuda:2") == 100 + 2000 and room_of("cuda:1") == 100 + 1000
"""
    )
