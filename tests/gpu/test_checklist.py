"""The rows of checklist.py as tests, for `pytest -m gpu`; and what it does where there is no GPU."""

import json

import checklist
import forked
import pytest

CHECKLIST = checklist.__file__


@pytest.fixture(scope="module")
def gpu():
    reason = checklist.why_no_gpu()
    if reason:
        pytest.skip(f"not run on a GPU: {reason}")


@pytest.mark.gpu
@pytest.mark.parametrize("row", checklist.ROWS)
def test_row(row, gpu):
    result, text = checklist.run_apart(row)
    if result == "skip":
        pytest.skip(text)
    assert result == "pass", text


def run(*arguments):
    pytest.importorskip("torch", exc_type=ImportError)
    return forked.run([CHECKLIST, *arguments], timeout=120)


def test_without_a_gpu_it_says_so_and_runs_nothing(tmp_path):
    if checklist.why_no_gpu() is None:
        pytest.skip("there is a GPU")
    done = run("--json", str(tmp_path / "table.json"))
    assert done.returncode == 3 and done.stdout.startswith("not run on a GPU: ") and not done.stderr
    assert not (tmp_path / "table.json").exists()


def test_a_row_that_fails_is_a_row_with_the_reason():
    done = run("--one", "out_of_memory")
    if checklist.why_no_gpu() is None:
        pytest.skip("there is a GPU")
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    assert answer["result"] == "FAIL" and "at line" in answer["text"]


def test_unknown_rows_are_named():
    done = run("no_such_row")
    assert done.returncode == 2 and "no_such_row" in done.stderr and "record_stream" in done.stderr


def test_rows_and_functions_agree():
    functions = {name[4:] for name in dir(checklist) if name.startswith("row_")}
    assert functions == set(checklist.ROWS)


def test_the_wheel_check_finds_slots_and_names_what_is_missing(tmp_path):
    """On the stand-ins: some of the slots of libc10_cuda, none of the rest."""
    import wheel_slots
    from standins import build_standins

    build_standins(tmp_path)
    (tmp_path / "libc10_cuda_standin.so").rename(tmp_path / "libc10_cuda.so")
    lines = []
    missing = wheel_slots.check(tmp_path, lines.append)
    text = "\n".join(lines)
    assert (
        f"JUMP_SLOT  {wheel_slots.REPORT}" in text and "libtorch_cuda.so: not there" in text and missing >= 4
    )
    assert wheel_slots.main([str(tmp_path / "nothing.whl")]) == 2
