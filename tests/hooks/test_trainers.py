"""Callbacks with the real libraries: memory/* in each logger that a trainer has, read back from its files."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

MODEL = """
import json, os, sys, torch; torch.set_num_threads(1)
folder, logger = sys.argv[1:]
kept = []
def keep(loss): kept.append(loss.detach() + torch.zeros(2000))
"""

LIGHTNING = (
    MODEL
    + """
import logging, warnings
warnings.simplefilter("ignore"); logging.getLogger("lightning.pytorch").setLevel("ERROR")
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger, MLFlowLogger, TensorBoardLogger, WandbLogger
from leakprobe.integrations.lightning import LeakprobeCallback
class Net(LightningModule):
    def __init__(self):
        super().__init__(); self.net = torch.nn.Linear(16, 4)
    def training_step(self, batch, i):
        loss = self.net(batch[0]).square().mean(); keep(loss); self.log("loss", loss); return loss
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(160, 16)), batch_size=8)
made = {"tensorboard": lambda: TensorBoardLogger(folder), "csv": lambda: CSVLogger(folder),
        "wandb": lambda: WandbLogger(save_dir=folder, offline=True),
        "mlflow": lambda: MLFlowLogger(tracking_uri="file:" + folder + "/mlruns")}[logger]()
callback = LeakprobeCallback(warmup=5, show=False)
Trainer(max_epochs=2, accelerator="cpu", logger=made, enable_checkpointing=False, enable_progress_bar=False,
        log_every_n_steps=10, enable_model_summary=False, callbacks=[callback]).fit(Net(), loader)
if logger == "wandb": import wandb; wandb.finish()
print("VERDICT", callback.report.verdict)
"""
)

TRANSFORMERS = (
    MODEL
    + """
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from leakprobe.integrations.huggingface import LeakprobeCallback
os.environ["TENSORBOARD_LOGGING_DIR"] = folder
config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                    intermediate_size=16)
class Mine(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        loss = model(**inputs).loss; keep(loss); return loss
rows = [{"input_ids": torch.arange(8), "labels": torch.tensor(i % 2)} for i in range(160)]
arguments = TrainingArguments(output_dir=folder + "/out", num_train_epochs=1, use_cpu=True,
                              per_device_train_batch_size=4, report_to=[logger],
                              logging_steps=10, save_strategy="no", disable_tqdm=True)
callback = LeakprobeCallback(warmup=5, show=False)
trainer = Mine(model=BertForSequenceClassification(config), args=arguments, train_dataset=rows,
               callbacks=[callback])
names = [type(one).__name__ for one in trainer.callback_handler.callbacks]
trainer.train()
after = [type(one).__name__ for one in trainer.callback_handler.callbacks]
assert after == ["LeakprobeCallback", *(name for name in names if name != "LeakprobeCallback")], after
if logger == "wandb": import wandb; wandb.finish()
print("VERDICT", callback.report.verdict)
"""
)

ACCELERATE = (
    MODEL
    + """
from accelerate import Accelerator
from leakprobe.integrations.accelerate import LeakprobeCallback
accelerator = Accelerator(cpu=True, log_with=logger, project_dir=folder)
accelerator.init_trackers("run", init_kwargs={"wandb": {"dir": folder}})
net = torch.nn.Linear(16, 4)
net, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.1))
with LeakprobeCallback(accelerator, log_every=10, show=False) as memory:
    for batch in memory.steps(torch.randn(40, 8, 16)):
        loss = net(batch).square().mean()
        accelerator.backward(loss); optimizer.step(); optimizer.zero_grad(); keep(loss)
accelerator.end_training()
print("VERDICT", memory.report.verdict)
"""
)
LIBRARIES = {"lightning": LIGHTNING, "transformers": TRANSFORMERS, "accelerate": ACCELERATE}
NAMES = ("memory/cpu", "memory/python", "memory/rss", "memory/suspects_per_step")


def needs(*names: str) -> None:
    for name in names:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name}")


def train(library: str, logger: str, folder) -> None:
    environment = {
        **os.environ,
        "WANDB_MODE": "offline",
        "WANDB_DIR": str(folder),
        "MLFLOW_TRACKING_URI": f"file:{folder}/mlruns",
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "TOKENIZERS_PARALLELISM": "false",
    }
    done = subprocess.run(
        [sys.executable, "-c", LIBRARIES[library], str(folder), logger],
        capture_output=True, text=True, timeout=900, cwd=folder, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert "VERDICT growing" in done.stdout


#: Each reads what a logger wrote: {name: {step: value}}.
READERS = {
    "tensorboard": """
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
for path in {os.path.dirname(p) for p in glob.glob(folder + "/**/events.out.tfevents*", recursive=True)}:
    events = EventAccumulator(path); events.Reload()
    for tag in events.Tags()["scalars"]:
        found.setdefault(tag, {}).update({e.step: e.value for e in events.Scalars(tag)})
""",
    "wandb": """
import struct
from wandb.proto import wandb_internal_pb2 as records
def pieces(data, at=7, block=1 << 15):
    # LevelDB's log format behind seven bytes: checksum, length and kind (whole, first, middle, last).
    found = b""
    while at < len(data):
        if block - at % block < 7:
            at += block - at % block
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        if kind == 0:
            return
        found, at = found + data[at + 7 : at + 7 + length], at + 7 + length
        if kind in (1, 4):
            yield found
            found = b""
(path,) = {os.path.realpath(p) for p in glob.glob(folder + "/**/*.wandb", recursive=True)}
for data in pieces(open(path, "rb").read()):
    record = records.Record(); record.ParseFromString(data)
    row = {(i.key or "/".join(i.nested_key)): json.loads(i.value_json) for i in record.history.item}
    step = row.get("trainer/global_step", row.get("train/global_step", row.get("_step")))
    for name, value in row.items():
        found.setdefault(name, {})[step] = value
""",
    "mlflow": """
from mlflow.tracking import MlflowClient
client = MlflowClient(tracking_uri="file:" + folder + "/mlruns")
for experiment in client.search_experiments():
    for run in client.search_runs([experiment.experiment_id]):
        for name in run.data.metrics:
            found[name] = {m.step: m.value for m in client.get_metric_history(run.info.run_id, name)}
""",
    "csv": """
import csv
(path,) = glob.glob(folder + "/**/metrics.csv", recursive=True)
for row in csv.DictReader(open(path)):
    for name, value in row.items():
        if value: found.setdefault(name, {})[int(row["step"])] = float(value)
""",
}


def read(logger: str, folder) -> dict[str, dict[int, float]]:
    code = "import glob, json, os, sys\nfolder, found = sys.argv[1], {}\n" + READERS[logger]
    done = subprocess.run(
        [sys.executable, "-c", code + "print('FOUND', json.dumps(found))", str(folder)],
        capture_output=True, text=True, timeout=300, env={**os.environ, "MLFLOW_ALLOW_FILE_STORE": "true"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    text = done.stdout.rpartition("FOUND ")[2]
    return {name: {int(s): v for s, v in rows.items()} for name, rows in json.loads(text).items()}


def check(found: dict[str, dict[int, float]], steps: list[int], prefix: str = "") -> None:
    for name in NAMES:
        assert sorted(found[prefix + name]) == steps, (name, sorted(found))
    cpu = [found[prefix + "memory/cpu"][step] for step in steps]
    # Of short steps not each mark is read: a value may be that of three steps before.
    assert cpu[-1] - cpu[0] == pytest.approx(8000 * (steps[-1] - steps[0]), abs=3 * 8000)
    assert sorted(cpu) == cpu
    assert min(found[prefix + "memory/rss"].values()) > 1e7


@pytest.mark.parametrize("logger", ["tensorboard", "wandb", "mlflow", "csv"])
def test_lightning(logger, tmp_path):
    needs("lightning", *([] if logger == "csv" else [logger]))
    train("lightning", logger, tmp_path)
    found = read(logger, tmp_path)
    check(found, [9, 19, 29, 39])
    assert sorted(found["loss"]) == [9, 19, 29, 39], "beside the metrics of the same step"


@pytest.mark.parametrize("logger", ["tensorboard", "wandb", "mlflow"])
def test_transformers(logger, tmp_path):
    needs("transformers", "accelerate", logger)
    train("transformers", logger, tmp_path)
    check(read(logger, tmp_path), [10, 20, 30, 40], "" if logger == "mlflow" else "train/")


@pytest.mark.parametrize("logger", ["tensorboard", "wandb", "mlflow"])
def test_accelerate(logger, tmp_path):
    needs("accelerate", logger)
    train("accelerate", logger, tmp_path)
    check(read(logger, tmp_path), [10, 20, 30, 40])


def test_prometheus():
    needs("prometheus_client")
    code = """
import urllib.request, prometheus_client, leakprobe
from prometheus_client.parser import text_string_to_metric_families
from leakprobe.integrations.prometheus import MemoryCollector, to_text
kept = []
def values(text):
    families = text_string_to_metric_families(text)
    return {(s.name, *s.labels.items()): s.value for family in families for s in family.samples}
with leakprobe.watch() as probe:
    assert to_text(probe) == ""
    for i in range(30):
        kept.append(bytearray(4000)); probe.step()
    first = values(to_text(probe))
    prometheus_client.REGISTRY.register(MemoryCollector(probe))
    server, thread = prometheus_client.start_http_server(0, addr="127.0.0.1")
    port = server.server_address[1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        scraped = values(answer.read().decode())
    server.shutdown(); server.server_close(); thread.join()
assert first[("leakprobe_steps_total",)] == 30.0
assert first[("leakprobe_live_bytes", ("medium", "python"))] > 30 * 4000
assert first[("leakprobe_resident_bytes",)] > 1e7
assert first[("leakprobe_suspects",)] >= 1 and 3000 < first[("leakprobe_suspects_bytes_per_step",)] < 6000
names = {key[0] for key in scraped if key[0].startswith("leakprobe")}
assert names == {key[0] for key in first}, names
import os; os.environ |= {"RANK": "3", "WORLD_SIZE": "4"}
assert ("leakprobe_live_bytes", ("medium", "python"), ("rank", "3")) in values(to_text(probe))
print("DONE")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "DONE", done.stderr


@pytest.mark.parametrize("module, library", [
    ("prometheus", "prometheus_client"), ("lightning", "lightning"), ("huggingface", "transformers"),
])  # fmt: skip
def test_what_is_missing_is_named(module, library):
    code = (
        f"import sys; sys.modules[{library!r}] = sys.modules['pytorch_lightning'] = None\n"
        f"try: import leakprobe.integrations.{module}\nexcept ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert "python3 -m pip install" in done.stdout, done.stderr
