"""How many steps the memory lasts, told of growth that has no end of its own."""

import pytest
from sample_reports import finding

from leakprobe.watch.forecast import limit_notes

FAST = 2.0**40


@pytest.mark.parametrize(
    "changes, is_told",
    [
        ({}, True),
        ({"pattern": "within_epoch"}, False),  # released at the end of each epoch
        ({"cause": "copy_on_access", "medium": "worker"}, False),  # its evidence says where it ends
        ({"cause": "copied_by_collection", "medium": "worker"}, False),
    ],
)
def test_what_ends_by_itself_does_not_reach_the_limit(changes, is_told):
    notes = limit_notes([finding(bytes_per_step=FAST, **changes)], 1000)
    assert [note.kind for note in notes] == ["memory_limit"] * is_told
