"""Sizes and rates are read with the words they are printed with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakprobe.errors import LeakprobeError
from leakprobe.model.units import format_rate, format_size, parse_limit, parse_rate, parse_share, parse_size
from leakprobe.watch.arguments import checked_limit


@pytest.mark.parametrize(
    "text, size",
    [
        ("300", 300),
        (300, 300),
        (0, 0),
        ("0 B", 0),
        ("1 B", 1),
        ("12 bytes", 12),
        ("64 KiB", 65536),
        ("64kib", 65536),
        ("1 MB", 1_000_000),
        ("1.5 MiB", 1_572_864),
        (" 2 GiB ", 2 * 1024**3),
    ],
)
def test_parse_size(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "KiB",
        "1 XB",
        "1,5 MB",
        "-1 B",
        "1e3",
        "nan",
        None,
        True,
        [],
        -1,
        float("nan"),
        float("inf"),
        "9" * 400,
        10**400,
    ],
)
def test_what_is_no_size_is_an_error_that_says_so(text):
    with pytest.raises(LeakprobeError) as error:
        parse_size(text)
    assert error.value.code == "bad_size"
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    "text, rate",
    [
        ("256 B/step", 256),
        ("64 KiB/step", 65536),
        ("64 KiB", 65536),
        ("+6.0 MiB/step", 6 * 2**20),
        (10, 10),
        ("1 MB / step", 10**6),
    ],
)
def test_parse_rate(text, rate):
    assert parse_rate(text) == rate


NO_NUMBER_OF_BYTES = [float("nan"), float("inf"), -1, -0.5, 10**400, -(10**400), 10**5000]


@pytest.mark.parametrize("text", ["fast", "1 KiB/epoch", "1 KiB/", "/step", None, ""])
def test_what_is_no_rate_is_an_error_that_says_so(text):
    with pytest.raises(LeakprobeError) as error:
        parse_rate(text)
    assert error.value.code == "bad_argument"
    assert "B/step" in str(error.value)


@pytest.mark.parametrize("number", NO_NUMBER_OF_BYTES, ids=type)
def test_a_limit_is_a_finite_number(number):
    with pytest.raises(
        LeakprobeError, match='limit must be finite and not negative, not .*; try "256'
    ) as error:
        checked_limit(number)
    assert error.value.code == "bad_argument" and len(str(error.value)) < 200


@pytest.mark.parametrize("parse", [parse_limit, parse_share])
@pytest.mark.parametrize("number", NO_NUMBER_OF_BYTES, ids=type)
def test_a_memory_limit_is_a_finite_number(parse, number):
    with pytest.raises(LeakprobeError) as error:
        parse(number)
    assert error.value.code == "bad_size" and len(str(error.value)) < 200


@pytest.mark.parametrize(
    "size, text",
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (99.94 * 1024, "99.9 KiB"),
        (99.96 * 1024, "100 KiB"),
        (1023 * 1024, "1.0 MiB"),
        (360 * 2**20, "360 MiB"),
        (5 * 2**40, "5.0 TiB"),
        (-1536, "-1.5 KiB"),
    ],
)
def test_format_size(size, text):
    assert format_size(size) == text


def test_format_rate():
    assert format_rate(6 * 2**20) == "+6.0 MiB/step"
    assert format_rate(-1536) == "-1.5 KiB/step"


@given(st.floats(min_value=0, max_value=2.0**49))
def test_a_printed_size_reads_as_nearly_the_same(size):
    """Three digits are printed: half a unit of the last one is lost at most."""
    assert parse_size(format_size(size)) == pytest.approx(size, rel=0.06, abs=0.5)
    assert parse_rate(format_rate(size)) == parse_size(format_size(size))
