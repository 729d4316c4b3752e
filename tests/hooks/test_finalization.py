"""The interpreter ends with the hooks on, in whatever state."""

import subprocess
import sys
import textwrap

import pytest


def end(code):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code).lstrip("\n")],
        capture_output=True,
        text=True,
        timeout=900,
        cwd="/",
    )
    return done.returncode, done.stderr


def test_exit_with_hooks_on():
    assert end("from leakprobe import _core; _core.start(8, ''); x = [{i: [i]} for i in range(1000)]") == (
        0,
        "",
    )


def test_exit_with_hooks_on_and_cycles_with_finalizers():
    code = """
        import atexit, gc
        from leakprobe import _core
        class Last:
            def __del__(self):
                kept = [[i] for i in range(100)]
        _core.start(8, "")
        x = Last(); x.me = x
        atexit.register(lambda: [[i] for i in range(100)])
        gc.disable()
    """
    assert end(code) == (0, "")


@pytest.mark.parametrize("daemon", [True, False])
def test_exit_while_threads_allocate(daemon):
    code = f"""
        import threading, time
        from leakprobe import _core
        def work():
            end = time.monotonic() + 0.3
            while time.monotonic() < end or {daemon}:
                x = [[i, {{i: str(i)}}] for i in range(50)]
        _core.start(8, "")
        for _ in range(4):
            threading.Thread(target=work, daemon={daemon}).start()
        time.sleep(0.05)
    """
    for _ in range(5):
        status, errors = end(code)
        assert status == 0, errors


def test_exit_by_exception_and_by_sys_exit():
    status, errors = end("from leakprobe import _core; _core.start(8, ''); 1 / 0")
    assert status == 1 and "ZeroDivisionError" in errors
    assert end("import sys; from leakprobe import _core; _core.start(8, ''); sys.exit(5)")[0] == 5


def test_start_at_exit_and_stop_at_exit():
    code = """
        import atexit
        from leakprobe import _core
        atexit.register(_core.stop)
        atexit.register(lambda: (_core.start(8, ""), [[i] for i in range(100)]))
    """
    assert end(code) == (0, "")


@pytest.mark.parametrize(
    "ending, status",
    [
        ("os._exit(3)", 3),
        ("threading.Thread(target=lambda: os._exit(4)).start(); threading.Event().wait()", 4),
        ("thread = threading.Thread(target=sys.exit); thread.start(); thread.join()", 0),
        ("thread = threading.Thread(target=sys.exit, args=(5,)); thread.start(); thread.join()", 0),
        ("atexit.register(sys.exit, 6)", 0),
        ("atexit.register(os._exit, 7)", 7),
        ("os.kill(os.getpid(), signal.SIGTERM); signal.pause()", -15),
        (
            "signal.signal(signal.SIGTERM, lambda *a: sys.exit(8)); os.kill(os.getpid(), signal.SIGTERM); signal.pause()",
            8,
        ),
        ("os.execv(sys.executable, [sys.executable, '-c', 'import sys; sys.exit(9)'])", 9),
        ("raise SystemExit(10)", 10),
        ("sys.stdout.close(); gc.freeze()", 0),
        ("weakref.finalize(kept[0], lambda: [[i] for i in range(100)])", 0),
    ],
)
def test_exit_in_every_way(ending, status):
    code = f"""
        import atexit, gc, os, signal, sys, threading, weakref
        from leakprobe import _core
        class Kept: pass
        _core.start(8, "/nowhere/")
        kept = [Kept() for _ in range(1000)]
        kept[1].me = kept
        _core.mark()
        {ending}
    """
    assert end(code)[0] == status


def test_exit_beside_tracemalloc_started_later():
    code = """
        import tracemalloc
        from leakprobe import _core
        _core.start(8, "")
        tracemalloc.start(5)
        x = [{i: [i]} for i in range(1000)]
        _core.mark()
    """
    assert end(code) == (0, "")
