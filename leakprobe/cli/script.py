"""Runs a script or a module as the program it would be without leakprobe."""

import atexit
import builtins
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import runpy
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from leakprobe.errors import LeakprobeError

PACKAGE_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: The program's __main__, made before the hooks: what leakprobe makes later is never taken for a holder.
MAIN = types.ModuleType("__main__")
if sys.version_info < (3, 14):  # as Python's own has it
    vars(MAIN)["__annotations__"] = {}
#: What C's long holds: an exit code beyond that is -1.
LARGEST_CODE = (1 << 63) - 1


class Terminated(SystemExit):
    """SIGTERM came: the script is unwound as by sys.exit(), so that the report can be printed."""


def hold_sigterm_over_forks() -> None:
    """Let no child miss a SIGTERM: CPython forgets those that come to a handler before the child is set
    up.
    """
    if not _held_over_forks:
        _held_over_forks.append(True)
        os.register_at_fork(
            before=block_sigterm, after_in_parent=unblock_sigterm, after_in_child=leave_sigterm_to_the_child
        )


def raises_sigterm() -> bool:
    return getattr(signal.getsignal(signal.SIGTERM), "__func__", None) is SigtermRaises._came


def block_sigterm() -> None:
    if raises_sigterm():
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        _was_blocked[threading.get_ident()] = signal.SIGTERM in mask


def unblock_sigterm() -> None:
    if not _was_blocked.pop(threading.get_ident(), True):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


def leave_sigterm_to_the_child() -> None:
    """A handler in Python would have to wait for long calls of C code to end; without it the child ends at
    once.
    """
    if raises_sigterm():
        with contextlib.suppress(
            ValueError
        ):  # in a subinterpreter, which may set none: _came() knows the child
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
    unblock_sigterm()
    _was_blocked.clear()


_held_over_forks: list[bool] = []
_was_blocked: dict[int, bool] = {}  # of each thread that forks just now


class SigtermRaises:
    """Inside the block SIGTERM raises Terminated, unless it is ignored or handled already.

    A forked child ends by the signal, as it would have without leakprobe.
    """

    #: True once it came: what it raised may have been swallowed, by the script or by a wait in C.
    has_come = False

    def __enter__(self) -> "SigtermRaises":
        self._pid = os.getpid()
        self._on = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        )
        if self._on:
            signal.signal(signal.SIGTERM, self._came)
            hold_sigterm_over_forks()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._on and signal.getsignal(signal.SIGTERM) == self._came:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def was_swallowed(self) -> bool:
        """Asked at a mark: True if it came to this process and the script goes on in spite of it, and does
        not only clean up.
        """
        if not self.has_come or os.getpid() != self._pid:
            return False
        return threading.current_thread() is threading.main_thread() and not is_on_its_way(Terminated)

    def _came(self, number: int, frame: types.FrameType | None) -> None:
        if os.getpid() != self._pid:  # forked by C code, which calls no hooks
            end_by_signal(number)
        self.has_come = True
        raise Terminated(128 + number)


def is_on_its_way(kind: type[BaseException]) -> bool:
    """True in a handler or a `finally:` of such an exception, or of one that was raised in these."""
    error, seen = sys.exc_info()[1], set()
    while error is not None and id(error) not in seen:
        if isinstance(error, kind):
            return True
        seen.add(id(error))
        error = error.__context__
    return False


def run_program(
    name: str,
    arguments: list[str],
    module: bool,
    sigterm: SigtermRaises | None = None,
    look: Callable[[type[BaseException]], None] = lambda kind: None,
) -> int:
    """Run the program to its end, its threads included; its exit code, negative for a signal.

    ``look`` is called with the type of an exception that ends the program, while its frames are there still.
    SIGTERM would have ended the program there and then: after it, threads are not waited for.
    Errors: LeakprobeError "no_script" for a module that does not exist; Terminated.
    """
    code = ended(execute_module if module else execute_file, name, arguments, look)
    if sigterm is None or not sigterm.has_come:
        wait_for_threads()
    return code


def ended(
    function: Callable[[str, list[str]], None],
    name: str,
    arguments: list[str],
    look: Callable[[type[BaseException]], None],
) -> int:
    """What Python would exit with if the call were the whole program; a traceback is printed as it comes."""
    try:
        function(name, arguments)
    except (Terminated, NoModule):
        raise
    except SystemExit as error:
        return exit_code(error)
    except BaseException as error:
        look(type(error))
        usual = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
        return show_exception(error, usual)
    return 0


class NoModule(LeakprobeError):
    """-m names no module."""


def execute_file(name: str, arguments: list[str]) -> None:
    """What ``python NAME`` does: argv, path and __main__ are those the script would see."""
    path = os.path.abspath(name)
    sys.argv = [name, *arguments]
    put_first_on_path(os.path.dirname(os.path.realpath(path)))
    main = fresh_main()
    main.__file__ = path
    if sys.version_info < (3, 15):
        vars(main)["__cached__"] = None
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def execute_module(name: str, arguments: list[str]) -> None:
    """What ``python -m NAME`` does."""
    sys.argv = [name, *arguments]
    put_first_on_path(os.getcwd())
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # a package on the way imports what is not there
        found = None
    if found is None:
        raise NoModule(
            f"there is no module {name}: -m takes a name as in python -m, looked up from the working folder",
            "no_script",
        )
    fresh_main()
    # By the function that the interpreter calls for -m: run_module() would put the old __main__ back, and
    # drop the program's globals, while its threads still run and before the report asks who keeps what.
    vars(runpy)["_run_module_as_main"](name)


def fresh_main() -> types.ModuleType:
    """A new __main__ in the place of leakprobe's own, to the end of the process.

    Nothing but sys.modules keeps it: the interpreter takes the values out of a module that others keep at its
    end, and a __del__ that runs then would find None for the names that it uses.
    """
    main: types.ModuleType = globals().pop("MAIN")
    vars(main)["__builtins__"] = builtins
    sys.modules["__main__"] = main
    return main


def put_first_on_path(folder: str) -> None:
    """In place of the folder that Python put there for leakprobe itself."""
    if getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)
    else:
        sys.path[:1] = [folder]


def wait_for_threads() -> None:
    """Wait as the interpreter does before its exit handlers: executors are shut down, then threads joined.

    The interpreter will do the same once more.  That one call is answered with what came of this one, so
    that an exception (Ctrl-C, a signal handler that raises) ends the waiting as it would have, and is
    printed by the interpreter.
    """
    threads: Any = sys.modules.get("threading")  # _shutdown() is its own
    shutdown: Callable[[], None] | None = getattr(threads, "_shutdown", None)
    if shutdown is None:
        return
    outcome: list[BaseException] = []
    try:
        with quiet_about_termination():
            shutdown()
    except Terminated:
        raise
    except BaseException as error:
        outcome.append(error.with_traceback(below(error.__traceback__)))

    def has_waited() -> None:
        threads._shutdown = shutdown
        if outcome:
            raise outcome.pop()

    threads._shutdown = has_waited


def below(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback without its first frame, which is leakprobe's own."""
    return traceback.tb_next if traceback is not None else None


@contextlib.contextmanager
def quiet_about_termination() -> Iterator[None]:
    """From 3.13 on, the wait for threads is C code that prints what a signal handler raised, and returns."""
    hook = sys.unraisablehook

    def unraisable(args: "sys.UnraisableHookArgs") -> None:
        if args.exc_type is not Terminated:
            hook(args)

    sys.unraisablehook = unraisable
    try:
        yield
    finally:
        if sys.unraisablehook is unraisable:
            sys.unraisablehook = hook


def exit_code(error: SystemExit) -> int:
    """What Python exits with for this SystemExit; a text is printed."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF if abs(error.code) <= LARGEST_CODE else 0xFF
    print_error(error.code)
    return 1


def print_error(text: object) -> None:
    """To sys.stderr, or past it where the script has set it to None; what can't be written is dropped.

    Where standard error was closed from the start, its number may be that of any file by now.
    """
    stream = getattr(sys, "stderr", None)
    with contextlib.suppress(Exception):
        if stream is not None:
            print(text, file=stream)
        elif sys.__stderr__ is not None:
            os.write(2, f"{text}\n".encode(errors="backslashreplace"))


def show_exception(error: BaseException, usual: int) -> int:
    """Hand the exception to sys.excepthook, without the frames of leakprobe and runpy above the script.

    What the hook exits with if it calls sys.exit(), else the usual code.
    """
    frames = error.__traceback__
    while frames is not None and is_machinery(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    error = error.with_traceback(frames)
    try:
        sys.excepthook(type(error), error, frames)
    except SystemExit as wanted:
        return exit_code(wanted)
    except BaseException as failure:
        print_error("Error in sys.excepthook:")
        sys.__excepthook__(type(failure), failure, below(failure.__traceback__))
        print_error("\nOriginal exception was:")
        sys.__excepthook__(type(error), error, frames)
    return usual


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
