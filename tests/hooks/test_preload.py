"""leakprobe run --native: the program runs as without it, under a library that sees every allocation, which
nothing that it starts inherits.
"""

import json
import os
import signal
import subprocess
import sys

import pytest
from native_support import build, compiler, linux_only, needs_torch

from leakprobe import _core, preload
from leakprobe.errors import LeakprobeError

pytestmark = [
    linux_only,
    pytest.mark.skipif(_core.malloc_why_not() is not None, reason="malloc's numbers can't be had here"),
]
COMMAND = [sys.executable, "-m", "leakprobe", "run", "--native"]
SHOW = (
    "import os; from leakprobe import _core; "
    "print(_core.is_preloaded(), os.environ.get('LD_PRELOAD'), flush=True)"
)


@pytest.fixture
def run(tmp_path):
    """run(SCRIPT, *ARGUMENTS): the finished process."""

    def run(script, *arguments, command=COMMAND, given="", **variables):
        path = tmp_path / "s.py"
        path.write_text(script)
        env = {k: v for k, v in os.environ.items() if not k.startswith("LEAKPROBE")}
        env = {**env, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
        return subprocess.run(
            [*command, str(path), *arguments],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            input=given,
            text=True,
            timeout=900,
        )

    return run


def test_the_program_gets_what_it_would_get_without(run):
    script = "import sys; print(sys.argv[1:], sys.stdin.read(), os.environ.get('LEAKPROBE_PRELOADED'))"
    done = run(f"{SHOW}\n{script}; sys.exit(7)", "a", "--b c", given="from a pipe")
    assert done.stdout == "True None\n['a', '--b c'] from a pipe None\n"
    assert done.returncode == 7, done.stderr


def test_the_variable_stands_in_for_the_option(run):
    command = [word for word in COMMAND if word != "--native"]
    assert run(SHOW, command=command, LEAKPROBE_NATIVE="1").stdout == "True None\n"
    assert run(SHOW, command=command).stdout == "False None\n"


def test_options_of_the_interpreter_stay(run):
    command = [sys.executable, "-X", "dev", "-W", "error", *COMMAND[1:]]
    done = run("import sys; print(sys.flags.dev_mode, sys.warnoptions[-1])", command=command)
    assert done.stdout == "True error\n", done.stderr


def test_the_process_stays_the_same(tmp_path):
    (tmp_path / "s.py").write_text("import os; print(os.getpid())")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    started = subprocess.Popen(
        [*COMMAND, str(tmp_path / "s.py")], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert int(started.communicate(timeout=900)[0]) == started.pid


@pytest.mark.parametrize(
    "end, code",
    [
        ("os._exit(5)", 5),
        ("sys.exit('a reason')", 1),
        ("raise RuntimeError", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("os.abort()", -signal.SIGABRT),
        ("sys.exit(0)", 3),  # of the verdict: inconclusive
    ],
)
def test_exit_codes_pass_through(run, end, code):
    done = run(f"import os, signal, sys\nprint('began', flush=True)\n{end}")
    assert (done.stdout, done.returncode) == ("began\n", code), done.stderr


STARTS = """
import os, subprocess, sys
show = sys.argv[1]
print(subprocess.run([sys.executable, "-c", show], capture_output=True, text=True).stdout, end="", flush=True)
os.system(f'{sys.executable} -c "{show}"')
child = os.fork()
if child == 0:
    exec(show)
    os._exit(0)
os.waitpid(child, 0)
os.execv(sys.executable, [sys.executable, "-c", show])
"""


def test_what_the_program_starts_does_not_inherit_it(run):
    """A fork has the library in its memory, and so a worker may be watched by it."""
    done = run(STARTS, SHOW)
    assert done.stdout.split("\n") == ["False None", "False None", "True None", "False None", ""], done.stderr


def test_what_the_user_preloads_stays(run, tmp_path):
    library = build("malloc_of_its_own.c", tmp_path / "own.so", "-fno-builtin")
    report = "print((_core.malloc_info() or {}).get('source'), _core.malloc_why_not())"
    done = run(f"{SHOW}\n{report}\n{STARTS}", SHOW, LD_PRELOAD=str(library))
    shown, served, *started = done.stdout.splitlines()
    assert shown == f"True {library}", done.stderr
    assert served == "None an allocator that leakprobe does not know serves malloc"
    assert [line.split()[-1] for line in started] == [str(library)] * 4


TRAINING = """
import ctypes, sys, torch
library = ctypes.CDLL(sys.argv[1])
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p
for name in ("forget_by_pointer", "forget_strdup", "keep_some", "forget_in_thread"):
    getattr(library, name).argtypes = [ctypes.c_size_t]
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(400):
    optimizer.zero_grad()
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    library.forget_by_pointer(100_000)
    library.forget_strdup(120_000)
    ctypes.memset(libc.malloc(ctypes.c_size_t(140_000)), 1, 140_000)
    library.forget_in_thread(160_000)
    library.keep_some(100_000)
"""


@needs_torch
def test_a_training_script_is_told_each_line(run, tmp_path):
    library = build("forgetful.c", tmp_path / "libforgetful.so", "-fno-builtin", "-lstdc++")
    done = run(TRAINING, str(library), command=[*COMMAND, "--json", str(tmp_path / "report.json")])
    assert done.returncode == 1, done.stderr
    found = json.loads((tmp_path / "report.json").read_text())["findings"]
    rates = {
        (os.path.basename(f["allocation"]["filename"]), f["allocation"]["lineno"]): f["bytes_per_step"]
        for f in found
    }
    expected = {
        ("s.py", 14): 100_000,
        ("s.py", 15): 120_000,
        ("s.py", 16): 140_000,
        (library.name, 0): 160_000,
    }
    assert rates.keys() == expected.keys()
    for place, rate in expected.items():
        assert rates[place] == pytest.approx(rate, rel=0.15), place


# ---- where it can't be done ----


def refusal():
    with pytest.raises(LeakprobeError) as caught:
        preload.check()
    assert caught.value.code == "no_preload"
    assert "leave out --native" in str(caught.value)
    return str(caught.value)


def test_here_it_can_be_done():
    assert preload.why_not() is None


def test_a_library_that_is_missing(monkeypatch):
    monkeypatch.setattr(preload, "path", lambda: "/nowhere/_preload.so")
    assert "is missing: /nowhere/_preload.so" in refusal()


@pytest.mark.parametrize("folder", ["with space", "with:colon"])
def test_a_path_that_the_loader_does_not_take(monkeypatch, tmp_path, folder):
    (tmp_path / folder).mkdir()
    library = tmp_path / folder / "_preload.so"
    library.write_bytes(b"")
    monkeypatch.setattr(preload, "path", lambda: str(library))
    assert "no path with a space or a colon" in refusal()


def test_another_c_library(monkeypatch):
    def confstr(name):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "confstr", confstr)
    assert "needs the C library glibc" in refusal()


def test_a_program_that_the_loader_does_not_preload_for(monkeypatch, tmp_path):
    """As a static one, or one with more rights than its user."""
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nexec env -u LD_PRELOAD "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    assert "leaves" in refusal()


def test_a_crash_before_python_begins_is_found_by_the_trial(monkeypatch, tmp_path):
    source, library = tmp_path / "crash.c", tmp_path / "crash.so"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { abort(); }\n")
    subprocess.run([compiler(), "-shared", "-fPIC", "-o", library, source], check=True)
    monkeypatch.setattr(preload, "path", lambda: str(library))
    assert "ends with SIGABRT under" in refusal()


def test_a_refusal_is_an_error_of_usage(run):
    python = (
        f"import sys, runpy; sys.executable = ''; sys.argv = {COMMAND[2:]!r} + sys.argv[1:]; "
        "runpy.run_module('leakprobe', run_name='__main__')"
    )
    done = run("print('ran')", command=[sys.executable, "-c", python])
    assert (done.returncode, done.stdout) == (2, "")
    assert "does not know its own file" in done.stderr


def test_one_start_is_enough(run):
    """A process that was started anew and does not run under the library is not started once more."""
    done = run("print('ran')", LEAKPROBE_PRELOADED="1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "leave out --native" in done.stderr


def test_an_allocator_that_maps_memory_with_its_lock_held_is_not_waited_for(tmp_path):
    """Its own mappings are left alone: what they would be counted with may allocate."""
    allocator = build("locked_malloc.c", tmp_path / "liblocked.so", "-lpthread")
    code = (
        "import threading\nfrom leakprobe import _core\n"
        "assert _core.is_preloaded() and _core.native_follow(64)\n"
        "def work(): bytes(3 << 20)\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "bytes(3 << 20)\nprint('ended')"
    )
    env = os.environ | {"LD_PRELOAD": f"{preload.path()}:{allocator}"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "ended\n", done.stderr
