"""Which rank stands out, and where a rank records."""

import dataclasses
import os
import sys
import types

import pytest

from leakprobe import launchers
from leakprobe.errors import LeakprobeError
from leakprobe.evidence.ranks import outliers, rates_of_ranks
from leakprobe.judge.reports import notes_of_ranks
from leakprobe.model.report import Report
from leakprobe.record.facts import describe_run
from leakprobe.torch import ranks


@pytest.fixture
def environment(monkeypatch):
    for names in launchers.LAUNCHERS:
        for name in dataclasses.astuple(names):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv(launchers.RESTART, raising=False)
    return monkeypatch


def recorded(rank, rate, steps=40):
    rows = [
        {
            "step": s,
            "epoch": 0,
            "time": 0.1 * s,
            "media": {"cpu": {"live_bytes": 10_000 + rate * s, "peak_bytes": 0}},
        }
        for s in range(steps)
    ]
    memory = [
        {"step": s, "rss": 10**8, "python_heap": 0, "native_accounted": 0, "probe_overhead": 0}
        for s in range(steps)
    ]
    return Report(
        "steady", {"warmup": 5, "measured": steps - 5}, [], [], [], {}, rows, memory, run={"rank": rank}
    )


def test_the_outlier_of_eight_ranks_is_named():
    notes = notes_of_ranks(
        rates_of_ranks([recorded(r, 5000 + 10 * r if r != 3 else 90_000) for r in range(8)])
    )
    assert [n.kind for n in notes] == ["ranks"] and notes[0].medium == "cpu"
    assert "rank 3 +87.9 KiB/step" in notes[0].text and "outlier: rank 3 (" in notes[0].text


def test_ranks_that_grow_alike_have_no_outlier():
    assert outliers({r: 5000.0 + 100 * (r % 3) for r in range(8)}) == []
    assert outliers({0: 5000.0, 1: 5100.0}) == []
    assert outliers({0: 0.0, 1: 5100.0}) == [1]
    assert outliers({r: 50_000.0 if r != 2 else 0.0 for r in range(6)}) == [2]


def test_nothing_is_said_where_nothing_grows_or_there_is_one_rank():
    assert rates_of_ranks([recorded(r, 3) for r in range(4)]) == []
    assert rates_of_ranks([recorded(0, 90_000)]) == []


def test_each_rank_has_its_file(environment, tmp_path):
    path = str(tmp_path / "rec")
    assert ranks.path_of_rank(path) == path and not os.path.exists(path)
    environment.setenv("RANK", "3")
    environment.setenv("WORLD_SIZE", "1")
    assert ranks.path_of_rank(path) == path
    environment.setenv("WORLD_SIZE", "8")
    assert ranks.path_of_rank(path) == os.path.join(path, "rank-00003.leak") and os.path.isdir(path)
    environment.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    assert ranks.path_of_rank(path).endswith("rank-00003.restart-2.leak")
    assert ranks.named_by_rank("out.json") == "out.rank-3.json"


@pytest.mark.parametrize("names", launchers.LAUNCHERS, ids=lambda names: names.rank)
def test_every_launcher_is_known_by_its_variables_and_recorded(environment, names):
    environment.setenv(names.rank, "5")
    assert launchers.place() is None, "a rank alone is no job"
    environment.setenv(names.world_size, "16")
    environment.setenv(names.local_rank, "1")
    assert ranks.rank_and_size() == (5, 16)
    run = describe_run()
    assert (run["rank"], run["world_size"], run["local_rank"]) == (5, 16, 1)


def test_the_launcher_that_is_nearest_counts(environment):
    """torchrun in one task a node of Slurm."""
    for name, value in {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "RANK": "9", "WORLD_SIZE": "16"}.items():
        environment.setenv(name, value)
    assert ranks.rank_and_size() == (9, 16)


def test_a_process_group_says_the_rank_where_no_launcher_did(environment, tmp_path):
    group = types.SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 2, get_world_size=lambda: 3
    )
    environment.setitem(sys.modules, "torch.distributed", group)
    assert launchers.place() == launchers.Place(2, 3)
    assert ranks.path_of_rank(str(tmp_path / "rec")).endswith("rank-00002.leak")
    assert ranks.rank_and_size() is None, "nobody waits for the exit code of a rank"
    group.is_initialized = lambda: False
    assert launchers.place() is None
    environment.setenv("RANK", "0")
    environment.setenv("WORLD_SIZE", "1")
    group.is_initialized = lambda: True
    assert launchers.place() == launchers.Place(0, 1), "the launcher has the first word"


def test_a_worker_of_ray_train_says_its_rank_where_no_launcher_did(environment):
    environment.setitem(sys.modules, "torch.distributed", None)
    context = types.SimpleNamespace(
        get_world_rank=lambda: 1, get_world_size=lambda: 2, get_local_rank=lambda: 1
    )
    environment.setitem(sys.modules, "ray.train", types.SimpleNamespace(get_context=lambda: context))
    assert launchers.place() == launchers.Place(1, 2, 1)
    context.get_world_rank = lambda: 1 / 0  # no worker
    assert launchers.place() is None


def test_a_file_in_place_of_the_folder_is_an_error_that_says_so(environment, tmp_path):
    environment.setenv("RANK", "0")
    environment.setenv("WORLD_SIZE", "2")
    (tmp_path / "rec").write_text("x")
    with pytest.raises(LeakprobeError, match="one folder") as caught:
        ranks.path_of_rank(str(tmp_path / "rec"))
    assert caught.value.code == "unwritable_file"


def test_recordings_of_one_rank_are_no_two_ranks():
    assert rates_of_ranks([recorded(0, 5000), recorded(0, 6000)]) == []
    assert outliers({0: 5000.0}) == [] == outliers({})


def test_of_several_recordings_of_one_rank_the_longest_counts_then_the_newest():
    every = [recorded(0, 70_000, steps=20), recorded(1, 10), recorded(0, 10), recorded(2, 10)]
    assert rates_of_ranks(every) == []
    old, new = recorded(1, 10), recorded(1, 90_000)
    old.run["started"], new.run["started"] = 100.0, 200.0
    for reports in ([old, new], [new, old]):
        rows = rates_of_ranks([recorded(0, 10), *reports, recorded(2, 10)])
        assert [row["medium"] for row in rows] == ["cpu"] and rows[0]["outliers"] == [1]
