"""How long memory may be on its way to the step that uses it: batches that are built ahead."""

import os

from leakprobe.judge.entries import stack_of

#: In the stack of what a DataLoader's workers have built, and this process receives.
LOADER = f"{os.sep}torch{os.sep}utils{os.sep}data{os.sep}"


class InFlight:
    """Of one watch.  ``steps``: in a worker, all that it makes may wait for so many; in the process of the
    loop what it receives from workers may, as those of a slow worker are waited for by all of the others.
    """

    def __init__(self, steps: int) -> None:
        self._steps = self.batches = steps

    def note(self, batches: int) -> None:
        """So many may be built and not yet used now."""
        self.batches = max(self.batches, batches)

    def age_of(self, site: int) -> int:
        """Steps that what the line makes may wait for its own."""
        if self.batches == self._steps:
            return self._steps
        is_received = any(LOADER in filename for filename, *_ in stack_of(site))
        return self.batches if is_received else self._steps
