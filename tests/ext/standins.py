"""Builds the libraries that stand for CUDA's where there is no GPU, from the C files beside this one."""

import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).parent
#: Library => source, options.
LIBRARIES = {
    "libcudart_standin": ("cuda_runtime.c",),
    "libc10_reports": ("c10_reports.c",),
    "libc10_cuda_standin": ("caching_allocator.c", "-lcudart_standin", "-lc10_reports"),
    "libc10_cuda_old": ("caching_allocator.c", "-DOLD_MANGLING", "-lcudart_standin", "-lc10_reports"),
    "libtorch_cuda_standin": ("host_allocator.c", "-lcudart_standin"),
    "libtorch_python_standin": ("host_allocator.c", "-lcudart_standin"),
}


def build_standins(folder, *, torch_lib=None):
    """Compile all into ``folder``; torch_lib: the folder of the libc10 that the reports go to, in place of
    our own.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    for name, (source, *options) in LIBRARIES.items():
        if torch_lib is not None and name in ("libc10_reports", "libc10_cuda_old"):
            continue
        if torch_lib is not None:
            options = [f"-L{torch_lib}" if o == "-lc10_reports" else o for o in options]
            options += ["-lc10", f"-Wl,-rpath,{torch_lib}"] if name == "libc10_cuda_standin" else []
        command = [
            compiler,
            "-shared",
            "-fPIC",
            "-std=gnu11",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            str(HERE / source),
            "-o",
            str(folder / f"{name}.so"),
        ]
        done = subprocess.run(
            [*command, f"-L{folder}", f"-Wl,-rpath,{folder}", *options, "-lpthread"],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0 and not done.stderr, done.stderr
    return folder
