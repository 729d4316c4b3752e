"""Growth beside what is larger, older or gone: each is judged by itself."""

import collections
import functools
import random

import numpy as np
import pytest

import leakprobe


class Store:
    def __init__(self):
        self.items = {}


def findings_of(loop, steps, **options):
    with leakprobe.watch(**options) as probe:
        loop(probe.steps(range(steps)))
    return probe.report()


@pytest.mark.parametrize("every", [1000, 50])
def test_a_larger_block_in_the_same_dict_hides_no_growth(every):
    store = Store()

    def loop(steps):
        for step in steps:
            if step % every == 10:
                store.items["best"] = np.zeros(200_000)
            store.items["loss", step] = np.zeros(60)

    report = findings_of(loop, 300)
    (finding,) = report.findings
    assert finding.cause == "growing_container" and finding.type == "numpy.ndarray"
    assert finding.bytes_per_step == pytest.approx(660, rel=0.05)


def test_a_ring_in_the_same_dict_hides_no_growth():
    store = Store()

    def loop(steps):
        for step in steps:
            store.items[step % 50] = np.zeros(4000)
            store.items["loss", step] = np.zeros(60)

    (finding,) = findings_of(loop, 400).findings
    assert finding.bytes_per_step == pytest.approx(660, rel=0.1)


@pytest.mark.parametrize(
    "make", [lambda: "y" * 2000, lambda: b"y" * 2000, lambda: [0.5] * 250], ids=["str", "bytes", "list"]
)
def test_a_window_that_is_full_is_no_growth(make):
    def loop(steps):
        window = make()
        for _ in steps:
            window = (window + make())[-70 * len(make()) :]

    report = findings_of(loop, 1500)
    assert report.verdict == "steady", report.findings


@pytest.mark.parametrize("warmup, measured", [(500, 50), (1000, 60), (5000, 300)])
def test_a_long_warmup_costs_no_verdict(warmup, measured):
    kept, arrays = [], []

    def loop(steps):
        for step in steps:
            kept.append([0.5 * step] * 1000)
            arrays.append(np.zeros(1000))

    report = findings_of(loop, warmup + measured, warmup=warmup)
    assert len(report.findings) == 2
    for finding in report.findings:
        assert finding.bytes_per_step == pytest.approx(8050, rel=0.05) and finding.onset_step == warmup


def test_what_was_cleared_leaves_nothing_open():
    kept = []

    def loop(steps):
        for step in steps:
            if step in (10, 20, 30, 40):
                kept.append(bytes(200_000))
            if step == 60:
                kept.clear()

    report = findings_of(loop, 1000)
    assert report.verdict == "steady", report.notes


def test_what_a_phase_let_go_of_is_none_of_the_next_one():
    kept = []

    def first(probe):
        local = []
        for step in range(80):
            local.append(np.zeros(300))
            kept.append([0.5 * step] * 40)
            probe.step()

    def second(probe):
        for step in range(80):
            kept.append([0.5 * step] * 40)
            probe.step()

    with leakprobe.watch() as probe:
        first(probe)
        assert len(probe.report().findings) == 2
        for _ in range(2):
            second(probe)
            (finding,) = probe.report().findings
            assert finding.type == "list"


def test_the_tables_of_many_holders_count():
    lists = [[] for _ in range(400)]

    def loop(steps):
        for step in steps:
            for item in lists[step % 10 :: 10]:
                item.append(step + 0.5)

    (finding,) = findings_of(loop, 400).findings
    assert finding.bytes_per_step == pytest.approx(40 * (24 + 9), rel=0.1)


@pytest.mark.parametrize("most", [100_000, 200])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_list_of_what_a_deque_drops_grows(most, is_first):
    recent, log = collections.deque(maxlen=most), []

    def loop(steps):
        for _ in steps:
            item = np.zeros(1000)
            for holder in (recent, log) if is_first else (log, recent):
                holder.append(item)

    (finding,) = findings_of(loop, 300).findings
    assert "(list, 300 items)" in finding.holder["text"]
    assert finding.bytes_per_step == pytest.approx(8080, rel=0.05)


def test_a_list_of_what_a_cache_drops_grows():
    cached, log = functools.lru_cache(maxsize=4096)(lambda step: np.zeros(1000)), []

    def loop(steps):
        for step in steps:
            log.append(cached(step))

    (finding,) = findings_of(loop, 300).findings
    assert finding.holder["text"].startswith("log ") and finding.cause == "growing_container"


class Recent:
    def __init__(self):
        self.items, self.copy = collections.deque(maxlen=1000), None


@pytest.mark.parametrize(
    "copied",
    [
        list,
        tuple,
        lambda items: dict(enumerate(items)),
        lambda items: [items[-1 - i % len(items)] for i in range(16)],
    ],
    ids=["list", "tuple", "dict", "batch"],
)
@pytest.mark.parametrize("is_local", [True, False])
def test_a_copy_of_a_deque_that_fills_is_no_growth(copied, is_local):
    recent = Recent()

    def loop(steps):
        for _ in steps:
            recent.items.append(np.zeros(1000))
            copy = copied(recent.items)
            if not is_local:
                recent.copy = copy

    report = findings_of(loop, 300)
    assert report.verdict == "steady", report.findings
    assert any("filling, 300 of 1000" in note.text for note in report.notes)


def test_bounded_holders_below_one_another():
    class Log:
        def __init__(self):
            self.pages = collections.deque([collections.deque([self], maxlen=100_000)], maxlen=100_000)

    log = Log()

    def loop(steps):
        for _ in steps:
            log.pages.append(np.zeros(100))
            log.pages[0].append(np.zeros(100))

    report = findings_of(loop, 200)
    assert report.verdict == "steady", report.findings


@pytest.mark.parametrize("most", [10, 50])
def test_copies_of_a_window_that_are_kept_grow(most):
    window, copies = collections.deque(maxlen=most), []

    def loop(steps):
        for step in steps:
            window.append(np.zeros(500))
            if step % 10 == 0:
                copies.append(list(window))

    (finding,) = findings_of(loop, 300).findings
    assert finding.holder["text"].startswith("copies (") and finding.bytes_per_step == pytest.approx(
        4100, rel=0.1
    )


class Node:
    def __init__(self, before):
        self.before, self.data = before, bytearray(2000)


class Chain:
    head = None


def test_a_chain_of_which_a_deque_has_the_newest_links_grows():
    recent, chain = collections.deque(maxlen=20), Chain()

    def loop(steps):
        for _ in steps:
            chain.head = Node(chain.head)
            recent.append(chain.head)

    (finding,) = findings_of(loop, 300).findings
    assert finding.cause == "growing_chain" and ".head" in finding.holder["text"]


class Sampled:
    def __init__(self):
        self.replay, self.places = collections.deque(maxlen=10_000), {}


def test_a_dict_of_few_places_beside_a_deque_that_fills_is_no_growth():
    kept, dice = Sampled(), random.Random(0)

    def loop(steps):
        for step in steps:
            item = np.zeros(2000)
            kept.replay.append(item)
            place = step if step < 20 else dice.randrange(step + 1)
            if place < 20:
                kept.places[place] = item

    report = findings_of(loop, 600)
    assert report.verdict == "steady", report.findings
