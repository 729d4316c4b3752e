"""What an epoch gathers and its end releases: a note, unless its peak rises or comes near a limit."""

import pytest
from clocked import FREE
from fresh import run

LOOP = """
import json, leakprobe
from leakprobe.watch import control_group

def epoch(probe, steps):
    gathered = []
    for step in range(steps):
        gathered.append(bytearray(20_000))
        probe.step()
    del gathered
    probe.epoch()

with leakprobe.watch() as probe:
    for number in range(6):
        epoch(probe, LENGTH)
    AVAILABLE
report = probe.report().to_dict()
print(json.dumps([report["verdict"], report["findings"], report["notes"]]))
"""


def report_of(length="60", available="pass"):
    return run(FREE + LOOP.replace("LENGTH", length).replace("AVAILABLE", available))


def test_a_peak_that_there_is_room_for_is_a_note_with_slope_and_line():
    verdict, findings, notes = report_of()
    (note,) = [n for n in notes if n["kind"] == "within_epoch"]
    assert (verdict, findings) == ("steady", [])
    assert note["bytes_per_step"] == pytest.approx(20_033, rel=0.1)
    assert note["allocation"]["lineno"] == 11 and note["allocation"]["function"] == "epoch"
    assert "1.1 MiB at its peak" in note["text"] or "1.2 MiB at its peak" in note["text"]


@pytest.mark.parametrize(
    "how",
    [{"length": "40 + 20 * number"}, {"available": "control_group.available_bytes = lambda: 500_000"}],
    ids=["epochs get longer", "near the limit"],
)
def test_a_peak_that_will_kill_is_a_finding(how):
    verdict, (finding,), _notes = report_of(**how)
    assert verdict == "growing" and finding["pattern"] == "within_epoch"
    assert finding["bytes_per_step"] == pytest.approx(20_033, rel=0.1)
    assert finding["allocation"]["lineno"] == 11 and "MiB at the peak" in finding["evidence"]
    assert finding["fix"].startswith("the end of the epoch releases it")


def test_what_the_last_step_lets_go_is_found_as_of_the_look_before():
    """A generator of the loop ends with the last batch; some of these loops are looked at right then."""
    code = """
        import json, leakprobe
        def verdict(steps):
            kept = []
            with leakprobe.watch() as probe:
                for step in range(steps):
                    kept.append(["%d of many" % step] * 40)
                    if step == steps - 1:
                        kept.clear()
                    probe.step()
            return probe.report().verdict
        print(json.dumps([verdict(steps) for steps in range(40, 60)]))
    """
    assert run(code) == ["growing"] * 20


def test_what_a_loader_gathers_is_looked_at_when_it_is_used_up():
    """The loop's own function has returned when the watch ends."""
    pytest.importorskip("torch")
    code = """
        import json, torch, leakprobe
        from leakprobe.torch.steps import AutoSteps
        def validate():
            gathered = []
            for batch in torch.utils.data.DataLoader(list(range(31)), batch_size=1):
                gathered.append(bytes(9000))
        looked = []
        with leakprobe.watch() as probe:
            steps = AutoSteps(probe)
            steps.install()
            validate()
            looked.append(probe.progress()["looked"])
            steps.remove()
        report = probe.report()
        print(json.dumps([looked, report.verdict, [f.live_count for f in report.findings]]))
    """
    looked, verdict, (count,) = run(code)
    assert looked == [31] and verdict == "growing" and count >= 24
