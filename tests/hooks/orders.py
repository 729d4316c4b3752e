"""Starts and stops leakprobe and another tool in random order, and checks every birth and every gap.

    python tests/hooks/orders.py TOOL SEED STEPS [FOLDER]

TOOL is tracemalloc, memray, layer (an allocator hook that restores without a look), slot (a tracer that
clears the slot of creation events), borrower (one that puts back what it found) or none; with "+", two of
them.  FOLDER is where tests/ext/python_layer.c is built.  Prints one JSON object last; any wrong line,
unreported gap or crash ends it with another exit status.
"""

import collections
import faulthandler
import gc
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tracemalloc

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "ext" / "python_layer.c"
EVENTS = sys.version_info >= (3, 13)
REFUSALS = ("tracemalloc_active", "memray_active")


def load_layer(folder):
    """tests/ext/python_layer.c as a module, built in ``folder`` unless it is there."""
    path = pathlib.Path(folder) / f"python_layer{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not path.exists():
        compiler = shutil.which("cc") or shutil.which("gcc")
        fresh = path.with_name(f"{os.getpid()}.so")
        subprocess.run(
            [
                compiler,
                "-shared",
                "-fPIC",
                "-O1",
                f"-I{sysconfig.get_paths()['include']}",
                str(SOURCE),
                "-o",
                str(fresh),
            ],
            check=True,
        )
        fresh.rename(path)
    loader = importlib.machinery.ExtensionFileLoader("python_layer", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("python_layer", loader))
    loader.exec_module(module)
    return module


class Tool:
    """Something that is on or off."""

    def __init__(self, on, off):
        self._on, self._off, self.is_on = on, off, False

    def toggle(self):
        self.is_on = not self.is_on
        (self._on if self.is_on else self._off)()


def memray_tool(rng):
    import memray

    open_trackers = []

    def on():
        options = {"trace_python_allocators": True}
        if sys.version_info >= (3, 13, 3) and "track_object_lifetimes" in (memray.Tracker.__doc__ or ""):
            options["track_object_lifetimes"] = rng.random() < 0.5
        tracker = memray.Tracker(destination=memray.FileDestination("/dev/null", overwrite=True), **options)
        tracker.__enter__()
        open_trackers.append(tracker)

    return Tool(on, lambda: open_trackers.pop().__exit__(None, None, None))


def make_tool(name, rng, layer):
    if name == "tracemalloc":
        return Tool(lambda: tracemalloc.start(rng.choice([1, 5, 25])), tracemalloc.stop)
    if name == "memray":
        return memray_tool(rng)
    if name == "layer":
        return Tool(layer.push, layer.pop)
    return Tool(layer.take_slot, lambda: layer.give_slot(name == "borrower"))


class Run:
    def __init__(self, tools, seed, folder):
        from leakprobe import LeakprobeError, _core

        self.core, self.error, self.rng, self.layer = (
            _core,
            LeakprobeError,
            random.Random(seed),
            load_layer(folder),
        )
        self.tools = [make_tool(name, self.rng, self.layer) for name in tools if name != "none"]
        self.ours, self.counts, self.kept, self.frozen = set(), collections.Counter(), [], False

    # ---- moves ----

    def toggle_ours(self):
        if self.core.is_active():
            self.core.stop()
            return
        try:
            self.core.start(8, "/nowhere/")
            self.counts["started"] += 1
            self.note_ours()
        except self.error as error:
            assert error.code in REFUSALS, error.code
            self.counts["refused"] += 1

    def toggle_tool(self):
        if self.tools:
            self.rng.choice(self.tools).toggle()
            self.counts["toggled"] += 1

    def toggle_faulthandler(self):
        faulthandler.disable() if faulthandler.is_enabled() else faulthandler.enable()

    def collect(self):
        gc.collect(self.rng.randrange(3))

    def freeze(self):
        (gc.unfreeze if self.frozen else gc.freeze)()
        self.frozen = not self.frozen

    def look(self):
        if tracemalloc.is_tracing():
            tracemalloc.take_snapshot()
        self.core.census(False, 0, 2**32 - 1, 2**32 - 1)

    def fork(self):
        if any(tool.is_on for tool in self.tools) and "memray" in sys.modules:
            return  # memray's tracker does not survive in the child, with or without us
        child = os.fork()
        if child == 0:
            code = 1
            try:
                assert not self.core.is_active()
                try:
                    self.core.start(8, "/nowhere/")
                    self.core.mark()
                    self.check_births()
                    self.core.stop()
                except self.error as error:
                    assert error.code in REFUSALS, error.code
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        self.counts["forks"] += 1

    # ---- checks ----

    def note_ours(self):
        """The hooks are certainly the last that came: what is on top now is ours."""
        top, _below, tracer = self.layer.tops()
        events = self.core.hook_status()["mechanism"] == "creation events"
        self.ours.add(tracer if events else top)

    def is_lost(self):
        """Whether births are not seen any more, found out without leakprobe's help."""
        top, below, tracer = self.layer.tops()
        mechanism = self.core.hook_status()["mechanism"]
        if mechanism == "creation events":
            return tracer not in self.ours
        if mechanism == "allocator hook" and any(tool.is_on for tool in self.tools) and not below:
            return False  # tracemalloc and memray call what they found
        return mechanism == "none" or not {top, below} & self.ours

    def check_births(self):
        first = sys._getframe().f_lineno
        made = [
            [1],
            {"a": first},
            (first, made_by),
            first * 0.5,
            object(),
        ]
        for place, op in enumerate(made):
            birth = self.core.site_of(op)
            if birth is not None:
                line = self.core.site_frames(birth[0])[0][1]
                assert (line, birth[1]) == (first + 2 + place, self.core.step()), (
                    place,
                    line,
                    first,
                    birth,
                    self.core.hook_status(),
                )
                self.counts["seen"] += 1
            else:
                self.counts["unknown"] += 1
        self.kept = made

    def mark(self):
        lost, step = self.is_lost(), self.core.step()
        self.core.mark()
        gaps = self.core.hook_status()["gaps"]
        if lost:
            assert gaps and gaps[-1][0] <= step <= gaps[-1][1], (step, gaps, self.core.hook_status())
            self.counts["gaps"] += 1
            self.note_ours()
        if self.core.hook_status()["mechanism"] == "none":
            assert self.core.hook_status()["why_not"]

    def step(self):
        moves = [
            (self.toggle_ours, 4),
            (self.toggle_tool, 4),
            (self.toggle_faulthandler, 1),
            (self.look, 1),
            (self.collect, 1),
            (self.freeze, 0.5),
            (self.fork, 0.1),
            (lambda: None, 3),
        ]
        self.rng.choices([move for move, _ in moves], [weight for _, weight in moves])[0]()
        if self.core.is_active():
            if self.rng.random() < 0.3:
                self.check_births()
            self.mark()
            if self.core.hook_status()["mechanism"] != "none":
                before = self.counts["unknown"]
                self.check_births()
                assert self.counts["unknown"] == before, self.core.hook_status()
        else:
            self.kept = [[i, {i: (i,)}, str(i), i * 0.5] for i in range(20)]
            assert self.core.site_of(self.kept) is None

    def end(self):
        for tool in self.tools:
            if tool.is_on:
                tool.toggle()
        self.core.stop()
        self.kept = [object() for _ in range(1000)]


def made_by():
    """Something that is not born in the run."""


def main(tools, seed, steps, folder=None):
    run = Run(tools.split("+"), int(seed), folder or tempfile.mkdtemp(prefix="leakprobe-orders-"))
    for _ in range(int(steps)):
        run.step()
    run.end()
    print(json.dumps({"steps": int(steps), **run.counts}))


if __name__ == "__main__":
    main(*sys.argv[1:])
