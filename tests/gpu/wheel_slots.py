"""The import slots of the CUDA hooks in the libraries of a CUDA wheel of torch: read with readelf, nothing is
imported.

    python tests/gpu/wheel_slots.py torch-2.9.1-cp311-cp311-manylinux_2_28_x86_64.whl
    python tests/gpu/wheel_slots.py /path/of/an/unpacked/wheel

Exit code 0 if every slot that a mechanism needs is there, 1 if one is missing, 2 if the files can't be read.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

REPORT = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
OOM = "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
#: Library => symbols that a hook needs there, and symbols that may be there.
WANTED = {
    "libc10_cuda.so": (
        [REPORT, OOM, "cudaMalloc", "cudaFree", "cudaMallocAsync", "cudaFreeAsync", "cudaSetDevice"],
        [
            REPORT.replace("lmm", "lll"),
            OOM.replace("lmm", "lll"),
            "cudaMallocAsync_ptsz",
            "cudaFreeAsync_ptsz",
        ],
    ),
    "libtorch_cuda.so": (
        [
            "cudaHostAlloc",
            "cudaFreeHost",
            "cudaHostRegister",
            "cudaHostUnregister",
            "cudaMalloc",
            "cudaFree",
            "cudaSetDevice",
        ],
        ["cudaMallocHost", "cudaMallocAsync", "cudaFreeAsync"],
    ),
    "libtorch_python.so": (["cudaHostRegister", "cudaHostUnregister"], []),
    "libtorch_cpu.so": ([REPORT], []),
    "libc10.so": (
        ["_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm", "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv"],
        [],
    ),
}
#: Relocations that name a slot in the form the hooks patch.
KINDS = {"JUMP_SLOT", "GLOB_DAT", "64", "ABS64"}


def relocations(path):
    """{symbol: kinds} of a library's relocations by symbol, without versions."""
    text = readelf("-rW", path)
    found = {}
    for kind, symbol in re.findall(r"R_(?:X86_64|AARCH64)_(\w+)\s+[0-9a-f]+\s+([^\s@]+)", text):
        found.setdefault(symbol, set()).add(kind)
    return found


def dynamic(path):
    """(the libraries of CUDA that it needs, flags such as BIND_NOW) of a library."""
    text = readelf("-dW", path)
    needed = [n for n in re.findall(r"NEEDED.*\[(.+)\]", text) if "cuda" in n or "c10" in n]
    flags = sorted(set(re.findall(r"BIND_NOW|SYMBOLIC|\bNOW\b", text)))
    return needed, flags


def has_relro(path):
    return "GNU_RELRO" in readelf("-lW", path)


def readelf(option, path):
    return subprocess.run(["readelf", option, str(path)], capture_output=True, text=True, check=True).stdout


def check(folder, out=print):
    """Print a table of all slots; how many are missing."""
    missing = 0
    for library, (needed, optional) in WANTED.items():
        path = folder / library
        if not path.exists():
            out(f"{library}: not there")
            missing += 1
            continue
        found = relocations(path)
        requires, flags = dynamic(path)
        binding = "bound at load" if flags else "bound lazily"
        out(
            f"{library}: {binding}, {'RELRO' if has_relro(path) else 'no RELRO'}, needs {', '.join(requires) or 'none of them'}"
        )
        for symbol in [*needed, *optional]:
            kinds = sorted(found.get(symbol, set()) & KINDS)
            missing += symbol in needed and not kinds
            if kinds or symbol in needed:
                out(f"  {', '.join(kinds) if kinds else 'MISSING':<10} {symbol}")
    return missing


def unpacked(wheel, target):
    """The folder of torch's libraries in a wheel, unpacked as far as needed."""
    with zipfile.ZipFile(wheel) as archive:
        for name in (*(f"torch/lib/{library}" for library in WANTED), "torch/version.py"):
            try:
                archive.extract(name, target)
            except KeyError:
                continue
    return pathlib.Path(target) / "torch"


def main(arguments):
    if len(arguments) != 1 or shutil.which("readelf") is None:
        print(
            __doc__ if len(arguments) != 1 else "readelf is not installed: it comes with binutils",
            file=sys.stderr,
        )
        return 2
    source = pathlib.Path(arguments[0])
    with tempfile.TemporaryDirectory() as target:
        try:
            torch = (
                unpacked(source, target)
                if source.suffix == ".whl"
                else next(p for p in (source / "torch", source) if (p / "lib").is_dir())
            )
            version = re.search(r"__version__ = '([^']+)'", (torch / "version.py").read_text()).group(1)
            print(f"torch {version}")
            missing = check(torch / "lib")
        except (
            OSError,
            zipfile.BadZipFile,
            StopIteration,
            AttributeError,
            subprocess.CalledProcessError,
        ) as error:
            print(f"{source} can't be read as a wheel of torch: {error!r}", file=sys.stderr)
            return 2
    print("every slot is there" if missing == 0 else f"{missing} missing")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
