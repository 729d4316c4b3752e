"""Random births and deaths, and what the live counts and a scan say of them: prints the differences as JSON.

Each kind of object is made at a line of its own, and what is kept is known: the truth.  Run:
python live_counts_program.py SEED STEPS [threads] [tracemalloc] [fork]
"""

import collections
import gc
import json
import os
import random
import sys
import threading
import tracemalloc

from leakprobe import _core
from leakprobe.model.frames import PACKAGE_DIR


class Plain:
    pass


class Slotted:
    __slots__ = ("a", "b")


class Tiny:
    __slots__ = ()


# fmt: off
def make_float(i): return i * 0.5 + 1e9
def make_tuple(i): return (i, None)
def make_long_tuple(i): return tuple(filter(None, [True] * (i % 60 + 11)))
def make_list(i): return [None, None]
def make_set(i): return {None}
def make_int(i): return 10**12 + i
def make_large_int(i): return 1 << 8 * (600 + i % 99)
def make_str(i): return "key-%d" % i
def make_joined(i): return "".join(["abc"] * (i % 300 + 2))
def make_bytes(i): return bytes(i % 900 + 40)
def make_bytearray(i): return bytearray(i % 900 + 40)
def make_object(i): return object()
def make_tiny(i): return Tiny()
def make_slotted(i): return Slotted()
def make_plain(i): return Plain()
def make_complex(i): return complex(i, 1)
def make_method(i): return make_list.__call__
def make_iterator(i): return iter("ab")
# fmt: on


# Before, a dict's table is a block of the object allocator, and recycled unseen.
if sys.version_info >= (3, 13):

    def make_dict(i): return {"a": i, "b": None}  # fmt: skip


#: Blocks of the object allocator that an object has beside its own, under the allocator hook; from 3.15 on
#: that is an object, which each hook sees.
MORE_BLOCKS = {"make_bytearray": 1} if not (3, 13) <= sys.version_info < (3, 15) else {}
MORE_OBJECTS = sys.version_info >= (3, 15)

MAKERS = {f.__code__.co_firstlineno: f for name, f in list(globals().items()) if name.startswith("make_")}


class Keeper:
    """What one thread keeps: {line: [(object, step), ...]}."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.kept = {line: [] for line in MAKERS}

    def act(self, step):
        line = self.random.choice(list(MAKERS))
        kept, made = self.kept[line], MAKERS[line]
        action = self.random.random()
        if action < 0.5:
            kept.extend(
                (made(self.random.randrange(2000)), step) for _ in range(self.random.randrange(1, 40))
            )
        elif action < 0.8:
            self.random.shuffle(kept)
            del kept[: self.random.randrange(len(kept) + 1)]
        elif action < 0.97:
            for i in range(200):  # born and dead at once: recycled
                made(i)
        else:
            kept.clear()

    def turn(self, step):
        for _ in range(30):
            self.act(step)
        if self.random.random() < 0.1:
            gc.collect()


def truth(keepers, after_step):
    counts = collections.Counter()
    for keeper in keepers:
        for line, kept in keeper.kept.items():
            counts.update((line, step) for _, step in kept if step > after_step)
    return counts


def line_of(site):
    frames = _core.site_frames(site)
    return frames[0][1] if frames and frames[0][0] == __file__ and frames[0][1] in MAKERS else None


def by_line():
    """{line: live objects} as the counts have it, and the sites with one."""
    counts, sites = collections.Counter(), []
    for site, live in _core.live_counts().items():
        line = line_of(site)
        if line is not None:
            counts[line] += live
            sites.append(site)
    return counts, sites


def check(keepers, after_step):
    """Differences as (line, expected, found)."""
    expected = truth(keepers, after_step)
    if MORE_OBJECTS or _core.hook_status()["mechanism"] == "allocator hook":
        for key in expected:
            expected[key] *= 1 + MORE_BLOCKS.get(MAKERS[key[0]].__name__, 0)
    lines = collections.Counter()
    for (line, _), count in expected.items():
        lines[line] += count
    counts, sites = by_line()
    wrong = [("count", x, lines[x], counts[x]) for x in MAKERS if lines[x] != counts[x]]
    _core.scan_begin(sites)
    while not _core.scan_slice(50_000):
        pass
    step = _core.step()
    found = collections.Counter()
    for row in _core.scan_result().rows:
        found[line_of(row.site), row.first_step] += row.count
    _core.scan_end()
    wrong += [
        ("scan", *key, expected[key], found[key])
        for key in expected | found
        if key[1] < step and expected[key] != found[key]
    ]
    return wrong


def child_is_silent(keeper):
    pid = os.fork()
    if pid == 0:
        keeper.turn(10**6)
        os._exit(0 if not _core.is_active() and not _core.live_counts() else 1)
    return os.waitpid(pid, 0)[1] == 0


def main():
    seed, steps, extra = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    _core.start(16, PACKAGE_DIR)
    keepers = [Keeper(seed + i) for i in range(3 if "threads" in extra else 1)]
    wrong, seen = [], 0
    for _ in range(steps):
        step = _core.step()
        threads = [threading.Thread(target=k.turn, args=(step,)) for k in keepers[1:]]
        for thread in threads:
            thread.start()
        keepers[0].turn(step)
        for thread in threads:
            thread.join()
        if "tracemalloc" in extra and step % 12 == 5:
            tracemalloc.stop() if tracemalloc.is_tracing() else tracemalloc.start()
        if "fork" in extra and step % 10 == 3 and not child_is_silent(keepers[0]):
            wrong.append(("child", step))
        _core.mark()
        state = _core.series_state()
        if state.sees_deaths:
            wrong += check(keepers, state.exact_since or -1)
            seen += sum(truth(keepers, state.exact_since or -1).values())
    counts, sites = by_line()
    confirmed = _core.confirm(sites, 0, steps, 1).sites
    tallies = {
        "wrong": wrong[:20],
        "wrong_count": len(wrong),
        "seen": seen,
        "corrected": sum(row.corrected for row in confirmed),
        "met": sum(row.met for row in confirmed),
        "alive": sum(counts.values()),
        "unreached": sum(row.unreached for row in confirmed),
    }
    print(json.dumps(tallies))


if __name__ == "__main__":
    main()
