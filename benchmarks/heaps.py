"""Heaps to walk: half of their objects tracked by the collector, of many kinds, referring to each other at
random.
"""

import random


class Record:
    def __init__(self, number, other):
        self.number, self.name, self.other, self.parts, self.attributes = (
            number,
            f"record {number}",
            other,
            [],
            {},
        )


class Slotted:
    __slots__ = ("first", "second", "third")


def closure(value, other):
    def call():
        return value, other

    return call


def mixed(units: int, reach: int = 1000, seed: int = 0) -> list:
    """Some 16 objects for each unit: instances, dicts, lists, tuples, slotted instances, closures, str, int,
    float.

    reach: how many units back a unit may refer; with all of them, the collector misses the cache at each.
    """
    rng = random.Random(seed)
    kept: list = []

    def earlier(i):
        return kept[rng.randrange(max(0, i - reach), i)] if i else None

    for i in range(units):
        other = earlier(i)
        record = Record(i + 10**6, other)
        slotted = Slotted()
        slotted.first, slotted.second, slotted.third = record, i * 0.5, other
        pair = (record, f"pair {i}", slotted)
        record.attributes = {
            "id": i + 10**7,
            "pair": pair,
            "other": other,
            "weight": i * 0.25,
            "tags": [slotted, other, pair],
        }
        record.parts = [pair, record.attributes, slotted, {"back": earlier(i), "slot": slotted}]
        if i % 2:
            record.parts.append(closure(slotted, pair))
        kept.append(record)
    return kept


def shuffled(units: int, reach: int = 1000, seed: int = 0) -> list:
    """The heap of mixed(), each kind of object made in a random order of its own: what refers to another lies
    anywhere in memory, as in a program that has run for long.
    """
    rng = random.Random(seed)

    def made(make):
        objects: list = [None] * units
        for i in rng.sample(range(units), units):
            objects[i] = make(i)
        return objects

    def earlier(i):
        return kept[rng.randrange(max(0, i - reach), i)] if i else None

    kept = made(lambda i: object.__new__(Record))
    slotted = made(lambda i: Slotted())
    names = made(lambda i: f"record {i}")
    numbers = made(lambda i: i + 10**6)
    others = made(earlier)
    labels, halves = made(lambda i: f"pair {i}"), made(lambda i: i * 0.5)
    pairs = made(lambda i: (kept[i], labels[i], slotted[i]))
    tags = made(lambda i: [slotted[i], others[i], pairs[i]])
    ids, weights = made(lambda i: i + 10**7), made(lambda i: i * 0.25)
    attributes = made(
        lambda i: {"id": ids[i], "pair": pairs[i], "other": others[i], "weight": weights[i], "tags": tags[i]}
    )
    backs = made(lambda i: {"back": earlier(i), "slot": slotted[i]})
    closures = made(lambda i: closure(slotted[i], pairs[i]) if i % 2 else None)
    parts = made(lambda i: [pairs[i], attributes[i], slotted[i], backs[i]])
    for i in rng.sample(range(units), units):
        record = kept[i]
        record.number, record.name, record.other = numbers[i], names[i], others[i]
        record.parts, record.attributes = parts[i], attributes[i]
        slotted[i].first, slotted[i].second, slotted[i].third = record, halves[i], others[i]
        if i % 2:
            parts[i].append(closures[i])
    return kept


HEAPS = {"in order": mixed, "shuffled": shuffled}


def garbage(cycles: int) -> None:
    """Cycles of two instances and what they keep, referred to by nobody."""
    for i in range(cycles):
        a, b = Record(i, None), Record(i, None)
        a.other, b.other, a.parts = b, a, [b, (i * 0.5, str(i))]
