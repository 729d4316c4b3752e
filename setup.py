"""Builds the one extension of leakprobe, leakprobe._core, from src/, and on Linux the library that
`leakprobe run --native` preloads, leakprobe/_preload.so, which knows no Python.

Metadata is in pyproject.toml.  Switches, read from the environment:

    LEAKPROBE_DEBUG=1      assertions and -Werror, little optimisation
    LEAKPROBE_SANITIZE=X   -fsanitize=X (address, undefined, thread, or a list)
    LEAKPROBE_SYMBOLS=1    debug sections are kept, for gdb and profilers
    LEAKPROBE_COVERAGE=1   gcov instrumentation
    LEAKPROBE_FAULTS=1     requests for the probe's own memory can be made to fail (_core._inject_faults)
"""

import os
import pathlib
import re
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = pathlib.Path(__file__).parent


#: Name of the library to preload, as build_ext knows it, and its folder of src/.
SHIM, SHIM_FOLDER = "leakprobe._preload", "shim"


def sources(pattern):
    found = (p for p in (HERE / "src").rglob(pattern) if p.parent.name != SHIM_FOLDER or pattern == "*.h")
    return sorted(str(p.relative_to(HERE)) for p in found)


def readme():
    """README.md for a package index, where a link to a file of the repository has to name its host."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    host = re.search(
        r'^Source = "(.+)"$', (HERE / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )[1]
    return re.sub(r"\]\((?!https?://|#)([^)]+)\)", rf"]({host}/blob/main/\1)", text)


def flags():
    """Compiler and linker flags for the switches that are set."""
    if sys.platform == "win32":
        return ["/std:c11", "/W3"], []
    compile_flags = ["-std=c11", "-Wall", "-Wextra", "-fvisibility=hidden", "-D_GNU_SOURCE"]
    link_flags = ["-ldl", "-lpthread", "-lm"] if sys.platform == "linux" else []
    if os.environ.get("LEAKPROBE_DEBUG"):
        compile_flags += ["-Werror", "-O1", "-g3", "-UNDEBUG", "-DLEAKPROBE_DEBUG"]
    elif os.environ.get("LEAKPROBE_SYMBOLS") or os.environ.get("LEAKPROBE_SANITIZE"):
        compile_flags += ["-O3", "-g"]
    else:
        compile_flags += ["-O3", "-g0"]
        link_flags += ["-Wl,--strip-debug"] if sys.platform == "linux" else []
    sanitize = os.environ.get("LEAKPROBE_SANITIZE")
    if sanitize:
        compile_flags += [f"-fsanitize={sanitize}", "-fno-omit-frame-pointer"]
        link_flags += [f"-fsanitize={sanitize}"]
    if os.environ.get("LEAKPROBE_COVERAGE"):
        compile_flags += ["--coverage"]
        link_flags += ["--coverage"]
    if os.environ.get("LEAKPROBE_FAULTS"):
        compile_flags += ["-DLP_FAULT_INJECTION"]
    return compile_flags, link_flags


def shim():
    """The library to preload.  No instrumentation: it runs before that is set up, and is called by it."""
    return Extension(
        SHIM,
        sources=[f"src/{SHIM_FOLDER}/shim.c"],
        depends=[*sources("base/*.h"), f"src/{SHIM_FOLDER}/numbers.h"],
        include_dirs=["src"],
        extra_compile_args=[
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-fvisibility=hidden",
            "-D_GNU_SOURCE",
            "-O2",
            "-g0",
            "-fno-builtin",
            *(["-Werror"] if os.environ.get("LEAKPROBE_DEBUG") else []),
        ],
        extra_link_args=["-ldl", "-lpthread", "-Wl,--strip-debug"],
    )


class BuildExt(build_ext):
    """build_ext that says what to install when it can't compile."""

    def get_ext_filename(self, fullname):
        """The library to preload belongs to no version of Python, and its name to none."""
        if fullname == SHIM or fullname == SHIM.rpartition(".")[2]:
            return os.path.join(*fullname.split(".")) + ".so"
        return super().get_ext_filename(fullname)

    def run(self):
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            raise SystemExit(
                "leakprobe: free-threaded builds of Python are not supported yet; use the build with the GIL (python3.14, not python3.14t)."
            )
        header = pathlib.Path(sysconfig.get_path("include"), "Python.h")
        if not header.exists():
            raise SystemExit(
                f"leakprobe: the headers of Python {sys.version_info[0]}.{sys.version_info[1]} are missing ({header}).\n"
                "Debian and Ubuntu: apt install python3-dev; Fedora: dnf install python3-devel; "
                "conda and pyenv bring them along."
            )
        try:
            super().run()
        except Exception as error:
            text = str(error)
            if "not found" in text or "No such file" in text or "command" in text:
                raise SystemExit(
                    f"leakprobe: the C compiler failed: {text}\n"
                    "If there is none: apt install gcc (Debian, Ubuntu), dnf install gcc (Fedora), "
                    "xcode-select --install (macOS)."
                ) from error
            raise


compile_args, link_args = flags()
setup(
    long_description=readme(),
    long_description_content_type="text/markdown",
    ext_modules=[
        Extension(
            "leakprobe._core",
            sources=sources("*.c"),
            depends=sources("*.h"),
            include_dirs=["src"],
            extra_compile_args=compile_args,
            extra_link_args=link_args,
        ),
        *([shim()] if sys.platform == "linux" else []),
    ],
    cmdclass={"build_ext": BuildExt},
)
