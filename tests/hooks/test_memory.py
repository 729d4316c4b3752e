"""memory(): the process now, by kind of memory, and the rest."""

import io

import fresh

import leakprobe
from leakprobe.memory import MemoryTotals

CODE = """
import json, numpy as np, leakprobe
before = leakprobe.memory()
with leakprobe.watch() as probe:
    kept, objects = np.ones(5_000_000), [[i] for i in range(50_000)]
    now = leakprobe.memory()
print(json.dumps([before.to_dict(), now.to_dict()]))
"""


def test_of_a_watch_buffers_are_part_of_it():
    before, now = fresh.run(CODE)
    assert "numpy" not in before["media"]
    assert now["media"]["numpy"] >= 40_000_000
    assert now["media"]["python"] - before["media"]["python"] >= 50_000 * 56
    assert now["rss"] > before["rss"] and now["probe"] > 0
    assert now["unexplained"] == now["rss"] - now["probe"] - sum(now["media"].values())


def test_bytes_of_a_device_are_no_part_of_resident_memory():
    out = io.StringIO()
    MemoryTotals({"python": 3 << 20, "cuda:0": 1 << 30}, 10 << 20, 1 << 20, 6 << 20).print(out)
    assert out.getvalue() == (
        "resident memory  10.0 MiB\n"
        "     6.0 MiB  not accounted for\n"
        "     3.0 MiB  python\n"
        "     1.0 MiB  leakprobe itself\n"
        "on devices\n"
        "     1.0 GiB  cuda:0\n"
    )


def test_where_the_system_says_nothing_the_rest_is_not_known(monkeypatch):
    monkeypatch.setattr("leakprobe._core.rss_bytes", lambda: None)
    found = leakprobe.memory()
    assert (found.rss, found.unexplained) == (None, None)
    found.print(io.StringIO())
