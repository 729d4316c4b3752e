"""All kinds of loops, and which of them are set aside.

A third of the kinds is held out, by the hash of their names, so that nobody chose them.  Who builds or tunes
a model of growth looks at the others only, and at the held-out ones in sum: never at their rows one by one,
nor at their loops.
"""

import hashlib

from benchmarks.rhythms import growing, growing_more, turnover, turnover_more

KINDS = {
    kind.name: kind for module in (growing, growing_more, turnover, turnover_more) for kind in module.KINDS
}
GROWING = [kind for kind in KINDS.values() if kind.grows]
TURNING = [kind for kind in KINDS.values() if not kind.grows]


def is_held_out(name: str) -> bool:
    """True for a third of all names."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0


def names_hash(names) -> str:
    """A hash of the names in order of the alphabet, so that a change of the list shows."""
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()


HELD_OUT = sorted(name for name in KINDS if is_held_out(name))
