"""Lines of source around a finding: only of what is a file."""

import os

from leakprobe.model.source import excerpts


def test_lines_around_a_place(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("".join(f"line {n}\n" for n in range(1, 30)))
    assert excerpts({(str(path), 10)}) == {str(path): {n: f"line {n}" for n in range(6, 15)}}


def test_a_pipe_or_a_folder_in_place_of_the_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert excerpts({(str(tmp_path / "pipe"), 1), (str(tmp_path), 1), (str(tmp_path / "missing"), 1)}) == {}
