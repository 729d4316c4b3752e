"""Runs with more steps than an epoch's 12 bits can number, and what the probe itself costs in memory."""

from test_coexistence import run


def test_20_000_steps_keep_birth_steps_and_rate():
    result = run(
        """
        import json, leakprobe
        from leakprobe import _core
        kept = []
        with leakprobe.watch(limit=16) as probe:
            for i in range(20_000):
                kept.append([i, None, None])
                probe.step()
            wrong, width, young = 0, 0, 0
            for i, op in enumerate(kept):
                site, first, last = _core.site_of(op)
                wrong += not first <= i <= last
                width = max(width, last - first)
                young += first == last
        report = probe.report()
        finding = report.findings[0]
        print(json.dumps([wrong, width, young, report.verdict, finding.bytes_per_step, finding.allocation.lineno]))
        """,
        timeout=600,
    )
    wrong, width, young, verdict, rate, line = result
    assert wrong == 0 and young >= 1000 and width <= 2048
    # A list of three pointers, an int and a place in the list that keeps it.
    assert verdict == "growing" and 100 < rate < 160 and line == 6


def test_start_and_stop_1000_times_leave_the_process_where_it_was():
    first, last, refs = run(
        """
        import gc, json, os, sys
        from leakprobe import _core
        def rss():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        def around():
            _core.start(16, "/nowhere/")
            kept = [{i: [i]} for i in range(200)]
            _core.mark()
            _core.stop()
        for _ in range(100):
            around()
        gc.collect()
        a, before = len(gc.get_objects()), rss()
        for _ in range(1000):
            around()
        gc.collect()
        print(json.dumps([before, rss(), len(gc.get_objects()) - a]))
        """
    )
    assert last - first < 1 << 20
    assert refs < 10
