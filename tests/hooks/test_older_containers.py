"""A container from before the watch that is filled with what lived before: nothing is born, yet it grows."""

import sys

import pytest
from clocked import FREE
from fresh import run

SHARED_BLOCKS = pytest.mark.skipif(sys.version_info < (3, 11), reason="deques share a free list of blocks")
LOOP = """
import array, collections, json, random, leakprobe
pool = [object() for _ in range(60_000)]
names = [("name", number) for number in range(60_000)]
CONTAINER
def fill(step):
    BODY
with leakprobe.watch() as probe:
    for step in range(300):
        fill(step)
        probe.step()
report = probe.report().to_dict()
print(json.dumps([report["verdict"], report["findings"], report["as_of_step"]]))
"""


def report_of(container, body, folder):
    """Whether content is carried over is read from the source, so it is a file."""
    path = folder / "filled.py"
    path.write_text(FREE + LOOP.replace("CONTAINER", container).replace("BODY", body))
    return run(f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')")


@pytest.mark.parametrize(
    ("container", "body", "rate"),
    [
        ("kept = []", "kept.extend(pool[:200])", 1600),
        ("kept = []", "kept.extend(pool[:80])", 640),
        pytest.param("kept = collections.deque()", "kept.extend(pool[:200])", 1650, marks=SHARED_BLOCKS),
        pytest.param("kept = collections.deque()", "kept.extendleft(pool[:200])", 1650, marks=SHARED_BLOCKS),
        ("kept = bytearray()", "kept.extend(bytes(2000))", 2000),
        ("kept = bytearray()", "kept.extend(bytes(20_000))", 20_000),
        ("kept = array.array('d')", "kept.extend([0.5] * 250)", 2000),
    ],
    ids=["list", "slow list", "deque", "deque to the left", "bytearray", "fast bytearray", "array"],
)
def test_one_that_is_filled_with_what_lived_before(container, body, rate, tmp_path):
    verdict, (finding,), as_of = report_of(container, body, tmp_path)
    assert verdict == "growing" and as_of == 300 and finding["cause"] == "growing_buffer"
    assert finding["bytes_per_step"] == pytest.approx(rate, rel=0.2)
    assert finding["holder"]["grown_at"]["function"] == "fill"
    assert finding["path"][-1]["text"].startswith("kept")


@pytest.mark.parametrize(
    ("container", "body"),
    [
        ("kept = []", "kept.extend(pool[:100]); kept[:2000] = [] if len(kept) > 5000 else kept[:2000]"),
        ("kept = []", "kept.extend(pool[:100] if step < 150 else ())"),
        ("kept = {}", "kept[names[random.Random(step).randrange(2000)]] = None"),
        ("kept = collections.deque(maxlen=4000)", "kept.extend(pool[:100])"),
    ],
    ids=["emptied", "full", "table", "ring"],
)
def test_one_that_is_bounded_is_steady(container, body, tmp_path):
    assert report_of(container, body, tmp_path)[:2] == ["steady", []]


def test_without_a_warm_up_it_is_no_member_of_what_it_keeps():
    """The list grows at the line that makes lists, and is one."""
    code = """
        import json, leakprobe
        kept = []
        with leakprobe.watch(warmup=WARMUP) as probe:
            for step in range(200):
                kept.append([step] * 50)
                probe.step()
        print(json.dumps([f["bytes_per_step"] for f in probe.report().to_dict()["findings"]]))
    """
    assert run(code.replace("WARMUP", "0")) == run(code.replace("WARMUP", "5"))
