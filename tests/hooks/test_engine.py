"""When the heap is walked: where something grows, at growing distances; in a clean loop not at all."""

import json
import subprocess
import sys

import pytest
from clocked import CLOCK, END, Looked
from fresh import run

LOOP = """
kept, table, ring = [], {}, []
with leakprobe.watch() as probe:
    for step in range(1, STEPS + 1):
        BODY
        mark(probe)
"""
#: There the cache of attribute lookups can't be emptied without a change to all types.
NOT_ON_3_10 = pytest.mark.skipif(sys.version_info < (3, 11), reason="the cache of names stays as it is")
#: CPython's cache of attribute lookups keeps each new name: pybind11 makes one at every call, for example.
NAMES = "[getattr(kept, 'name %d of %d' % (i, step), None) for i in range(4)]"
LEAK = "kept.append(['%d of many' % step] * 40)"
#: malloc's bytes go up and down.
SIZES = "ring.append(bytes(step * 7919 % 211 * 10000)); del ring[:-3]"
RING = "ring.append(['%d of many' % step] * 40); del ring[:-20]"


def looked(body: str, steps: int = 600) -> Looked:
    return Looked(LOOP.replace("BODY", body).replace("STEPS", str(steps)))


@pytest.mark.parametrize(
    "body",
    ["pass", RING, "table[step % 50] = ['%d' % step] * 40", SIZES, pytest.param(NAMES, marks=NOT_ON_3_10)],
    ids=["empty", "ring", "cache", "sizes", "names"],
)
def test_a_loop_that_does_not_grow_is_not_walked(body):
    """But for what its first steps leave behind, which may look like growth."""
    found = looked(body)
    assert found.verdict == "steady", found.findings
    assert found.between(120, 599) == 0, found.walks


def test_what_grows_is_walked_ever_more_rarely_and_at_the_end():
    found = looked(LEAK)
    assert found.verdict == "growing" and len(found.findings) == 1
    distances = [b - a for a, b in zip(found.walks, found.walks[1:])]
    assert found.walks[0] < 20 and found.walks[-1] == 600, found.walks
    assert 5 < len(found.walks) < 20 and distances[-2] > 10 * distances[0], found.walks


#: A walk takes as long as one of 2 million objects.
DEAR = 0.195


def walked_dearly(loop: str, seconds: float = DEAR) -> list:
    """[steps of the walks, verdict, findings] of a loop in which a walk takes so many more seconds."""
    return run(CLOCK.replace("return confirm", f"now[0] += {seconds}\n    return confirm") + loop + END)


def test_what_a_dear_walk_has_met_is_walked_for_twice_more_at_most():
    walks, verdict, _ = walked_dearly(LOOP.replace("BODY", LEAK).replace("STEPS", "300"))
    assert verdict == "growing" and 1 < len(walks) <= 3, walks


@pytest.mark.parametrize("leak", [LEAK, "kept.append(bytearray(9000))"])
def test_what_a_dear_walk_has_met_is_reported_though_it_is_let_go_with_the_loop(leak):
    loop = "\ndef loop(probe):\n    kept = []\n    for step in range(1, 301):\n        LEAK; mark(probe)\n"
    watched = "with leakprobe.watch() as probe: loop(probe)\n"
    walks, verdict, _ = walked_dearly(loop.replace("LEAK", leak) + watched)
    assert verdict == "growing" and len(walks) <= 3, walks


def test_what_gets_larger_after_a_dear_walk_has_the_rate_of_the_last_look():
    """And what the walk met beside it, which comes no more, has not grown with it."""
    pytest.importorskip("numpy")
    loop = """
def loop(probe):
    kept = []
    for step in range(1, 301):
        kept.append(numpy.zeros(1000 + 100 * step, "u1"))
        if step < 12:
            kept.append(numpy.zeros(20_000, "u1"))
        mark(probe)
import numpy
with leakprobe.watch(warmup=5) as probe: loop(probe)
"""
    walks, verdict, findings = walked_dearly(loop)
    assert verdict == "growing" and len(walks) <= 4 and walks[-1] < 200, walks
    (found,) = [f for f in findings if f["bytes_per_step"] > 5000]
    assert f"the path is of step {walks[-1]}" in found["evidence"]
    assert abs(found["bytes_per_step"] - 16_000) < 4000, found["bytes_per_step"]


def test_objects_that_come_faster_after_a_dear_walk_have_the_rate_of_the_last_look():
    loop = """
def loop(probe):
    kept = []
    for step in range(1, 301):
        kept += [Item(step) for _ in range(5 if step < 60 else 50)]
        mark(probe)
class Item:
    def __init__(self, step):
        self.text = f"{step:600}"
with leakprobe.watch(warmup=5) as probe: loop(probe)
"""
    walks, verdict, findings = walked_dearly(loop)
    assert verdict == "growing" and len(walks) <= 4 and walks[-1] < 200, walks
    found = max(findings, key=lambda f: f["bytes_per_step"])
    mean = (5 * 55 + 50 * 241) / 296 * (600 + 49 + 48 + 8)
    assert abs(found["bytes_per_step"] - mean) < mean / 4, found["bytes_per_step"]


def test_what_a_dear_walk_met_in_the_first_epoch_is_no_leak_once_epochs_have_released_it():
    pytest.importorskip("numpy")
    loop = """
def loop(probe):
    kept = []
    for step in range(1, 386):
        kept.append(numpy.zeros(4000, "u1"))
        if step % 50 == 0:
            kept.clear()
        mark(probe)
import numpy
with leakprobe.watch(warmup=5) as probe: loop(probe)
"""
    walks, verdict, findings = walked_dearly(loop, 0.6)
    assert verdict == "steady" and walks and walks[0] < 50, (walks, findings)


def test_a_file_in_memory_is_reported_as_it_is_now():
    """The line that enlarges it is followed at each check, though walks are put off."""
    body = "table.setdefault('file', io.BytesIO()).write(b'%01024d' % step)"
    loop = "import io\n" + LOOP.replace("BODY", body).replace("STEPS", "600")
    walks, _, (finding,) = walked_dearly(loop, 0.6)
    assert max(step for step in walks if step < 600) < 400, walks
    assert finding["cause"] == "growing_buffer" and finding["holder"]["text"].endswith("BytesIO")
    assert finding["bytes_per_step"] == pytest.approx(1024, rel=0.1)
    assert 0.9 * 600 * 1024 < finding["live_bytes"] < 1.3 * 600 * 1024, finding


def test_what_begins_after_a_dear_walk_is_walked_for_at_once():
    """It is another line, faster than the one that was met."""
    body = f"{LEAK}\n        if step > 150: table[step] = [['%d of many' % step] * 40 for i in range(9)]"
    walks, _, findings = walked_dearly(LOOP.replace("BODY", body).replace("STEPS", "300"))
    assert any(150 < step < 250 for step in walks) and len(findings) == 2, walks


TEXT = """
import json, leakprobe
class Holder: text = ""
holder = Holder()
with leakprobe.watch() as probe:
    for step in range(300):
        holder.text = holder.text + "%05d" % step * 100
        probe.step()
print(json.dumps(probe.report().to_dict()["findings"]))
"""


def test_a_text_that_is_made_anew_and_longer_is_found(tmp_path):
    """As many objects are alive as ever: only the size of the largest one at its line shows it."""
    path = tmp_path / "text.py"  # whether content is carried over is read from the source
    path.write_text(TEXT)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
    findings = json.loads(done.stdout)
    assert [f["cause"] for f in findings] == ["growing_buffer"], done.stderr
    assert 0.95 * 500 < findings[0]["bytes_per_step"] < 1.05 * 500


FILLED = """
import json, leakprobe
def send(out):
    out.extend(bytes(700))
with leakprobe.watch() as probe:
    out = bytearray()
    for step in range(300):
        send(out)
        probe.step()
print(json.dumps(probe.report().to_dict()["findings"]))
"""


def test_the_line_that_fills_a_buffer_in_place_is_named(tmp_path):
    """It was made at another line; nothing is born where it grows."""
    path = tmp_path / "filled.py"
    path.write_text(FILLED)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
    (found,) = json.loads(done.stdout)
    assert found["holder"] is None or found["holder"]["grown_at"]["function"] == "send", found["holder"]
    assert "filled.py:4" in found["fix"] and 0.75 * 700 < found["bytes_per_step"] < 1.25 * 700


def test_two_buffers_of_one_size_are_two_findings_each_with_its_line(tmp_path):
    script = tmp_path / "two.py"
    script.write_text("""
import json, leakprobe
from array import array
class Book:
    def __init__(self):
        self.values, self.ids = array("d"), array("q")
    def add(self):
        self.ids.extend(int(i) for i in range(128))
        self.values.extend([i / 2 for i in range(128)])
with leakprobe.watch() as probe:
    book = Book()
    for _ in probe.steps(range(100)):
        book.add()
found = probe.report().to_dict()["findings"]
print(json.dumps([[f["holder"]["text"][:4], f["holder"]["grown_at"]["lineno"]] for f in found]))
""")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert sorted(json.loads(done.stdout.splitlines()[-1])) == [[".ids", 8], [".val", 9]], done.stdout


def test_a_text_that_is_only_longer_than_the_one_before_is_no_leak():
    body = "text = '%05d' % step * (100 + step)"
    found = looked(body, 300)
    assert found.verdict == "steady", found.findings


def test_what_begins_late_is_told_soon_after():
    found = looked(f"if step > 400: {LEAK}", steps=500)
    assert found.verdict == "growing", found.walks
    assert found.findings[0]["evidence"].startswith(("9", "10"))  # kept since about step 400, of 100
    assert found.between(401, 460) > 0, found.walks


def test_a_cache_that_fills_and_then_holds_is_no_leak():
    found = looked("table.setdefault(step % 150, ['%d' % step] * 40)")
    assert found.verdict == "steady", found.findings


def test_deaths_that_are_not_seen_are_counted_by_walks():
    """Where CPython's own allocator does not serve, each count of what is alive is a walk."""
    code = """
        import json, leakprobe
        kept, ring = [], []
        with leakprobe.watch() as probe:
            for i in range(80):
                kept.append(["%d of many" % i] * 40)
                ring.append([i] * 60)
                del ring[:-12]
                probe.step()
        report = probe.report()
        print(json.dumps([report.verdict, [f.holder["text"] for f in report.findings]]))
    """
    verdict, holders = run(code, env={"PYTHONMALLOC": "malloc"})
    assert verdict == "growing" and len(holders) == 1 and "kept" in holders[0]


def test_native_growth_is_not_told_from_pythons_where_both_are_in_malloc():
    code = """
        import ctypes, json, leakprobe
        malloc = ctypes.CDLL(None).malloc
        malloc.restype = ctypes.c_void_p
        with leakprobe.watch() as probe:
            for i in range(80):
                malloc(20_000)
                probe.step()
        report = probe.report()
        notes = [note.text for note in report.notes if note.medium == "native"]
        print(json.dumps([report.verdict, [f.kind for f in report.findings], notes]))
    """
    assert run(code)[:2] == ["growing", ["native_growth"]]
    verdict, findings, notes = run(code, env={"PYTHONMALLOC": "malloc"})
    assert (verdict, findings) == ("steady", [])
    assert len(notes) == 1 and notes[0].startswith("not attributed: malloc's live bytes")


def test_what_was_let_go_after_the_last_mark_is_reported_as_it_was_seen():
    result = run("""
        import json, leakprobe
        def train(probe):
            kept = []
            for i in range(70):
                kept.append(["%d of many" % i] * 40)
                probe.step()
        with leakprobe.watch() as probe:
            train(probe)
        report = probe.report()
        print(json.dumps([report.verdict, report.findings[0].holder["text"], report.findings[0].live_count]))
    """)
    verdict, holder, count = result
    assert verdict == "growing" and holder.startswith("kept") and 40 <= count <= 70


def test_what_is_let_go_while_the_last_look_looks_is_reported_as_it_was_seen():
    """As by threads that end once the loop has: the first read of the last look lets all go here."""
    result = run("""
        import json, leakprobe
        from leakprobe.watch.engine import Engine
        from leakprobe.watch.schedule import Moment
        kept = []
        def visit(engine, step, moment=Moment.IN_LOOP, visit=Engine.visit):
            if moment is Moment.END:
                kept.clear()
            return visit(engine, step, moment)
        Engine.visit = visit
        with leakprobe.watch() as probe:
            for i in range(70):
                kept.append(["%d of many" % i] * 40)
                probe.step()
        report = probe.report()
        print(json.dumps([report.verdict, report.findings[0].holder["text"], report.findings[0].live_count]))
    """)
    verdict, holder, count = result
    assert verdict == "growing" and holder.startswith("kept") and 40 <= count <= 70


@pytest.mark.parametrize(("at", "verdict"), [(85, "steady"), (89, "growing")])
def test_what_was_let_go_before_the_last_steps_is_no_finding(at, verdict):
    """A generator that keeps what it has read ends while the last batch is built, before the last mark."""
    found = run(
        """
        import json, leakprobe
        kept = []
        with leakprobe.watch() as probe:
            for i in range(90):
                kept.append(["%d of many" % i] * 40)
                if i == AT: kept.clear()
                probe.step()
        print(json.dumps(probe.report().verdict))
    """.replace("AT", str(at))
    )
    assert found == verdict


@pytest.mark.parametrize(("emptied", "verdict"), [(True, "steady"), (False, "growing")])
def test_what_was_let_go_within_the_loop_after_the_last_look_is_no_finding(emptied, verdict):
    """No look is due after step 100: one is too dear. A twin lets all go with the loop."""
    found = run(
        """
        import json, leakprobe
        from leakprobe.watch import schedule
        is_due = schedule.Meter.is_due
        schedule.Meter.is_due = lambda meter, step: step <= 100 and is_due(meter, step)
        def train(probe):
            kept = []
            for i in range(400):
                kept.append(["%d of many" % i] * 40)
                if EMPTIED and len(kept) == 150: del kept[:140]
                probe.step()
        with leakprobe.watch() as probe:
            train(probe)
        print(json.dumps(probe.report().verdict))
    """.replace("EMPTIED", str(emptied))
    )
    assert found == verdict


def test_what_one_line_divides_among_containers_is_one_finding_with_its_line():
    """Each gets less than the limit.  A library makes the items, and only the last walk can meet them: whole
    stacks are asked for before.
    """
    verdict, findings = run(r"""
        import json, leakprobe
        from leakprobe.watch.engine import Engine
        from leakprobe.watch.schedule import Depth, Moment
        depths = {Moment.END: Depth.HOLDERS}
        Engine._walk_due = lambda self, step, wanted, moment: depths.get(moment, Depth.NONE)
        code = "def inner(n): return ['%d' % n] * 4\ndef make(n): return inner(n)"
        library = {}
        exec(compile(code, "/venv/site-packages/library.py", "exec"), library)
        kept, make = {}, library["make"]
        def train(probe):
            for step in range(300):
                for name in "abcdef":
                    kept.setdefault(name, []).append(make(step))
                probe.step()
        with leakprobe.watch() as probe:
            train(probe)
        report = probe.report().to_dict()
        print(json.dumps([report["verdict"], report["findings"]]))
    """)
    assert (verdict, len(findings)) == ("growing", 1)
    (found,) = findings
    assert (found["allocation"]["function"], found["allocation"]["lineno"]) == ("train", 13)
    each = 104 + 52 + 9  # a list of four, its text, and its place in the list that keeps it
    assert 5.5 < found["count_per_step"] < 6.5 and 0.8 * 6 * each < found["bytes_per_step"] < 1.2 * 6 * each


LET_GO = """
    import json, numpy as np, leakprobe
    from leakprobe.watch.engine import Engine
    from leakprobe.watch.schedule import Depth
    depths = dict.fromkeys(WALKS, Depth.HOLDERS)
    Engine._walk_due = lambda self, step, wanted, moment: depths.get(step, Depth.NONE)
    def train(probe):
        KEPT
        for step in range(200):
            kept.append(np.ones(2000))
            probe.step()
    with leakprobe.watch() as probe:
        train(probe)
    report = probe.report().to_dict()
    notes = [n["text"] for n in report["notes"] if n["kind"] == "gap"]
    print(json.dumps([report["verdict"], report["findings"], notes]))
"""


def let_go(walks: str, kept: str):
    return run(LET_GO.replace("WALKS", walks).replace("KEPT", kept))


def test_what_the_last_walk_met_too_early_is_reported_as_of_the_last_look():
    """All is let go before the end, and no walk was due since."""
    verdict, (found,), _ = let_go("range(14)", "kept = []")
    assert verdict == "growing" and found["holder"]["text"].startswith("kept (list")
    assert 0.9 * 16_000 < found["bytes_per_step"] < 1.1 * 16_000 and found["live_count"] > 150


def test_a_holder_that_bounds_itself_is_none_whatever_a_later_look_counts():
    verdict, findings, _ = let_go("range(14)", "import collections; kept = collections.deque(maxlen=500)")
    assert (verdict, findings) == ("steady", [])


def test_what_no_walk_has_met_is_said_and_makes_no_steady_verdict():
    verdict, findings, notes = let_go("()", "kept = []")
    assert (verdict, findings) == ("inconclusive", [])
    assert [text for text in notes if text.startswith("numpy memory from ") and "may have a bound" in text]


LARGER = """
import json, numpy as np, leakprobe
class Trainer:
    def __init__(self):
        self.table, self.loss = np.ones(0), 0.0
    def step(self, number):
        self.batch = np.ones(1000 + 100 * number)
        if len(self.table) < len(self.batch):
            self.table = np.arange(int(1.5 * len(self.batch)))
        self.note(number)
        return 1.0
    def note(self, number):
        self.last = np.full(500 + 50 * number, number)
with leakprobe.watch() as probe:
    trainer = Trainer()
    for step in range(300):
        trainer.loss += trainer.step(step)
        probe.step()
print(json.dumps([probe.report().to_dict()["verdict"], probe.report().to_dict()["findings"]]))
"""


def test_larger_batches_and_tables_that_are_made_anew_are_no_leak(tmp_path):
    """They are alive at each mark, and made below lines that add up something else, or call for an effect."""
    path = tmp_path / "larger.py"
    path.write_text(LARGER)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
    assert json.loads(done.stdout) == ["steady", []], done.stderr


def test_what_has_too_few_births_does_not_hide_what_else_its_holder_keeps():
    found = looked(
        "kept.append(bytearray(1000))\n        if step % 25 == 0: kept.append(bytearray(60_000))", steps=110
    )
    assert found.verdict == "growing" and len(found.findings) == 1
    assert found.findings[0]["holder"]["text"].startswith("kept (list")
    assert 0.9 * 1057 < found.findings[0]["bytes_per_step"] < 1.1 * 1065


WEAK = """
import json, leakprobe, weakref
class Handle:
    def __init__(self): self.data = bytearray(300)
notes, kept = weakref.WeakKeyDictionary(), []
with leakprobe.watch() as probe:
    for step in range(120):
        handle = Handle()
        notes[handle] = bytearray(500)
        KEEP
        probe.step()
print(json.dumps([(f["holder"]["text"], f["evidence"]) for f in probe.report().to_dict()["findings"]]))
"""


@pytest.mark.parametrize(
    ("keep", "holders"), [("kept.append(handle)", ["kept (list, 120 items)"]), ("pass", [])]
)
def test_what_goes_with_a_weakly_referenced_key_is_reported_with_what_keeps_the_key(keep, holders, tmp_path):
    path = tmp_path / "weak.py"
    path.write_text(WEAK.replace("KEEP", keep))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
    found = json.loads(done.stdout)
    assert [holder for holder, _ in found] == holders, done.stderr
    assert all("also kept by .data (dict, 120 items)" in evidence for _, evidence in found)
