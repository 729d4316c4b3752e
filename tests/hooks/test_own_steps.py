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

    def __init__(self, loop: str, setup: str = SETUP, **how):
        self.steps, self.verdict, self.rates, self.notes = run(setup + loop + END, **how)

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


@pytest.mark.parametrize("asked", ["", "importlib.util.find_spec('torch')"])
def test_batches_are_steps_where_no_optimizer_is_and_torch_is_imported_in_the_watch(asked):
    """Libraries ask first whether there is a torch."""
    found = Watched(
        f"""
with leakprobe.watch() as probe:
    {asked}
    import torch, torch.utils.data
    data = torch.utils.data.TensorDataset(torch.ones(240, 4))
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=4):
        kept.append(batch.new_ones(1000))
""",
        setup="import importlib.util, json, leakprobe\nkept = []\n",
        fork=False,
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
    left, of_steps, listeners, hooks = run(
        SETUP
        + """
from torch.optim.optimizer import _global_optimizer_post_hooks as hooks
from torch.utils.data import dataloader
from leakprobe.torch import optimizer_steps
def state():
    names = [dataloader.DataLoader.__iter__, dataloader._SingleProcessDataLoaderIter.__dict__.get("__next__")]
    return [id(name) for name in names]
before, during = state(), []
for marks in (False, True):
    with leakprobe.watch() as probe:
        for _ in range(20):
            train()
            if marks:
                probe.step()
        during.append(len(optimizer_steps._listeners))
print(json.dumps([state() == before, during[0] - during[1], len(optimizer_steps._listeners), len(hooks)]))
"""
    )
    assert left and of_steps == 1
    assert (listeners, hooks) == (0, 1)  # what torch calls stays, and does nothing


TWO_LOADERS = """
import json, torch, torch.utils.data, leakprobe
kept = []
data = torch.utils.data.TensorDataset(torch.ones(240, 4))
def loader(): return torch.utils.data.DataLoader(data, batch_size=4)
class Reads(torch.utils.data.Dataset):
    inner = iter(())
    def __len__(self): return 240
    def __getitem__(self, k):
        try: return next(self.inner)[0]
        except StopIteration: self.inner = iter(loader())
        return self[k]
"""


@pytest.mark.parametrize(
    "loop",
    [
        "for _ in zip(loader(), loader()):",
        "for _ in torch.utils.data.DataLoader(Reads(), batch_size=4):",
    ],
    ids=["together", "within"],
)
def test_of_two_loaders_in_one_iteration_one_makes_the_steps(loop):
    found = Watched(
        f"with leakprobe.watch() as probe:\n    {loop} kept.append(torch.ones(1000))\n", setup=TWO_LOADERS
    )
    assert found.marks in (58, 59, 60) and found.has_rate(4400)


def test_the_loader_that_is_read_on_leads_when_the_other_rests():
    """Two are read in turn, 30 batches each: a step is a batch of either."""
    found = Watched(
        """
first, second = iter(loader()), iter(loader())
with leakprobe.watch() as probe:
    for turn in range(4):
        for _ in range(30):
            next((first, second)[turn % 2])
            kept.append(torch.ones(1000))
""",
        setup=TWO_LOADERS,
    )
    assert 85 <= found.marks <= 119  # some batches pass until it is sure that the other one rests


def test_a_watch_may_end_in_a_step_of_an_optimizer():
    """torch goes through its hooks then, the program's own behind ours."""
    verdict, steps = run(
        SETUP
        + """
from torch.optim.optimizer import register_optimizer_step_post_hook
steps = 0
with leakprobe.watch(on_growth=lambda report: leakprobe.stop()) as probe:
    register_optimizer_step_post_hook(lambda *a: None)
    for _ in range(100):
        keep()
        train()
        steps += 1
print(json.dumps([probe.report().verdict, steps]))
"""
    )
    assert (verdict, steps) == ("growing", 100)


def test_loaders_are_left_alone_after_the_watch_whoever_wrapped_them_meanwhile():
    assert run(
        """
import json, torch, torch.utils.data, leakprobe
from torch.utils.data import dataloader
from leakprobe import _core
made = dataloader._MultiProcessingDataLoaderIter
class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, k): return int(_core.active_watch() is not None)
def watched():
    loader = torch.utils.data.DataLoader(Data(), num_workers=1, multiprocessing_context="fork")
    return max(int(batch.max()) for batch in loader)
with leakprobe.watch() as probe:
    ours = made.__init__
    def __init__(self, *given, **named): ours(self, *given, **named)
    made.__init__ = __init__
    within = watched()
print(json.dumps([within, watched()]))
"""
    ) == [1, 0]


def test_the_length_of_the_programs_own_sampler_is_not_asked():
    """It may draw random numbers for it."""
    from torch.utils.data import BatchSampler, Sampler, SequentialSampler

    from leakprobe.torch.workers import batches_of

    class Own(Sampler):
        def __iter__(self):
            return iter(range(10))

        def __len__(self):
            raise AssertionError("it was asked")

    assert batches_of(BatchSampler(SequentialSampler(range(10)), 3, False)) == 4
    assert batches_of(SequentialSampler(range(10))) == 10
    assert batches_of(Own()) is batches_of(BatchSampler(Own(), 3, False)) is None


def test_a_step_that_comes_after_the_end_of_a_run_is_let_by():
    """A thread that still trains, when the program has ended."""
    import leakprobe
    from leakprobe.cli.run import LimitedProbe

    limited = LimitedProbe(leakprobe.watch(), 3)
    with limited:
        for _ in range(5):
            limited.step()
    limited.step()
    assert not limited.is_active()
