"""Run a command on a CUDA runtime without a GPU, under a real CUDA build of torch.

    python tests/gpu/fake_gpu.py python tests/gpu/checklist.py

Builds the libraries of LIBRARIES in a folder that goes with the command, and preloads them.  Needs a C
compiler and the headers of the CUDA that torch was built for: those that come with triton, those of
nvidia-cuda-runtime and nvidia-cuda-crt, or a toolkit's (CUDA_HOME).
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
#: Library, by the name that it is opened by => its sources.
LIBRARIES = {
    "libcuda.so.1": ("fake_runtime.c", "fake_driver.c", "fake_blas.c"),
    "libnvidia-ml.so.1": ("fake_nvml.c",),
}


def folder_of(package: str) -> pathlib.Path | None:
    """The folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    places = spec.submodule_search_locations if spec else None
    return pathlib.Path(next(iter(places))) if places else None


def toolkits() -> dict[str, list[pathlib.Path]]:
    """Folders with cuda_runtime_api.h, each with those that it includes more from; of wheels first."""
    found = []
    if wheel := folder_of("nvidia"):
        found += [[path] for path in sorted(wheel.glob("cu1[3-9]/include"))]
        found.append([wheel / name / "include" for name in ("cuda_runtime", "cuda_nvcc", "cuda_crt")])
    if triton := folder_of("triton"):
        found.append([triton / "backends/nvidia/include"])
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda", "/usr/lib/cuda"]
    found += [[pathlib.Path(home, "include")] for home in (*homes, "/usr") if home]
    complete = [
        f
        for f in found
        if (f[0] / "cuda_runtime_api.h").exists() and any((p / "crt/host_defines.h").exists() for p in f)
    ]
    return {str(f[0].resolve()): f for f in complete}


def first_number(path: pathlib.Path, before: str) -> int:
    """The number that follows ``before`` in a file; 0 where there is none."""
    match = re.search(before + r"\s*(\d+)", path.read_text())
    return int(match[1]) if match else 0


def headers() -> list[pathlib.Path]:
    """The folders of the toolkit whose structs are those of torch's CUDA: of the same major version."""
    torch = folder_of("torch")
    wanted = first_number(torch / "version.py", r"cuda[^=\n]*= '") if torch else 0
    for folders in toolkits().values():
        if first_number(folders[0] / "cuda_runtime_api.h", "define CUDART_VERSION") // 1000 == wanted:
            return folders
    raise SystemExit(
        f"no headers of CUDA {wanted}: install nvidia-cuda-runtime and nvidia-cuda-crt, or set CUDA_HOME"
        if wanted
        else "torch is not installed, or not built for CUDA"
    )


def build(folder: pathlib.Path) -> str:
    """Compile all into ``folder``; the value of LD_PRELOAD."""
    includes = [f"-isystem{path}" for path in headers()]
    options = ["-shared", "-fPIC", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter"]
    for name, sources in LIBRARIES.items():
        command = [shutil.which("cc") or "gcc", *options, f"-Wl,-soname,{name}", *includes]
        paths = [str(HERE / source) for source in sources]
        subprocess.run([*command, *paths, "-o", str(folder / name), "-ldl", "-lpthread"], check=True)
    return ":".join(str(folder / name) for name in LIBRARIES)


def environment(preload: str) -> dict[str, str]:
    """os.environ for programs that are to run on it."""
    return {**os.environ, "LD_PRELOAD": preload, "FAKE_CUDA": "1"}


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(command, env=environment(build(pathlib.Path(folder)))).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
