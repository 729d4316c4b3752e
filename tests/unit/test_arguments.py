"""What the public functions can't take is a LeakprobeError that names it, before anything is done."""

import fractions
import functools
import io

import pytest

import leakprobe
import leakprobe.recording
from leakprobe.errors import LeakprobeError
from leakprobe.integrations.accelerate import LeakprobeCallback
from leakprobe.judge.suppressions import load_rules

REPORT = leakprobe.watch().report()
TAKEN = leakprobe.snapshot()
KEPT = [object()]


async def coroutine(report):
    """Never awaited by a watch."""


def generator(report):
    yield report


class Later:
    async def __call__(self, report):
        """Never awaited either."""


BAD = [
    (lambda: leakprobe.watch(media=None), "bad_argument", "not None; the kinds are cpu"),
    (lambda: leakprobe.watch(media=5), "bad_argument", "media must be names"),
    (lambda: leakprobe.watch(media=[[]]), "bad_argument", "media must be names"),
    (lambda: leakprobe.watch(record="a\0b"), "bad_argument", "record can't be the path 'a\\x00b'"),
    (lambda: leakprobe.watch(record=5), "bad_argument", "record must be the path of a file, not int"),
    (lambda: leakprobe.watch(on_growth=5), "bad_argument", "on_growth must be a function of a report"),
    (lambda: leakprobe.watch(on_cycle="x"), "bad_argument", "on_cycle must be a function of a report"),
    (lambda: leakprobe.watch(on_growth=coroutine), "bad_argument", "on_growth must be a plain function"),
    (lambda: leakprobe.watch(on_cycle=generator), "bad_argument", "on_cycle must be a plain function"),
    (lambda: leakprobe.watch(on_cycle=functools.partial(coroutine)), "bad_argument", "and not awaited"),
    (lambda: leakprobe.watch(on_growth=Later()), "bad_argument", "called and not awaited or iterated"),
    (lambda: leakprobe.watch(media="cuda:x"), "bad_argument", "unknown kind of memory cuda:x"),
    (lambda: leakprobe.watch(workers="no"), "bad_argument", "workers must be True or False, not 'no'"),
    (lambda: leakprobe.watch(warmup=True), "bad_argument", "warmup must be a whole number"),
    (lambda: TAKEN.diff(None), "bad_argument", "older must be a Snapshot"),
    (lambda: LeakprobeCallback(None).steps(None), "bad_argument", "range(100), not None"),
    (lambda: leakprobe.watch().steps(5), "bad_argument", "range(100), not 5"),
    (lambda: LeakprobeCallback(None, log_every=-1), "bad_argument", "a whole number from 0 on, not -1"),
    (lambda: REPORT.parts(5), "bad_argument", "parts() takes a list of names, not 5"),
    (lambda: REPORT.parts("findings"), "bad_argument", "parts() takes a list of names, not 'findings'"),
    (lambda: REPORT.print(file=5), "bad_argument", "file must be a stream of text, as from open(), not int"),
    (lambda: TAKEN.print(file="out.txt"), "bad_argument", "file must be a stream of text"),
    (lambda: TAKEN.diff(TAKEN).print(file=5), "bad_argument", "file must be a stream of text"),
    (lambda: leakprobe.snapshot(graph="yes"), "bad_argument", "graph must be True or False, not 'yes'"),
    (lambda: REPORT.to_json("a\0b"), "unwritable_file", "can't be written: embedded null byte"),
    (lambda: REPORT.to_json(None), "bad_argument", "path must be the path of a file, not NoneType"),
    (lambda: REPORT.save("a\0b"), "unwritable_file", "can't be written: embedded null byte"),
    (lambda: REPORT.save(5), "bad_argument", "path must be the path of a file, not int"),
    (lambda: leakprobe.recording.load(5), "bad_argument", "path must be the path of a file, not int"),
    (lambda: leakprobe.recording.load("a\0b"), "unreadable_file", "can't be read"),
    (lambda: leakprobe.Snapshot.load(5), "bad_argument", "path must be the path of a file, not int"),
    (lambda: load_rules("a\0b"), "unreadable_file", "can't be read: embedded null byte"),
    (lambda: load_rules(5), "bad_argument", "path must be the path of a file, not int"),
    (lambda: leakprobe.why(KEPT, "x"), "bad_argument", "most must be a whole number from 1 to 64, not 'x'"),
    (lambda: leakprobe.why(KEPT, 10**30), "bad_argument", "most must be a whole number from 1 to 64"),
    (lambda: leakprobe.why(KEPT, max_bytes=0), "bad_size", "0 leaves no memory at all"),
    (lambda: leakprobe.find_cycles(max_bytes="0 B"), "bad_size", "'0 B' leaves no memory at all"),
    (lambda: leakprobe.snapshot(max_bytes=0.5), "bad_size", "0.5 leaves no memory at all"),
    (lambda: REPORT.parts(["verdict", "nope"]), "bad_argument", "no part 'nope'; it has verdict, steps"),
    (lambda: REPORT.parts(["source"]), "bad_argument", "a report has no part 'source'"),
]  # fmt: skip


@pytest.mark.parametrize("call, code, words", BAD, ids=[words for _call, _code, words in BAD])
def test_what_can_not_be_taken_is_named(call, code, words):
    with pytest.raises(LeakprobeError) as error:
        call()
    assert error.value.code == code and words in str(error.value)


def test_numbers_of_numpy_are_numbers():
    numpy = pytest.importorskip("numpy")
    for kind in (numpy.int64, numpy.uint8):
        assert leakprobe.watch(warmup=kind(7), stack_depth=kind(3), limit=kind(200))._warmup == 7
    for limit in (numpy.int64(200), numpy.float32(200), fractions.Fraction(200)):
        assert leakprobe.watch(limit=limit)._limit == 200.0
    for warmup in (numpy.bool_(True), numpy.float64(5), fractions.Fraction(5)):
        with pytest.raises(LeakprobeError, match="^warmup must be a whole number"):
            leakprobe.watch(warmup=warmup)


def test_a_page_whose_name_has_a_nul():
    pytest.importorskip("plotly")
    pytest.importorskip("jinja2")
    with pytest.raises(LeakprobeError, match="can't be written") as error:
        REPORT.to_html("a\0b")
    assert error.value.code == "unwritable_file"


@pytest.mark.parametrize("limit", [-1, 0, "x", None, True, 2.0])
def test_a_table_of_no_rows_is_refused_before_anything_is_printed(limit):
    taken = leakprobe.snapshot(graph=True)
    for table in (taken, leakprobe.diff(taken, taken)):
        file = io.StringIO()
        with pytest.raises(LeakprobeError, match="^limit must be a whole number from 1 on") as error:
            table.print(file=file, limit=limit)
        assert error.value.code == "bad_argument" and file.getvalue() == ""
    with pytest.raises(LeakprobeError, match=r"paths\(\): most must be a whole number from 1 on"):
        taken.paths("dict", limit)
