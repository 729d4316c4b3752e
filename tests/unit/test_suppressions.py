"""The list of tables that grow harmlessly: matched by module and name, never by anything else."""

from leakprobe.analysis.suppressions import known_table


def path(module, name, edge="module"):
    return [{"text": module, "edge": edge, "type": "module"}, {"text": f"{name} (dict, 3 items)", "edge": "global", "type": "dict"}]


def test_a_known_table_is_known_by_module_and_name():
    assert "prunes" in known_table(path("torch.multiprocessing.reductions", "shared_cache")) or "pruned" in known_table(
        path("torch.multiprocessing.reductions", "shared_cache")
    )
    assert known_table(path("train", "shared_cache")) is None
    assert known_table(path("torch.multiprocessing.reductions", "shared_cache_2")) is None
    assert known_table(path("torch.multiprocessing.reductions", "shared_cache", edge="frame")) is None
    assert known_table(None) is None and known_table([]) is None
