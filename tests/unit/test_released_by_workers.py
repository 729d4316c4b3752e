"""What grows in workers and ends with them, epoch after epoch, whichever epochs had a verdict on it."""

import types

import pytest

from leakprobe.judge.workers import identity, is_released


def finding(line=21):
    """What the rule asks of one."""
    allocation = types.SimpleNamespace(filename="data.py", lineno=line)
    return types.SimpleNamespace(
        fingerprint="f",
        cause="growing_container",
        medium="numpy",
        type="numpy.ndarray",
        allocation=allocation,
        holder={"text": ".pictures (dict, 94 items)"},
    )


def workers(batches, *found, key=1, persistent=False):
    """The two workers of an epoch, the first of which has these findings."""
    return types.SimpleNamespace(
        loader_key=key,
        count=2,
        is_persistent=persistent,
        postings=[types.SimpleNamespace(batches=batches // 2)] * 2,
        findings=lambda slot: found if slot == 0 else (),
    )


CAUSE = identity(finding())


@pytest.mark.parametrize("at", [(3,), (0, 4), (0, 1, 2, 3, 4)])
def test_one_epoch_with_a_verdict_is_enough(at):
    assert is_released(CAUSE, [workers(34, *[finding()] * (i in at)) for i in range(5)])


def test_two_epochs_show_nothing():
    assert not is_released(CAUSE, [workers(34), workers(34, finding())])


def test_workers_that_stay_release_nothing():
    assert not is_released(CAUSE, [workers(34, finding(), persistent=True) for _ in range(5)])


def test_epochs_that_get_longer_have_a_peak_that_rises():
    assert not is_released(CAUSE, [workers(20 + 30 * i, finding()) for i in range(8)])


def test_each_loader_that_has_it_must_release_it():
    short = [workers(34, finding(), key=2)]
    assert not is_released(CAUSE, [workers(34, finding()) for _ in range(5)] + short)
    assert is_released(CAUSE, [workers(34, finding()) for _ in range(5)] + [workers(34, key=2)])
