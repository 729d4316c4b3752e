"""watch(), marks, snapshot and diff on real loops; each in a fresh process."""

import json
import subprocess
import sys
import textwrap
import weakref

import pytest

import leakprobe


def run(code: str, *, timeout: int = 120) -> dict:
    """Run ``code`` in a fresh interpreter; it prints one JSON value last."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_a_kept_list_is_found_with_line_and_holder(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import json, leakprobe\n"
        "history = []\n"
        "def train(i):\n"
        "    history.append({'step': i, 'x': [float(i)] * 100})\n"
        "with leakprobe.watch() as probe:\n"
        "    for i in range(40):\n"
        "        train(i)\n"
        "        probe.step()\n"
        "print(json.dumps(probe.report().to_dict()))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"] == "growing"
    finding = report["findings"][0]
    assert finding["allocation"]["filename"] == str(script) and finding["allocation"]["lineno"] == 4
    assert "history" in json.dumps(finding["path"])
    assert finding["holder"]["type"] == "list" and finding["holder"]["grown_at"]["lineno"] == 4
    # A dict, a list of 100 pointers and a float a step.
    assert 1000 < finding["bytes_per_step"] < 1600


def test_a_local_of_a_function_that_has_returned_keeps_its_path():
    report = run(
        """
        import json, leakprobe
        probe = leakprobe.watch()
        def train():
            kept = []
            for i in range(40):
                kept.append(bytearray(5000))
                probe.step()
        with probe:
            train()
        print(json.dumps(probe.report().to_dict()))
        """
    )
    assert report["verdict"] == "growing"
    finding = report["findings"][0]
    assert "kept" in json.dumps(finding["path"]) and "train" in json.dumps(finding["path"])
    assert finding["allocation"]["lineno"] == 7


@pytest.mark.parametrize(
    "loop",
    [
        "ring[i % 16] = bytearray(4000)",
        "last = [bytearray(4000) for _ in range(10)]",
        "recent.append(bytearray(4000))",
        "d = {'k': i}; d['self'] = d",
        "epoch.append(bytearray(4000)); epoch.clear() if i % 10 == 9 else None",
    ],
)
def test_a_loop_that_does_not_grow_is_steady(loop):
    report = run(
        f"""
        import collections, json, leakprobe
        ring, recent, epoch = [None] * 16, collections.deque(maxlen=12), []
        with leakprobe.watch() as probe:
            for i in range(60):
                {loop}
                probe.step()
        print(json.dumps(probe.report().to_dict()))
        """
    )
    assert report["verdict"] == "steady", report["findings"]
    assert report["findings"] == []


def test_records_of_plain_values_are_each_found_with_their_line():
    report = run(
        """
        import json, leakprobe
        dicts, texts, blobs, numbers, keys, pairs = [], [], [], [], {}, []
        with leakprobe.watch(limit=64) as probe:
            for i in range(100):
                for k in range(100):
                    n = i * 100 + k + 1000
                    dicts.append({"a": n, "b": n * 0.5})
                    texts.append("record %d" % n)
                    blobs.append(b"%d bytes" % n)
                    numbers.append(n * 0.25)
                    keys["key %d" % n] = None
                    pairs.append((n, n * 0.125))
                probe.step()
        print(json.dumps(probe.report().to_dict()))
        """
    )
    found = {}
    for finding in report["findings"]:
        for name in ("dicts", "texts", "blobs", "numbers", "keys", "pairs"):
            if any(element["text"].startswith(name) for element in finding["path"] or []):
                found[name] = finding["allocation"]["lineno"]
    assert found == {"dicts": 8, "texts": 9, "blobs": 10, "numbers": 11, "keys": 12, "pairs": 13}


def test_too_few_steps_are_inconclusive():
    report = run(
        """
        import json, leakprobe
        with leakprobe.watch(warmup=2) as probe:
            for i in range(5):
                probe.step()
        print(json.dumps(probe.report().to_dict()))
        """
    )
    assert report["verdict"] == "inconclusive" and report["steps"] == {"warmup": 2, "measured": 3}
    assert [n["text"] for n in report["notes"] if n["kind"] == "warm_up"][0].startswith(
        "run 6 more steps: 5 marked"
    )


def test_steps_keeps_the_length_and_marks_between_items():
    counts = run(
        """
        import json, leakprobe
        with leakprobe.watch() as probe:
            wrapped = probe.steps([1, 2, 3, 4])
            assert len(wrapped) == 4
            got = list(wrapped)
        print(json.dumps([got, probe.report().to_dict()["steps"]]))
        """
    )
    assert counts[0] == [1, 2, 3, 4] and counts[1] == {"warmup": 4, "measured": 0}


def test_tqdm_inside_and_outside():
    pytest.importorskip("tqdm")
    counts = run(
        """
        import io, json, leakprobe
        from tqdm import tqdm
        with leakprobe.watch(warmup=0) as probe:
            for _ in probe.steps(tqdm(range(7), file=io.StringIO())): pass
            inside = probe.report().steps["measured"]
            for _ in tqdm(probe.steps(range(7)), file=io.StringIO()): pass
        print(json.dumps([inside, probe.report().steps["measured"]]))
        """
    )
    assert counts == [7, 14]


@pytest.mark.parametrize(
    "call, code, words",
    [
        ("leakprobe.watch(warmup=-1)", "bad_argument", "warmup"),
        ("leakprobe.watch(warmup=1.5)", "bad_argument", "warmup"),
        ("leakprobe.watch(media={'gpu'})", "bad_argument", "unknown kind of memory gpu"),
        ("leakprobe.watch(warmup=10**5000)", "bad_argument", "warmup"),
        ("leakprobe.watch(limit='fast')", "bad_argument", "fast"),
        (
            "leakprobe.watch(limit=float('nan'))",
            "bad_argument",
            "limit must be finite and not negative, not nan",
        ),
        ("leakprobe.watch(limit=10**400)", "bad_argument", "limit must be finite"),
        ("leakprobe.watch(stack_depth=0)", "bad_argument", "stack_depth"),
        ("leakprobe.watch().report(ranks=True, timeout=float('nan'))", "bad_argument", "timeout must be"),
        ("leakprobe.watch().step()", "not_active", "outside of a watch"),
        ("(leakprobe.start(), leakprobe.start())", "already_active", "active already"),
        ("leakprobe.diff(1, 2)", "bad_argument", "Snapshot"),
    ],
)
def test_bad_input_says_what_to_do(call, code, words):
    result = run(
        f"""
        import json, leakprobe
        try:
            {call}
        except leakprobe.LeakprobeError as error:
            print(json.dumps([error.code, str(error)]))
        else:
            print(json.dumps(["none", ""]))
        """
    )
    assert result[0] == code and words in result[1]


def test_a_watch_can_follow_a_watch():
    result = run(
        """
        import json, leakprobe
        verdicts = []
        for round in range(3):
            kept = []
            with leakprobe.watch() as probe:
                for i in range(20):
                    kept.append(bytearray(3000))
                    probe.step()
            verdicts.append(probe.report().verdict)
            assert not leakprobe.is_active()
        print(json.dumps(verdicts))
        """
    )
    assert result == ["growing"] * 3


def test_exceptions_leave_a_report_and_no_hook():
    result = run(
        """
        import json, leakprobe
        kept = []
        try:
            with leakprobe.watch() as probe:
                for i in range(30):
                    kept.append(bytearray(3000))
                    probe.step()
                raise RuntimeError("out of memory")
        except RuntimeError as error:
            pass
        print(json.dumps([probe.report().verdict, leakprobe.is_active()]))
        """
    )
    assert result == ["growing", False]


@pytest.mark.parametrize(
    "place",
    [
        "engine.Engine.visit",
        "engine.Engine._trace",
        "objects.Objects.finish",
        "conclusions.conclude",
        "timeline.Timeline.add_to_last",
        "resources.Resources.memory_row",
    ],
)
def test_a_failure_of_the_probe_itself_stays_out_of_the_loop(place):
    verdict, active, notes, heard, steps = run(
        f"""
        import importlib, json, leakprobe
        module, _, rest = "{place}".partition(".")
        owner = importlib.import_module("leakprobe.watch." + module)
        *classes, name = rest.split(".")
        for part in classes:
            owner = getattr(owner, part)
        real, calls = getattr(owner, name), []
        def fails_once(*args, **more):
            calls.append(1)
            if len(calls) == 1:
                raise ZeroDivisionError("planted")
            return real(*args, **more)
        setattr(owner, name, fails_once)
        kept, heard = [], []
        with leakprobe.watch(on_growth=heard.append) as probe:
            for i in range(60):
                kept.append(bytearray(3000))
                probe.step()
        assert len(calls) > 1, calls
        report = probe.report()
        print(json.dumps([report.verdict, leakprobe.is_active(), [n.text for n in report.notes], len(heard), report.steps["measured"]]))
        """
    )
    assert (verdict, active, heard, steps) == ("growing", False, 1, 55)
    assert any("ZeroDivisionError: planted" in note for note in notes), notes


def test_snapshots_differ_by_what_was_made_between():
    rows = run(
        """
        import json, leakprobe
        kept = []
        with leakprobe.watch() as probe:
            a = leakprobe.snapshot()
            for i in range(50):
                kept.append(bytearray(10000))
            b = leakprobe.snapshot()
            d = leakprobe.diff(a, b)
        top = next(iter(d))
        print(json.dumps([top.type, top.count_diff, top.size_diff, top.stack[0][1]]))
        """
    )
    kind, count, size, line = rows
    assert kind == "bytearray" and count == 50 and 500_000 <= size < 520_000 and line == 7


def test_snapshot_saves_and_loads(tmp_path):
    path = tmp_path / "a.json"
    same = run(
        f"""
        import json, leakprobe, os, stat
        a = leakprobe.snapshot()
        a.save({str(path)!r})
        b = leakprobe.Snapshot.load({str(path)!r})
        mode = stat.S_IMODE(os.stat({str(path)!r}).st_mode)
        print(json.dumps([a.rows == b.rows, len(a) > 100, mode, len(leakprobe.diff(a, b))]))
        """
    )
    assert same == [True, True, 0o600, 0]


def test_on_growth_is_called_once_when_the_verdict_turns():
    calls = run(
        """
        import json, leakprobe
        calls, kept = [], []
        with leakprobe.watch(on_growth=lambda report: calls.append(report.steps["measured"])) as probe:
            for i in range(40):
                kept.append(bytearray(3000))
                probe.step()
        print(json.dumps(calls))
        """
    )
    assert len(calls) == 1 and 5 <= calls[0] <= 12


@pytest.mark.parametrize("switch", ["1", "0"])
def test_callbacks_and_what_they_keep_do_not_outlive_the_watch(monkeypatch, switch):
    monkeypatch.setenv("LEAKPROBE", switch)

    class Model:
        pass

    def train():
        model = Model()
        with leakprobe.watch(on_growth=lambda report: model, on_cycle=lambda report: model) as probe:
            pass
        return probe, weakref.ref(model)

    probe, model = train()
    assert model() is None and probe.report() is not None


def test_leakprobe_0_turns_the_watch_off():
    result = run(
        """
        import os
        os.environ["LEAKPROBE"] = "0"
        import json, leakprobe
        with leakprobe.watch() as probe:
            for i in probe.steps(range(20)):
                pass
            probe.step()
            active = leakprobe.is_active()
        print(json.dumps([active, probe.report().verdict]))
        """
    )
    assert result == [False, "inconclusive"]


def test_a_watch_that_cannot_begin_leaves_nothing_behind():
    result = run(
        """
        import json, leakprobe
        from leakprobe import _core, probe as module
        def broken(*args):
            raise RuntimeError("no slots")
        real, module._core.native_install = _core.native_install, broken
        try:
            leakprobe.start()
        except RuntimeError as error:
            first = [str(error), leakprobe.is_active(), _core.is_active()]
        module._core.native_install = real
        with leakprobe.watch() as probe:
            probe.step()
        print(json.dumps(first))
        """
    )
    assert result == ["no slots", False, False]


def test_a_trace_that_cannot_be_taken_is_said():
    notes = run(
        """
        import json, leakprobe
        from leakprobe import LeakprobeError
        from leakprobe.watch import holders
        def refuse(*args, **kwargs):
            raise LeakprobeError("the collector is running", "collecting")
        holders.run_trace = refuse
        kept = []
        with leakprobe.watch() as probe:
            for i in range(30):
                kept.append(bytearray(3000))
                probe.step()
        report = probe.report()
        print(json.dumps([report.verdict, [[n.kind, n.text] for n in report.notes]]))
        """
    )
    assert notes == ["growing", [["gap", "who keeps what grows could not be read: the collector is running"]]]


def test_a_look_that_cannot_be_taken_is_said_and_the_loop_goes_on():
    report = run(
        """
        import json, leakprobe
        from leakprobe import _core
        from leakprobe.errors import LeakprobeError
        def out_of_memory(*arguments):
            raise LeakprobeError("scanning: out of memory", "no_memory")
        _core.scan_result, kept = out_of_memory, []
        with leakprobe.watch(warmup=2) as probe:
            for i in probe.steps(range(20)):
                kept.append([i] * 100)
        print(json.dumps(probe.report().to_dict()))
        """
    )
    assert report["steps"]["measured"] == 18
    assert any(
        n["kind"] == "gap" and "could not be counted at step" in n["text"] and "out of memory" in n["text"]
        for n in report["notes"]
    )


@pytest.mark.parametrize("options", ["", ', memory_limit="99 %"'])
def test_a_long_loop_of_short_steps_has_fewer_rows_than_marks(options):
    steps, shown = run(f"""
        import json, leakprobe
        with leakprobe.watch(warmup=5{options}) as probe:
            for _ in range(2001):
                probe.step()
            shown = probe.progress()["step"]
        report = probe.report()
        print(json.dumps([[row["step"] for row in report.timeline], shown]))
    """)
    assert shown == steps[-1] == 2001 and steps[:28] == list(range(1, 29))
    assert len(steps) < 1500
