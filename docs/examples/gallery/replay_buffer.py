"""A replay buffer without a bound

Transitions go in, and none goes out.
"""

import random
from dataclasses import dataclass

import numpy as np

import leakprobe


@dataclass
class Transition:
    state: np.ndarray
    action: int
    reward: float


class Replay:
    def __init__(self):
        self.transitions = []

    def add(self, transition):
        self.transitions.append(transition)

    def sample(self, size):
        return random.sample(self.transitions, min(size, len(self.transitions)))


replay = Replay()
with leakprobe.watch() as probe:
    for step in probe.steps(range(80)):
        replay.add(Transition(np.random.rand(84, 84), step % 4, 0.5))
        replay.sample(16)
probe.report().print()
