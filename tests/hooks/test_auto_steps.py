"""`leakprobe run` marks steps by itself: optimizer steps, else batches, with DataLoader workers too."""

import json
import subprocess
import sys
import textwrap

import forked
import pytest
from native_support import needs_torch

pytestmark = needs_torch

SETUP = """
import sys
import torch
from torch import nn
data = torch.utils.data.TensorDataset(torch.rand(320, 6), torch.rand(320, 1))
net = nn.Linear(6, 1)
"""


def run(tmp_path, code, *, imports_torch=False):
    """The finished process and the report of a script under ``leakprobe run``; ``imports_torch``: the import
    is the script's own, else torch is there when ``run`` begins.
    """
    script = tmp_path / "train.py"
    script.write_text(SETUP + textwrap.dedent(code))
    report = tmp_path / "report.json"
    command = ["-m", "leakprobe", "run", "--json", str(report), str(script)]
    if imports_torch:
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=900)
    else:
        done = forked.run(command, trains=True)
    assert report.exists(), done.stderr
    return done, json.loads(report.read_text())


def marks(report):
    return report["steps"]["warmup"] + report["steps"]["measured"]


def test_an_optimizer_step_is_a_step(tmp_path):
    done, report = run(
        tmp_path,
        """
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for x, y in torch.utils.data.DataLoader(data, batch_size=16):
                optimizer.zero_grad()
                (net(x) - y).square().mean().backward()
                optimizer.step()
        print("trained")
        """,
        imports_torch=True,
    )
    assert done.stdout == "trained\n" and done.returncode == 0
    assert marks(report) == 40 and report["verdict"] == "steady"
    assert report["timeline"][-1]["epoch"] == 2


def test_batches_are_steps_with_two_workers_and_the_exit_code_is_the_scripts(tmp_path):
    done, report = run(
        tmp_path,
        """
        kept = []
        # Since 3.14 the start method is another one, which asks for a main guard.
        for x, y in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context="fork"):
            kept.append(net(x))
        print(len(kept))
        sys.exit(7)
        """,
        imports_torch=True,
    )
    assert done.stdout == "40\n" and done.returncode == 7
    assert marks(report) >= 38
    finding = report["findings"][0]
    assert report["verdict"] == "growing" and "kept" in json.dumps(finding["path"])
    assert finding["allocation"]["filename"].endswith("train.py")


def test_two_optimizers_of_one_iteration_make_one_step(tmp_path):
    _, report = run(
        tmp_path,
        """
        other = nn.Linear(6, 1)
        first = torch.optim.SGD(net.parameters(), lr=0.1)
        second = torch.optim.Adam(other.parameters())
        for x, y in torch.utils.data.DataLoader(data, batch_size=16):
            for model, optimizer in ((net, first), (other, second)):
                optimizer.zero_grad()
                (model(x) - y).square().mean().backward()
                optimizer.step()
        """,
    )
    assert marks(report) == 20


def test_an_optimizer_that_rests_gives_the_lead_to_the_one_that_steps(tmp_path):
    """The first one lives on: a warm-up of the head, before all is trained by another."""
    _, report = run(
        tmp_path,
        """
        head, whole = (torch.optim.SGD(net.parameters(), lr=0.1) for _ in range(2))
        for optimizer, steps in ((head, 10), (whole, 40)):
            for i in range(steps):
                net(data[i][0]).sum().backward()
                optimizer.step()
        """,
    )
    assert marks(report) == 50 - 8


def test_many_optimizers_in_turns_make_a_step_a_round(tmp_path):
    _, report = run(
        tmp_path,
        """
        members = [torch.optim.SGD(nn.Linear(6, 1).parameters(), lr=0.1) for _ in range(14)]
        for round in range(20):
            if round == 10:
                members[:] = [torch.optim.SGD(nn.Linear(6, 1).parameters(), lr=0.1) for _ in members]
            for optimizer in members:
                optimizer.step()
        """,
    )
    assert 20 <= marks(report) <= 22


def test_trials_that_are_kept_follow_each_other(tmp_path):
    """The first counts as resting after eight steps of others: six of the second, two of the third."""
    _, report = run(
        tmp_path,
        """
        class Optimizer(torch.optim.SGD):
            __hash__ = None
            def __eq__(self, other): raise AssertionError("compared")
        trials = []
        for number in range(12):
            trials.append(Optimizer(net.parameters(), lr=0.1))
            for i in range(6):
                net(data[i][0]).sum().backward()
                trials[-1].step()
        """,
    )
    assert marks(report) == 12 * 6 - 8


def test_pairs_of_optimizers_that_are_kept_make_a_step_a_round(tmp_path):
    _, report = run(
        tmp_path,
        """
        pairs = []
        for number in range(10):
            pairs.append([torch.optim.SGD(nn.Linear(6, 1).parameters(), lr=0.1) for _ in range(2)])
            for i in range(10):
                for optimizer in pairs[-1]:
                    optimizer.step()
        """,
    )
    assert 95 <= marks(report) <= 110, "one more for each pair, which is new"


def test_batches_whose_gradients_accumulate_are_no_steps(tmp_path):
    _, report = run(
        tmp_path,
        """
        optimizer, batches = torch.optim.SGD(net.parameters(), lr=0.1), 0
        for epoch in range(4):
            for x, y in torch.utils.data.DataLoader(data, batch_size=4):
                (net(x) - y).square().mean().backward()
                batches += 1
                if batches % 16 == 0:
                    optimizer.step()
        """,
    )
    assert 20 <= marks(report) <= 20 + 16, "those of the first step are marked, as there is no optimizer yet"


def test_an_evaluation_loop_after_training_is_marked_by_its_batches(tmp_path):
    _, report = run(
        tmp_path,
        """
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        loader = torch.utils.data.DataLoader(data, batch_size=16)
        for x, y in loader:
            (net(x) - y).square().mean().backward()
            optimizer.step()
        for repeat in range(3):
            for x, y in loader:
                net(x)
        """,
    )
    assert 60 <= marks(report) <= 80


@pytest.mark.parametrize(
    "where, per", [("training", "per step of the optimizer"), ("evaluation", "per batch of these")]
)
def test_growth_of_trainings_or_evaluations_only_is_told_per_step_of_these(tmp_path, where, per):
    """40 batches of validation after each 20 steps; the first eight of them end no step."""
    _, report = run(
        tmp_path,
        f"""
        kept, optimizer = [], torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(8):
            for x, y in torch.utils.data.DataLoader(data, batch_size=16):
                (net(x) - y).square().mean().backward()
                optimizer.step()
                if "{where}" == "training":
                    kept.append(torch.zeros(25_600))
            for x, y in torch.utils.data.DataLoader(data, batch_size=8):
                with torch.no_grad():
                    net(x)
                if "{where}" == "evaluation":
                    kept.append(torch.zeros(25_600))
        """,
    )
    (finding,) = report["findings"]
    assert finding["bytes_per_step"] == pytest.approx(102_400, rel=0.1) and per in finding["evidence"]
    assert report["lines"][0]["bytes_per_step"] == pytest.approx(102_400, rel=0.1)


def test_no_step_at_all_is_inconclusive(tmp_path):
    done, report = run(tmp_path, "print('no loop')")
    assert report["verdict"] == "inconclusive" and done.returncode == 3
    assert any("probe.step()" in note["text"] for note in report["notes"])


def test_a_name_of_the_script_is_the_holder_with_its_line(tmp_path):
    _, report = run(
        tmp_path,
        """
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        total = 0
        for i in range(60):
            loss = net(data[i][0]).sum()
            loss.backward()
            optimizer.step()
            total = total + net(torch.rand(64, 6)).sum()
        """,
    )
    (finding,) = report["findings"]
    assert finding["holder"]["text"] == "total Tensor in __main__"
    assert finding["holder"]["grown_at"]["lineno"] == 14


@pytest.mark.parametrize("is_kept", [True, False])
def test_what_was_kept_until_the_loop_ended_is_no_garbage(tmp_path, is_kept):
    """main() has returned when the script ends: a trainer that refers to itself is out of reach by then."""
    done, report = run(
        tmp_path,
        f"""
        import gc
        class Trainer:
            def __init__(self):
                self.net, self.history, self.callbacks = nn.Linear(6, 1), [], [self.note]
                self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
            def note(self, loss):
                if {is_kept}:
                    self.history.append(loss.detach().expand(64).clone())
                else:
                    self.history[:] = [loss.detach()]
            def train(self):
                for _ in range(6):
                    for x, y in torch.utils.data.DataLoader(data, batch_size=16):
                        self.optimizer.zero_grad()
                        loss = (self.net(x) - y).square().mean()
                        loss.backward()
                        self.optimizer.step()
                        self.callbacks[0](loss)
        def main():
            Trainer().train()
        gc.disable()  # so that nothing is freed between the end of main() and that of the script
        main()
        """,
    )
    assert done.returncode == is_kept
    if not is_kept:
        assert report["verdict"] == "steady", [f["evidence"] for f in report["findings"]]
        return
    (finding,) = report["findings"]
    assert (finding["kind"], finding["cause"]) == ("retained", "growing_container"), finding
    assert ".history" in finding["holder"]["text"] and finding["cycle"] is None


@pytest.mark.parametrize("is_kept", [True, False])
def test_items_in_cycles_of_their_own_were_held_until_the_loop_ended(tmp_path, is_kept):
    """What held them has gone with main(), and each is garbage then, as are those that nothing ever held."""
    _, report = run(
        tmp_path,
        f"""
        import gc
        class Metric:
            def __init__(self):
                self.rows = torch.zeros(512)
                self.update = lambda: self.rows.sum()
        def main():
            optimizer, results = torch.optim.SGD(net.parameters(), lr=0.1), []
            for i in range(120):
                net(data[i][0]).sum().backward()
                optimizer.step()
                results.append(Metric())
                del results[:-1 if not {is_kept} else 0]
        gc.disable()  # so that nothing is freed between the end of main() and that of the script
        main()
        """,
    )
    kinds = {finding["kind"] for finding in report["findings"]}
    assert kinds == ({"retained"} if is_kept else {"reference_cycle"}), report["findings"]
    if is_kept:
        assert "results" in report["findings"][0]["holder"]["text"]
