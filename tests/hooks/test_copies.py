"""Copy-on-access: which attribute forked workers copy, how much, and where it ends."""

import os
import re
import types

import pytest
from worker_support import run_script, worker_findings

from leakprobe.torch import copies
from leakprobe.torch.board import Board, Collection
from leakprobe.torch.copies import Followed, Sample

pytest.importorskip("torch", exc_type=ImportError)

MAIN = """
class Texts(Dataset):
    def __init__(self, data): self.texts = data
    def __len__(self): return len(self.texts)
    def __getitem__(self, k): return len(self.texts[k])
n = 120_000
strings = {strings}
dataset = Texts({data})
loader = DataLoader(dataset, batch_size=300, num_workers=2, shuffle={shuffle}, multiprocessing_context={method!r})
from leakprobe import _core
first = []
def on_growth(report):
    first.append([probe._steps, report.findings[0].evidence])
with leakprobe.watch(on_growth=on_growth) as probe:
    iterator = iter(loader)
    for i, batch in enumerate(probe.steps(iterator)):
        if i == len(loader) - 2:
            worker = next(iter(probe._workers.copies.of_set.values()), None)
            measured = [f.walk.reach.copied(f.attribute.region, iterator._workers[0].pid)["private"] * 4096
                        for f in (worker.followed if worker and worker.followed else [])]
    del iterator
tell(probe, first=first, measured=measured, steps=len(loader))
"""
STRINGS = '["%0120d" % k for k in range(n)]'


def script(data="strings", shuffle=True, method="fork", strings=STRINGS):
    return MAIN.format(data=data, shuffle=shuffle, method=method, strings=strings)


def predicted(evidence) -> float:
    size, unit = re.search(r"ends at \+([\d.]+) ([KMG]iB) per worker", evidence).groups()
    return float(size) * {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]


@pytest.mark.parametrize("shuffle", [True, False], ids=["shuffled", "in order"])
def test_a_list_of_strings_is_found_in_the_first_epoch_with_its_end_size(shuffle, tmp_path):
    result = run_script(tmp_path, script(shuffle=shuffle))
    findings = worker_findings(result)
    assert [f["cause"] for f in findings] == ["copy_on_access"], result["report"]
    finding = findings[0]
    assert (
        finding["evidence"].startswith("dataset.texts: list of 120,000 str, ")
        and "shared at fork" in finding["evidence"]
    )
    assert finding["holder"]["text"] == "dataset.texts" and finding["path"][1]["text"].startswith(".texts")
    step, early = result["first"][0]
    assert step < result["steps"] / 2
    for evidence in (early, finding["evidence"]):
        assert 0.8 < predicted(evidence) / max(result["measured"]) < 1.2, (evidence, result["measured"])
    assert result["left"] == {"children": 0, "files": []}


@pytest.mark.parametrize(
    "data",
    [
        "np.array(strings)",
        "torch.frombuffer(bytearray(''.join(strings), 'ascii'), dtype=torch.uint8).reshape(n, -1)",
        "__import__('pandas').Series(strings, dtype='string[pyarrow]').array",
        "__import__('datasets').Dataset.from_dict({'t': strings})",
    ],
    ids=["numpy", "torch", "arrow", "datasets"],
)
def test_the_cures_are_silent(data, tmp_path):
    for module in ("pandas", "datasets"):
        if module in data:
            pytest.importorskip(module)
            pytest.importorskip("pyarrow")
    result = run_script(tmp_path, script(data))
    assert result["report"]["verdict"] == "steady", result["report"]["findings"]


COLLECTS = """
class Records(Dataset):
    def __init__(self): self.records = [[str(k), [k]] for k in range(300_000)]
    def __len__(self): return 2000
    def __getitem__(self, k):
        if k == {collects_at}: gc.collect()
        return k + len(self.records[{first}:150 * (k + 1)])
with leakprobe.watch() as probe:
    train(DataLoader(Records(), batch_size=4, num_workers=1, multiprocessing_context='fork'), probe)
tell(probe)
"""


def test_memory_that_a_collection_copies_is_told_apart(tmp_path):
    main = COLLECTS.format(collects_at=200, first="150 * k + 150")
    findings = worker_findings(run_script(tmp_path, main))
    assert [f["cause"] for f in findings] == ["copied_by_collection"], findings
    assert "gc.freeze()" in findings[0]["fix"] and findings[0]["evidence"].startswith(
        "dataset.records: list of 300,000 list"
    )


def test_a_collection_that_comes_when_most_has_been_read_is_not_the_cause(tmp_path):
    main = COLLECTS.format(collects_at=1500, first="150 * k")
    findings = worker_findings(run_script(tmp_path, main))
    assert [f["cause"] for f in findings] == ["copy_on_access"], findings


def followed(samples, collection):
    """One attribute of 1,200 pages, 1,000 of them with containers; samples: (batches, faults, private)."""
    found = Followed(None, None)
    found.tracked_pages = 1000
    found.samples[0] = [
        Sample(batches, batches, faults, faults, private + private // 5, private, [])
        for batches, faults, private in samples
    ]
    found.collections[0] = Collection(*collection)
    return found


@pytest.mark.parametrize(
    "samples, collection, is_cause",
    [
        # No reading fell before the collection: page faults alone bound what had been read.
        ([(60, 9000, 1000)], (500, 800, 50, 8000), True),
        ([(60, 9000, 1000)], (500, 1400, 50, 8000), False),
        # One did: in 10 batches reading copies at most a quarter of what it did in 40, whatever else faulted.
        ([(40, 5000, 80), (60, 15000, 1000)], (500, 7000, 50, 8000), True),
        ([(40, 5000, 800), (60, 15000, 1000)], (500, 7000, 50, 8000), False),
        # ... and no more than there were faults.
        ([(1, 900, 200), (60, 15000, 1000)], (500, 1050, 50, 8000), True),
        # It copied less than the collector writes to: what it writes to was private, or frozen.
        ([(60, 9000, 1000)], (500, 800, 50, 500), False),
        # None has ended.
        ([(60, 9000, 1000)], (0, 0, 0, 0), False),
    ],
)
def test_what_a_collection_must_have_copied(samples, collection, is_cause):
    assert followed(samples, collection).by_collection(0) is is_cause


@pytest.mark.parametrize(
    "private, has_stopped",
    [
        ((200, 1000, 1000), True),  # all that its readers touch
        ((200, 900, 980), True),
        ((200, 900, 950), False),
        ((200, 600, 600), False),  # a rest, of less than half of the batches
    ],
)
def test_nothing_more_is_copied_where_nothing_is_left(private, has_stopped):
    found = followed([(20 * i, 0, n) for i, n in enumerate(private, 1)], (0, 0, 0, 0))
    for sample, pages in zip(found.samples[0], private):
        sample.private = pages
    found.attribute = types.SimpleNamespace(pages=1000)
    assert found.has_long_stopped(0) is has_stopped


class OnePage:
    """A walk whose pages can be read, and what happens meanwhile."""

    def __init__(self, meanwhile=lambda: None):
        self.reach = self.attribute = self
        self.region, self.meanwhile = 0, meanwhile

    def copied(self, region, pid):
        self.meanwhile()
        return {"present": 1, "private": 1, "tracked_private": 1, "tracked_pages": 1, "types": []}


@pytest.mark.parametrize("copied, is_sample", [(0, True), (63, True), (64, False)])
def test_no_sample_is_taken_while_a_collection_copies(monkeypatch, copied, is_sample):
    """One that copies nothing is no reason: a program may collect all the time."""
    monkeypatch.setattr(copies, "page_faults", lambda pid: 1000)
    board = Board.create(1)
    try:
        one = Followed(OnePage(), OnePage())
        board.begin_collection(0, 1000 - copied)
        assert one.read(0, os.getpid(), 1, board) is is_sample and bool(one.samples) is is_sample
    finally:
        board.close()


def test_no_sample_is_taken_across_a_collection_that_copied():
    board, most = Board.create(1), Collection(1, 2, 3, 4)
    try:
        one = Followed(OnePage(), OnePage(lambda: board.end_collection(0, most)))
        assert one.read(0, os.getpid(), 1, board) is False and not one.samples
        assert one.read(0, os.getpid(), 2, board) is True and one.collections == {0: most}
    finally:
        board.close()


def test_new_allocations_are_no_copies(tmp_path):
    main = """
class Both(Dataset):
    def __init__(self): self.names, self.cache = ["%0120d" % k for k in range(120_000)], []
    def __len__(self): return len(self.names)
    def __getitem__(self, k):
        self.cache.append(bytearray(200))
        return k
with leakprobe.watch() as probe:
    train(DataLoader(Both(), batch_size=200, num_workers=2, multiprocessing_context='fork'), probe)
tell(probe)
"""
    findings = worker_findings(run_script(tmp_path, main))
    assert len(findings) == 1 and "cache" in str(findings[0]["path"]) and "copy" not in findings[0]["cause"]


def test_a_dataset_that_cannot_be_walked_is_said(tmp_path):
    main = """
from leakprobe.torch import datasets
datasets.MAX_OBJECTS = 1000
""" + script()
    report = run_script(tmp_path, main)["report"]
    assert report["verdict"] == "steady"
    assert [n["kind"] for n in report["notes"] if "copy" in n["text"]] == ["gap"]


def test_a_machine_that_hides_proc_is_said(tmp_path):
    main = """
from leakprobe.torch import copies
copies.page_faults = lambda pid: None
""" + script()
    report = run_script(tmp_path, main)["report"]
    assert report["verdict"] == "steady" and any(
        "/proc" in n["text"] for n in report["notes"] if n["kind"] == "gap"
    )


class AllPages:
    @staticmethod
    def pages_with(region, kinds):
        return 10_000


@pytest.mark.parametrize("batches", [10, 20, 24, 25, 26, 40, 90, 100_000])
@pytest.mark.parametrize("items_a_page", [2, 10])
def test_a_worker_that_lives_on_copies_all_in_the_end_where_the_order_is_random(batches, items_a_page):
    """One of four, with 25 batches an epoch; after some epochs as within the first."""
    one = Followed(types.SimpleNamespace(pages=10_000, region=0), types.SimpleNamespace(reach=AllPages))
    whole, rest = divmod(batches, 25)
    unread = 0.75**whole * (1 - rest / 100)
    private = round(10_000 * (1 - unread**items_a_page))
    one.samples = {0: [Sample(1, batches, 0, 0, private, 0, [(10_000, private)])]}
    assert one.end_bytes(0, 100, 4, True) == 10_000 * 4096
    if batches >= 25:
        assert one.end_bytes(0, 100, 4, False) in (private * 4096, 10_000 * 4096)  # what has gone has ended


def test_a_worker_that_lives_on_copies_its_part_where_it_reads_in_order():
    one = Followed(types.SimpleNamespace(pages=10_000, region=0), types.SimpleNamespace(reach=AllPages))
    for batches, private in ((10, 1000), (24, 2400), (25, 2500), (40, 2500), (90, 2500)):
        one.samples = {0: [Sample(1, batches, 0, 0, private, 0, [(10_000, private)])]}
        assert one.end_bytes(0, 100, 4, True) == pytest.approx(2500 * 4096, rel=0.01)
