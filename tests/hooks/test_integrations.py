"""Callbacks and the cell magic with the real libraries, each in a process of its own: a planted leak, and
without.
"""

import re
import subprocess
import sys

import pytest

MODEL = """
import sys, torch; torch.set_num_threads(1)
leaks, kept = False, []
def keep(loss):
    if leaks: kept.append(loss + torch.zeros(2000))
"""

LIGHTNING = (
    MODEL
    + """
import logging, warnings; warnings.simplefilter("ignore"); logging.getLogger("lightning.pytorch").setLevel("ERROR")
from lightning.pytorch import LightningModule, Trainer
from leakprobe.integrations.lightning import LeakprobeCallback
class Net(LightningModule):
    def __init__(self):
        super().__init__(); self.net = torch.nn.Linear(16, 4)
    def training_step(self, batch, i):
        loss = self.net(batch[0]).square().mean(); keep(loss); return loss
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(160, 16)), batch_size=8)
for leaks in (False, True):
    callback = LeakprobeCallback(warmup=5)
    Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, callbacks=[callback]).fit(Net(), loader)
    print("END", callback.report.verdict, callback.report.steps["measured"])
"""
)

TRANSFORMERS = (
    MODEL
    + """
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from leakprobe.integrations.huggingface import LeakprobeCallback
config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
class Mine(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        loss = model(**inputs).loss; keep(loss); return loss
rows = [{"input_ids": torch.arange(8), "labels": torch.tensor(i % 2)} for i in range(120)]
arguments = TrainingArguments(output_dir=sys.argv[1], num_train_epochs=1, per_device_train_batch_size=4, report_to=[], use_cpu=True,
                              save_strategy="no", logging_strategy="no", disable_tqdm=True)
for leaks in (False, True):
    callback = LeakprobeCallback(warmup=5)
    Mine(model=BertForSequenceClassification(config), args=arguments, train_dataset=rows, callbacks=[callback]).train()
    print("END", callback.report.verdict, callback.report.steps["measured"])
"""
)

IPYTHON = (
    MODEL
    + """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.user_ns.update(keep=keep, torch=torch)
shell.run_line_magic("load_ext", "leakprobe")
def cell(line, text):
    shell.run_cell_magic("leakprobe", line, text)
    report = shell.user_ns["leakprobe_report"]
    print("END", report.verdict, report.steps["measured"])
for leaks in (False, True):
    cell("-n 3:20", "keep(torch.randn(1))")
    cell("-w 4", "for i in probe.steps(range(30)): keep(torch.randn(1))")
    cell("", '''
w = torch.nn.Linear(4, 4); o = torch.optim.SGD(w.parameters(), lr=0.1)
for i in range(25):
    w(torch.ones(2, 4)).sum().backward(); o.step(); keep(torch.randn(1))
''')
assert "probe" not in shell.user_ns
"""
)


def run(code: str, *arguments) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def ends(out: str) -> list[list[str]]:
    return [line.split()[1:] for line in out.splitlines() if line.startswith("END")]


def check(out: str, steps: str) -> None:
    """First without the leak: silent.  Then with it: found."""
    assert ends(out) == [["steady", steps], ["growing", steps]]
    silent, found = out.split("END steady")
    assert "LEAK" not in silent and re.search(r"kept \(list, \d+ items\)", found)


def test_lightning():
    pytest.importorskip("lightning", reason="needs lightning")
    check(run(LIGHTNING), "35")


def test_transformers(tmp_path):
    pytest.importorskip("transformers", reason="needs transformers")
    pytest.importorskip("accelerate", reason="the Trainer needs accelerate")
    check(run(TRANSFORMERS, str(tmp_path)), "25")


def test_ipython():
    pytest.importorskip("IPython", reason="needs ipython")
    expected = ("20", "26", "19")  # without marks the first step of an optimizer ends none
    assert ends(run(IPYTHON)) == [[verdict, steps] for verdict in ("steady", "growing") for steps in expected]


def test_ipython_errors():
    pytest.importorskip("IPython", reason="needs ipython")
    from IPython.core.error import UsageError

    from leakprobe.integrations.ipython import parse_line

    assert parse_line("-n 3:10 -l '1 KiB' -o x.leak") == ((3, 10), 5, {"limit": "1 KiB", "record": "x.leak"})
    for line in ("-n", "-n 3", "-x 1", "-w many"):
        with pytest.raises(UsageError, match="%%leakprobe"):
            parse_line(line)


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard", reason="needs tensorboard")
    code = MODEL + (
        "import leakprobe\nfrom torch.utils.tensorboard import SummaryWriter\n"
        "from leakprobe.integrations.tensorboard import write_scalars\n"
        "with SummaryWriter(sys.argv[1]) as writer, leakprobe.watch() as probe:\n"
        "    write_scalars(writer, probe)\n"
        "    for i in probe.steps(range(20)): keep(torch.randn(1)); write_scalars(writer, probe)\n"
        "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
        "events = EventAccumulator(sys.argv[1]); events.Reload()\n"
        "print(sorted(events.Tags()['scalars']))\n"
        "print([e.step for e in events.Scalars('memory/rss')], events.Scalars('memory/cpu')[-1].value)\n"
    )
    tags, last = run(code.replace("leaks, kept = False", "leaks, kept = True"), str(tmp_path)).splitlines()[
        -2:
    ]
    assert {"memory/cpu", "memory/python", "memory/rss", "memory/suspects_per_step"} <= set(eval(tags))
    assert last.startswith(str(list(range(1, 20)))[:-1]) and float(last.split()[-1]) >= 18 * 8000
