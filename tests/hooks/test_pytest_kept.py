"""What pytest itself keeps of a test that is repeated is not the test's growth, in real pytest runs."""

import pytest

from leakprobe.model.finding import Finding
from leakprobe.pytest_kept import ALSO_KEPT, KeptByPytest

pytest_plugins = ["pytester"]

WITHOUT = [f"-pno:{name}" for name in ("cacheprovider", "rerunfailures", "hypothesispytest")]
HEAD = """
import itertools, logging, pytest, random, unittest, warnings
log, count, kept = logging.getLogger("app"), itertools.count(), []
"""


def run(pytester, text, *options):
    """Without the plugin of hypothesis, whose import takes a third of a run."""
    pytester.makepyfile(test_it=HEAD + text)
    return pytester.runpytest_subprocess(*WITHOUT, *options)


CLEAN = """
def test_log(): log.warning("epoch done: loss %.3f", 0.5)
def test_long_log(): log.warning("x" * 3000)
def test_level(caplog):
    caplog.set_level(logging.INFO)
    log.info("loss %f", 0.5)
    assert caplog.messages == ["loss 0.500000"] and caplog.text.count("loss") == 1
def test_cleared(caplog):
    log.warning("one"); caplog.clear(); log.warning("two")
    assert caplog.messages == ["two"]
@pytest.fixture
def setup_log(caplog): log.warning("of the fixture"); return caplog
def test_of_the_fixture(setup_log):
    log.warning("mine"); assert [r.message for r in setup_log.get_records("setup")] == ["of the fixture"]
def test_warning(): warnings.warn(f"value {next(count)}")
def test_warnings():
    for _ in range(3): warnings.warn(f"value {next(count)}")
def test_recorded(recwarn): warnings.warn(f"value {next(count)}")
def test_property(record_property): record_property("x", "y" * (300 + next(count)))
def test_patch(monkeypatch): monkeypatch.setattr(random, "random", lambda: 1)
def test_finalizer(request): request.addfinalizer(lambda kept=bytearray(2000 + next(count)): None)
class TestOfClass(unittest.TestCase):
    def test_cleanup_of_the_class(self): type(self).addClassCleanup(bytearray(2000 + next(count)).clear)
class TestCase(unittest.TestCase):
    def test_sub(self):
        for i in range(2):
            with self.subTest(i=i): pass
    def test_cleanup(self): self.addCleanup(lambda x: None, "x" * (300 + next(count)))
class TestDerived(TestCase): pass
"""


def test_what_pytest_keeps_of_clean_tests_is_no_growth(pytester):
    result = run(pytester, CLEAN, "--leakprobe=3:10")
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] == 16 and not outcomes.keys() & {"failed", "errors"}
    result.stdout.fnmatch_lines(["leakprobe: 16 measured, 0 growing;*"])


#: Each fails: beside what pytest keeps there is a container of the test's own, also of the same objects.
LEAKS = """
class Keeps(logging.Handler):
    def emit(self, record): kept.append(record)
@pytest.fixture
def own_handler():
    handler = Keeps(); log.addHandler(handler); yield; log.removeHandler(handler)
@pytest.fixture(scope="session")
def cache(): return []
def test_beside(): log.warning("loss"); kept.append(bytearray(3000))
def test_same_object(): x = bytearray(3000); log.warning("%.3s", x); kept.append(x)
def test_handler(own_handler): log.warning("%.3s", bytearray(3000))
def test_fixture(cache): log.warning("loss"); cache.append(bytearray(3000))
def test_warned():
    x = bytearray(3000); warnings.warn(UserWarning(f"value {next(count)}", x)); kept.append(x)
def test_one_statement(): kept.append(warnings.warn(f"value {next(count)}") or bytearray(400))
class TestCase(unittest.TestCase):
    def test_cleanup(self): self.addCleanup(str); kept.append(bytearray(3000))
"""


def test_leaks_beside_it_fail(pytester):
    result = run(pytester, LEAKS, "--leakprobe=3:10")
    result.assert_outcomes(failed=7)
    result.stdout.fnmatch_lines(["memory grows: * of bytearray from test_it.py:*"])


#: What captures a log is enlarged in leaps: in 20 steps five of them but on 3.11, and a verdict needs six.
IN_A_LOOP = """
import sys
LONG_LOG = 20 if sys.version_info[:2] == (3, 11) else 40
def loop(no_growth, step, steps=20):
    with no_growth() as probe:
        for _ in probe.steps(range(steps)): step()
def test_log(no_growth, caplog):
    loop(no_growth, lambda: log.warning("epoch done: loss %.3f", 0.5))
    assert len(caplog.records) == 20
def test_long_log(no_growth): loop(no_growth, lambda: log.warning("x" * 3000), steps=LONG_LOG)
def test_object(no_growth): loop(no_growth, lambda: log.warning("%.3s", bytearray(3000)))
def test_warning(no_growth): loop(no_growth, lambda: warnings.warn(f"value {next(count)}"))
def test_note(no_growth):
    with no_growth() as probe:
        for _ in probe.steps(range(20)): log.warning("epoch done: loss %.3f", 0.5)
    assert probe.report().findings, "the probe itself leaves nothing out"
def test_leak(no_growth): loop(no_growth, lambda: log.warning("x" * 3000) or kept.append(bytearray(400)))
def test_same_leak(no_growth):
    with no_growth() as probe:
        for _ in probe.steps(range(20)): x = bytearray(3000); log.warning("%.3s", x); kept.append(x)
"""


def test_a_loop_that_logs_in_each_step_is_steady_and_one_that_leaks_too_is_not(pytester):
    result = run(pytester, IN_A_LOOP)
    result.assert_outcomes(passed=5, failed=2)
    result.stdout.fnmatch_lines(["FAILED *::test_leak - *", "FAILED *::test_same_leak - *"])


def test_the_report_says_that_pytest_keeps_it(pytester):
    text = """
def test_cleanup(no_growth, record_property):
    report = no_growth(lambda: record_property("x", "y" * (300 + next(count))))
    text, = [n.text for n in report.notes if n.kind == "suppressed"]
    assert text.endswith("by the rule of pytest's own containers (pytest keeps it until the test ends)"), text
"""
    run(pytester, text).assert_outcomes(passed=1)


def test_a_failure_shows_what_its_call_logged(pytester):
    text = """
def test_fails():
    n = next(count)
    log.warning("call %d", n)
    assert n < 4
def test_leaks():
    log.warning("grows by one")
    kept.append(bytearray(3000))
"""
    result = run(pytester, text, "--leakprobe=3:10")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*- Captured log call -*", "*WARNING *call 4"])
    output = result.stdout.str()
    assert "call 3" not in output and output.count("WARNING  app:test_it.py:9 grows by one") == 1


# ---- the rule ----


def finding(*path, holder, evidence="18 kept"):
    keys = ("text", "edge", "type")
    rows = [dict(zip(keys, row, strict=True)) for row in path]
    held = {"text": holder, "type": "list", "grown_at": None, "length": 9}
    nothing = dict.fromkeys(Finding.__dataclass_fields__)
    return Finding(**nothing | {"path": rows, "holder": held, "evidence": evidence})


HANDLER = ("[3] LogCaptureHandler", "index", "_pytest.logging.LogCaptureHandler")
RECORDS = (".records (list, 9 items)", "attribute", "list")
FIXTURE = ("[0] FixtureDef", "index", "_pytest.fixtures.FixtureDef")


@pytest.mark.parametrize("path, holder, evidence, is_own", [
    ([HANDLER, RECORDS], RECORDS[0], "", True),
    ([HANDLER, RECORDS], RECORDS[0], f"{ALSO_KEPT}reference 1 of StringIO (list, 9 items) of logging", True),
    ([HANDLER, RECORDS], RECORDS[0], f"{ALSO_KEPT}kept (list, 9 items) of train", False),
    ([HANDLER, RECORDS], RECORDS[0], f"{ALSO_KEPT}.records (list, 9 items) of train", False),
    ([HANDLER, RECORDS, ("[0] Run", "index", "train.Run"), (".runs (list)", "attribute", "list")],
     ".runs (list)", "", False),
    ([FIXTURE, (".cached_result (tuple)", "attribute", "tuple"), ("[0] (list, 9 items)", "index", "list")],
     "[0] (list, 9 items)", "", False),
    ([("r Run", "local", "train.Run"), RECORDS], RECORDS[0], "", False),
    ([("self Mine", "local", "test_it.Mine"), ("._cleanups (list)", "attribute", "list")],
     "._cleanups (list)", "", True),
    ([("self Other", "local", "test_it.Other"), ("._cleanups (list)", "attribute", "list")],
     "._cleanups (list)", "", False),
])  # fmt: skip
def test_only_what_grows_in_a_container_of_pytests_own_is_left_out(path, holder, evidence, is_own):
    rows = [("logging", "module", "module"), *path]
    found = finding(*rows, holder=holder, evidence=f"18 kept{evidence}")
    assert KeptByPytest("test_it.Mine").matches(found) is is_own
