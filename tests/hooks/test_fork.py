"""A forked child is left alone until it starts hooks of its own."""

import pytest
from fresh import run

FORK = """
    import json, os, threading
    from leakprobe import _core
    def allocates():
        while not done.is_set():
            x = [{i: [i]} for i in range(100)]
    done = threading.Event()
    _core.start(8, "/nowhere/")
    thread = threading.Thread(target=allocates)
    thread.start()
    results = []
    for round in range(20):
        kept = [bytearray(5)]
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            mine = [bytearray(5)]
            out = [_core.is_active(), _core.site_of(mine[0]), _core.site_of(kept[0])]
            if RESTART:
                _core.start(8, "/nowhere/")
                again = [bytearray(5) for _ in range(3)]
                _core.mark()
                out.append([_core.site_frames(_core.site_of(op)[0])[0][1] for op in again])
                out.append(_core.site_of(kept[0]))
                _core.stop()
            os.write(write, json.dumps(out).encode())
            os._exit(0)
        os.close(write)
        results.append(json.loads(os.read(read, 10000)))
        os.close(read)
        assert os.waitpid(child, 0)[1] == 0
        assert _core.is_active() and _core.site_of(kept[0]) is not None
    done.set()
    thread.join()
    _core.stop()
    print(json.dumps(results))
"""


@pytest.mark.parametrize("restart", [False, True])
def test_the_child_is_inactive_and_can_start_again(restart):
    results = run(FORK.replace("RESTART", str(restart)))
    for result in results:
        assert result[:3] == [False, None, None]
        if restart:
            assert result[3:] == [[20] * 3, None]


def test_a_child_of_a_stopped_parent():
    assert (
        run(
            """
        import json, os
        from leakprobe import _core
        _core.start(8, "")
        _core.stop()
        child = os.fork()
        if child == 0:
            _core.start(8, "")
            x = [{i: [i]} for i in range(1000)]
            _core.stop()
            os._exit(7)
        print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
        """
        )
        == 7
    )
