"""Errors: one base, the built-in exception that a caller may expect, and codes that survive pickling."""

import copy
import pathlib
import pickle
import re

import pytest

import leakprobe
from leakprobe.errors import (
    KINDS,
    LeakprobeError,
    LeakprobeOSError,
    LeakprobeRuntimeError,
    LeakprobeValueError,
)

ROOT = pathlib.Path(__file__).parents[2]
CODE = re.compile(
    r'(?:(?:LeakprobeError|NoModule)\(.*?,\s*"([a-z_]+)"\s*,?\s*\)|lp_raise\("([a-z_]+)")', re.DOTALL
)


def codes() -> set[str]:
    sources = [*ROOT.glob("leakprobe/**/*.py"), *ROOT.glob("src/**/*.c")]
    return {one or other for path in sources for one, other in CODE.findall(path.read_text())}


def test_each_code_of_the_sources_has_a_kind():
    found = codes()
    assert {"bad_argument", "unreadable_file", "already_active"} <= found
    assert found - {"error"} <= set(KINDS)


@pytest.mark.parametrize("code", sorted(KINDS))
def test_an_error_is_made_by_its_code(code):
    error = LeakprobeError("what was wrong", code)
    assert type(error) is KINDS[code] and error.code == code and str(error) == "what was wrong"
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(other), other.code, str(other)) == (type(error), code, "what was wrong")


def test_an_unknown_code_is_the_base():
    assert type(LeakprobeError("text", "another")) is LeakprobeError
    assert LeakprobeError("text").code == "error"


def test_the_builtin_exceptions_catch_them(tmp_path):
    with pytest.raises(ValueError, match="warmup") as caught:
        leakprobe.watch(warmup=-1)
    assert type(caught.value) is LeakprobeValueError
    with pytest.raises(OSError, match="can't be read") as caught:
        leakprobe.Snapshot.load(tmp_path / "missing")
    assert type(caught.value) is LeakprobeOSError
    with leakprobe.watch(), pytest.raises(RuntimeError) as caught:
        leakprobe.start()
    assert type(caught.value) is LeakprobeRuntimeError and caught.value.code == "already_active"
