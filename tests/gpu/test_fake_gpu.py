"""What fake_gpu.py says where it can't do anything; that it works is shown by what runs on it."""

import pathlib

import fake_gpu
import pytest


def a_toolkit(folder: pathlib.Path, version: int) -> pathlib.Path:
    include = folder / "include"
    (include / "crt").mkdir(parents=True)
    (include / "crt/host_defines.h").touch()
    (include / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {version}\n")
    return include


def a_torch(folder: pathlib.Path, cuda: str) -> pathlib.Path:
    (folder / "torch").mkdir()
    (folder / "torch/version.py").write_text(f"__version__ = '9.9'\ncuda: Optional[str] = {cuda}\n")
    return folder / "torch"


def only(monkeypatch, torch, *includes):
    monkeypatch.setattr(fake_gpu, "folder_of", {"torch": torch}.get)
    monkeypatch.setattr(fake_gpu, "toolkits", lambda: {str(i): [i] for i in includes})


def test_the_headers_are_those_of_torch_s_major_version(tmp_path, monkeypatch):
    old, new = a_toolkit(tmp_path / "old", 12080), a_toolkit(tmp_path / "new", 13010)
    only(monkeypatch, a_torch(tmp_path, "'13.0'"), old, new)
    assert fake_gpu.headers() == [new]


@pytest.mark.parametrize(
    ("cuda", "said"), [("None", "not built for CUDA"), ("'13.0'", "no headers of CUDA 13")]
)
def test_what_is_missing_is_named(cuda, said, tmp_path, monkeypatch):
    only(monkeypatch, a_torch(tmp_path, cuda), a_toolkit(tmp_path / "old", 12080))
    with pytest.raises(SystemExit, match=said):
        fake_gpu.headers()


def test_without_a_command_it_explains_itself(capsys):
    assert fake_gpu.main([]) == 2
    assert "preloads them" in capsys.readouterr().err
