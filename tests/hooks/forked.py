"""Programs run in children of a process that has torch imported: a fresh one takes seconds to get there.

Nothing of leakprobe but its import has happened in that process.  What is about the import of torch, or about
how an interpreter starts, needs one of its own.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile

NURSERY = """
import atexit, json, os, runpy, sys, tempfile, threading, types
import torch.utils.data, leakprobe
if sys.argv[1:]: import torch._dynamo
def become(job):
    for number, path in enumerate((os.devnull, job["out"], job["err"])):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(job["env"])
    os.chdir(job["cwd"])
    tempfile.tempdir, sys.path[:0] = None, job["path"]
def leave(code):  # all that an interpreter does at its end but to free what is in it: that takes seconds
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
def run(kind, *rest):
    sys.argv = [kind, *rest[1:]] if kind in ("-c", "-m") else [kind, *rest]
    if kind == "-m":
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        runpy.run_path(kind, run_name="__main__")
def code_of(command):
    try:
        run(*command)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        raise
    return 0
for line in sys.stdin:
    job = json.loads(line)
    pid = os.fork()
    if pid == 0:
        become(job)
        leave(code_of(job["command"]))
    print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])), flush=True)
"""
_nurseries: dict[bool, subprocess.Popen] = {}


def nursery(trains: bool) -> subprocess.Popen:
    running = _nurseries.get(trains)
    if running is None or running.poll() is not None:
        running = _nurseries[trains] = subprocess.Popen(
            [sys.executable, "-c", NURSERY, *(["trains"] if trains else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        atexit.register(end, running)
    return running


def end(running: subprocess.Popen) -> None:
    running.kill()
    running.wait()


def run(command, *, cwd=None, env=None, path=(), timeout=900, trains=False) -> subprocess.CompletedProcess:
    """``python *command`` to its end: a script, -c or -m with arguments, as from subprocess.run().

    ``path``: folders to import from.  ``trains``: torch's compiler is imported too, as the first use of an
    optimizer does.
    """
    with tempfile.TemporaryDirectory(prefix="lp-") as folder:
        out, err = os.path.join(folder, "out"), os.path.join(folder, "err")
        job = {
            "command": list(map(str, command)),
            "cwd": str(cwd or os.getcwd()),
            "env": dict(os.environ if env is None else env),
            "path": list(path),
            "out": out,
            "err": err,
        }
        code = reply(nursery(trains), json.dumps(job), timeout)
        with open(out) as out_file, open(err) as err_file:
            return subprocess.CompletedProcess(command, code, out_file.read(), err_file.read())


def reply(running: subprocess.Popen, job: str, timeout: float) -> int:
    running.stdin.write(job + "\n")
    running.stdin.flush()
    if not select.select([running.stdout], [], [], timeout)[0]:
        os.killpg(running.pid, signal.SIGKILL)
        raise TimeoutError(f"it ran for more than {timeout} s: {job}")
    answer = running.stdout.readline()
    assert answer, "the process that forks has ended; what it says is above"
    return json.loads(answer)
