"""What the pytest plugin leaves out, and what it leaves behind: filters, recordings, lists, annotations.

In real pytest runs.
"""

import importlib.util
import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

LEAK = """
import pytest
kept = []
def leak():
    kept.append(bytearray(4000))
def clean():
    bytearray(4000)
"""

# ---- filters ----

THREADS = (
    LEAK
    + "import threading\nothers = []\n"
    + "def work(): others.append(bytearray(3000))\n"
    + "def in_thread():\n    thread = threading.Thread(target=work); thread.start(); thread.join()\n"
)


def test_a_filter_says_which_findings_count(pytester):
    pytester.makepyfile(
        test_it=LEAK
        + "@pytest.mark.limit_growth(filter=lambda f: f.type != 'bytearray')\ndef test_not_mine(): leak()\n"
        + "@pytest.mark.limit_growth(filter=lambda f: f.allocation.function == 'leak')\n"
        + "def test_mine(): leak()\n"
        + "def test_call(no_growth):\n    report = no_growth(leak, filter=lambda f: False)\n"
        + "    assert [n.kind for n in report.notes if n.kind == 'suppressed'] and not report.findings\n"
        + "def test_context(no_growth):\n"
        + "    with no_growth(filter=lambda f: f.live_bytes > 1 << 40) as probe:\n"
        + "        for _ in probe.steps(range(20)): leak()\n"
        + "def test_wrong(no_growth):\n"
        + "    with pytest.raises(Exception, match='filter must be a function'): no_growth(leak, filter=1)\n"
        + "@pytest.mark.limit_growth(filter=lambda f: f.nothing)\ndef test_raises(): leak()\n"
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(["FAILED *::test_mine - *", "FAILED *::test_raises - AttributeError*"])


def test_growth_of_other_threads_may_be_left_out(pytester):
    pytester.makepyfile(
        THREADS
        + "@pytest.mark.limit_growth(current_thread_only=True)\ndef test_other(): in_thread()\n"
        + "@pytest.mark.limit_growth(current_thread_only=True)\ndef test_own(): leak(); in_thread()\n"
        + "@pytest.mark.limit_growth\ndef test_all(): in_thread()\n"
        + "def nest(n): nest(n - 1) if n else leak()\n"
        + "@pytest.mark.limit_growth(current_thread_only=True)\ndef test_deep(): nest(70)\n"
        + "@pytest.mark.limit_growth(current_thread_only=1)\ndef test_wrong(): leak()\n"
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*limit_growth: current_thread_only must be True or False, not 1"])
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--continue-on-collection-errors")
    result.assert_outcomes(errors=1)  # of the whole module
    text = pytester.path.joinpath("test_growth_of_other_threads_may_be_left_out.py")
    text.write_text(text.read_text().rpartition("@pytest")[0])
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=3)
    failed = [
        line.split(" - ")[0].rpartition("::")[2] for line in result.outlines if line.startswith("FAILED")
    ]
    assert failed == ["test_own", "test_all", "test_deep"]


def test_a_test_that_runs_in_a_thread_has_that_thread_for_its_own(pytester):
    """The stack of another thread begins with threading's frames too, but not with the test's function."""
    pytester.makepyfile(
        THREADS
        + "from leakprobe.errors import LeakprobeError\n"
        + "def run(no_growth, body, out):\n"
        + "    try: out.append(no_growth(body, current_thread_only=True).verdict)\n"
        + "    except BaseException as error: out.append(type(error).__name__)\n"
        + "@pytest.mark.parametrize('body, verdict', [(leak, 'Failed'), (in_thread, 'steady')])\n"
        + "def test_it(no_growth, body, verdict):\n    out = []\n"
        + "    thread = threading.Thread(target=run, args=(no_growth, body, out))\n"
        + "    thread.start(); thread.join()\n"
        + "    assert out == [verdict]\n"
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


# ---- recordings, the list of those that grow most, annotations ----

FOUR = (
    LEAK
    + "def test_leak(no_growth): no_growth(leak)\n"
    + "@pytest.mark.limit_growth('64 KiB/step')\ndef test_below(): kept.append(bytearray(9000))\n"
    + "@pytest.mark.limit_growth\ndef test_clean(): clean()\n"
    + "def test_not_measured(): leak()\n"
)


def leakprobe_says(folder, *arguments) -> tuple[int, str]:
    command = [sys.executable, "-m", "leakprobe", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_a_recording_of_each_measured_test_opens_by_its_id_and_by_its_node_id(pytester, options):
    if options and importlib.util.find_spec("xdist") is None:
        pytest.skip("needs xdist")
    pytester.makepyfile(test_it=FOUR)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--leakprobe-recordings", *options)
    result.assert_outcomes(passed=3, failed=1)
    (line,) = [line for line in result.outlines if "test_it.py::test_leak: +" in line]
    test_id = line.rpartition("leakprobe report ")[2].rstrip(")")
    assert len(list((pytester.path / ".leakprobe").glob("*.leak"))) == 3
    assert (pytester.path / ".leakprobe" / ".gitignore").read_text().endswith("*\n")
    inside = pytester.mkdir("deeper")
    for name in (test_id, "test_it.py::test_leak"):
        code, text = leakprobe_says(inside, "report", name)
        assert code == 1 and text.startswith("growing: 1 finding") and "test_it.py:4 in leak" in text
    assert leakprobe_says(pytester.path, "why", test_id)[0] == 0
    code, text = leakprobe_says(pytester.path, "report", "test_it.py::test_clean")
    assert code == 0 and text.startswith("steady")
    code, text = leakprobe_says(pytester.path, "report", ".leakprobe")
    assert code == 1 and "in 1 of 3 recordings (test_it.py::test_leak)" in " ".join(text.split())
    code, text = leakprobe_says(pytester.path, "report", "test_it.py::test_not_measured")
    assert code == 2 and "can't be read" in text


def test_recordings_of_another_folder_open_by_their_path(pytester):
    pytester.makepyfile(test_it=FOUR)
    pytester.makeini("[pytest]\nleakprobe_recordings = out/leaks\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-k", "test_leak")
    (line,) = [line for line in result.outlines if "test_it.py::test_leak: +" in line]
    path = line.rpartition("leakprobe report ")[2].rstrip(")")
    assert path.startswith("out/leaks/") and leakprobe_says(pytester.path, "report", path)[0] == 1


def test_a_recording_that_can_not_be_kept_is_a_warning_and_no_failure(pytester):
    pytester.makepyfile(test_it=FOUR)
    (pytester.path / ".leakprobe").write_text("a file")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--leakprobe-recordings", "-k", "clean")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*the recording of test_it.py::test_clean could not be kept*"])


def test_the_tests_that_grow_most_are_listed_the_fastest_first(pytester):
    pytester.makepyfile(test_it=FOUR)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    below = 8.9 if sys.version_info >= (3, 15) else 8.8  # a bytearray keeps its bytes in an object
    result.stdout.fnmatch_lines(
        [
            "leakprobe: tests that grow most",
            f"  test_it.py::test_below: +{below} KiB/step of bytearray from test_it.py:9, below the limit",
            "  test_it.py::test_leak: +* KiB/step of bytearray from test_it.py:4",
        ],
        consecutive=True,
    )
    assert not [line for line in result.outlines if "test_clean: " in line or "(leakprobe report" in line]
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--leakprobe-most=1")
    assert sum(line.startswith("  test_it.py::") for line in result.outlines) == 1
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-o", "leakprobe_most=0")
    assert "grow most" not in result.stdout.str()


def annotations_in(result) -> list[str]:
    return [line for line in result.outlines if line.startswith("::")]


@pytest.mark.parametrize(
    "options", [(), ("-n", "2"), ("--reruns", "1")], ids=["one process", "xdist", "reruns"]
)
def test_a_job_of_github_gets_an_annotation_at_the_line_that_leaks(pytester, monkeypatch, options):
    for option, plugin in (("-n", "xdist"), ("--reruns", "pytest_rerunfailures")):
        if option in options and importlib.util.find_spec(plugin) is None:
            pytest.skip(f"needs {plugin}")
    pytester.mkdir("tests").joinpath("test_it.py").write_text(
        FOUR.lstrip() + "def test_few(no_growth): no_growth(clean, steps='1:1')\n"
    )
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
    few, leaks = sorted(annotations_in(result), key=lambda line: "grows" in line)
    assert leaks.startswith(
        "::error file=tests/test_it.py,line=4,title=tests/test_it.py%3A%3Atest_leak%3A memory grows%3A +"
    )
    assert "kept by: test_it -> kept (list, " in leaks and "%0Afix: empty it" in leaks
    assert few == (
        "::error file=tests/test_it.py,line=13,title=tests/test_it.py%3A%3Atest_few"
        "::not enough evidence: 4 steps measured, at least 9 are needed"
    )


@pytest.mark.parametrize("setting, in_github, count", [
    ("auto", "false", 0), ("always", "false", 1), ("never", "true", 0), ("auto", "true", 1),
])  # fmt: skip
def test_annotations_are_printed_where_they_are_wanted(pytester, monkeypatch, setting, in_github, count):
    pytester.makepyfile(test_it=FOUR)
    monkeypatch.setenv("GITHUB_ACTIONS", in_github)
    result = pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "-k", "test_leak", "-o", f"leakprobe_annotations={setting}"
    )
    assert len(annotations_in(result)) == count


@pytest.mark.parametrize("setting, message", [
    ("leakprobe_annotations=maybe", "*leakprobe_annotations must be auto, always or never, not 'maybe'*"),
    ("leakprobe_most=some", "*leakprobe_most must be a number of tests, not 'some'*"),
])  # fmt: skip
def test_wrong_settings_of_the_reports_are_usage_errors(pytester, setting, message):
    pytester.makepyfile("def test_x(): pass\n")
    result = pytester.runpytest_subprocess("-o", setting)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
