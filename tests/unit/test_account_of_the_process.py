"""The rise of private memory that neither buffers nor CPython's heap account for."""

import types

import pytest

from leakprobe.model.media import PRIVATE
from leakprobe.watch import process_account


@pytest.mark.parametrize("part_seen, is_rise", [(0.0, True), (0.3, True), (0.7, False), (1.0, False)])
def test_what_is_seen_is_no_rise_even_where_it_has_just_stopped(part_seen, is_rise, monkeypatch):
    kept = [0]
    account_of = lambda _: types.SimpleNamespace(resident=10**8 + kept[0], mapped=10**8 + kept[0])
    monkeypatch.setattr(process_account, "seen_bytes", lambda: int(part_seen * kept[0]))
    account = process_account.ProcessAccount(5, PRIVATE)
    for step in range(1, 106):
        kept[0] = 65536 * min(step, 100)
        account.mark(step, account_of)
    rise = account.rise(256.0)
    assert (rise is not None) == is_rise
    if rise is not None:
        assert rise.slope == pytest.approx(65536, rel=0.1)


@pytest.mark.parametrize(
    "buffers, malloc, is_rise",
    [(0, 0, True), (10**6, 10**6, True), (10**8, 0, False), (0, 10**8, False), (0, None, False)],
)
def test_what_was_mapped_beforehand_may_be_a_buffer_that_is_filled(buffers, malloc, is_rise, monkeypatch):
    kept = [0]
    account_of = lambda _: types.SimpleNamespace(resident=10**8 + kept[0], mapped=10**9)
    monkeypatch.setattr(process_account, "seen_bytes", lambda: buffers)
    monkeypatch.setattr(process_account, "buffer_bytes", lambda: buffers)
    known = None if malloc is None else {"mapped": malloc}
    monkeypatch.setattr(process_account._core, "malloc_info", lambda: known)
    account = process_account.ProcessAccount(5, PRIVATE)
    for step in range(1, 106):
        kept[0] = 65536 * step
        account.mark(step, account_of)
    rise = account.rise(256.0)
    assert (rise is not None) == is_rise
    if rise is not None:
        assert rise.slope == pytest.approx(65536, rel=0.1)
