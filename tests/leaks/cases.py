"""Pairs of loops: one that leaks, its twin that does not.  Text of scripts, run in fresh processes by
test_leaks.py.

Each case: name, code before the loop, the leaking body, the clean body, what a finding must name (a word of
the path or holder), and the bytes a step that leak, by arithmetic.
"""

import dataclasses

from native_support import HAS_TORCH

#: Where torch is absent, the cases that do without it run all the same.
SETUP = (
    "import collections, functools, gc\nimport numpy as np\n"
    + "import torch\nfrom torch import nn\n" * HAS_TORCH
)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    before: str
    leak: str
    clean: str
    owner: str
    bytes_per_step: float | None
    kind: str = "retained"


CASES = [
    Case(
        "validation loss kept with its graph",
        "model = nn.Sequential(nn.Linear(40, 300), nn.Tanh(), nn.Linear(300, 1)); curve = []",
        "curve.append(model(torch.randn(100, 40)).square().mean())",
        "curve.append(model(torch.randn(100, 40)).square().mean().item())",
        "curve",
        4 * (100 * 40 + 100 * 300 + 100),
    ),
    Case(
        "running state carried on with its graph",
        "cell = nn.RNNCell(30, 200); state = {'h': torch.zeros(50, 200)}",
        "state['h'] = cell(torch.randn(50, 30), state['h'])",
        "state['h'] = cell(torch.randn(50, 30), state['h'].detach())",
        "state",
        None,
    ),
    Case(
        "small view of a large array",
        "class Store:\n    def __init__(self): self.rows = collections.OrderedDict()\nstore = Store()",
        "store.rows[i] = np.random.rand(300, 70)[3]",
        "store.rows[i % 9] = np.random.rand(300, 70)[3].copy()",
        "rows",
        8 * 300 * 70,
    ),
    Case(
        "numpy view of a tensor",
        "labels = []",
        "labels.append(torch.rand(64, 400).numpy()[:, 0])",
        "labels.append(torch.rand(64, 4).numpy()[:, 0].mean())",
        "labels",
        4 * 64 * 400,
    ),
    Case(
        "hook that keeps activations",
        "net = nn.Linear(50, 90)\nclass Tap:\n    def __init__(self): self.seen = []\n"
        "    def __call__(self, module, args, out): self.keep(out.detach())\n    def keep(self, x): self.seen.append(x)\n"
        "tap = Tap(); net.register_forward_hook(tap)",
        "net(torch.randn(70, 50))",
        "net(torch.randn(70, 50)); tap.seen.clear()",
        "seen",
        4 * 70 * 90,
    ),
    Case(
        "closure over a list",
        "def make():\n    pending = []\n    def put(x): pending.append(x); return pending\n    return put\nput = make()",
        "put(torch.zeros(333, 11))",
        "put(torch.zeros(333, 11)).clear()",
        "pending",
        4 * 333 * 11,
    ),
    Case(
        "unbounded memoisation",
        "@functools.lru_cache(maxsize=None)\ndef table(n): return np.zeros(n)\n"
        "@functools.lru_cache(maxsize=4)\ndef small_table(n): return np.zeros(n)",
        "table(1000 + i)",
        "small_table(1000 + i)",
        "table",
        None,
    ),
    Case(
        "one tensor that is concatenated to",
        "everything = {'logits': torch.zeros(0, 30)}",
        "everything['logits'] = torch.cat([everything['logits'], torch.rand(40, 30)])",
        "everything['logits'] = torch.cat([everything['logits'], torch.rand(40, 30)])[-40:].clone()",
        "logits",
        4 * 40 * 30,
    ),
    Case(
        "pair of objects in a cycle that hold tensors",
        "class Part:\n    pass\ndef pair():\n    a, b = Part(), Part()\n    a.other, b.other, a.data = b, a, torch.zeros(9000)\n    return a\n"
        "gc.disable()",
        "pair()",
        "p = pair(); p.other = None",
        "Part",
        4 * 9000,
        "reference_cycle",
    ),
    Case(
        "tensors behind capsules",
        "from torch.utils import dlpack\noutbox = {}",
        "outbox[i] = dlpack.to_dlpack(torch.zeros(71, 130))",
        "outbox[i % 3] = dlpack.to_dlpack(torch.zeros(71, 130))",
        "outbox",
        4 * 71 * 130,
    ),
    Case(
        "storages without their tensors",
        "dump = {}",
        "dump[i] = torch.rand(50, 90).untyped_storage()",
        "dump[i % 3] = torch.rand(50, 90).untyped_storage()",
        "dump",
        4 * 50 * 90,
    ),
    Case(
        "storages of arrays",
        "sent = []",
        "sent.append(torch.from_numpy(np.random.rand(60, 50)).untyped_storage())",
        "sent.append(torch.from_numpy(np.random.rand(60, 50)).untyped_storage().nbytes())",
        "sent",
        8 * 60 * 50,
    ),
    Case(
        "two small tables of one line",
        "first, second = {}, {}\ndef note(k):\n    for table in (first, second):\n        table[k] = 'reading %d of the run' % (k + 1000) * 4",
        "note(i)",
        "note(i % 5)",
        "(dict, 60 items)",  # either holds half
        None,
    ),
    Case(
        "records of plain numbers",
        "class Log:\n    lines = {}\nlog = Log()",
        "log.lines[i] = [{'loss': i * 0.5, 'step': i + 1000 * k} for k in range(20)]",
        "log.lines[i % 7] = [{'loss': i * 0.5, 'step': i + 1000 * k} for k in range(20)]",
        "lines",
        None,
    ),
]

#: Loops that look like growth and are none.
CLEAN = [
    ("ring buffer", "ring = [None] * 500", "ring[i % 500] = torch.zeros(300)"),
    ("bounded deque", "recent = collections.deque(maxlen=400)", "recent.append(torch.zeros(300))"),
    (
        "optimizer state",
        "net = nn.Linear(60, 60); opt = torch.optim.Adam(net.parameters())",
        "opt.zero_grad(); net(torch.randn(5, 60)).sum().backward(); opt.step()",
    ),
    (
        "larger batches",
        "net = nn.Linear(20, 20)",
        "net(torch.randn(10 + 5 * i, 20)).sum().backward(); net.zero_grad()",
    ),
    (
        "reset at the epoch's end",
        "preds = []",
        "preds.append(torch.zeros(900)); preds.clear() if i % 9 == 8 else None",
    ),
    (
        "last batch in a global",
        "last = {}",
        "last['batch'] = torch.zeros(10000); last['loss'] = (last['batch'] * 2).sum()",
    ),
    ("cycles of small objects", "", "d = {'i': i}; d['me'] = d"),
    ("cache that is full", "cache = {}", "cache[i % 8] = torch.zeros(1000)"),
]
