"""When sites are scanned, and where the size of their items comes from, without a heap."""

import types

import pytest

from leakprobe.model.frames import FIRST_SITE
from leakprobe.watch import objects
from leakprobe.watch.followed import Followed

SITES = [FIRST_SITE + 1, FIRST_SITE + 2]


@pytest.fixture
def watched(monkeypatch):
    """Objects whose two sites gain one item a step."""
    core = types.SimpleNamespace(
        forgotten=0,
        leaves={},
        scanned=[],
        series_state=lambda: None,
        series_begin_at=lambda step: None,
        series_rising=lambda since, least: [types.SimpleNamespace(site=site, live=1) for site in SITES],
        scan_begin=lambda sites: core.scanned.append(sites),
        scan_leaf_bytes=lambda since: core.leaves,
    )
    core.forget_looked_up_names = lambda: setattr(core, "forgotten", core.forgotten + 1)
    monkeypatch.setattr(objects, "_core", core)
    monkeypatch.setattr(objects, "spans_of", lambda state, series: None)
    monkeypatch.setattr(objects, "rise_of_last_half", lambda spans, live: 1.0)
    monkeypatch.setattr(objects, "is_of_known_table", lambda site: False)
    return core, objects.Objects(5, 0)


def test_names_are_forgotten_before_a_site_is_asked_for(watched):
    core, found = watched
    assert found.begin(256.0, may_be_large=False) and core.forgotten == 1


def test_a_site_of_leaves_is_known_without_a_walk_and_scanned_no_more_while_it_is_small(watched):
    core, found = watched
    assert found.begin(256.0, may_be_large=False) and core.scanned == [SITES]
    core.leaves = {SITES[0]: 24.0}
    found._note_leaves()
    assert found.begin(256.0, may_be_large=False), "the other site's items are not known"
    core.leaves = dict.fromkeys(SITES, 24.0)
    found._note_leaves()
    assert [found.followed[site].item_bytes for site in SITES] == [24.0, 24.0]
    assert not found.begin(256.0, may_be_large=False) and found.begin(0.0, may_be_large=False), (
        "at the end all are scanned"
    )
    core.leaves = {SITES[0]: 24.0, SITES[1]: 4000.0}
    found._note_leaves()
    assert found.begin(256.0, may_be_large=False), "what makes more than the limit is asked for"


def test_what_a_walk_has_met_stays(watched):
    core, found = watched
    found.begin(256.0, may_be_large=False)
    known = found.followed.setdefault(SITES[0], Followed())
    known.item_bytes, known.is_settled = 700.0, True
    core.leaves = dict.fromkeys(SITES, 24.0)
    found._note_leaves()
    assert [found.followed[site].item_bytes for site in SITES] == [700.0, 24.0]
    core.leaves = {}
    found._note_leaves()
    assert [found.followed[site].item_bytes for site in SITES] == [700.0, None]


def test_what_only_a_walk_can_say_is_not_asked_for_again(watched):
    core, found = watched
    found.begin(256.0, may_be_large=False)
    core.leaves = {SITES[0]: None, SITES[1]: 24.0}
    found._note_leaves()
    core.leaves = dict.fromkeys(SITES, 24.0)
    found._note_leaves()
    assert [found.followed[site].item_bytes for site in SITES] == [None, 24.0]
    found.followed[SITES[1]].is_settled = True
    core.scan_leaf_bytes = None  # it costs a reading of all mappings
    found._note_leaves()
