import gc
from collections.abc import Callable

import leakprobe


class Sample:
    def __init__(self, size: int) -> None:
        self.pixels = bytearray(size)
        self.flip: Callable[[], bytearray] = lambda: self.pixels[
            ::-1
        ]  # the lambda refers to self, and self to the lambda


gc.disable()
for _ in range(3):
    Sample(100_000).flip()
for cycle in leakprobe.find_cycles()[:1]:
    cycle.print()
