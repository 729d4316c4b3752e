"""Growth inside DataLoader workers, however they are started and however they end."""

import json

import fresh
import pytest
from worker_support import LINES, run_script, worker_findings

from leakprobe import recording

pytest.importorskip("torch", exc_type=ImportError)


def loop(loader, train="train(loader, probe)"):
    return f"""
with leakprobe.watch() as probe:
    loader = {loader}
    {train}
del loader
tell(probe, init=str(None))
"""


def check_cache(result, workers, line=LINES["cache"], owner="cache", size=12_000):
    """One finding of every worker, with its line, its owner and its rate per batch."""
    findings = worker_findings(result)
    assert len(findings) == 1, (findings, result["report"]["notes"], result["stderr"][-2000:])
    finding = findings[0]
    assert result["report"]["verdict"] == "growing"
    assert finding["medium"] == "worker" and finding["allocation"]["lineno"] == line
    assert owner in json.dumps([finding["path"], finding["holder"]])
    assert f"{workers} of {workers} workers" in finding["evidence"]
    assert 0.9 * 4 * size < finding["bytes_per_step"] < 1.2 * 4 * size + 1500
    assert result["left"] == {"children": 0, "files": []} and result["files_after"] == []


@pytest.mark.parametrize(
    "method, persistent", [("fork", False), ("fork", True), ("spawn", True), ("forkserver", False)]
)
def test_a_cache_in_the_workers_is_found_with_its_line(method, persistent, tmp_path):
    loader = f"DataLoader(Cached(320), batch_size=4, num_workers=2, multiprocessing_context={method!r}, persistent_workers={persistent})"
    main = loop(loader, "train(loader, probe, epochs=1 + loader.persistent_workers)")
    check_cache(run_script(tmp_path, main, alone=method != "fork"), 2)


@pytest.mark.parametrize(
    "loader, each",
    [
        ("make(data)", "train(loader, probe, epochs=4)"),
        ("None", "for _ in range(4): train(make(data), probe)"),
        ("None", "for _ in range(4): train(make(Cached(160)), probe)"),
    ],
    ids=["one loader", "a loader an epoch", "a dataset an epoch"],
)
def test_what_ends_with_the_workers_of_each_epoch_is_a_note(tmp_path, loader, each):
    """Each epoch has workers of its own: its cache is as large as the last one's, and goes with them."""
    main = """
data = Cached(160)
make = lambda data: DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context='fork')
"""
    result = run_script(tmp_path, main + loop(loader, each))
    assert result["report"]["verdict"] == "steady" and not worker_findings(result)
    notes = [note for note in result["report"]["notes"] if note["kind"] == "within_epoch"]
    assert len(notes) == 1 and notes[0]["allocation"]["lineno"] == LINES["cache"], result["report"]["notes"]


def test_an_iterable_dataset(tmp_path):
    loader = "DataLoader(Stream(320), batch_size=4, num_workers=2)"
    check_cache(run_script(tmp_path, loop(loader)), 2, line=LINES["stream"], owner="seen", size=3057)


def test_a_stateful_data_loader(tmp_path):
    pytest.importorskip("torchdata.stateful_dataloader")
    main = "from torchdata.stateful_dataloader import StatefulDataLoader\n"
    loader = "StatefulDataLoader(Cached(320), batch_size=4, num_workers=2)"
    check_cache(run_script(tmp_path, main + loop(loader)), 2)


def test_a_loader_that_is_imported_within_the_watch(tmp_path):
    pytest.importorskip("torchdata.stateful_dataloader")
    loader = "__import__('torchdata.stateful_dataloader').stateful_dataloader.StatefulDataLoader(Cached(320), batch_size=4, num_workers=2)"
    check_cache(run_script(tmp_path, loop(loader)), 2)


SHORT = """
class Short(torch.utils.data.Dataset):
    def __init__(self, ends): self.kept, self.ends = [], ends
    def __len__(self): return 100
    def __getitem__(self, i):
        self.kept.append(bytearray(3000))
        if i in self.ends:
            self.kept.clear()
        return i
with leakprobe.watch() as probe:
    how = {"batch_size": None, "num_workers": 1, "multiprocessing_context": "fork"}
    for _ in probe.steps(DataLoader(Short({ends}), **how)):
        pass
tell(probe)
"""


@pytest.mark.parametrize("ends, verdict", [([], "growing"), ([99], "steady")])
def test_the_last_batch_counts(ends, verdict, tmp_path):
    result = run_script(tmp_path, SHORT.replace("{ends}", str(ends)))
    assert result["report"]["verdict"] == verdict, result["report"]["findings"]


SAWTOOTH = """
from leakprobe.watch import schedule, worker
worker.WALK_OF_WORKER = schedule.Price(allowance_s=0.001, share=0.0, stretch=0.4)  # one, no more
class Sawtooth(torch.utils.data.Dataset):
    def __init__(self): self.kept, self.recent = [], []
    def __len__(self): return 100
    def __getitem__(self, i):
        (self.kept if i % 5 < 2 else self.recent).append(torch.ones(9000))
        if i % 25 == 24:
            self.recent.clear()
        return i
with leakprobe.watch() as probe:
    how = {"batch_size": None, "num_workers": 1, "multiprocessing_context": "fork"}
    for _ in probe.steps(DataLoader(Sawtooth(), **how)):
        pass
tell(probe)
"""


def test_the_last_look_has_a_walk_however_many_there_were(tmp_path):
    (finding,) = worker_findings(run_script(tmp_path, SAWTOOTH))
    assert "kept" in finding["holder"]["text"] and finding["cause"] == "growing_container"
    texts = [element["text"] for element in finding["path"]]
    assert texts[:2] == ["DataLoader worker", "dataset Sawtooth"]
    assert finding["bytes_per_step"] == pytest.approx(0.4 * 36_000, rel=0.2)


FILLED = """
import random
class Filled(Dataset):
    def __init__(self): self.places, self.chance = {}, random.Random(SEED)
    def __len__(self): return 320
    def __getitem__(self, i):
        place = self.chance.randrange(75)
        self.places[place] = torch.ones(660)
        return float(i)
loader = DataLoader(Filled(), batch_size=None, num_workers=1, multiprocessing_context="fork")
with leakprobe.watch() as probe:
    for _ in probe.steps(loader):
        pass
tell(probe)
"""


@pytest.mark.parametrize("seed", range(3))
def test_what_a_walk_took_for_a_leak_is_withdrawn_by_a_later_look(seed, tmp_path):
    """Places are filled at random: while most of them are free nothing tells that from growth."""
    report = run_script(tmp_path, FILLED.replace("SEED", str(seed)))["report"]
    assert report["verdict"] == "steady", report["findings"]


#: The pause is what makes a worker slow; nothing waits for it, and the verdicts hold for any speeds.
UNEVEN = """
import time
class Uneven(torch.utils.data.Dataset):
    def __len__(self): return 4000
    def __getitem__(self, i):
        time.sleep(0.005 if torch.utils.data.get_worker_info().id == {slow} else 0)
        return torch.ones(9000)
with leakprobe.watch(warmup=2) as probe:
    how = {{"num_workers": 2, "multiprocessing_context": "fork", "prefetch_factor": 40}}
    iterator = iter(DataLoader(Uneven(), batch_size=4, **how))
    for i in range({steps}):
        batch = next(iterator)
        {keep}
        probe.step()
    del iterator
tell(probe)
"""


@pytest.mark.parametrize("slow", [None, 0, 1])
def test_batches_in_flight_are_no_finding(slow, tmp_path):
    """The process of the loop keeps those of the others while it waits for the slow worker's."""
    result = run_script(tmp_path, UNEVEN.format(slow=slow, steps=30, keep="pass"))
    report = result["report"]
    assert report["verdict"] == "steady", (report["findings"], report["notes"])


def test_batches_that_are_kept_for_longer_than_any_is_in_flight_are_a_finding(tmp_path):
    main = UNEVEN.format(slow=0, steps=260, keep="kept.append(batch)").replace(": 40}", ": 4}")
    report = run_script(tmp_path, "kept = []\n" + main)["report"]
    assert report["verdict"] == "growing" and len(report["findings"]) == 1, report["findings"]
    assert report["findings"][0]["bytes_per_step"] == pytest.approx(4 * 36_000, rel=0.1)


def test_the_users_function_runs_and_is_put_back(tmp_path):
    main = """
def init(worker_id):
    torch.utils.data.get_worker_info().dataset.cache["mark"] = np.full(3, worker_id)
with leakprobe.watch() as probe:
    loader = DataLoader(Cached(320), batch_size=4, num_workers=2, worker_init_fn=init, multiprocessing_context='fork')
    train(loader, probe)
same = loader.worker_init_fn is init
tell(probe, same=same)
"""
    result = run_script(tmp_path, main)
    check_cache(result, 2)
    assert result["same"] is True


def test_an_init_function_that_raises_is_the_users_own_error(tmp_path):
    main = """
def init(worker_id): raise ValueError("no data on this disk")
with leakprobe.watch() as probe:
    loader = DataLoader(Cached(320), batch_size=4, num_workers=2, worker_init_fn=init, multiprocessing_context='fork')
    try:
        train(loader, probe)
        said = ""
    except ValueError as error:
        said = str(error)
tell(probe, said=said)
"""
    result = run_script(tmp_path, main)
    assert "no data on this disk" in result["said"]
    assert result["left"] == {"children": 0, "files": []} and result["files_after"] == []


def test_a_worker_that_is_killed_leaves_what_it_had_found(tmp_path):
    main = f"""
with leakprobe.watch(record={str(tmp_path / "run.leak")!r}) as probe:
    loader = DataLoader(Cached(2000), batch_size=4, num_workers=2, multiprocessing_context='fork')
    iterator = iter(loader)
    try:
        for i, batch in enumerate(probe.steps(iterator)):
            if i == 60:
                os.kill(iterator._workers[1].pid, signal.SIGKILL)
                while True:  # until torch's handler of SIGCHLD raises: the next batch may die of the broken socket before it
                    signal.sigtimedwait([], 1)
        said = ""
    except RuntimeError as error:
        said = str(error)
    del iterator
    alive = leakprobe.is_active()
tell(probe, said=said)
"""
    result = run_script(tmp_path, main)
    assert "killed" in result["said"] or "exited unexpectedly" in result["said"]
    check_cache(result, 2)
    own = recording.load(tmp_path / "run.worker1.leak")
    assert own.state == "cut off" and own.report.findings[0].allocation.lineno == LINES["cache"]


def test_an_abandoned_loader_and_two_at_once(tmp_path):
    main = """
with leakprobe.watch() as probe:
    half = iter(DataLoader(Cached(2000), batch_size=4, num_workers=1))
    for i in range(3):
        next(half)
    first, second = (DataLoader(Cached(400), batch_size=4, num_workers=1) for _ in range(2))
    for pair in probe.steps(zip(first, second)):
        pass
    del half
del first, second
tell(probe)
"""
    check_cache(run_script(tmp_path, main), 2)


def test_a_loader_made_in_each_step(tmp_path):
    main = """
with leakprobe.watch(warmup=2) as probe:
    for i in probe.steps(range(13)):
        for batch in DataLoader(Plain(16), batch_size=4, num_workers=1):
            pass
    files = left_over()["files"]
tell(probe, files=files)
"""
    result = run_script(tmp_path, main)
    assert result["report"]["verdict"] == "steady", result["report"]["findings"]
    assert result["files"] == [] and result["left"] == {"children": 0, "files": []}


def test_without_workers_the_parent_finds_it_itself(tmp_path):
    result = run_script(tmp_path, loop("DataLoader(Cached(320), batch_size=4)"))
    assert result["report"]["findings"][0]["kind"] == "retained" and worker_findings(result) == []


def test_workers_can_be_left_alone(tmp_path):
    main = """
with leakprobe.watch(workers=False) as probe:
    train(DataLoader(Cached(320), batch_size=4, num_workers=2), probe)
tell(probe)
"""
    assert run_script(tmp_path, main)["report"]["verdict"] == "steady"


def test_a_loader_that_outlives_the_watch_goes_on(tmp_path):
    main = """
with leakprobe.watch() as probe:
    iterator = iter(DataLoader(Cached(800), batch_size=4, num_workers=2))
    for i in range(60):
        next(iterator)
        probe.step()
rest = sum(1 for _ in iterator)
del iterator
tell(probe, rest=rest)
"""
    result = run_script(tmp_path, main)
    check_cache(result, 2)
    assert result["rest"] == 140


def test_two_threads_that_iterate_one_loader(tmp_path):
    """The second begins its workers while the first begins its own."""
    main = """
import threading
second = threading.Thread(target=lambda: sum(1 for _ in loader))
class Batches(torch.utils.data.BatchSampler):
    def __iter__(self):
        if second.ident is None:
            second.start()
        return super().__iter__()
with leakprobe.watch() as probe:
    dataset = Cached(80)
    sampler = Batches(torch.utils.data.SequentialSampler(dataset), 4, False)
    loader = DataLoader(dataset, batch_sampler=sampler, num_workers=2, multiprocessing_context='fork')
    seen = sum(1 for _ in loader)
    second.join()
    probe.step()
    sets = [(s.pids, [p.pid for p in s.postings], [p.batches for p in s.postings]) for s in probe._workers.sets]
tell(probe, seen=seen, sets=sets, init=str(loader.worker_init_fn))
"""
    result = run_script(tmp_path, main)
    assert result["seen"] == 20 and result["init"] == "None"
    assert len(result["sets"]) == 2
    for pids, posted, batches in result["sets"]:
        assert pids == posted and batches == [10, 10]
    assert result["left"] == {"children": 0, "files": []}


def test_what_fails_on_our_side_leaves_the_loader_alone(tmp_path):
    main = """
import leakprobe.torch.workers as ours
def broken(*args): raise KeyError("broken")
ours.WorkerSet = broken
with leakprobe.watch() as probe:
    loader = DataLoader(Cached(80), batch_size=4, num_workers=2)
    seen = sum(1 for _ in probe.steps(loader))
tell(probe, seen=seen, init=str(loader.worker_init_fn))
"""
    result = run_script(tmp_path, main)
    assert result["seen"] == 20 and result["init"] == "None"
    assert any(
        "KeyError" in note["text"] and note["medium"] == "worker" for note in result["report"]["notes"]
    )
    assert result["left"] == {"children": 0, "files": []} and result["files_after"] == []


def test_each_worker_records_beside_its_parent(tmp_path):
    main = f"""
with leakprobe.watch(record={str(tmp_path / "run.leak")!r}) as probe:
    loader = DataLoader(Cached(320), batch_size=4, num_workers=2, multiprocessing_context='fork')
    train(loader, probe)
del loader
tell(probe)
"""
    result = run_script(tmp_path, main)
    check_cache(result, 2)
    names = sorted(path.name for path in tmp_path.glob("*.leak"))
    assert names == ["run.leak", "run.worker0.leak", "run.worker1.leak"]
    for slot in (0, 1):
        own = recording.load(tmp_path / names[1 + slot])
        assert own.state == "ended" and own.label == f"worker {slot}"
        assert own.report.verdict == "growing" and len(own.report.timeline) == 40
        assert (
            own.report.findings[0].kind == "worker_growth"
            and own.report.findings[0].allocation.lineno == LINES["cache"]
        )
    merged = recording.load_merged([tmp_path / name for name in names]).report
    assert len(merged.findings) == 1 and "in 3 of 3 recordings" in merged.findings[0].evidence
    assert merged.findings[0].bytes_per_step == worker_findings(result)[0]["bytes_per_step"]
    assert merged.steps == result["report"]["steps"]


def test_a_parent_that_is_killed_leaves_no_file(tmp_path):
    main = """
with leakprobe.watch() as probe:
    for i, batch in enumerate(probe.steps(DataLoader(Cached(2000), batch_size=4, num_workers=2))):
        if i == 40:
            print(json.dumps({}), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_script(tmp_path, main, code=-9)["files_after"] == []


def test_a_worker_that_has_no_slot_goes_on_unwatched(tmp_path):
    main = """
from leakprobe import _core
from leakprobe.torch.board import Board
from leakprobe.watch.worker import begin
board = Board.create(1)
begin(7, {"path": board.path, "workers": 1, "warmup": 1, "media": ["python"], "stack_depth": 4, "limit": 256.0, "in_flight": 3})
_core.start(4, "")  # nothing is active
board.close()
print("{}")
"""
    run_script(tmp_path, main)


def test_page_tables_are_read_for_walks_only():
    """The kernel goes through all pages of the worker for it: not at every batch."""
    readings = fresh.run(
        """
        import json
        import leakprobe
        import torch
        from torch.utils.data import DataLoader, Dataset
        from leakprobe import _core

        read, readings = _core.process_memory, []

        def counted():
            readings.append(1)
            return read()

        class Data(Dataset):
            def __len__(self): return 240
            def __getitem__(self, k):
                _core.process_memory = counted
                return torch.full((10,), len(readings))

        loader = DataLoader(Data(), batch_size=4, num_workers=1, multiprocessing_context="fork")
        with leakprobe.watch() as probe:
            for batch in probe.steps(loader):
                pass
        print(json.dumps(int(batch.max())))
        """
    )
    assert readings <= 8  # before and after each walk, of 60 batches


def test_what_a_worker_has_posted_stays_beside_its_news():
    from sample_reports import finding

    from leakprobe.torch.board import Board
    from leakprobe.watch.worker import WorkerWatch

    board = Board.create(1)
    try:
        watch = WorkerWatch(board, 0, {})
        watch._tell(not_recorded="the disk is full")
        watch._tell(findings=(finding(),))
        watch._failed(KeyError("last look"))
        report = board.read_report(0)
    finally:
        board.close()
    assert [f.cause for f in report.findings] == [finding().cause]
    assert report.not_recorded == "the disk is full" and report.error == "KeyError: 'last look'"
