"""Descriptors that the program closed under leakprobe: whoever has the number since keeps what it opened."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/hooks")
from fresh import run

from leakprobe import _core
from leakprobe.torch.board import Board, Posting


def test_a_number_that_is_someone_elses_is_left_open(tmp_path):
    (tmp_path / "ours").write_text("1")
    (tmp_path / "theirs").write_text("2")
    number = os.open(tmp_path / "ours", os.O_RDONLY)
    kept = _core.Descriptor(number)
    assert kept.is_own()
    os.close(number)
    assert not kept.is_own()
    theirs = os.open(tmp_path / "theirs", os.O_RDONLY)
    assert theirs == number and not kept.is_own()
    kept.close()
    del kept
    assert os.pread(theirs, 1, 0) == b"2"
    os.close(theirs)


def test_a_descriptor_goes_with_its_last_reference(tmp_path):
    (tmp_path / "ours").write_text("1")
    number = os.open(tmp_path / "ours", os.O_RDONLY)
    _core.Descriptor(number)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    with pytest.raises(OSError, match="Bad file descriptor"):
        _core.Descriptor(number)


def test_a_board_keeps_no_descriptor():
    before = set(os.listdir("/proc/self/fd"))
    board = Board.create(2)
    other = Board.open_at(board.path, 2)
    assert set(os.listdir("/proc/self/fd")) == before
    other.post_counts(1, Posting(1, 42, 7, 0, 0))
    assert board.read_counts(1).pid == 42
    other.close()
    board.close()
    with pytest.raises(ValueError, match="released memoryview"):
        board.is_stopped()


def test_a_mapping_is_no_longer_than_its_file(tmp_path):
    path = pathlib.Path(tmp_path, "short")
    path.write_bytes(b"x" * 100)
    with open(path, "r+b") as file:
        for size in (101, 0, -1):
            with pytest.raises(ValueError, match="shorter than its mapping"):
                _core.SharedMap(file.fileno(), size)
        view = memoryview(_core.SharedMap(file.fileno(), 100))
    view[0] = 65
    assert path.read_bytes()[:2] == b"Ax"


def test_a_program_that_closes_all_descriptors_keeps_what_it_opens_next(tmp_path):
    """A watch with DataLoader's boards and its own reads of /proc under it, from beginning to end."""
    pytest.importorskip("torch")
    out = run(
        f"""
        import json, os
        import leakprobe
        from leakprobe.torch.board import Board
        with leakprobe.watch() as probe:
            board = Board.create(4)
            probe.step()
            os.closerange(3, 256)
            mine = [os.open({str(tmp_path)!r} + "/" + str(n), os.O_RDWR | os.O_CREAT) for n in range(40)]
            identities = [os.fstat(n).st_ino for n in mine]
            for _ in range(20):
                probe.step()
            board.close()
        print(json.dumps([identities == [os.fstat(n).st_ino for n in mine], [os.fstat(n).st_size for n in mine], probe._state]))
        """
    )
    assert out == [True, [0] * 40, "OFF"]
