"""The command: a script behaves as without it, exit codes, and the demos; each in a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys

import forked
import pytest
from native_support import needs_torch
from test_report_json import SCHEMA, problems

from leakprobe import cli

COMMAND = [sys.executable, "-m", "leakprobe"]
#: A training loop with an optimizer; KEEP is what it does with the loss.
TRAINING = """
import sys, torch
history = []
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(30):
    loss = model(torch.randn(128, 64)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    KEEP
print("trained", len(history), sys.argv[1:])
"""
LEAK = TRAINING.replace("KEEP", "history.append(model(torch.randn(128, 64)).square().mean())")
CLEAN = TRAINING.replace("KEEP", "history.append(loss.item())")


@pytest.fixture
def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith("LEAKPROBE")}


@pytest.fixture
def leakprobe(tmp_path, environment):
    """leakprobe(*arguments, script=TEXT): the finished process; the script is s.py in its working folder.

    ``trains``: torch and its compiler are imported when it begins, which takes seconds else.
    """

    def run(*arguments, script=None, python=COMMAND, trains=False, **variables):
        if script is not None:
            (tmp_path / "s.py").write_text(script)
        if trains:
            command = ["-m", "leakprobe", *arguments]
            return forked.run(command, cwd=tmp_path, env={**environment, **variables}, trains=True)
        return subprocess.run(
            [*python, *arguments],
            cwd=tmp_path,
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=900,
        )

    return run


def verdict(done) -> str:
    """The first line of the report on standard error."""
    lines = [line for line in done.stderr.splitlines() if re.match(r"(growing|steady|inconclusive): ", line)]
    assert len(lines) == 1, done.stderr
    return lines[0]


@needs_torch
def test_growth_is_found_in_an_unmodified_script(leakprobe, tmp_path):
    done = leakprobe("run", "--json", "report.json", "s.py", "--lr", "0.1", "-m", script=LEAK)
    assert done.returncode == 1, done.stderr
    assert done.stdout == "trained 30 ['--lr', '0.1', '-m']\n"
    assert verdict(done) == "growing: 1 finding in 25 steps (5 warm-up)"
    report = json.loads((tmp_path / "report.json").read_text())
    assert list(problems(report, SCHEMA)) == []
    finding = report["findings"][0]
    assert finding["allocation"]["filename"] == str(tmp_path / "s.py")
    assert "history" in finding["path"][0]["text"] or "history" in finding["holder"]["text"]
    assert finding["cause"] == "graph_kept"


@needs_torch
def test_a_clean_script_is_steady(leakprobe):
    done = leakprobe("run", "s.py", script=CLEAN, trains=True)
    assert (done.returncode, verdict(done)) == (0, "steady: nothing grows (25 steps measured, 5 warm-up)")


@needs_torch
def test_steps_stop_the_watch_and_not_the_script(leakprobe):
    done = leakprobe("run", "--steps", "12", "--warmup", "2", "s.py", script=CLEAN, trains=True)
    assert "trained 30" in done.stdout
    assert verdict(done) == "steady: nothing grows (12 steps measured, 2 warm-up)"


@needs_torch
def test_variables_stand_in_for_options(leakprobe, tmp_path):
    variables = {
        "LEAKPROBE_STEPS": "10",
        "LEAKPROBE_WARMUP": "2",
        "LEAKPROBE_EXIT_CODE": "9",
        "LEAKPROBE_LIMIT": "1 GiB/step",
        "LEAKPROBE_JSON": "r.json",
        "LEAKPROBE_ANNOTATE": "1",
        "GITHUB_WORKSPACE": str(tmp_path),
    }
    done = leakprobe("run", "s.py", script=LEAK, trains=True, **variables)
    assert verdict(done) == "steady: nothing grows (10 steps measured, 2 warm-up)"
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "steady"
    done = leakprobe(
        "run", "--limit", "256 B/step", "--steps", "11", "s.py", script=LEAK, trains=True, **variables
    )
    assert done.returncode == 9
    assert verdict(done) == "growing: 1 finding in 11 steps (2 warm-up)"
    assert "\n::error file=s.py,line=" in done.stderr


FAILS = LEAK + "\nraise SystemExit(1)"


@needs_torch
def test_growth_has_an_exit_code_of_its_own(leakprobe):
    done = leakprobe("run", "--exit-code", "77", "s.py", script=LEAK, trains=True)
    assert done.returncode == 77 and verdict(done).startswith("growing")
    done = leakprobe("run", "--exit-code", "0", "s.py", script=LEAK, trains=True)
    assert done.returncode == 0 and verdict(done).startswith("growing")
    done = leakprobe("run", "--exit-code", "77", "s.py", script=FAILS, trains=True)
    assert done.returncode == 1 and verdict(done).startswith("growing")


def test_every_verb_has_json():
    verbs = cli.build_parser()._subparsers._group_actions[0].choices
    assert set(verbs) == set(cli.VERBS)
    assert [name for name, verb in verbs.items() if "--json" not in verb.format_help()] == []


WHAT_A_SCRIPT_SEES = """
import sys
main = sys.modules["__main__"]
print(sys.argv, __file__, __name__, __spec__, __package__, __doc__, type(__builtins__), type(__loader__), sys.path,
      main.__dict__ is globals(), sys._getframe().f_code.co_filename, __annotations__ if "__annotations__" in globals() else {})
"""


def test_a_script_sees_what_it_sees_without_leakprobe(leakprobe):
    arguments = ["s.py", "a", "--", "--json", "f", "-m", "--help"]
    plain = leakprobe(*arguments, script=WHAT_A_SCRIPT_SEES, python=[sys.executable])
    assert leakprobe("run", *arguments).stdout == plain.stdout


def test_a_module_is_run_as_python_does(leakprobe, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "part.py").write_text(
        "import sys; print(sys.argv, __name__, __package__, __spec__.name, sys.path[0])"
    )
    plain = leakprobe("-m", "package.part", "--steps", "x", python=[sys.executable])
    assert leakprobe("run", "-m", "package.part", "--steps", "x").stdout == plain.stdout


@pytest.mark.parametrize(
    "body, code, error",
    [
        ("raise SystemExit(7)", 7, ""),
        ("raise SystemExit(-1)", 255, ""),
        ("raise SystemExit('no data')", 1, "no data\n"),
        ("raise SystemExit", 3, ""),
        ("def f():\n    raise ValueError('boom')\nf()", 1, "ValueError: boom"),
        # Where the tests run in the background of a shell, it is ignored.
        (
            "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); os.kill(os.getpid(), signal.SIGINT)",
            -signal.SIGINT,
            "KeyboardInterrupt",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, ""),
    ],
)
def test_the_report_comes_however_the_script_ends(leakprobe, body, code, error):
    done = leakprobe("run", "s.py", script=f"import atexit\natexit.register(print, 'atexit')\n{body}\n")
    assert done.returncode == code, done.stderr
    assert verdict(done) == "inconclusive: 0 steps measured, at least 9 are needed"
    assert error in done.stderr
    assert done.stdout == ("" if code == -signal.SIGTERM else "atexit\n")


def test_a_traceback_is_that_of_the_script(leakprobe):
    body = "def f():\n    raise ValueError('boom')\nf()\n"
    plain = leakprobe("s.py", script=body, python=[sys.executable]).stderr
    assert plain.startswith("Traceback") and leakprobe("run", "s.py").stderr.startswith(plain)


@needs_torch
def test_a_terminated_run_reports_what_it_found(tmp_path, environment):
    (tmp_path / "s.py").write_text(LEAK + "\nsys.stdout.flush()\nimport time\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [*COMMAND, "run", "s.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        process.stdout.readline()
        process.terminate()
        _, error = process.communicate(timeout=900)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGTERM
    assert "growing: 1 finding in 25 steps (5 warm-up)" in error


@needs_torch
@pytest.mark.parametrize(
    "after, printed",
    [
        ("    except:\n        print('swallowed', flush=True)\nprint('went on')", "swallowed\n"),
        ("    finally:\n        step(), print('cleaned up')", "cleaned up\n" * 8),
    ],
)
def test_sigterm_ends_what_swallows_it_at_its_next_step_and_lets_others_clean_up(leakprobe, after, printed):
    body = f"""
import signal, torch
step = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1).step
for i in range(20):
    try:
        step()
        if i == 7:
            signal.raise_signal(signal.SIGTERM)
{after}
"""
    done = leakprobe("run", "-o", "r.leak", "s.py", script=body)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, printed), done.stderr
    assert leakprobe("report", "r.leak").stdout.splitlines()[0] == verdict(done)


def test_json_may_go_to_where_standard_output_goes(tmp_path, environment):
    (tmp_path / "s.py").write_text("print('of the script')\n")
    with open(tmp_path / "out.txt", "w") as out:
        command = [*COMMAND, "run", "--json", "/dev/stdout", "s.py"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, stdout=out, stderr=subprocess.PIPE, timeout=900
        )
    assert done.returncode == 3, done.stderr
    first, _, report = (tmp_path / "out.txt").read_text().partition("\n")
    assert first == "of the script" and json.loads(report)["verdict"] == "inconclusive"


def test_a_script_may_handle_sigterm_itself(leakprobe):
    body = "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: print('mine'))\nos.kill(os.getpid(), signal.SIGTERM)\n"
    done = leakprobe("run", "s.py", script=body)
    assert (done.stdout, done.returncode) == ("mine\n", 3)


def test_the_report_waits_for_threads(leakprobe):
    body = "import sys, threading, time\nthreading.Thread(target=lambda: (time.sleep(1), print('done', file=sys.stderr))).start()\n"
    done = leakprobe("run", "s.py", script=body)
    assert done.stderr.startswith("done\ninconclusive: ")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_children_report_nothing_and_keep_their_codes(leakprobe):
    body = """
import multiprocessing, os, sys, time
child = os.fork()
if child == 0:
    sys.exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
process.start(); process.terminate(); process.join()
print(process.exitcode)
"""
    done = leakprobe("run", "s.py", script=body)
    assert done.stdout == "4\n-15\n" and verdict(done)


def test_a_script_that_spoils_its_surroundings_is_reported_on(leakprobe):
    body = "import os, sys\nos.chdir('/')\nsys.path.clear()\nsys.stdout.close()\nsys.stderr = None\n"
    done = leakprobe("run", "--json", "r.json", "s.py", script=body)
    assert done.returncode == 3 and verdict(done)


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["run", "missing.py"], "there is no script missing.py"),
        (["run", "-m", "missing.module"], "there is no module missing.module"),
        (["run", "--steps", "0", "s.py"], "--steps must be 1 or more"),
        (["run", "--warmup", "-1", "s.py"], "warmup must be"),
        (["run", "--exit-code", "256", "s.py"], "--exit-code must be 0 to 255"),
        (["export", "--format", "folded", "--json", "r.leak"], "give --output too"),
        (["run", "--limit", "much", "s.py"], "is not a rate"),
        (["run", "--json", "missing/r.json", "s.py"], "can't be written"),
        (["run", "--steps", "x", "s.py"], "invalid int value"),
        (["run"], "SCRIPT"),
        (["demo", "other"], "invalid choice"),
        (["other"], "invalid choice"),
        ([], "VERB"),
    ],
)
def test_wrong_usage_is_said_before_anything_runs(leakprobe, arguments, text):
    done = leakprobe(*arguments, script="print('ran')")
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr and "Traceback" not in done.stderr


def test_a_variable_that_is_no_number_is_wrong_usage(leakprobe):
    done = leakprobe("run", "s.py", script="", LEAKPROBE_STEPS="many")
    assert done.returncode == 2 and "LEAKPROBE_STEPS must be a whole number" in done.stderr


@pytest.mark.parametrize(
    "name, value, text",
    [
        ("STEPS", "0", "LEAKPROBE_STEPS must be 1 or more"),
        ("WARMUP", "-1", "LEAKPROBE_WARMUP must be a whole number"),
        ("EXIT_CODE", "256", "LEAKPROBE_EXIT_CODE must be 0 to 255"),
        ("LIMIT", "much", "LEAKPROBE_LIMIT: 'much' is not a rate"),
        ("HTML", "missing/r.html", "LEAKPROBE_HTML: "),
        ("JSON", "missing/r.json", "LEAKPROBE_JSON: "),
        ("RECORD", "missing/r.leak", "LEAKPROBE_RECORD: the recording "),
        ("SUPPRESSIONS", "missing", "LEAKPROBE_SUPPRESSIONS: the suppressions missing can't be read"),
    ],
)
def test_an_error_names_the_variable_that_a_value_came_from(leakprobe, name, value, text):
    done = leakprobe("run", "s.py", script="print('ran')", **{f"LEAKPROBE_{name}": value})
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr and "--" not in done.stderr


@pytest.mark.parametrize("blank", ["", " "])
def test_an_empty_variable_is_as_if_it_were_not_set(leakprobe, tmp_path, blank):
    names = ("STEPS", "WARMUP", "LIMIT", "RECORD", "HTML", "JSON", "EXIT_CODE", "SUPPRESSIONS", "WORKERS")
    variables = {f"LEAKPROBE_{name}": blank for name in (*names, "ANNOTATE", "NATIVE", "LIVE")}
    done = leakprobe("run", "s.py", script="print('ran')", **variables)
    assert (done.returncode, done.stdout) == (3, "ran\n") and verdict(done)
    assert os.listdir(tmp_path) == ["s.py"]


@pytest.mark.parametrize("variables", [{}, {"LEAKPROBE": "0"}, {"LEAKPROBE_STEPS": "x"}])
def test_with_standard_error_closed_nothing_goes_to_the_programs_output(leakprobe, variables):
    script = "import sys\nprint('ran', sys.stderr)\nsys.exit('bye')"
    python = ["sh", "-c", 'exec "$@" 2>&-', "sh", *COMMAND]
    done = leakprobe("run", "-o", "r.leak", "s.py", script=script, python=python, **variables)
    assert done.stdout == ("" if "LEAKPROBE_STEPS" in variables else "ran None\n") and done.stderr == ""


def test_help_names_the_verbs_and_the_exit_codes(leakprobe):
    done = leakprobe("--help")
    assert done.returncode == 0
    told = " ".join(done.stdout.split())
    assert all(word in told for word in [*cli.VERBS, "2 wrong usage", "3 inconclusive", "70 a defect"])
    assert leakprobe("--version").stdout.startswith("leakprobe ")


def test_doctor_tells_of_every_medium(leakprobe):
    done = leakprobe("doctor", "--json")
    rows = json.loads(done.stdout)
    assert done.returncode == 0
    assert {"python", "numpy", "cpu"} <= {row["name"] for row in rows if row["area"] == "medium"}
    assert leakprobe("doctor").stdout.startswith("what leakprobe sees here")


@needs_torch
@pytest.mark.parametrize("name, module", [("kept-loss", "kept_loss"), ("numpy-view", "numpy_view")])
def test_a_leaking_demo_is_found_at_the_rate_of_its_arithmetic(leakprobe, tmp_path, name, module):
    pytest.importorskip("sklearn")
    demo = __import__(f"leakprobe.demo.{module}", fromlist=["BYTES_PER_STEP"])
    done = leakprobe("demo", name, "--json", "r.json", trains=True)
    assert done.returncode == 1, done.stderr
    assert "growing: 1 finding in 60 steps (5 warm-up)" in done.stdout
    assert done.stderr == "", "no progress in a pipe"
    report = json.loads((tmp_path / "r.json").read_text())
    assert list(problems(report, SCHEMA)) == []
    finding = report["findings"][0]
    assert finding["bytes_per_step"] == pytest.approx(demo.BYTES_PER_STEP, rel=0.1)
    assert finding["allocation"]["filename"].endswith(f"demo/{module}.py")
    with open(demo.__file__) as file:
        leaking = [number for number, line in enumerate(file, 1) if "# the leak:" in line]
    assert [finding["holder"]["grown_at"]["lineno"]] == leaking


@needs_torch
def test_the_clean_demo_is_steady(leakprobe):
    pytest.importorskip("sklearn")
    done = leakprobe("demo", "clean", trains=True)
    assert done.returncode == 0, done.stdout
    assert "steady: nothing grows (60 steps measured, 5 warm-up)" in done.stdout


def test_a_demo_without_its_packages_says_what_to_install(leakprobe, tmp_path):
    blocker = "import sys\nsys.modules['sklearn'] = None\nfrom leakprobe.cli import main\nraise SystemExit(main(['demo']))\n"
    done = leakprobe("s.py", script=blocker, python=[sys.executable])
    assert done.returncode == 2, done.stderr
    needs, _, command = done.stderr.partition(": python3 -m pip install ")
    missing = needs.rpartition(" needs ")[2].split(", ")
    assert "scikit-learn" in missing
    assert command.split() == missing, done.stderr


@needs_torch
def test_a_run_is_recorded_and_shown_again(leakprobe, tmp_path):
    done = leakprobe("run", "-o", "run.leak", "--html", "run.html", "s.py", script=LEAK, trains=True)
    assert done.returncode == 1, done.stderr
    assert "<h1>Growing</h1>" in (tmp_path / "run.html").read_text()
    again = leakprobe("report", "run.leak")
    assert again.returncode == 1 and again.stdout in done.stderr


@needs_torch
def test_a_run_that_ends_by_itself_without_a_report_leaves_its_recording(leakprobe):
    done = leakprobe(
        "run",
        "s.py",
        script=LEAK
        + "import time; time.sleep(0.3)\nmodel(torch.randn(1, 64)).sum().backward(); optimizer.step()\nimport os; os._exit(7)\n",
        LEAKPROBE_RECORD="run.leak",
        trains=True,
    )
    assert done.returncode == 7
    again = leakprobe("report", "run.leak")
    assert again.returncode == 1 and "without closing its recording" in again.stdout
    assert "history" in again.stdout


def test_two_runs_into_one_file(leakprobe, tmp_path):
    (tmp_path / "run.leak").write_text("not mine")
    done = leakprobe("run", "-o", "run.leak", "s.py", script=CLEAN)
    assert (
        done.returncode == 2
        and "is not a recording: it is left as it is" in done.stderr
        and "trained" not in done.stdout
    )


def test_what_a_launcher_puts_first_becomes_the_last_argument_of_the_script():
    behind = cli.behind_the_script
    assert behind(["--local_rank=3", "run", "train.py", "--lr", "1"]) == [
        "run", "train.py", "--lr", "1", "--local_rank=3",
    ]  # fmt: skip
    assert behind(["--local-rank=0", "run", "-m", "train"])[-1] == "--local-rank=0"
    for other in (["run", "train.py", "--local_rank=3"], ["--version"], [], ["--local_rank=x", "run"]):
        assert behind(other) == other


def test_names_of_the_script_are_there_when_its_last_objects_die(leakprobe):
    script = """
import os
class Cache:
    def __del__(self):
        os.write(1, os.path.basename("at/end").encode())
kept = Cache()
"""
    assert leakprobe("run", "s.py", script=script).stdout == "end"


def test_an_import_that_fails_in_a_package_is_no_missing_module(leakprobe, tmp_path):
    folder = tmp_path / "nothere_train"
    folder.mkdir()
    (folder / "__init__.py").write_text("import nothere")
    (folder / "main.py").write_text("")
    done = leakprobe("run", "-m", "nothere_train.main")
    assert done.returncode == 1 and "No module named 'nothere'" in done.stderr, done.stderr
    done = leakprobe("audit", "nothere_train:x")
    assert done.returncode == 2 and "No module named 'nothere'" in done.stderr
    assert "Traceback" in done.stderr and os.path.join("leakprobe", "cli") not in done.stderr


def test_the_scripts_own_code_stands_where_a_report_cannot_be_written(leakprobe, tmp_path):
    script = "import shutil, sys; shutil.rmtree('out'); sys.exit(5)"
    (tmp_path / "out").mkdir()
    options = ["--html", "out/r.html", "--json", "r.json"]
    done = leakprobe("run", *options, "s.py", script=script)
    assert done.returncode == 5 and "out/r.html can't be written" in done.stderr, done.stderr
    assert (tmp_path / "r.json").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_leaves_sigterm_to_the_system(leakprobe):
    """It would wait for calls of C code to end else."""
    script = """
import os, signal
pid = os.fork()
if pid == 0:
    os._exit(3 if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL else 4)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""
    assert leakprobe("run", "s.py", script=script).stdout == "3 False\n"
