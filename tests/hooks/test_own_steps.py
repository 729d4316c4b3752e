"""A watch whose program marks no steps takes torch's; one that is marked twice says so."""

import pytest
from fresh import run
from native_support import needs_torch

pytestmark = needs_torch

SETUP = """
import json, torch, leakprobe
kept = []
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
def train():
    optimizer.zero_grad()
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
def keep():
    kept.append(torch.ones(1000))
"""
END = """
report = probe.report()
kinds = [(note.kind, note.text) for note in report.notes if note.kind in ("warm_up", "gap")]
print(json.dumps([report.steps, report.verdict, [f.bytes_per_step for f in report.findings], kinds]))
"""


class Watched:
    """What a loop gave."""

    def __init__(self, loop: str, setup: str = SETUP):
        self.steps, self.verdict, self.rates, self.notes = run(setup + loop + END)

    @property
    def marks(self):
        return self.steps["warmup"] + self.steps["measured"]

    def has_rate(self, rate):
        return len(self.rates) == 1 and self.rates[0] == pytest.approx(rate, rel=0.15)


def test_optimizer_steps_are_steps_where_none_is_marked():
    """The first one ends no step: the program might have marked it."""
    found = Watched("""
with leakprobe.watch() as probe:
    for _ in range(60):
        train()
        keep()
""")
    assert found.marks == 59 and found.has_rate(4400) and not found.notes


def test_batches_are_steps_where_no_optimizer_is_and_torch_is_imported_in_the_watch():
    found = Watched(
        """
with leakprobe.watch() as probe:
    import torch, torch.utils.data
    data = torch.utils.data.TensorDataset(torch.ones(240, 4))
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=4):
        kept.append(batch.new_ones(1000))
""",
        setup="import json, leakprobe\nkept = []\n",
    )
    assert found.marks in (58, 59, 60) and found.has_rate(4400)


@pytest.mark.parametrize("mark", ["probe.step()", "for _ in probe.steps([0]): pass"])
def test_a_program_that_marks_is_not_marked_by_torch(mark):
    found = Watched(f"""
with leakprobe.watch() as probe:
    for _ in range(60):
        train()
        keep()
        {mark}
""")
    assert found.marks == 60 and found.has_rate(4400) and not found.notes


def test_what_torch_marked_before_the_first_mark_of_the_program_is_warm_up():
    """Ten optimizer steps make one of the program's."""
    found = Watched("""
with leakprobe.watch() as probe:
    for _ in range(60):
        for _ in range(10):
            train()
        keep()
        probe.step()
""")
    assert found.steps == {"warmup": 9 + 5, "measured": 55}
    assert found.has_rate(4400)
    assert [kind for kind, _ in found.notes] == ["warm_up"]
    assert found.notes[0][1].startswith("the first 9 steps were those of an optimizer")


def test_a_loop_that_is_marked_twice_is_reported():
    found = Watched("""
with leakprobe.watch() as probe:
    for _ in probe.steps(range(60)):
        keep()
        probe.step()
""")
    assert found.has_rate(2200)
    assert [kind for kind, _ in found.notes] == ["gap"] and "marked twice" in found.notes[0][1]


def test_some_steps_that_are_marked_inside_of_iterations_are_no_note():
    found = Watched("""
with leakprobe.watch() as probe:
    for i in probe.steps(range(60)):
        keep()
        if i % 10 == 5:
            probe.step()
""")
    assert not found.notes


def test_two_watches_one_after_the_other_leave_torch_as_it_was():
    left, of_steps = run(
        SETUP
        + """
from torch.optim.optimizer import _global_optimizer_post_hooks as hooks
from torch.utils.data import dataloader
def state():
    names = [dataloader.DataLoader.__iter__, dataloader._SingleProcessDataLoaderIter.__dict__.get("__next__")]
    return len(hooks), [id(name) for name in names]
before, during = state(), []
for marks in (False, True):
    with leakprobe.watch() as probe:
        for _ in range(20):
            train()
            if marks:
                probe.step()
        during.append(len(hooks))
print(json.dumps([state() == before, during[0] - during[1]]))
"""
    )
    assert left and of_steps == 1
