"""Growth of memory of a CUDA device and of pinned memory: torch's own allocators on the fake runtime
(fake_gpu.py).
"""

import os

import loops
import pytest

pytestmark = [
    pytest.mark.fake_gpu,
    pytest.mark.skipif(not os.environ.get("FAKE_CUDA"), reason="not run under tests/gpu/fake_gpu.py"),
]


@pytest.mark.parametrize("medium", loops.MAKE)
@pytest.mark.parametrize("name", loops.GROWING)
def test_growth_is_found_with_its_rate_and_its_owner(name, medium, tmp_path):
    source, rate, onset = loops.GROWING[name]
    report = loops.report_of(loops.MAKE[medium] + source, tmp_path)
    assert report["verdict"] == "growing", report["notes"]
    assert len(report["findings"]) == 1, [(f["medium"], f["evidence"]) for f in report["findings"]]
    finding = report["findings"][0]
    assert finding["medium"] == medium and finding["kind"] == "retained"
    assert finding["bytes_per_step"] == pytest.approx(rate, rel=0.15)
    assert abs((finding["onset_step"] or 0) - onset) <= 10
    assert "kept" in finding["holder"]["text"] or any("kept" in p["text"] for p in finding["path"])
    lines = [loops.line_of(f, tmp_path) for f in finding["allocation_stack"] if "loop.py" in f["filename"]]
    assert lines[0].startswith("def make") and "make()" in lines[1]


@pytest.mark.parametrize("medium", loops.MAKE)
@pytest.mark.parametrize("name", loops.LEVEL)
def test_what_is_let_go_is_not_reported(name, medium, tmp_path):
    report = loops.report_of(loops.MAKE[medium] + loops.LEVEL[name], tmp_path)
    assert report["findings"] == [] and report["verdict"] == "steady"
    assert report["media"][medium]["active"]


def only_finding(report: dict) -> dict:
    assert len(report["findings"]) == 1, [(f["medium"], f["evidence"]) for f in report["findings"]]
    return report["findings"][0]


def test_a_small_tensor_fills_a_block_that_is_larger_by_the_allocator_s_rounding(tmp_path):
    source = "kept = []\ndef step(i):\n    kept.append(torch.empty(16, device='cuda'))\n"
    assert only_finding(loops.report_of(source, tmp_path, steps=60))["cause"] == "growing_container"


def test_a_small_part_of_a_large_tensor_is_a_view_that_keeps_it(tmp_path):
    source = "kept = []\ndef step(i):\n    kept.append(torch.empty(1 << 16, device='cuda')[:16].detach())\n"
    finding = only_finding(loops.report_of(source, tmp_path, steps=60))
    assert finding["cause"] == "view_of_large_base" and finding["bytes_per_step"] > 1 << 18


def test_pinned_memory_that_is_written_to_is_counted_once(tmp_path):
    """The driver maps it, and its pages rise with it: they are no memory of another library."""
    source = "kept = []\ndef step(i):\n    kept.append(make().fill_(1))\n"
    finding = only_finding(loops.report_of(loops.MAKE["pinned"] + source, tmp_path, steps=70))
    assert finding["medium"] == "pinned" and "library" not in finding["evidence"]
    assert finding["bytes_per_step"] == pytest.approx(loops.BYTES, rel=0.15)


def cache_note(source: str, folder, steps: int) -> dict:
    report = loops.report_of(source, folder, steps=steps, warmup=3)
    (note,) = [n for n in report["notes"] if n["kind"] == "allocator_retention" and n["medium"] == "cuda:0"]
    return note


def test_a_cache_that_rises_between_blocks_in_use_is_fragmentation(tmp_path):
    """Each stream has segments of its own: a block that is kept lies in the one of a larger that went."""
    note = cache_note(
        "kept = []\ndef step(i):\n    with torch.cuda.stream(torch.cuda.Stream(priority=-(i % 2))):\n"
        "        torch.empty(18 << 20, dtype=torch.uint8, device='cuda')\n"
        "        kept.append(torch.empty(1 << 21, dtype=torch.uint8, device='cuda'))\n",
        tmp_path,
        steps=60,  # torch has 32 streams of each of two priorities
    )
    assert "fragmentation" in note["text"] and "expandable_segments" in note["text"]
    assert note["bytes_per_step"] == pytest.approx(18 << 20, rel=0.1)


def test_a_cache_of_sizes_that_come_no_more_is_given_back(tmp_path):
    note = cache_note(
        "def step(i):\n    torch.empty((i + 12) << 21, dtype=torch.uint8, device='cuda')\n",
        tmp_path,
        steps=40,
    )
    assert "empty_cache() gives back" in note["text"]
    assert "fragmentation" not in note["text"] and "highest point" not in note["text"]


def test_a_cache_that_rises_with_the_steps_highest_point_says_so(tmp_path):
    note = cache_note(
        "def step(i):\n    [torch.empty(1 << 21, dtype=torch.uint8, device='cuda') for _ in range(i)]\n",
        tmp_path,
        steps=60,
    )
    assert "highest point (+2.0 MiB/step)" in note["text"] and "fragmentation" not in note["text"]


@pytest.mark.parametrize("payload", ["node.data = make()", "node.run = lambda data=make(): node"])
def test_garbage_that_keeps_device_memory_until_a_collection_is_a_finding(payload, tmp_path):
    source = (
        "import gc\ngc.set_threshold(100_000)\nclass Node: pass\n"
        f"def step(i):\n    node = Node()\n    node.me = node\n    {payload}\n"
    )
    finding = only_finding(loops.report_of(loops.MAKE["cuda:0"] + source, tmp_path, steps=30))
    assert finding["kind"] == "reference_cycle" and finding["medium"] == "cuda:0"
    assert any("Node" in p["text"] for p in finding["cycle"])
    assert finding["bytes_per_step"] == pytest.approx(loops.BYTES, rel=0.15)


def test_out_of_memory_on_a_device_names_who_has_it(tmp_path):
    source = (
        "kept = []\ndef step(i):\n    try:\n"
        "        kept.append(torch.empty(1 << 30, dtype=torch.uint8, device='cuda'))\n"
        "    except torch.OutOfMemoryError:\n        pass\n"
    )
    report = loops.report_of(source, tmp_path, steps=30)
    notes = [n["text"] for n in report["notes"] if n["kind"] == "memory_pressure"]
    assert "out of memory on cuda:0: 1.0 GiB wanted" in notes[0] and "kept" in notes[1]


GROWS = (
    "kept = []\ndef step(i):\n"
    "    kept.append(torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True).fill_(1))\n"
)


def test_pinned_memory_that_is_malloc_s_is_counted_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "pinned_use_cuda_host_register:True")
    finding = only_finding(loops.report_of(GROWS, tmp_path, steps=120))
    assert finding["medium"] == "pinned" and "library" not in finding["evidence"]
    assert finding["bytes_per_step"] == pytest.approx(1 << 20, rel=0.15)


@pytest.mark.parametrize("setting", ["pinned_num_register_threads:1", "pinned_reserve_segment_size_mb:1024"])
def test_a_segment_that_is_reserved_for_pinned_memory_is_a_gap(setting, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", setting)
    report = loops.report_of(GROWS, tmp_path, steps=40)
    gaps = [n["text"] for n in report["notes"] if n["kind"] == "gap" and n["medium"] == "pinned"]
    assert any("takes one large segment" in text for text in gaps) == ("reserve" in setting), gaps


@pytest.mark.parametrize("cached", [False, True])
def test_memory_in_torch_s_cache_is_room_for_what_an_epoch_takes(cached, tmp_path):
    source = (
        f"x = [torch.empty(1 << 28, dtype=torch.uint8, device='cuda') for _ in range({63 * cached})]; del x\n"
        "losses = []\ndef step(i):\n    if i % 30 == 0: losses.clear()\n"
        "    losses.append(torch.empty(1 << 24, dtype=torch.uint8, device='cuda'))\n"
    )
    report = loops.report_of(source, tmp_path, steps=180)
    assert report["verdict"] == "steady", [(f["medium"], f["evidence"]) for f in report["findings"]]


def test_pinned_memory_that_went_with_the_loop_was_held_in_it(tmp_path):
    """torch keeps what it was given back: at the end the blocks are there, and nothing refers to them."""
    source = "kept = []\ndef step(i):\n    kept.append(make())\ndef end():\n    kept.clear()\n"
    finding = only_finding(loops.report_of(loops.MAKE["pinned"] + source, tmp_path, steps=120))
    assert finding["cause"] == "growing_container" and "kept" in finding["path"][1]["text"]
    assert finding["medium"] == "pinned" and finding["bytes_per_step"] == pytest.approx(loops.BYTES, rel=0.15)
