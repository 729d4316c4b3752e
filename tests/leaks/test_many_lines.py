"""A list that grows where thousands of other lines have made larger and larger blocks before."""

import json

import forked
import pytest

SCRIPT = """
import json
import leakprobe

LINES = 4500
source = "\\n".join(f"def fill_{k}(n): return [None] * n" for k in range(LINES))
space = {}
exec(compile(source, "/made/lines.py", "exec"), space)
fillers = [space[f"fill_{k}"] for k in range(LINES)]
flags = []
with leakprobe.watch() as probe:
    for step in probe.steps(range(240)):
        for fill in fillers * (step < LAST):
            fill(100 + 10 * step)
        flags.extend([True] * 40 * (step > 20))
print(json.dumps(probe.report().to_dict()))
"""


def watched(folder, last):
    script = folder / "fill.py"
    script.write_text(SCRIPT.replace("LAST", str(last)))
    done = forked.run([script])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_lines_that_have_stopped_make_room(tmp_path):
    report = watched(tmp_path, 4)
    (finding,) = report["findings"]
    assert finding["cause"] == "growing_buffer" and finding["allocation"]["function"] == "<module>"
    assert finding["bytes_per_step"] == pytest.approx(320, rel=0.2)
    assert not [note for note in report["notes"] if note["kind"] == "dropped"]


def test_what_had_no_room_is_reported(tmp_path):
    report = watched(tmp_path, 240)
    (note,) = [note for note in report["notes"] if note["kind"] == "dropped"]
    assert "lists or dicts that are filled there" in note["text"]
