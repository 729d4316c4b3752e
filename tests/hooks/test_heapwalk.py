"""What the walk behind the trace covers, told by its counts; each in a fresh process."""

import pytest
from trace_support import run


def test_it_covers_tracked_frozen_and_untracked_objects():
    run(
        """
        kept = [[str(i) + "x", float(i)] for i in range(20_000)]
        gc.collect()
        tracked = len(gc.get_objects())
        nodes = _core.trace([], [], 0, 5)["nodes"]
        # Each row has a str and a float of its own.
        assert nodes > tracked + 39_000, (nodes, tracked)
        gc.freeze()
        assert abs(_core.trace([], [], 0, 5)["nodes"] - nodes) < 500
        """
    )


def test_keys_of_dicts_are_nodes():
    run(
        """
        before = _core.trace([], [], 0, 5)["nodes"]
        table = {f"key {i}": None for i in range(10_000)}
        assert _core.trace([], [], 0, 5)["nodes"] - before >= 10_000
        """
    )


def test_counts_are_plausible():
    run(
        """
        result = _core.trace([], [], 0, 5)
        assert result["skipped"] >= 0 and result["complete"] is True and result["edges"] > result["nodes"] > 0
        """
    )


def test_other_threads_and_their_frames():
    result = run(
        """
        import threading
        ready, go = threading.Event(), threading.Event()
        def work():
            rows = [[i] for i in range(10)]
            begin()
            for i in range(14):
                rows.append([i, i])
                _core.mark()
            ready.set()
            go.wait()
        thread = threading.Thread(target=work)
        thread.start()
        ready.wait()
        result = trace()
        go.set()
        thread.join()
        done(result)
        """
    )
    entry = result["trace"]["holders"][0]
    texts = [p["text"] for p in entry["path"]]
    assert (
        texts[:2] == ["__main__", "thread Thread"]
        and "work() in <string>" in texts
        and "rows (list, 24 items)" in texts
    )


def test_deep_nesting_needs_no_stack():
    run(
        """
        nested = []
        for _ in range(1_000_000):
            nested = [nested]
        result = _core.trace([], [], 0, 5)
        assert result["nodes"] > 1_000_000
        os._exit(0)
        """
    )


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_is_left_as_it_was(collects):
    run(
        f"""
        (gc.enable if {collects} else gc.disable)()
        _core.trace([], [], 0, 5)
        try:
            _core.trace([], [], 0, 5, node_budget=10)
        except Exception:
            pass
        assert gc.isenabled() is {collects}
        """
    )
