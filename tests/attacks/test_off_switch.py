"""LEAKPROBE=0 leaves everything as it would be without leakprobe, and says so in one line."""

import os
import subprocess
import sys

import pytest

from leakprobe import switch
from leakprobe.errors import LeakprobeError

pytest_plugins = ["pytester"]


@pytest.fixture
def pytester(pytester, monkeypatch):
    """Its runs of pytest leave out the plugin of hypothesis, whose import takes a third of each."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    return pytester


LINE = "leakprobe is disabled by LEAKPROBE={}"
OFF = ["0", "false", "no", "off", "False", "OFF", "nO", " 0 "]
ON = ["", "1", "true", "yes", "on", "TRUE", "On"]
UNKNOWN = ["2", "00", "disabled", "none", "\x1b[31m0"]


@pytest.mark.parametrize("value", OFF)
def test_values_that_disable(monkeypatch, value):
    monkeypatch.setenv("LEAKPROBE", value)
    assert switch.disabled_line() == LINE.format(value.strip())


@pytest.mark.parametrize("value", ON)
def test_values_that_leave_it_on(monkeypatch, value):
    monkeypatch.setenv("LEAKPROBE", value)
    assert switch.disabled_line() is None


@pytest.mark.parametrize("value", UNKNOWN)
def test_other_values_are_an_error_that_names_the_known_ones(monkeypatch, value):
    monkeypatch.setenv("LEAKPROBE", value)
    with pytest.raises(
        LeakprobeError, match="0, false, no, off disable.*1, true, yes, on or nothing"
    ) as raised:
        switch.disabled_line()
    assert raised.value.code == "bad_argument" and str(raised.value).isprintable()


def run(folder, *arguments, script="", value="0", **variables):
    """The finished process, in a folder with the script s.py."""
    (folder / "s.py").write_text(script)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LEAKPROBE")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**kept, "LEAKPROBE": value, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


PROGRAMS = {
    "to its end": ("import sys; print(sys.argv, __name__, __file__)", ""),
    "sys.exit": ("raise SystemExit(7)", ""),
    "an exception": ("1 / 0", "ZeroDivisionError"),
    "a growing list": ("kept = []\nfor i in range(100): kept.append(bytearray(10**5))", ""),
    "Ctrl-C": (
        "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); os.kill(os.getpid(), signal.SIGINT)",
        "KeyboardInterrupt",
    ),
    "SIGTERM": ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", ""),
    "its own watch": (
        "import leakprobe\nwith leakprobe.watch(record='r.leak') as probe:\n"
        "    for i in probe.steps(range(3)): probe.step()\n    print(i, leakprobe.is_active())\n"
        "print(leakprobe.start() is not None, leakprobe.stop())",
        "",
    ),
}


@pytest.mark.parametrize("value", ["0", "Off"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_run_runs_the_script_alone(tmp_path, name, value):
    script, errors = PROGRAMS[name]
    alone = run(tmp_path, "s.py", "-x", script=script, value=value)
    under = run(tmp_path, "-m", "leakprobe", "run", "s.py", "-x", script=script, value=value)
    assert (under.stdout, under.returncode) == (alone.stdout, alone.returncode), under.stderr
    assert under.stderr == f"{LINE.format(value)}\n{alone.stderr}" and errors in alone.stderr


def test_run_writes_no_files_and_reads_no_options(tmp_path):
    options = ["-o", "r.leak", "--json", "r.json", "--html", "missing/r.html", "--limit", "much"]
    done = run(tmp_path, "-m", "leakprobe", "run", *options, "s.py", LEAKPROBE_STEPS="many")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", LINE.format(0) + "\n")
    assert [p.name for p in tmp_path.iterdir()] == ["s.py"]


def test_run_of_a_module_and_of_a_script_that_is_not_there(tmp_path):
    assert run(tmp_path, "-m", "leakprobe", "run", "-m", "s", script="print(__name__)").stdout == "__main__\n"
    for missing in (["nothing.py"], ["-m", "nothing"]):
        done = run(tmp_path, "-m", "leakprobe", "run", *missing)
        assert done.returncode == 2 and "nothing" in done.stderr


def test_an_unknown_value_is_wrong_usage_of_run(tmp_path):
    done = run(tmp_path, "-m", "leakprobe", "run", "s.py", script="print('ran')", value="maybe")
    assert (done.returncode, done.stdout) == (2, "") and "disable leakprobe" in done.stderr
    done = run(tmp_path, "s.py", script="import leakprobe; leakprobe.watch()", value="maybe")
    assert done.returncode == 1 and "LeakprobeValueError: LEAKPROBE='maybe' is not known" in done.stderr


def test_the_report_of_a_watch_that_is_off_says_why(tmp_path):
    script = "import leakprobe\nwith leakprobe.watch() as probe:\n    probe.step()\nprobe.report().print()\n"
    done = run(tmp_path, "s.py", script=script, value="no")
    assert done.returncode == 0 and done.stdout.count(LINE.format("no")) == 1


def test_a_library_callback_that_is_off_says_so_once(tmp_path):
    script = (
        "from leakprobe.integrations.session import Session\nsession = Session()\n"
        "session.begin(); session.step(); session.epoch(); session.end(); print(session.report.verdict)\n"
    )
    assert run(tmp_path, "s.py", script=script).stdout == LINE.format(0) + "\ninconclusive\n"


TESTS = """
import pytest
kept, calls = [], []
def leak(n=4000):
    calls.append(n); kept.append(bytearray(n)); return n
def test_call(no_growth):
    before = len(calls)
    report = no_growth(leak, 8000, steps='3:10')
    assert calls[before:] == [8000] and report.findings == []
def test_context(no_growth):
    with no_growth(limit='1 KiB/step') as probe:
        for _ in probe.steps(range(20)): leak()
def test_context_raises(no_growth):
    with pytest.raises(KeyError):
        with no_growth() as probe: raise KeyError
@pytest.mark.limit_growth('1 KiB/step')
def test_marker():
    before = len(calls); leak(); assert len(calls) == before + 1
@pytest.mark.skip_growth('meant')
def test_skipped(): leak()
def test_plain():
    before = len(calls); leak(); assert len(calls) == before + 1
"""


@pytest.mark.parametrize("options", [[], ["--leakprobe=3:10"], ["-n", "2"]])
def test_fixtures_and_markers_pass_through(pytester, monkeypatch, options):
    if "-n" in options:
        pytest.importorskip("xdist")
    monkeypatch.setenv("LEAKPROBE", "0")
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
    result.assert_outcomes(passed=6)
    assert [line for line in result.outlines if line.startswith("leakprobe")] == [LINE.format(0)]


def test_a_failing_test_fails_as_it_would(pytester, monkeypatch):
    monkeypatch.setenv("LEAKPROBE", "false")
    pytester.makepyfile("import pytest\n@pytest.mark.limit_growth\ndef test_mine(): assert 1 == 2\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2*", LINE.format("false")])


def test_pytest_without_leakprobes_tests_says_nothing(pytester, monkeypatch):
    monkeypatch.setenv("LEAKPROBE", "0")
    pytester.makepyfile("def test_plain(): pass\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*leakprobe is disabled*")


def test_an_unknown_value_fails_the_tests_that_use_leakprobe(pytester, monkeypatch):
    monkeypatch.setenv("LEAKPROBE", "maybe")
    pytester.makepyfile(TESTS.replace("pytest.raises(KeyError)", "pytest.raises(ZeroDivisionError)"))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=4)
    result.stdout.fnmatch_lines(
        ["*LeakprobeValueError: LEAKPROBE='maybe' is not known: 0, false, no, off disable*"]
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--leakprobe")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*LEAKPROBE='maybe' is not known*"])
