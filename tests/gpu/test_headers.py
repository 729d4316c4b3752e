"""What we declare of the CUDA runtime ourselves, against its header, for each toolkit that is found."""

import os
import pathlib
import shutil
import subprocess

import pytest
from fake_gpu import toolkits

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]


def check(folders, source):
    includes = [f"-I{ROOT / 'src'}", *(f"-isystem{f}" for f in folders)]
    compiler = shutil.which("cc") or shutil.which("gcc")
    return subprocess.run(
        [
            compiler,
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsyntax-only",
            *includes,
            "-x",
            "c",
            str(source),
        ],
        capture_output=True,
        text=True,
    )


def test_every_prototype_is_the_header_s():
    found = toolkits()
    if not found and not os.environ.get("LEAKPROBE_CI"):
        pytest.skip("no CUDA toolkit: install nvidia-cuda-runtime and nvidia-cuda-crt to run this")
    assert found, "the headers are part of torch-leakprobe[test]"
    for folders in found.values():
        done = check(folders, HERE / "check_headers.c")
        assert done.returncode == 0, f"{folders[0]}\n{done.stderr[-3000:]}"


def test_another_prototype_is_noticed(tmp_path):
    found = toolkits()
    if not found:
        pytest.skip("no CUDA toolkit")
    text = (HERE / "check_headers.c").read_text()
    other = tmp_path / "other.c"
    other.write_text(
        text.replace(
            "SAME(cudaHostAlloc, void **, size_t, unsigned int)",
            "SAME(cudaHostAlloc, void **, size_t, unsigned long)",
        )
    )
    assert other.read_text() != text
    done = check(next(iter(found.values())), other)
    assert done.returncode != 0 and "cudaHostAlloc has other parameters" in done.stderr
