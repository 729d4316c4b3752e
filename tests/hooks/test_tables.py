"""What a container takes for its items is part of the rate of what grows, and no finding of its own."""

import json
import subprocess
import sys

import pytest
from clocked import FREE

TABLES = """
import collections, json, sys
import leakprobe
kept = MAKE
with leakprobe.watch() as probe:
    for step in range(200):
        for number in range(1000 + step * 50, 1050 + step * 50):
            ADD
        probe.step()
own = (sys.getsizeof(kept) - sys.getsizeof(MAKE)) / 200
print(json.dumps([own, probe.report().to_dict()["findings"]]))
"""


def ran(path, program: str):
    path.write_text(FREE + program)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("make", "add"),
    [
        ("[]", "kept.append(number)"),
        ("{}", "kept[number] = None"),
        ("set()", "kept.add(number)"),
        ("collections.deque()", "kept.append(number)"),
        ("collections.OrderedDict()", "kept[number] = None"),
    ],
    ids=["list", "dict", "set", "deque", "ordered"],
)
def test_the_table_of_a_container_is_part_of_its_rate(make, add, tmp_path):
    own, findings = ran(tmp_path / "tables.py", TABLES.replace("MAKE", make).replace("ADD", add))
    items = 50 * sys.getsizeof(1000)
    assert len(findings) == 1, findings
    assert findings[0]["bytes_per_step"] == pytest.approx(items + own, rel=0.05)
    assert findings[0]["live_bytes"] == pytest.approx(195 * (items + own), rel=0.05)


TWO = """
import json
import leakprobe
seen = {}
def note(step):
    for number in range(step * 40, step * 40 + 40):
        seen[number] = None
with leakprobe.watch() as probe:
    other = {number: None for number in range(8000)}
    for step in range(193):
        note(step)
        probe.step()
print(json.dumps([(f["cause"], f["holder"]["text"]) for f in probe.report().to_dict()["findings"]]))
"""


def test_a_table_as_large_as_one_that_grows_is_no_leak(tmp_path):
    """Tables have sizes of a few kinds: the line that enlarged one tells which it is."""
    findings = ran(tmp_path / "two.py", TWO)
    assert [cause for cause, _ in findings] == ["growing_container"], findings
    assert findings[0][1].startswith("seen (dict"), findings


INDEX = """
import json
import leakprobe
index = {word: set() for word in "abcd"}
def note(number):
    index["abcd"[number % 4]].add(number)
with leakprobe.watch() as probe:
    for step in range(300):
        for number in range(1000 + step * 40, 1040 + step * 40):
            note(number)
        probe.step()
own = sum(sys.getsizeof(one) for one in index.values()) / 300
print(json.dumps([own, probe.report().to_dict()["findings"]]))
"""


ENVIRONMENTS = """
import json, leakprobe
class Recorder:
    def __init__(self): self.episodes = []
    def end(self, number): self.episodes.append(["%d of many" % number] * 60)
class Env:
    def __init__(self): self.recorder = Recorder()
envs, own = [Env() for _ in range(4)], Env()
with leakprobe.watch() as probe:
    for step in range(200):
        for env in envs:
            env.recorder.end(step)
        OTHER
        probe.step()
print(json.dumps([0, probe.report().to_dict()["findings"]]))
"""


@pytest.mark.parametrize(("other", "count"), [("", 1), ("own.recorder.episodes.append([str(step)] * 60)", 2)])
def test_what_a_loop_over_holders_leaves_behind_is_no_holder_of_its_own(other, count, tmp_path):
    """``env`` is the last of ``envs``; what another line fills is another leak."""
    _, findings = ran(tmp_path / "environments.py", ENVIRONMENTS.replace("OTHER", other))
    assert len(findings) == count, [(f["holder"], f["evidence"]) for f in findings]
    first = 4 * (60 * 8 + 56 + 60)
    assert findings[0]["bytes_per_step"] == pytest.approx(first, rel=0.1)


def test_containers_that_one_statement_fills_are_one_finding(tmp_path):
    own, findings = ran(tmp_path / "index.py", "import sys\n" + INDEX)
    assert len(findings) == 1, [(f["holder"], f["evidence"]) for f in findings]
    assert findings[0]["evidence"].count("also kept by") == 3
    assert findings[0]["bytes_per_step"] == pytest.approx(40 * sys.getsizeof(1000) + own, rel=0.05)
