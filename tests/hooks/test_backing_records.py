"""The largest blocks that a line grew: containers filled with what lived before, strings grown in place."""

import contextlib
import io
import sys
import sysconfig

import pytest

from leakprobe import _core
from leakprobe.errors import LeakprobeError
from leakprobe.model.frames import PACKAGE_DIR
from leakprobe.watch.followed import Line


@contextlib.contextmanager
def hooks():
    _core.start(16, PACKAGE_DIR)
    try:
        yield
    finally:
        _core.stop()


def lines(records):
    """{function: record} of those of this file."""
    found = {}
    for record in records:
        frames = _core.site_frames(record.site)
        if frames and frames[0][0] == __file__:
            found[frames[0][2].rsplit(".", 1)[-1]] = record
    return found


def fill_list(kept):
    kept.extend([None] * 50)


def temporary(step):
    return [None] * (600 + step % 3)


def run(steps):
    kept, text = [], ""
    for step in range(steps):
        fill_list(kept)
        text += "x" * 400  # in place: nobody else holds it
        temporary(step)
        _core.mark()
    return len(kept), len(text)


def test_what_grows_sets_records_again_and_again():
    with hooks():
        items, characters = run(200)
        found = lines(_core.backing_records(100, 5))
        assert set(found) == {"fill_list", "run"}
        row = found["fill_list"]
        assert items * 8 <= row.bytes <= items * 8 * 9 / 8 + 64 and row.first_step <= 2
        assert row.first_bytes < row.bytes / 20 and row.last_step > 150
        assert abs(found["run"].bytes - characters) < 100


def test_what_is_level_sets_no_record_later():
    with hooks():
        run(60)
        assert "temporary" in lines(_core.backing_records(0, 1))
        assert "temporary" not in lines(_core.backing_records(10, 1))


def made_anew(text):
    return text + "y" * 400  # the old one has another name still: a new object


def built_at_once(parts):
    stream = io.BytesIO()
    for _ in range(parts):
        stream.write(b"x" * 500)
    return stream


def run_anew(steps):
    text = ""
    for _ in range(steps):
        before = text
        text = made_anew(before)
        _core.mark()
    return text


def test_what_is_made_anew_and_larger_is_followed_when_asked_for():
    with hooks():
        _core.follow_large(True)
        try:
            text = run_anew(60)
            row = lines(_core.backing_records(20, 5))["made_anew"]
        finally:
            _core.follow_large(False)
        assert abs(row.bytes - len(text)) < 100 and row.first_step < 10
        noted = row.bytes
        run_anew(120)
        row = lines(_core.backing_records(0, 1))["made_anew"]
        seen_without = sys.version_info < (3, 13) or sysconfig.get_config_var("Py_GIL_DISABLED")
        assert (row.bytes > noted) == bool(seen_without)


def test_an_object_of_an_earlier_step_that_is_extended_is_known_as_such():
    """Whatever called for it: who extends a block hands over what is in it."""
    with hooks():
        _core.follow_large(True)
        try:
            stream = io.BytesIO()
            for _ in range(60):
                stream.write(b"x" * 2000)
                built_at_once(20)
                _core.mark()
            run_anew(60)
        finally:
            _core.follow_large(False)
        found = lines(_core.backing_records(0, 1))
        row = found["test_an_object_of_an_earlier_step_that_is_extended_is_known_as_such"]
        assert row.extended_steps >= 0.8 * row.record_steps >= 16
        assert found["built_at_once"].extended_steps == found["made_anew"].extended_steps == 0


def write(sink):
    sink.write(b"x" * 3000)


def write_more(sink):
    sink.write(b"y" * 3000)


def extend(sink):
    sink.extend([None] * 400)


def extend_more(sink):
    sink.extend([None] * 400)


@pytest.mark.parametrize("make, one, other", [(io.BytesIO, write, write_more), (list, extend, extend_more)])
def test_lines_that_extend_the_same_block_in_turn_are_one_record_too(make, one, other):
    with hooks():
        kept, beside = make(), make()
        for step in range(120):
            (one if step // 3 % 2 else other)(kept)
            if step < 60:
                fill_list([])
            _core.mark()
        one(beside)
        together = [row for row in _core.backing_records(0, 5) if row.lines == 2]
        each = [row for row in _core.backing_records(0, 1) if row.family == together[0].family]
        assert len(together) == 1 and [row.lines for row in each] == [1, 1, 2]
        assert set(lines(each[:2])) == {one.__name__, other.__name__}
        assert together[0].bytes == max(row.bytes for row in each) >= 300_000
        assert together[0].record_steps == sum(row.record_steps for row in each[:2])


def test_what_is_remembered_of_lines_is_leakprobes_own():
    """A generated __init__ would have made these lists in a file that is nobody's."""
    with hooks():
        line = Line()
        made = (line.totals, line.totals.points, line.followed, line.followed.scans)
        assert {_core.site_of(one).site for one in made} == {_core.SITE_SELF}


def test_a_new_start_forgets():
    with hooks():
        run(20)
        assert lines(_core.backing_records(0, 1))
    with hooks():
        assert not lines(_core.backing_records(0, 1))


def test_arguments_are_checked():
    with pytest.raises(TypeError):
        _core.backing_records("a", 1)


def keep_one(kept):
    kept.append([None, kept])


def test_live_ones_of_asked_lines_are_counted_as_those_of_all_are():
    with hooks():
        kept = []
        for _ in range(50):
            keep_one(kept)
        by_base = {}
        for site, live in _core.live_counts().items():
            by_base[_core.site_base(site)] = by_base.get(_core.site_base(site), 0) + live
        asked = [site for site in by_base if _core.site_frames(site)[:1] != []]
        found = _core.live_of(asked)
        of_keep = [
            s
            for s in asked
            if _core.site_frames(s)[0][:2] == (__file__, keep_one.__code__.co_firstlineno + 1)
        ]
        assert sum(found[site] for site in of_keep) == 50
        assert all(found[site] == by_base[site] for site in of_keep)
        assert _core.live_of([]) == {}
        with pytest.raises(LeakprobeError, match="1048575 is not the number of a site"):
            _core.live_of([1048575])


def in_both(one, part, other, rest):
    one.extend(part), other.extend(rest)


def in_one(one, part, other, rest):
    one.extend(part)


def in_other(one, part, other, rest):
    other.extend(rest)


def test_two_instructions_of_a_line_belong_to_one_family():
    """What one of them shares with a second line, and the other with a third, is of all three."""
    one, other, more = [], [], [None] * 80
    with hooks():
        for i in range(30):
            is_first = i < 12
            turn = in_both if i % 2 == 0 else in_one if is_first else in_other
            turn(one, more if is_first else [], other, [] if is_first else more)
            _core.mark()
        records = lines(_core.backing_records(0, 1))
    assert len({records[name].family for name in ("in_both", "in_one", "in_other")}) == 1
