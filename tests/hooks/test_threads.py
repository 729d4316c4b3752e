"""Births on many threads, with exceptions, generators passed between them, and hooks that come and go."""

from fresh import run


def test_each_thread_names_its_own_lines():
    assert (
        run(
            """
        import json, sys, threading
        from leakprobe import _core
        sys.setswitchinterval(1e-5)
        def work(kept):
            for i in range(2000):
                kept.append([i])
                kept.append({i: i})
                kept.append(str(i) * 3)
        def other(kept):
            for i in range(2000):
                kept.append([i])
                kept.append((i, kept))
                kept.append(i * 0.5)
        _core.start(8, "/nowhere/")
        lists = [[] for _ in range(8)]
        threads = [threading.Thread(target=(work, other)[i % 2], args=(lists[i],)) for i in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        wrong = 0
        for i, kept in enumerate(lists):
            lines = [_core.site_frames(_core.site_of(op)[0])[0][1] for op in kept]
            wrong += lines != ([11, 12, 13] if i % 2 else [6, 7, 8]) * 2000
        print(json.dumps(wrong))
        """
        )
        == 0
    )


def test_start_mark_and_stop_while_threads_allocate():
    assert run(
        """
        import json, sys, threading, time
        from leakprobe import _core
        sys.setswitchinterval(1e-5)
        done = threading.Event()
        def work():
            while not done.is_set():
                x = [[i, {i: (i,)}, str(i), i * 0.5] for i in range(50)]
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads: t.start()
        for i in range(150):
            _core.start(8, "/nowhere/")
            for _ in range(3): _core.mark()
            time.sleep(0.001)
            _core.stop()
        done.set()
        for t in threads: t.join()
        print(json.dumps(True))
        """
    )


def test_threads_that_come_and_go():
    lines = run(
        """
        import json, threading
        from leakprobe import _core
        _core.start(8, "/nowhere/")
        kept = []
        def work():
            kept.append([1])
        for _ in range(500):
            t = threading.Thread(target=work)
            t.start()
            t.join()
        print(json.dumps(sorted({_core.site_frames(_core.site_of(op)[0])[0][1] for op in kept})))
        """
    )
    assert lines == [6]
