"""What kinds are made of: when items are born, and when they die."""

from collections import OrderedDict

import numpy as np

from benchmarks.rhythms.loop import NEVER


def each_step(steps: int, count: int = 1) -> np.ndarray:
    return np.repeat(np.arange(steps), count)


def at_random(steps: int, rng, share: float) -> np.ndarray:
    """The steps, each with this probability."""
    return np.flatnonzero(rng.random(steps) < share)


def counted(counts) -> np.ndarray:
    """So many births in each step."""
    counts = np.maximum(np.asarray(counts), 0).astype(np.int64)
    return np.repeat(np.arange(len(counts)), counts)


def with_phase(steps: int, period: int, phases) -> np.ndarray:
    """The steps at these places of a period."""
    return np.flatnonzero(np.isin(np.arange(steps) % period, list(phases)))


def renewals(steps: int, draw, first: int = 0) -> np.ndarray:
    """Steps that follow each other at distances of draw(), 1 at least."""
    found, step = [], first
    while step < steps:
        found.append(step)
        step += max(1, int(draw()))
    return np.array(found, np.int64)


def on_and_off(steps: int, draw_on, draw_off) -> tuple[np.ndarray, np.ndarray]:
    """(the steps that are on, the last step of each stretch that is) of two states in turns, on first."""
    on, ends, step = [], [], 0
    while step < steps:
        stretch = max(1, int(draw_on()))
        on.extend(range(step, min(steps, step + stretch)))
        if step + stretch <= steps:
            ends.append(step + stretch - 1)
        step += stretch + max(0, int(draw_off()))
    return np.array(on, np.int64), np.array(ends, np.int64)


def until_next(birth: np.ndarray, clearings) -> np.ndarray:
    """The first clearing at or after each birth, as the step of death."""
    clearings = np.append(np.sort(np.asarray(clearings, float)), NEVER)
    return clearings[np.searchsorted(clearings, birth)]


def length(rng, share_or_steps: float, steps: int, least: int = 2) -> int:
    """A length that is a share of the steps if below 1, a tenth more or less."""
    base = share_or_steps * steps if share_or_steps < 1 else share_or_steps
    return max(least, round(base * rng.uniform(0.9, 1.1)))


def queue(arrivals: np.ndarray, services: np.ndarray, newest_first: bool = False) -> np.ndarray:
    """Deaths of arrivals that are served one by one: ``services`` says how many a step; the oldest first
    unless told.
    """
    deaths = np.full(len(arrivals), NEVER)
    waiting: list[int] = []
    head = next_arrival = 0
    for step, served in enumerate(services):
        while next_arrival < len(arrivals) and arrivals[next_arrival] <= step:
            waiting.append(next_arrival)
            next_arrival += 1
        for _ in range(int(served)):
            if len(waiting) == head:
                break
            if newest_first:
                deaths[waiting.pop()] = step
            else:
                deaths[waiting[head]] = step
                head += 1
    return deaths


def replaced(keys: np.ndarray, steps_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(birth, death) where each item lies in the slot of its key until the next of that key."""
    order = np.lexsort((np.arange(len(keys)), keys))
    death = np.full(len(keys), NEVER)
    same = keys[order[1:]] == keys[order[:-1]]
    death[order[:-1][same]] = steps_of[order[1:][same]]
    return steps_of, death


def first_uses(keys: np.ndarray, steps_of: np.ndarray) -> np.ndarray:
    """Births of a cache that keeps each key it meets."""
    _, first = np.unique(keys, return_index=True)
    return np.sort(steps_of[first])


def zipf_keys(
    steps: int, rng, a_step: int, most: int, exponent: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """(keys, their steps): ``a_step`` lookups a step of ``most`` keys, the k-th as likely as k **
    -exponent.
    """
    weights = np.arange(1, most + 1, dtype=float) ** -exponent
    bounds = np.cumsum(weights / weights.sum())
    keys = np.minimum(np.searchsorted(bounds, rng.random(steps * a_step)), most - 1)
    return keys, each_step(steps, a_step)


class Cache:
    """A cache of bounded size whose lookups bear and evict items; ``policy`` is lru, fifo, lfu, random or
    clock.
    """

    def __init__(self, policy: str, size: int, rng):
        self._evict = getattr(self, "_" + policy)
        self._refresh = policy == "lru"
        self._size, self._rng = size, rng
        self._items: OrderedDict[int, int] = OrderedDict()  # key -> item
        self._uses: dict[int, int] = {}
        self.birth: list[int] = []
        self.death: list[float] = []

    def look_up(self, key: int, step: int) -> None:
        self._uses[key] = self._uses.get(key, 0) + 1
        if key in self._items:
            if self._refresh:
                self._items.move_to_end(key)
            return
        while len(self._items) >= self._size:
            self.death[self._items.pop(self._evict())] = step
        self._items[key] = len(self.birth)
        self.birth.append(step)
        self.death.append(NEVER)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.birth, np.int64), np.array(self.death)

    def _lru(self) -> int:
        return next(iter(self._items))

    _fifo = _lru

    def _lfu(self) -> int:
        return min(self._items, key=self._uses.__getitem__)

    def _random(self) -> int:
        return list(self._items)[int(self._rng.integers(len(self._items)))]

    def _clock(self) -> int:
        """Second chance: a key that was used since the hand last passed is passed by once."""
        while True:
            key = next(iter(self._items))
            if self._uses[key] <= 1:
                return key
            self._uses[key] = 1
            self._items.move_to_end(key)


def cached(policy: str, size: int, keys, steps_of, rng) -> tuple[np.ndarray, np.ndarray]:
    """(birth, death) of a cache of ``size`` under these lookups."""
    cache = Cache(policy, size, rng)
    for key, step in zip(keys.tolist(), steps_of.tolist()):
        cache.look_up(key, step)
    return cache.arrays()
