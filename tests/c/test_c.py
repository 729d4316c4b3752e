"""Builds the plain C parts with sanitizers, once, and runs each test_*.c against them."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from standins import build_standins

HERE = pathlib.Path(__file__).parent
SRC = HERE.parents[1] / "src"
FOLDERS = ("base", "ledger", "snapshot", "analysis", "native", "process")
SOURCES = sorted(p for folder in FOLDERS for p in (SRC / folder).glob("*.c"))
TESTS = sorted(HERE.glob("test_*.c"))
THREADED = {"test_ledger.c", "test_threads.c", "test_cuda.c"}
FLAGS = [
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-D_GNU_SOURCE",
    "-g",
    "-O1",
    "-DLEAKPROBE_DEBUG",
    "-DLP_FAULT_INJECTION",
]

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="gcc's sanitizers are used as on Linux"
)


def compile_all(folder, sanitizer):
    """Object files of the plain C parts."""
    running = []
    for source in SOURCES:
        target = folder / (f"{source.parent.name}_{source.stem}.o")
        command = ["gcc", *FLAGS, f"-fsanitize={sanitizer}", f"-I{SRC}", "-c", str(source), "-o", str(target)]
        running.append((target, subprocess.Popen(command, stderr=subprocess.PIPE, text=True)))
        if len(running) % 4 == 0:
            running[-4][1].wait()
    for target, process in running:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    return [str(target) for target, _ in running]


@pytest.fixture(scope="session")
def objects(tmp_path_factory):
    built = {}

    def get(sanitizer):
        if sanitizer not in built:
            built[sanitizer] = compile_all(tmp_path_factory.mktemp("c"), sanitizer)
        return built[sanitizer]

    return get


# Importers of test_slots.c: which provider each is linked with, and how.
PROVIDERS = {"a": 100, "b": 200, "c": 300, "d": 400, "e": 500}
IMPORTERS = {
    "libimp_lazy": ("a", "-Wl,-z,lazy,-z,relro"),
    "libimp_now": ("a", "-Wl,-z,now,-z,relro"),
    "libimp_got": ("a", "-fno-plt", "-Wl,-z,now,-z,relro"),
    "libimp_norelro": ("a", "-Wl,-z,now,-z,norelro"),
    "libimp_lazy_norelro": ("a", "-Wl,-z,lazy,-z,norelro"),
    **{f"libimp_{name}": (name, "-Wl,-z,now,-z,relro") for name in "bcde"},
}


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """The folder of the libraries that test_slots.c and test_cuda.c open."""
    folder = tmp_path_factory.mktemp("libs")
    base = ["gcc", "-shared", "-fPIC", "-O1", f"-L{folder}", f"-Wl,-rpath,{folder}"]
    for name, number in PROVIDERS.items():
        subprocess.run(
            [
                *base,
                f"-DNUMBER={number}",
                str(HERE / "libs" / "provider.c"),
                "-o",
                str(folder / f"libprovider_{name}.so"),
            ],
            check=True,
        )
    for name, (provider, *flags) in IMPORTERS.items():
        subprocess.run(
            [
                *base,
                *flags,
                str(HERE / "libs" / "importer.c"),
                "-o",
                str(folder / f"{name}.so"),
                f"-lprovider_{provider}",
            ],
            check=True,
        )
    build_standins(folder)
    return folder


def build_and_run(source, sanitizer, objects, folder, libraries):
    program = folder / source.stem
    command = [
        "gcc",
        *FLAGS,
        f"-fsanitize={sanitizer}",
        f"-I{SRC}",
        f"-I{HERE}",
        str(source),
        *objects(sanitizer),
        "-o",
        str(program),
    ]
    done = subprocess.run([*command, "-lpthread", "-ldl", "-lm"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    options = {
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1",
        "TSAN_OPTIONS": "halt_on_error=1",
    }
    done = subprocess.run(
        [str(program), str(libraries)],
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, **options},
    )
    tally = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, flags=re.MULTILINE)
    assert done.returncode == 0 and tally, done.stdout[-3000:] + done.stderr[-3000:]
    assert int(tally.group(1)) > 0 and int(tally.group(2)) == 0


@pytest.mark.parametrize("source", TESTS, ids=lambda p: p.stem)
def test_under_address_and_undefined_sanitizers(source, objects, tmp_path, libraries):
    build_and_run(source, "address,undefined", objects, tmp_path, libraries)


@pytest.mark.slow
@pytest.mark.parametrize("source", [t for t in TESTS if t.name in THREADED], ids=lambda p: p.stem)
def test_under_the_thread_sanitizer(source, objects, tmp_path, libraries):
    build_and_run(source, "thread", objects, tmp_path, libraries)
