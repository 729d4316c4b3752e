"""The pytest plugin in real pytest runs."""

import importlib.util
import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture
def pytester(pytester, monkeypatch):
    """Its runs of pytest leave out the plugin of hypothesis, whose import takes a third of each."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    return pytester


LEAK = """
import pytest
kept = []
def leak():
    kept.append(bytearray(4000))
def clean():
    bytearray(4000)
"""


def test_a_leak_fails_and_its_first_line_says_what(pytester):
    pytester.makepyfile(LEAK + "def test_leak(no_growth):\n    no_growth(leak, steps='3:10')\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "memory grows: +* KiB/step of bytearray from *.py:4",
            "*- Captured leakprobe call -*",
            "growing: 1 finding in 20 steps (3 warm-up)",
            "1  leak[[]growing-container]: *",
            "*kept (list, *",
            "leakprobe: 1 measured, 1 growing; * s added by repeats and checks",
        ]
    )


def test_clean_loops_pass_in_every_form(pytester):
    pytester.makepyfile(
        LEAK
        + "def test_call(no_growth):\n    assert no_growth(clean, steps='3:10').verdict == 'steady'\n"
        + "def test_context(no_growth):\n    with no_growth(limit='1 KiB/step') as probe:\n"
        + "        for _ in probe.steps(range(20)):\n            clean()\n"
        + "@pytest.mark.limit_growth('1 KiB/step', steps='3:10', media=['python'])\ndef test_marker(): clean()\n"
        + "@pytest.mark.limit_growth\ndef test_bare_marker(): clean()\n"
        + "def test_limit(no_growth):\n    no_growth(leak, limit='64 KiB/step')\n"
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["leakprobe: 5 measured, 0 growing; *"])


UNITTEST = """
import unittest
class TestMine(unittest.TestCase):
    calls, set_up = 0, 0
    def setUp(self): type(self).set_up += 1
    @pytest.mark.limit_growth(steps='3:10')
    def test_leak(self): leak()
    def test_clean(self):
        clean()
        type(self).calls += 1
    @pytest.mark.skip_growth('meant')
    def test_left_alone(self): leak()
    @pytest.mark.limit_growth
    def test_fails_itself(self): self.assertEqual(1, 2)
def test_after():
    assert (TestMine.calls, TestMine.set_up) == EXPECTED
"""


@pytest.mark.parametrize("options, expected", [([], (1, 4)), (["--leakprobe=3:10"], (13, 4))])
def test_methods_of_a_unittest_class(pytester, options, expected):
    text = UNITTEST.replace("EXPECTED", str(expected)).replace(
        "def test_after", "@pytest.mark.skip_growth('counts')\ndef test_after"
    )
    pytester.makepyfile(LEAK + text)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*memory grows: +* KiB/step of bytearray from *.py:4*"])
    result.stdout.fnmatch_lines(["*AssertionError: 1 != 2*"])
    result.stdout.fnmatch_lines([f"leakprobe: {2 if options else 1} measured, 1 growing; *"])


def test_leaks_fail_in_every_form(pytester):
    pytester.makepyfile(
        LEAK
        + "def test_context(no_growth):\n    with no_growth(limit='1 KiB/step') as probe:\n"
        + "        for _ in probe.steps(range(20)):\n            leak()\n"
        + "@pytest.mark.limit_growth('1 KiB/step', steps='3:10')\n@pytest.mark.parametrize('n', [0, 2])\ndef test_marker(n):\n"
        + "    for _ in range(n): leak()\n"
        + "@pytest.mark.limit_growth(suppressions=['path = kept*  # meant'])\ndef test_known(): leak()\n"
        + "def test_error(no_growth):\n    with no_growth() as probe:\n        raise KeyError('mine')\n"
        + "@pytest.mark.limit_growth()\ndef test_error_too(): raise KeyError('mine too')\n"
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=4)
    result.stdout.fnmatch_lines(
        ["*_ test_marker[[]2[]] _*", "memory grows: +* of bytearray from *.py:4", "*KeyError: 'mine'"]
    )


def test_growth_that_stops_is_not_a_failure(pytester):
    """A cache that fills in the first 25 calls: the longer run that should confirm it does not."""
    pytester.makepyfile(
        LEAK + "@pytest.mark.limit_growth\ndef test_cache():\n    if len(kept) < 25: leak()\n"
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_too_few_steps_are_repeated_with_more(pytester):
    pytester.makepyfile(
        LEAK
        + "def test_few(no_growth):\n    assert no_growth(clean, steps='1:3').steps == {'warmup': 1, 'measured': 12}\n"
        + "def test_fewer(no_growth):\n    no_growth(clean, steps='1:1')\n"
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["not enough evidence: 4 steps measured*"])


def test_the_option_measures_every_test_but_those_that_are_skipped_or_measure_themselves(pytester):
    pytester.makepyfile(
        LEAK
        + "def test_leak(): leak()\ndef test_clean(tmp_path): clean()\n"
        + "@pytest.mark.skip_growth('keeps its results')\ndef test_skipped(): leak()\n"
        + "def test_own(no_growth): no_growth(clean)\n"
        + "class TestClass:\n    def test_method(self): leak()\n"
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=5)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--leakprobe=2:8")
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(
        ["growing: 1 finding in 32 steps (2 warm-up)", "leakprobe: 4 measured, 2 growing;*"]
    )


def test_ini_values_count_and_the_call_has_the_last_word(pytester):
    pytester.makepyfile(
        LEAK
        + "def test_steps(no_growth): assert no_growth(clean).steps == {'warmup': 1, 'measured': 14}\n"
        + "def test_limit(no_growth): no_growth(leak)\n"
        + "def test_call(no_growth): no_growth(leak, limit='1 KiB')\n"
        + "@pytest.mark.limit_growth(1)\ndef test_known(): kept.append({})\n"
    )
    pytester.makeini(
        "[pytest]\nleakprobe_steps = 1:7\nleakprobe_limit = 9 KiB/step\nleakprobe_suppressions = known.txt\n"
    )
    (pytester.path / "known.txt").write_text("type = dict # in a file\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["FAILED *::test_call - *"])


WRONG_MARKERS = {
    "limit_growth('many')": "*limit_growth: 'many' is not a rate; write it as*",
    "limit_growth(steps='3')": "*limit_growth: steps must be*",
    "limit_growth(media=['gpu'])": "*limit_growth: media: unknown kind of memory gpu;*",
    "limit_growth(step='3:10')": "*limit_growth: *unexpected keyword argument 'step'*",
    "limit_growth(suppressions=['x'])": "*limit_growth: suppression: 'x' is not a rule*",
    "skip_growth": "*skip_growth: *missing 1 required positional argument: 'reason'*",
}


def test_wrong_arguments_of_a_marker_are_errors_of_the_collection(pytester):
    for number, marker in enumerate(WRONG_MARKERS):
        pytester.makepyfile(**{f"test_{number}": LEAK + f"@pytest.mark.{marker}\ndef test_x(): pass\n"})
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=len(WRONG_MARKERS))
    for marker, message in WRONG_MARKERS.items():
        result.stdout.fnmatch_lines([message, "the right form: @pytest.mark." + marker.split("(")[0] + "(*"])


@pytest.mark.parametrize("arguments,message", [
    (["--leakprobe=many"], "*leakprobe: steps must be*--leakprobe is written --leakprobe=STEPS*"),
    (["--leakprobe", "3-10"], "*leakprobe: steps must be*'3-10'*--leakprobe is written --leakprobe=STEPS*"),
    (["-o", "leakprobe_limit=many"], "*leakprobe: 'many' is not a rate*"),
    (["-o", "leakprobe_suppressions=none.txt"], "*leakprobe: the suppressions *none.txt can't be read*"),
])  # fmt: skip
def test_wrong_options_are_usage_errors(pytester, arguments, message):
    pytester.makepyfile("def test_x(): pass\n")
    result = pytester.runpytest_subprocess(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_a_path_after_the_option_is_run_with_the_default_steps(pytester):
    """argparse takes what follows for the option's value."""
    pytester.makepyfile(
        test_it=LEAK + "def test_steps():\n    kept.append(1)\ndef test_last(): assert kept.count(1) == 13\n"
    )
    pytester.makepyfile(test_other="def test_not_asked_for(): raise KeyError\n")
    pytester.makepyfile(**{"below/conftest": "import pytest\n@pytest.fixture\ndef mine(): return 1\n"})
    pytester.makepyfile(**{"below/test_below": "def test_below(mine): assert mine\n"})
    for arguments, passed in [
        (["--leakprobe", "test_it.py"], 2),
        (["--leakprobe", "test_it.py::test_steps", "below"], 2),
        (["--leakprobe", "below", "test_it.py", "-v"], 3),
        (["--leakprobe", "3:10", "test_it.py"], 2),
        (["test_it.py", "--leakprobe"], 2),
    ]:
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)
        result.assert_outcomes(passed=passed)
        result.stdout.fnmatch_lines([f"leakprobe: {passed} measured, 0 growing;*"])


def test_a_path_after_the_option_of_the_ini_file_is_run_too(pytester):
    pytester.makepyfile(
        test_it=LEAK + "def test_clean(): clean()\n", test_other="def test_b(): raise KeyError\n"
    )
    pytester.makeini("[pytest]\naddopts = --leakprobe test_it.py\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["leakprobe: 1 measured, 0 growing;*"])


def test_a_file_that_is_not_there_is_named_by_pytest(pytester):
    result = pytester.runpytest_subprocess("--leakprobe", "test_none.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: file or directory not found: test_none.py*"])


#: pytest-rerunfailures keeps the exceptions of failed tests, with their frames, to the end of the session.
WITHOUT_RERUNS = ("-p", "no:cacheprovider", "-p", "no:rerunfailures")


def test_nothing_is_kept_alive_after_a_failure(pytester):
    """Objects of the failing frame, of its arguments and of its fixtures are gone by the next test."""
    pytester.makepyfile(
        LEAK
        + "import gc, weakref\nclass Big: pass\nseen = []\n"
        + "@pytest.fixture\ndef big():\n    one = Big(); seen.append(weakref.ref(one)); return one\n"
        + "@pytest.mark.limit_growth\ndef test_marked(big):\n    mine = Big(); seen.append(weakref.ref(mine)); leak()\n"
        + "@pytest.mark.limit_growth\ndef test_raises(big):\n    mine = Big(); seen.append(weakref.ref(mine)); raise KeyError\n"
        + "def test_called(no_growth, big):\n    mine = Big(); seen.append(weakref.ref(mine)); no_growth(lambda a: leak(), mine)\n"
        + "def test_context(no_growth, big):\n    mine = Big(); seen.append(weakref.ref(mine))\n    with no_growth() as probe:\n"
        + "        for _ in probe.steps(range(15)): leak()\n"
        + "def test_all_gone():\n    gc.collect(); assert len(seen) > 40; assert [r() for r in seen if r() is not None] == []\n"
    )
    result = pytester.runpytest_subprocess(*WITHOUT_RERUNS)
    result.assert_outcomes(failed=4, passed=1)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_a_tensor_in_the_failing_frame_is_freed(pytester):
    pytester.makepyfile(
        LEAK
        + "import gc, torch, weakref\nhistory, seen = [], []\nmodel = torch.nn.Linear(64, 64)\n"
        + "@pytest.mark.limit_growth\ndef test_epoch():\n    loss = model(torch.ones(32, 64)).sum()\n    batch = torch.ones(1000)\n"
        + "    seen.append(weakref.ref(batch)); history.append(loss)\n"
        + "def test_gone():\n    gc.collect(); assert all(r() is None for r in seen) and seen\n"
    )
    result = pytester.runpytest_subprocess(*WITHOUT_RERUNS)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["memory grows: +*KiB/step of torch.Tensor from *"])


def test_xdist_reruns_and_coverage(pytester):
    """Measured on workers, repeated by rerunfailures, under coverage: the summary counts them all."""
    for plugin in ("xdist", "pytest_rerunfailures", "pytest_cov"):
        if (
            importlib.util.find_spec(plugin) is None
        ):  # pytester takes back what a test imports, and torch bears that badly
            pytest.skip(f"needs {plugin}")
    pytester.makepyfile(
        LEAK
        + "@pytest.mark.limit_growth\n@pytest.mark.parametrize('n', range(3))\ndef test_clean(n): clean()\n"
        + "@pytest.mark.limit_growth\ndef test_leak(): leak()\n"
    )
    result = pytester.runpytest_subprocess("-n", "2", "--reruns", "1", "--cov=.", "-p", "no:cacheprovider")
    assert (
        result.parseoutcomes()["passed"] == 3
        and result.parseoutcomes()["failed"] == 1
        and result.parseoutcomes()["rerun"] == 1
    )
    result.stdout.fnmatch_lines(
        ["memory grows: +* of bytearray from *.py:4", "leakprobe: 4 measured, 1 growing;*"]
    )


UNRUN = """
import asyncio, functools, pytest
ran = []
async def co(): ran.append(1)
async def agen():
    ran.append(1); yield
def gen():
    ran.append(1); yield
class Call:
    async def __call__(self): ran.append(1)
CASES = [(co, "coroutine"), (agen, "async generator"), (gen, "generator"),
         (functools.partial(co), "coroutine"),
    (functools.partial(gen), "generator"), (lambda: co(), "coroutine"), (lambda: agen(), "async generator"),
    (lambda: gen(), "generator"), (Call(), "coroutine")]
@pytest.mark.parametrize("function, what", CASES)
def test_unrun(no_growth, function, what):
    wrong = f"makes an? {what} and runs nothing of it: give a function"
    with pytest.raises(ValueError, match=wrong) as caught:
        no_growth(function)
    assert caught.value.code == "bad_argument" and not ran
"""


@pytest.mark.parametrize("switch", ["1", "0"])
def test_what_a_call_only_makes_and_does_not_run_is_refused(pytester, monkeypatch, switch):
    monkeypatch.setenv("LEAKPROBE", switch)
    pytester.makepyfile(
        UNRUN
        + "def test_run(no_growth):\n    no_growth(lambda: asyncio.run(co()), limit='9 KiB')\n"
        + "    no_growth(lambda: list(gen()))\n"
        + "    assert ran\n"
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error")
    result.assert_outcomes(passed=10)


def test_marked_tests_that_only_make_something_to_run_fail(pytester):
    pytester.makepyfile(
        "import pytest\npytestmark = pytest.mark.limit_growth\n"
        "async def test_coroutine(): pass\nasync def test_agen(): yield\n"
        "async def co(): pass\ndef test_returns(): return co()\n"
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:asyncio")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["*a call of test_returns makes a coroutine and runs nothing of it: *"])


def test_coroutines_that_another_plugin_runs_are_left_to_it(pytester):
    """As anyio's does, which asks whether the test is a coroutine function."""
    pytester.makeconftest(
        "import asyncio, inspect, pytest\n@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_pyfunc_call(pyfuncitem):\n"
        "    if inspect.iscoroutinefunction(pyfuncitem.obj):\n"
        "        asyncio.run(pyfuncitem.obj())\n        return True\n"
    )
    pytester.makepyfile("async def test_it(): pass\ndef test_other(): pass\n")
    result = pytester.runpytest_subprocess("--leakprobe", "-p", "no:cacheprovider", "-p", "no:asyncio")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["leakprobe: 1 not measured: a coroutine function *", "leakprobe: 1 measured, *"]
    )


def test_arguments_of_the_other_form_are_refused(pytester):
    pytester.makepyfile(
        "import pytest\nfrom leakprobe import LeakprobeError\n"
        "def test_warmup(no_growth):\n"
        "    with pytest.raises(LeakprobeError, match='steps=\"7:10\"'): no_growth(list, warmup=7)\n"
        "def test_steps(no_growth):\n"
        "    with pytest.raises(LeakprobeError, match='marks its own'): no_growth(steps='0:3')\n"
        "def test_twice(no_growth):\n    context = no_growth()\n"
        "    with pytest.raises(KeyError), context: {}[1]\n"
        "    with pytest.raises(LeakprobeError, match='call no_growth'): context.__enter__()\n"
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=3)


def test_asyncio_tests(pytester):
    if importlib.util.find_spec("pytest_asyncio") is None:
        pytest.skip("needs pytest_asyncio")
    pytester.makepyfile(
        LEAK
        + "import asyncio\n"
        + "@pytest.mark.asyncio\n@pytest.mark.limit_growth('2 KiB/step')\nasync def test_clean():\n    await asyncio.sleep(0); clean()\n"
        + "@pytest.mark.asyncio\n@pytest.mark.limit_growth('2 KiB/step')\nasync def test_leak():\n    await asyncio.sleep(0); leak()\n"
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["memory grows: +* of bytearray from *.py:4*"])


def test_the_plugin_imports_nothing_but_pytest(tmp_path):
    code = (
        "import sys, pytest; before = set(sys.modules); import leakprobe.pytest_plugin\n"
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('leakprobe')), sorted(m for m in sys.modules if m.startswith('leakprobe')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    # Two tables of names, and nothing that measures or shows.
    tables = ["leakprobe.model", "leakprobe.model.renderers", "leakprobe.pytest_names"]
    assert (
        done.stdout.strip() == f"[] {['leakprobe', *tables, 'leakprobe.pytest_plugin', 'leakprobe.version']}"
    ), done.stderr


REACHES = """
import unittest
@pytest.fixture
def measured(no_growth):
    return no_growth
@pytest.mark.limit_growth("1 KiB/step")
def test_marked(measured): leak()
@pytest.mark.limit_growth("1 KiB/step")
def test_called(measured): measured(clean)
def test_plain(measured): leak()
def test_plain_called(measured): measured(clean)
class TestLoop(unittest.IsolatedAsyncioTestCase):
    @pytest.mark.limit_growth("1 KiB/step")
    async def test_coroutine(self): leak()
"""


def test_what_nothing_measures_fails_or_is_in_the_summary(pytester):
    pytester.makepyfile(LEAK + REACHES)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--leakprobe", "-rA")
    result.assert_outcomes(failed=1, passed=4)
    result.stdout.fnmatch_lines(["*limit_growth leaves a test to no_growth that has this fixture*"])
    result.stdout.fnmatch_lines_random(
        [
            "FAILED *::test_marked*",
            "leakprobe: 1 not measured: no_growth was there and nothing called it",
            "leakprobe: 1 not measured: a coroutine function *",
            "leakprobe: 2 measured, 0 growing; *",
        ]
    )


SUBTESTS = """
import unittest
class TestMany(unittest.TestCase):
    def test_many(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, FAILS)
"""


@pytest.mark.parametrize(("fails", "outcomes"), [(1, {"failed": 1}), (5, {"passed": 1})])
def test_a_call_in_which_a_subtest_fails_is_the_last(pytester, fails, outcomes):
    pytester.makepyfile(SUBTESTS.replace("FAILS", str(fails)))
    plain = pytester.runpytest_subprocess("-p", "no:cacheprovider").parseoutcomes()
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--leakprobe")
    found = result.parseoutcomes()
    assert found.get("failed", 0) == plain.get("failed", 0) and found.get("passed", 0) == plain.get(
        "passed", 0
    )
    assert "memory grows" not in result.stdout.str()


def test_code_that_watches_itself_is_told_how_to_leave_that_out(pytester):
    pytester.makepyfile(
        "import leakprobe\n"
        "def test_watch():\n    with leakprobe.watch(): pass\n"
        "def test_stop(): leakprobe.stop()\n"
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--leakprobe")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines_random(
        [
            "*a watch is active already: * @pytest.mark.skip_growth(reason)*",
            "*the test ended the watch that measures it: *",
        ]
    )
