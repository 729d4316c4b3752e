"""`leakprobe run` ends when the program would have ended, with its exit code and output, and then reports.

Each program runs twice, without leakprobe and under it.  Programs that should be waited for, or that should
not, would hang for ever if the end were another one: the time-out is against that only.
"""

import json
import os
import subprocess
import sys
import textwrap

import forked
import pytest
from native_support import needs_torch

TIMEOUT_S = 300
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("LEAKPROBE")}
VERDICTS = ("steady: ", "growing: ", "inconclusive: ")


def run(folder, *arguments, trains=False):
    """``python *arguments`` to its end; ``trains``: torch and its compiler are imported when it begins."""
    if trains:
        return forked.run(arguments, cwd=folder, env=ENVIRONMENT, timeout=TIMEOUT_S, trains=True)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )


def write(folder, code):
    (folder / "program.py").write_text(textwrap.dedent(code).lstrip("\n"))


def reports(done) -> int:
    return sum(line.startswith(VERDICTS) for line in done.stderr.splitlines())


def without_and_under(folder, code, *, module=False):
    """The finished processes: the program alone and under ``leakprobe run``; with the same output and exit
    code.
    """
    write(folder, code)
    program = ["-m", "program"] if module else ["program.py"]
    alone = run(folder, *program)
    under = run(folder, "-m", "leakprobe", "run", *program)
    assert under.stdout == alone.stdout, under.stderr
    # 3: the report's own code, for no steps were marked; the program's is kept if it is not 0.
    assert under.returncode == (alone.returncode or 3), under.stderr
    return alone, under


HEAD = """
    import asyncio, atexit, concurrent.futures, multiprocessing, os, signal, sys, threading, time
    def for_ever():
        threading.Event().wait()
    def until_main_ends():
        while threading.main_thread().is_alive():
            time.sleep(0.01)
    def say(*words):
        print(*words, flush=True)
"""

#: name => (program, what both print on standard error)
ENDS = {
    "executor_left_open": (
        "kept = concurrent.futures.ThreadPoolExecutor(2); say(list(kept.map(abs, range(3))))",
        "",
    ),
    "executor_with_queued_work": (
        "kept = concurrent.futures.ThreadPoolExecutor(1)\nfor i in range(20): kept.submit(say, i)\n",
        "",
    ),
    "executor_dropped_while_it_works": (
        "concurrent.futures.ThreadPoolExecutor(1).submit(lambda: (until_worked.wait(), say('worked')))\nuntil_worked.set()",
        "",
    ),
    "process_pool_left_open": (
        "kept = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context('fork')); say(kept.submit(abs, -3).result())",
        "",
    ),
    "default_executor_of_asyncio": (
        "loop = asyncio.new_event_loop()\nsay(loop.run_until_complete(loop.run_in_executor(None, abs, -4)))",
        "",
    ),
    "daemon_threads": ("threading.Thread(target=for_ever, daemon=True).start()\nsay('main')", ""),
    "thread_that_starts_another": (
        "def last(): say('last')\n"
        "def first(): until_main_ends(); say('first'); threading.Thread(target=last).start()\n"
        "threading.Thread(target=first).start()",
        "",
    ),
    "code_beyond_that_of_a_process": ("sys.exit(2**70)", ""),
    "code_of_many_digits": ("sys.exit(-2**40 - 3)", ""),
    "text_for_a_stream_that_is_gone": ("sys.stderr = None\nsys.exit('bye')", "bye"),
    "text_for_a_stream_that_is_closed": ("sys.stderr.close()\nsys.exit('bye')", None),
    "names_of_main": ("say(sorted(globals()))", ""),
    "values_of_main": ("say(globals().get('__annotations__'), globals().get('__cached__'))", ""),
    "hook_that_raises_without_stderr": ("sys.excepthook = lambda *_: [][0]\nsys.stderr = None\n1 / 0", ""),
    "thread_that_exits": ("threading.Thread(target=sys.exit, args=(5,)).start()", ""),
    "thread_that_raises": ("threading.Thread(target=lambda: 1 / 0).start()", "ZeroDivisionError"),
    "thread_that_ends_the_process": (
        "threading.Thread(target=lambda: (until_main_ends(), os._exit(6))).start()",
        None,
    ),
    "sys_exit_beside_a_thread": (
        "threading.Thread(target=lambda: (until_main_ends(), say('done'))).start()\nsys.exit(9)",
        "",
    ),
    "exception_beside_an_executor": (
        "kept = concurrent.futures.ThreadPoolExecutor(1); kept.submit(say, 1).result()\n1 / 0",
        "ZeroDivisionError: division by zero",
    ),
    "exit_handler_that_uses_an_executor": (
        "kept = concurrent.futures.ThreadPoolExecutor(1); kept.submit(say, 1).result()\n"
        "def at_end():\n    try: kept.submit(say, 2)\n    except RuntimeError as error: say(error)\n"
        "atexit.register(at_end)",
        "",
    ),
    "exit_handlers_that_raise": (
        "atexit.register(say, 'last')\natexit.register(lambda: 1 / 0)\natexit.register(say, 'first')",
        "ZeroDivisionError",
    ),
    "exit_function_of_threading_that_raises": (
        "threading._register_atexit(lambda: 1 / 0)\nsay(1)",
        "ZeroDivisionError",
    ),
    "multiprocessing_pool_left_open": (
        "kept = multiprocessing.get_context('fork').Pool(1); say(kept.apply(abs, (-5,)))",
        "",
    ),
    "child_that_outlives_main": (
        "multiprocessing.get_context('fork').Process(target=say, args=('child',)).start()",
        "",
    ),
    "daemon_child": ("multiprocessing.get_context('fork').Process(target=for_ever, daemon=True).start()", ""),
    "ctrl_c_while_waiting": (
        "atexit.register(say, 'at exit')\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "threading.Thread(target=lambda: (until_main_ends(), os.kill(os.getpid(), signal.SIGINT), for_ever())).start()",
        "KeyboardInterrupt",
    ),
    "ctrl_c_while_an_executor_works": (
        "atexit.register(say, 'at exit')\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def work():\n    while not concurrent.futures.thread._shutdown: time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGINT); for_ever()\n"
        "kept = concurrent.futures.ThreadPoolExecutor(1); kept.submit(work)",
        "KeyboardInterrupt",
    ),
    "handler_that_exits_while_waiting": (
        "atexit.register(say, 'at exit')\n"
        "signal.signal(signal.SIGALRM, lambda *_: sys.exit(5))\n"
        "threading.Thread(target=lambda: (until_main_ends(), os.kill(os.getpid(), signal.SIGALRM), for_ever())).start()",
        "SystemExit: 5",
    ),
    "handler_that_returns_while_waiting": (
        "signal.signal(signal.SIGALRM, lambda *_: say('alarm'))\n"
        "threading.Thread(target=lambda: (until_main_ends(), os.kill(os.getpid(), signal.SIGALRM))).start()",
        "",
    ),
    "terminated_while_waiting": (
        "atexit.register(say, 'at exit')\n"
        "threading.Thread(target=lambda: (until_main_ends(), os.kill(os.getpid(), signal.SIGTERM), for_ever())).start()",
        "",
    ),
    "terminated_where_exceptions_are_swallowed": (
        "class Last:\n    def __del__(self): os.kill(os.getpid(), signal.SIGTERM); [1 for _ in range(1000)]\n"
        "threading.Thread(target=for_ever).start()\none = Last()\ndel one",
        "",
    ),
    "terminated_beside_a_thread": (
        "threading.Thread(target=for_ever).start()\nos.kill(os.getpid(), signal.SIGTERM); signal.pause()",
        "",
    ),
    "hook_for_exceptions": (
        "sys.excepthook = lambda kind, error, frames: say(kind.__name__, error, frames.tb_frame.f_code.co_name)\n1 / 0",
        "",
    ),
    "hook_for_exceptions_that_exits": ("sys.excepthook = lambda *_: sys.exit(8)\n1 / 0", ""),
    "hook_for_exceptions_that_raises": ("sys.excepthook = lambda *_: [][0]\n1 / 0", "IndexError"),
    "forked_child_that_ends_as_the_program": (
        "kept = concurrent.futures.ThreadPoolExecutor(1); kept.submit(say, 1).result()\n"
        "child = os.fork()\nif child: say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\nelse: sys.exit(4)\n",
        "",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_program_ends_as_without_leakprobe(tmp_path, name):
    if name == "thread_that_starts_another" and sys.version_info[:2] == (3, 12):
        pytest.skip(
            "early releases of 3.12 let no thread start while they wait for others; under `run` it does"
        )
    body, errors = ENDS[name]
    head = textwrap.dedent(HEAD) + "until_worked = threading.Event()\n"
    alone, under = without_and_under(tmp_path, head + body)
    if errors is None:  # os._exit(): there is no end at which a report could be made
        return
    assert reports(under) == 1, under.stderr
    assert errors in alone.stderr and errors in under.stderr


MAIN_GUARD = """
    import concurrent.futures, multiprocessing, pickle, sys, threading, time
    class Mine:
        value = 7
    def double(one):
        return 2 * one.value
    def late():
        while threading.main_thread().is_alive():
            time.sleep(0.01)
        same = pickle.loads(pickle.dumps(Mine()))
        print(same.value, sys.modules["__main__"].__dict__ is globals(), flush=True)
    if __name__ == "__main__":
        context = multiprocessing.get_context("spawn")
        with context.Pool(1) as pool:
            print(pool.map(double, [Mine()]), __spec__ and __spec__.name, flush=True)
        threading.Thread(target=late).start()
"""


@pytest.mark.parametrize("module", [False, True])
def test_main_is_the_programs_to_the_end(tmp_path, module):
    """Spawned children import it, its classes pickle, its threads still find it after its last line."""
    alone, under = without_and_under(tmp_path, MAIN_GUARD, module=module)
    assert alone.stdout.count("\n") == 2 and reports(under) == 1


WATCHES_ITSELF = """
    import leakprobe
    def watched():
        with leakprobe.watch() as probe:
            for _ in probe.steps(range(30)):
                pass
        return probe.report()
    print(watched().verdict)
    leakprobe.stop()
    print(watched().verdict)
"""


def test_a_program_that_watches_itself(tmp_path):
    """The watch of `run` gives way to the program's own, and `run` still reports."""
    write(tmp_path, WATCHES_ITSELF)
    done = run(tmp_path, "-m", "leakprobe", "run", "program.py")
    assert (done.stdout, done.returncode) == ("steady\nsteady\n", 0), done.stderr
    assert reports(done) == 1 and "Traceback" not in done.stderr


TRAINING = """
    import concurrent.futures, threading, time
    import torch
    kept, pool = [], concurrent.futures.ThreadPoolExecutor(2)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def train():
        for i in range(30):
            x = pool.submit(torch.randn, 16, 8).result() if SUBMITS else torch.randn(16, 8)
            kept.append(x.clone())
            model(x).square().mean().backward()
            optimizer.step()
"""


@needs_torch
@pytest.mark.parametrize("module", [False, True])
def test_all_files_are_written_with_an_executor_left_open(tmp_path, module):
    """Rendering imports packages late, which may not register with the threading module any more."""
    pytest.importorskip("plotly")
    write(tmp_path, textwrap.dedent(TRAINING).replace("SUBMITS", "True") + "train()\n")
    options = ["--html", "r.html", "--json", "r.json", "-o", "r.leak"]
    program = ["-m", "program"] if module else ["program.py"]
    done = run(tmp_path, "-m", "leakprobe", "run", *options, *program, trains=True)
    assert done.returncode == 1, done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert "kept" in json.dumps(report["findings"][0]["path"])
    assert (tmp_path / "r.html").stat().st_size and (tmp_path / "r.leak").stat().st_size


@needs_torch
def test_what_a_thread_trains_after_the_last_line_is_watched(tmp_path):
    write(
        tmp_path,
        textwrap.dedent(TRAINING).replace("SUBMITS", "False") + "threading.Thread(target=train).start()\n",
    )
    done = run(tmp_path, "-m", "leakprobe", "run", "--json", "r.json", "program.py", trains=True)
    assert done.returncode == 1, done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["steps"] == {"warmup": 5, "measured": 25}


COMPILE_POOL = """
    import torch
    from torch._inductor.async_compile import AsyncCompile
    print(AsyncCompile.pool().submit(abs, -3).result())
"""


@needs_torch
def test_the_pool_of_torchs_compiler_is_left_open(tmp_path):
    """What a cold torch.compile leaves behind, without its half minute of compiling."""
    without_and_under(tmp_path, COMPILE_POOL)


WORKERS_LEFT = """
    import torch
    data = torch.utils.data.TensorDataset(torch.rand(64, 6))
    loader = torch.utils.data.DataLoader(
        data, batch_size=8, num_workers=2, persistent_workers=True, multiprocessing_context="fork"
    )
    batches = iter(loader)
    print(len(next(batches)[0]))
"""


@needs_torch
def test_workers_of_a_loader_that_is_not_used_up(tmp_path):
    without_and_under(tmp_path, WORKERS_LEFT)


FAKE_TENSORS = """
    import sys, warnings
    import torch
    import leakprobe
    from torch._subclasses.fake_tensor import FakeTensorMode
    warnings.simplefilter("always")
    torch.set_warn_always(True)
    with FakeTensorMode():
        kept = [torch.empty(3, 4), torch.nn.Linear(3, 4), torch.empty(5)[1:].t()]
    kept += [torch.empty(3, device="meta"), torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr()]
    kept += [torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), torch.eye(3).to_mkldnn()]
    kept += [torch.ones(2, dtype=torch.complex64).conj(), torch.ones(3)._lazy_clone(), torch._neg_view(torch.ones(3))]
    leaf = torch.ones(3, requires_grad=True)
    kept += [leaf * 2, (leaf * 2).sum()]
    def mapped(x):
        kept.append(x)
        return x
    torch.vmap(mapped)(torch.ones(2, 3))
    print("all are made", file=sys.stderr, flush=True)
    torch.vmap(lambda x: leakprobe.snapshot(graph=True) and x)(torch.ones(2, 3))
    snapshot = leakprobe.snapshot(graph=True)
    leakprobe.find_cycles(), leakprobe.why(kept[0]), leakprobe.retained_size(kept)
    with leakprobe.watch(warmup=1) as probe:
        with FakeTensorMode():
            for i in range(40):
                kept.append(torch.empty(100))
                probe.step()
    print(probe.report().verdict)
"""


@needs_torch
def test_a_walk_over_tensors_without_memory_prints_nothing(tmp_path):
    """Fake and meta tensors have no data to ask the address of: torch warns of the question.

    It also warns of some when they are made, which is its own affair.
    """
    write(tmp_path, FAKE_TENSORS)
    done = run(tmp_path, "program.py")
    assert (done.returncode, done.stdout) == (0, "growing\n"), done.stderr
    assert done.stderr.partition("all are made\n")[1:] == ("all are made\n", ""), done.stderr
