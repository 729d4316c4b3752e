"""Interleaved timing: every mode once per repetition, in random order, and ratios of the minima."""

import ctypes
import gc
import platform
import random
import statistics
import sys
import time

#: glibc's numbers of what mallopt() sets, as in malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def at_depth(depth, function, *args):
    """Call function(*args) with ``depth`` more frames on the stack."""
    if depth <= 0:
        return function(*args)
    return at_depth(depth - 1, function, *args)


def timed(function, *args) -> float:
    """Processor seconds of one call, with the collector off and what lives now frozen."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        began = time.thread_time()
        result = function(*args)
        seconds = time.thread_time() - began
        del result
        return seconds
    finally:
        gc.enable()
        gc.unfreeze()


def keep_freed_memory() -> bool:
    """Let glibc's malloc give nothing back to the kernel; False where there is none.

    A training loop frees its largest blocks in every step.  Whether malloc then returns the top of its heap,
    to be faulted in anew by the next step, hangs on what happens to lie there: a tenth of a loop's time that
    comes or goes from round to round.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return all(mallopt(option, 1 << 30) for option in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD))


def interleave(modes, work, repetitions, seed=0, fewer=None):
    """{mode: [seconds, ...]} for ``modes``, a dict of name -> (start, stop) around ``work()``.

    ``fewer`` maps modes that are too slow for all repetitions to the number of the first ones that they
    take part in.
    """
    rng = random.Random(seed)
    times = {name: [] for name in modes}
    for done in range(repetitions):
        names = [name for name in modes if done < (fewer or {}).get(name, repetitions)]
        rng.shuffle(names)
        for name in names:
            start, stop = modes[name]
            start()
            try:
                work()  # untimed: what a mode sets up at first use is not its running cost
                times[name].append(work())
            finally:
                stop()
    return times


def ratio(times, mode, base) -> float:
    """Of the least times in the repetitions in which both took part: of more the least is less."""
    together = min(len(times[mode]), len(times[base]))
    return min(times[mode][:together]) / min(times[base][:together])


def spread(times) -> float:
    """Median over minimum: how noisy the machine was."""
    return statistics.median(times) / min(times)


def summary(ratios) -> dict:
    """The median of the pairs' ratios and its 95 % interval (bootstrap over the pairs)."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(4000))
    return {"ratio": statistics.median(ratios), "low": medians[100], "high": medians[-100]}


def geometric_mean(values) -> float:
    return statistics.geometric_mean(values)


def machine() -> dict:
    """What the figures depend on."""
    model = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next(
                (line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), ""
            )
    except OSError:
        pass
    return {
        "python": sys.version.split()[0],
        "compiler": platform.python_compiler(),
        "system": platform.system(),
        "cpu": model,
    }
