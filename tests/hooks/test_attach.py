"""leakprobe attach: with CPython 3.14's sys.remote_exec, and the message where there is none."""

import os
import subprocess
import sys

import pytest

from leakprobe import attached, cli
from leakprobe.errors import LeakprobeError

remote = pytest.mark.skipif(not hasattr(sys, "remote_exec"), reason="needs CPython 3.14 or later")

#: A stand-in for torch, so that the steps of a DataLoader are there without it.
LOOP = """
import sys, types
torch = types.ModuleType("torch"); optim = types.ModuleType("torch.optim"); optimizer = types.ModuleType("torch.optim.optimizer")
utils = types.ModuleType("torch.utils"); data = types.ModuleType("torch.utils.data"); dataloader = types.ModuleType("torch.utils.data.dataloader")
hooks = []
optimizer.register_optimizer_step_post_hook = hooks.append
class DataLoader:
    def __iter__(self): return iter(())
class _BaseDataLoaderIter:
    def __next__(self): raise StopIteration
dataloader.DataLoader, dataloader._BaseDataLoaderIter = DataLoader, _BaseDataLoaderIter
torch.optim, torch.utils, utils.data, data.dataloader, optim.optimizer = optim, utils, data, dataloader, optimizer
for module in (torch, optim, optimizer, utils, data, dataloader): sys.modules[module.__name__] = module
class Optimizer: pass
mine, kept = Optimizer(), []
print("ready", flush=True)
while True:  # it grows only while somebody is told of its steps
    told = sys.modules.get("leakprobe.torch.optimizer_steps")
    if told is not None and told._listeners and sys.argv[1] == "leak": kept.append(bytearray(20000))
    for hook in list(hooks): hook(mine, (), {})
"""


@pytest.fixture
def process(request):
    running = []

    def start(what):
        running.append(
            subprocess.Popen([sys.executable, "-c", LOOP, what], stdout=subprocess.PIPE, text=True)
        )
        assert running[-1].stdout.readline() == "ready\n"
        return running[-1]

    yield start
    for one in running:
        one.kill()
        one.communicate()


@remote
@pytest.mark.parametrize("what,code", [("leak", 1), ("clean", 0)])
def test_a_running_process_is_watched_and_goes_on(process, what, code, capsys, tmp_path):
    running = process(what)
    assert cli.main(["attach", str(running.pid), "--steps", "40", "-o", str(tmp_path / "run.leak")]) == code
    out = capsys.readouterr().out
    assert "in 40 steps" in out and ("kept (list" in out) if code else "40 steps measured" in out
    assert running.poll() is None
    assert cli.main(["report", str(tmp_path / "run.leak")]) == code


@remote
def test_a_process_that_is_not_there():
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    with pytest.raises(LeakprobeError) as error:
        attached.send(done.pid, "/tmp/none.py")
    assert error.value.code == "no_process"


@remote
def test_what_goes_wrong_there_is_told_here(process, tmp_path):
    with pytest.raises(
        LeakprobeError, match="could not begin a watch: LeakprobeOSError: .*can't be written"
    ) as error:
        attached.attach(
            process("clean").pid,
            str(tmp_path / "missing" / "run.leak"),
            steps=9,
            warmup=5,
            limit="256 B/step",
        )
    assert error.value.code == "attach_failed"


@pytest.mark.skipif(hasattr(sys, "remote_exec"), reason="before CPython 3.14")
def test_before_314_the_message_says_what_to_do_instead(capsys):
    assert cli.main(["attach", str(os.getpid())]) == 2
    assert "needs CPython 3.14" in (err := capsys.readouterr().err) and "leakprobe run -o REC" in err
