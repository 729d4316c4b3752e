"""Runs a script or a module as the program it would be without leakprobe."""

import atexit
import builtins
import importlib.machinery
import importlib.util
import io
import os
import runpy
import signal
import sys
import threading
import traceback
import types

from leakprobe.errors import LeakprobeError

PACKAGE_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Terminated(SystemExit):
    """SIGTERM came: the script is unwound as by sys.exit(), so that the report can be printed."""


def hold_sigterm_over_forks() -> None:
    """Let no child miss a SIGTERM: CPython forgets those that come to a handler before the child is set up."""
    if not _held_over_forks:
        _held_over_forks.append(True)
        os.register_at_fork(
            before=block_sigterm, after_in_parent=unblock_sigterm, after_in_child=unblock_sigterm
        )


def block_sigterm() -> None:
    if getattr(signal.getsignal(signal.SIGTERM), "__func__", None) is SigtermRaises._came:
        _was_blocked[:] = [signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])]


def unblock_sigterm() -> None:
    if _was_blocked and not _was_blocked.pop():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


_held_over_forks: list = []
_was_blocked: list = []  # of the thread that forks


class SigtermRaises:
    """Inside the block SIGTERM raises Terminated, unless it is ignored or handled already.

    A forked child ends by the signal, as it would have without leakprobe.
    """

    def __enter__(self):
        self._pid = os.getpid()
        self._on = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        )
        if self._on:
            signal.signal(signal.SIGTERM, self._came)
            hold_sigterm_over_forks()
        return self

    def __exit__(self, *exc_info):
        if self._on and signal.getsignal(signal.SIGTERM) == self._came:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _came(self, number, frame):
        if os.getpid() != self._pid:
            end_by_signal(number)
        raise Terminated(128 + number)


def run_program(name: str, arguments: list, module: bool) -> int:
    """Run the program to its end, its threads included; its exit code, negative for a signal.

    Errors: LeakprobeError "no_script" for a module that does not exist.
    """
    code = ended(execute_module if module else execute_file, name, arguments)
    return ended(join_threads) or code


def ended(function, *args) -> int:
    """What Python would exit with if the call were the whole program; a traceback is printed as it comes."""
    try:
        function(*args)
    except Terminated:
        return -signal.SIGTERM
    except SystemExit as error:
        return exit_code(error)
    except NoModule:
        raise
    except KeyboardInterrupt as error:
        print_traceback(error)
        return -signal.SIGINT
    except BaseException as error:
        print_traceback(error)
        return 1
    return 0


class NoModule(LeakprobeError):
    """-m names no module."""


def execute_file(name: str, arguments: list) -> None:
    """What ``python NAME`` does: argv, path and __main__ are those the script would see."""
    path = os.path.abspath(name)
    sys.argv = [name, *arguments]
    put_first_on_path(os.path.dirname(os.path.realpath(path)))
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__builtins__ = builtins
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    sys.modules["__main__"] = main
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def execute_module(name: str, arguments: list) -> None:
    """What ``python -m NAME`` does."""
    sys.argv = [name, *arguments]
    put_first_on_path(os.getcwd())
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        found = None
    if found is None:
        raise NoModule(
            f"there is no module {name}: -m takes a name as in python -m, looked up from the working folder",
            "no_script",
        )
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def put_first_on_path(folder: str) -> None:
    """In place of the folder that Python put there for leakprobe itself."""
    if getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)
    else:
        sys.path[:1] = [folder]


def join_threads() -> None:
    """Wait for the threads that Python would wait for before it exits."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def exit_code(error: SystemExit) -> int:
    """What Python exits with for this SystemExit; a text is printed."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def print_traceback(error) -> None:
    """The traceback as Python prints it, without the frames of leakprobe and runpy above the script."""
    frames = error.__traceback__
    while frames is not None and is_machinery(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames)


def is_machinery(filename: str) -> bool:
    demo = os.path.join(PACKAGE_DIR, "demo")
    return filename in ("<frozen runpy>", runpy.__file__) or (
        filename.startswith(PACKAGE_DIR) and not filename.startswith(demo)
    )


def end_by_signal(number: int) -> None:
    """End as the signal would have ended the script, so that the caller sees it."""
    if number == signal.SIGINT:
        atexit._run_exitfuncs()  # Python runs them on Ctrl-C, before it ends itself by the signal
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
