"""One loop for each rule of causes.py: name, code before the loop, the leaking body, the cause that it must
be told.

Names, sizes and shapes are of no other test or case.  run_mechanisms() runs them all in one fresh process,
each under a watch of its own; where torch is absent, those that do without it.
"""

import json
import pathlib
import subprocess
import sys

from clocked import FREE
from native_support import HAS_TORCH
from shapes import SHAPES

SETUP = (
    "import collections, functools, gc, io, itertools, logging, os, queue, socket, tempfile, "
    "threading, weakref\n"
    "import numpy as np\n" + "import torch\nfrom torch import nn\n" * HAS_TORCH
)

MECHANISMS = [
    (
        "plain_malloc",
        "import ctypes\nlibc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p",
        "ctypes.memset(libc.malloc(52000), 1, 52000)",
        "native_growth",
    ),
    (
        "kept_with_graph",
        "net = nn.Linear(17, 130); scores = []",
        "scores.append(net(torch.ones(9, 17)).tanh())",
        "graph_kept",
    ),
    (
        "running_total",
        "w = torch.ones(700, requires_grad=True); total = {'sum': 0.0}",
        "total['sum'] = total['sum'] + (w * torch.ones(700)).sum()",
        "graph_chain",
    ),
    ("array_view", "firsts = []", "firsts.append(np.ones((90, 40))[0])", "view_of_large_base"),
    ("tensor_view", "lasts = {}", "lasts[i] = torch.ones(300, 21)[-1]", "view_of_large_base"),
    (
        "shared_batch",
        "labels = []",
        "labels.append(torch.zeros(40, 60).share_memory_()[:, 0])",
        "batch_memory_kept",
    ),
    (
        "pair",
        "gc.disable()\nclass Leaf: pass",
        "a, b = Leaf(), Leaf(); a.peer, b.peer, a.rows = b, a, np.zeros(2500)",
        "reference_cycle",
    ),
    (
        "last_error",
        "gc.disable()\ndef parse(n):\n    table = np.zeros(n)\n    try:\n        raise KeyError('row')\n"
        "    except KeyError as error:\n        last = error\n    return len(table)",
        "parse(3100)",
        "cycle_through_frame",
    ),
    (
        "bound_callback",
        "gc.disable()\nclass Panel: pass",
        "p = Panel(); p.pixels = np.zeros(2700); p.refresh = lambda: p.pixels.sum()",
        "cycle_through_callback",
    ),
    (
        "module_hook",
        "gc.disable()",
        "m = nn.Linear(48, 50); m.register_forward_hook(lambda mod, args, out, m=m: None)",
        "cycle_through_hook",
    ),
    (
        "tensor_hook",
        "",
        "t = torch.ones(1300, requires_grad=True) * 3; t.register_hook(lambda g, t=t: t)",
        "cpp_reference_cycle",
    ),
    (
        "object_grid",
        "gc.disable()\nclass Shelf: pass",
        "s = Shelf(); s.grid = np.empty(3, dtype=object); s.grid[0] = s; s.data = np.zeros(2100)",
        "cpp_reference_cycle",
    ),
    (
        "frozen",
        "class Ring: pass",
        "r = Ring(); r.me, r.data = r, bytearray(9000); gc.freeze()",
        "frozen_garbage",
    ),
    (
        "errors_kept",
        "log = []\ndef load(n):\n    page = np.zeros(n)\n    raise OSError('disk')",
        "try: load(1900)\nexcept OSError as e: log.append(e)",
        "traceback_kept",
    ),
    (
        "memo",
        "@functools.lru_cache(maxsize=None)\ndef grid(n): return np.zeros(n)",
        "grid(500 + i)",
        "unbounded_cache",
    ),
    (
        "memo_on_method",
        "class Scene:\n    def __init__(self): self.mesh = np.zeros(1700)\n    @functools.cache\n"
        "    def area(self, scale): return scale * self.mesh.sum()",
        "Scene().area(2)",
        "lru_cache_on_method",
    ),
    (
        "keyed_by_tensor",
        "votes = collections.defaultdict(int)",
        "votes[torch.full((350,), i)] += 1",
        "cache_keyed_by_objects",
    ),
    (
        "hook_each_step",
        "net = nn.Linear(5, 6)",
        "seen = np.zeros(1200)\nnet.register_forward_pre_hook(lambda mod, args: "
        "seen.fill(0))\nnet(torch.ones(1, 5))",
        "hook_kept",
    ),
    (
        "list_of_module",
        "class Encoder(nn.Module):\n    def __init__(self):\n        super().__init__(); "
        "self.norms = []\nenc = Encoder()",
        "enc.norms.append(torch.ones(410))",
        "module_attribute",
    ),
    (
        "outputs_of_module",
        "class Gate(nn.Module):\n    def __init__(self):\n        super().__init__(); self.fc = "
        "nn.Linear(12, 190); self.past = []\n"
        "    def forward(self, x):\n        y = self.fc(x).exp(); self.past.append(y); return "
        "y\ngate = Gate()",
        "gate(torch.ones(8, 12)).sum().backward()",
        "module_attribute",
    ),
    (
        "locked_pages",
        "import ctypes; pages = []",
        "pages.append((ctypes.c_char * 6200).from_buffer(bytearray(6200)))",
        "growing_container",
    ),
    (
        "groups",
        "net = nn.Linear(3, 2); opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)",
        "p = nn.Parameter(torch.zeros(31, 29)); opt.add_param_group({'params': [p]}); "
        "p.sum().backward(); opt.step()",
        "optimizer_state",
    ),
    (
        "dead_parameters",
        "net = nn.Linear(37, 23); opt = torch.optim.Adam(net.parameters())",
        "net.weight = nn.Parameter(net.weight.detach().clone()); opt.param_groups[0]['params'] = "
        "list(net.parameters())\n"
        "net(torch.ones(2, 37)).sum().backward(); opt.step(); opt.zero_grad()",
        "optimizer_state",
    ),
    ("loggers", "", "logging.getLogger(f'run.{i}.fold').setLevel(10)", "library_registry"),
    (
        "finalizers",
        "class Pool:\n    def __init__(self):\n        self.slab = np.zeros(1100)\n        "
        "weakref.finalize(self, self.drop)\n"
        "    def drop(self): pass",
        "Pool()",
        "library_registry",
    ),
    ("classes", "kinds = []", "kinds.append(type(f'Row{i}', (), {'width': i}))", "class_per_step"),
    (
        "tee",
        "left, right = itertools.tee(torch.zeros(260) for _ in itertools.count())",
        "next(left)",
        "buffering_iterator",
    ),
    ("backlog", "work = queue.Queue()", "work.put(np.zeros(370))", "queue_not_emptied"),
    (
        "futures",
        "from concurrent.futures import Future\ndone = []",
        "f = Future(); f.set_result(np.zeros(470)); done.append(f)",
        "task_kept",
    ),
    ("plain_list", "rows = []", "rows.append(np.zeros(290))", "growing_container"),
    (
        "chain",
        "class Step:\n    def __init__(self, before): self.before, self.data = before, "
        "np.zeros(240)\nnewest = None",
        "global newest\nnewest = Step(newest)",
        "growing_chain",
    ),
    (
        "one_buffer",
        "table = {'all': np.zeros((0, 6))}",
        "table['all'] = np.concatenate([table['all'], np.ones((70, 6))])",
        "growing_buffer",
    ),
    (
        "files",
        "folder = tempfile.mkdtemp(); opened = []",
        "opened.append(open(os.path.join(folder, str(i)), 'w'))",
        "never_closed",
    ),
    (
        "threads",
        "stop = threading.Event()",
        "threading.Thread(target=lambda data: stop.wait(), args=(np.zeros(800),), daemon=True).start()",
        "never_ended",
    ),
    (
        "average_in_a_list",
        "net = nn.Linear(29, 31); average = [torch.zeros(31, 29)]",
        "average[0] = 0.8 * average[0] + 0.2 * net.weight * net.weight",
        "graph_chain",
    ),
    (
        "modules",
        "import sys, types",
        "m = types.ModuleType(f'plugin_{i}'); m.table = [float(k) for k in range(90)]; "
        "sys.modules[m.__name__] = m",
        "library_registry",
    ),
    ("enlarged", "", "global log\nif i == 0: log = bytearray()\nlog.extend(bytes(41000))", "growing_buffer"),
    (
        "page",
        "",
        "global page\nif i == 0: page = io.StringIO()\npage.write(f'<tr>{i}</tr>' * 510)",
        "growing_buffer",
    ),
    (
        "frames_in_memory",
        "class Movie: pass\nmovie = Movie()",
        "if i == 0: movie.film = io.BytesIO()\nmovie.film.write(bytes(9300))",
        "growing_buffer",
    ),
    (
        "wave",
        "import array",
        "global wave\nif i == 0: wave = array.array('h')\nwave.extend(range(2900))",
        "growing_buffer",
    ),
    ("transcript", "chat = {'said': ''}", "chat['said'] += f'turn {i}: yes. ' * 190", "growing_buffer"),
    (
        "log_handlers",
        "log = logging.getLogger('trial.alpha')",
        "h = logging.StreamHandler(io.StringIO()); h.notes = [float(k) for k in range(60)]; "
        "log.addHandler(h)",
        "library_registry",
    ),
    (
        "log_files",
        "log = logging.getLogger('trial.beta'); log.propagate = False\nfolder = tempfile.mkdtemp()",
        "log.addHandler(logging.FileHandler(os.path.join(folder, 'log'))); log.warning('row %d', i)",
        "library_registry",
    ),
    (
        "memo_of_one_object",
        "class Atlas:\n    @functools.cache\n    def page(self, n): return np.zeros(n)\natlas = Atlas()",
        "atlas.page(600 + i)",
        "lru_cache_on_method",
    ),
    (
        "tasks_that_wait",
        "import asyncio\nloop = asyncio.new_event_loop(); waiting = set(); door = asyncio.Event()\n"
        "async def pour(n):\n    cup = np.zeros(n)\n    await door.wait()\n    return cup",
        "waiting.add(loop.create_task(pour(510)))\nloop.run_until_complete(asyncio.sleep(0))",
        "never_ended",
    ),
    (
        "gradients_with_graph",
        "scale = nn.Parameter(torch.ones(640)); descent = torch.optim.SGD([scale], lr=1e-4)",
        "(scale ** 3).sum().backward(create_graph=True); descent.step()",
        "graph_chain",
    ),
    (
        "grid_of_tensors",
        "grid = np.empty(90, dtype=object)",
        "grid[i] = torch.ones(530)",
        "growing_container",
    ),
    (
        "page_for_each_epoch",
        "book = []",
        "book.append([]) if i % 5 == 0 else None\nbook[-1].append(np.zeros(650))",
        "growing_container",
    ),
    ("headers", "seen = {}", "seen[i] = memoryview(bytes(8100))[:5]", "view_of_large_base"),
    (
        "replies",
        "answers = []",
        "answers.append(torch.from_numpy(np.frombuffer(bytes(70400), dtype=np.int16)))",
        "growing_container",
    ),
    (
        "first_words",
        "words = {}",
        "words[i] = np.frombuffer(bytes(64800), dtype=np.uint8)[:16]",
        "view_of_large_base",
    ),
    (
        "first_rows",
        "firsts = []",
        "firsts.append(np.zeros(610, dtype=[('id', 'i4'), ('score', 'f8')])[0])",
        "view_of_large_base",
    ),
    (
        "tree_below_its_newest_branch",
        "class Branch:\n    def __init__(self, below):\n        self.below, self.leaf = below, "
        "np.zeros(180)\n        self.twigs = {}\n"
        "class Tree: pass\ntree = Tree(); tree.top = Branch(None)",
        "for n in range(3): tree.top.twigs[n] = Branch(tree.top)\ntree.top = tree.top.twigs[1]",
        "growing_chain",
    ),
    (
        "wrapped_calls",
        "import functools\nclass Loop: pass\nloop = Loop(); loop.__dict__['body'] = len",
        "table = loop.__dict__; table['body'] = functools.partial(min, table['body'], np.zeros(560))",
        "growing_chain",
    ),
    (
        "adapters",
        "class Adapter(nn.Module):\n    def __init__(self, inner):\n        super().__init__()\n"
        "        self.inner, self.scale = inner, nn.Parameter(torch.ones(450))\n"
        "net = nn.Sequential(nn.Linear(3, 4), nn.Tanh())",
        "net.add_module('1', Adapter(net[1]))",
        "growing_chain",
    ),
    (
        "traced_again",
        "import torch.fx\nnet = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2))",
        "torch.fx.symbolic_trace(net)",
        "library_registry",
    ),
    (
        "shared_codes",
        "codes = {}",
        "codes[f'part {i}'] = torch.zeros(53, 77).share_memory_()",
        "growing_container",
    ),
    ("raw_descriptor", "path = tempfile.mkstemp()[1]", "os.open(path, os.O_RDONLY)", "never_closed"),
    ("names", "", "globals()[f'result_{i}'] = np.zeros(330)", "growing_attribute"),
    (
        "gradients_seen",
        "net = nn.Linear(14, 33); taken = []\nnet.register_full_backward_hook("
        "lambda mod, gin, gout: taken.append(gout[0].clone()))",
        "net(torch.ones(9, 14)).sum().backward(); net.zero_grad()",
        "hook_kept",
    ),
    (
        "hooks_of_parameters",
        "net = nn.Linear(4, 5); opt = torch.optim.SGD(net.parameters(), 0.1)",
        "scale = np.ones(480)\nfor p in opt.param_groups[0]['params']: p.register_hook(lambda g: "
        "g * scale[0])",
        "hook_kept",
    ),
    (
        "at_exit",
        "import atexit\ndef save(weights): pass",
        "atexit.register(save, {'best': np.full(410, 0.5)})",
        "library_registry",
    ),
    (
        "generated_modules",
        "import sys, types\ntext = 'import numpy\\nweights = numpy.full(425, 0.5)'",
        "made = sys.modules[f'made.m{i}'] = types.ModuleType(f'made.m{i}')\n"
        "exec(compile(text, f'<made.m{i}>', 'exec'), made.__dict__)",
        "library_registry",
    ),
    (
        "signal_handlers",
        "import signal",
        "def save(signum, frame, before=signal.getsignal(signal.SIGUSR2), best=np.full(415, 0.5)): pass\n"
        "signal.signal(signal.SIGUSR2, save)",
        "growing_chain",
    ),
    (
        "fork_handlers",
        "",
        "os.register_at_fork(after_in_child=functools.partial(len, np.full(390, 0.5)))",
        "library_registry",
    ),
    (
        "context",
        "import contextvars\ntrail = contextvars.ContextVar('trail')",
        "if i == 0: trail.set([])\ntrail.get().append(np.full(430, 0.5))",
        "growing_container",
    ),
    (
        "pipeline",
        "def scaled(items, weights):\n    for item in items: yield item * weights\nstream = "
        "itertools.count()",
        "global stream\nstream = scaled(stream, np.full(440, 0.5)); next(stream)",
        "growing_chain",
    ),
    (
        "decorated",
        "def timed(call, note):\n    def inner(*args): return call(*args), note.sum()\n    return "
        "inner\nfit = len",
        "global fit\nfit = timed(fit, np.full(450, 0.5))",
        "growing_chain",
    ),
    (
        "errors_of_errors",
        "last = None",
        "global last\ntry:\n    try:\n        raise last or KeyError('first')\n"
        "    except Exception: raise ValueError(np.full(460, 0.5))\n"
        "except ValueError as error: last = error.with_traceback(None)",
        "growing_chain",
    ),
    (
        "detached_rows",
        "firsts = {}",
        "firsts[i] = torch.ones(220, 30)[:2].detach()",
        "view_of_large_base",
    ),
    (
        "lent_rows",
        "firsts = []",
        "firsts.append(torch.from_dlpack(torch.ones(210, 30)[:2]))",
        "view_of_large_base",
    ),
    ("all_rows", "every = []", "every.extend(torch.ones(25, 300).unbind(0))", "growing_container"),
    ("nodes", "import socket\nlinks = set()", "links.add(socket.socket())", "never_closed"),
]

#: More steps than the others, 26: what is seen at marks needs some of them, and more where a buffer grows in
#: jumps, the larger the rarer, as a StringIO does since 3.12.
LONG = (
    "one_buffer",
    "plain_malloc",
    "tee",
    "frames_in_memory",
    "wave",
    "replies",
    "lengths",
    "wrapped_now_and_then",
)
#: A string that gives way to a longer one is seen by walks alone, of which it takes six.
STEPS = {
    **dict.fromkeys(LONG, 75),
    **dict.fromkeys(("enlarged", "transcript", "states_saved_one_behind_the_other"), 300),
    **dict.fromkeys(("a_page_that_three_lines_write", "a_page_that_three_lines_write_clean"), 300),
    "page": 1000,
    "page_for_each_epoch": 75,
}

#: Loops that keep things and are no leak: name, code before, body, what a note must say of the bound, or
#: None.
KNOWN_BOUNDS = [
    ("deque", "last = collections.deque(maxlen=900)", "last.append(np.zeros(200))", "of 900"),
    ("lru", "@functools.lru_cache(maxsize=700)\ndef row(n): return np.zeros(150) + n", "row(i)", "of 700"),
    ("ring", "ring = [None] * 450", "ring[i % 450] = np.zeros(170)", "of 450"),
    (
        "replay",
        "class Replay:\n    def __init__(self): self.items, self.at = [], 0\n    def add(self, x):\n"
        "        if len(self.items) < 12: self.items.append(None)\n        self.items[self.at % "
        "12] = x; self.at += 1\nreplay = Replay()",
        "replay.add(np.zeros(180))",
        None,
    ),
    (
        "weak_values",
        "class Frame: pass\ntable = weakref.WeakValueDictionary()",
        "f = Frame(); f.pixels = np.zeros(140); table[i] = f",
        None,
    ),
    (
        "tee_read_by_both",
        "left, right = itertools.tee(torch.zeros(260) for _ in itertools.count())",
        "next(left); next(right)",
        "of 57",
    ),
    ("emptied", "window = []", "window.append(np.zeros(620))\nif len(window) == 7: window.clear()", None),
    (
        "handle_removed",
        "net = nn.Linear(6, 5)",
        "h = net.register_forward_hook(lambda *a: None)\nnet(torch.ones(2, 6)); h.remove()",
        None,
    ),
    (
        "lengths",
        "import random\nrandom.seed(8); net = nn.Linear(24, 56)",
        "net(torch.randn(random.randint(3, 70), 24)).sum().backward(); net.zero_grad()",
        None,
    ),
    (
        "thread_joined",
        "",
        "t = threading.Thread(target=len, args=(np.zeros(900),)); t.start(); t.join()",
        None,
    ),
]

#: For each cause a loop that does the same without keeping it: name, code before, body; silent.
TWINS = [
    (
        "malloc_freed",
        "import ctypes\nlibc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p",
        "p = libc.malloc(52000); ctypes.memset(p, 1, 52000); libc.free(ctypes.c_void_p(p))",
    ),
    (
        "kept_without_graph",
        "net = nn.Linear(17, 130); scores = []",
        "scores.append(net(torch.ones(9, 17)).tanh().mean().item())",
    ),
    (
        "total_without_graph",
        "w = torch.ones(700, requires_grad=True); total = {'sum': 0.0}",
        "total['sum'] = total['sum'] + (w * torch.ones(700)).sum().item()",
    ),
    ("rows_copied", "firsts = {}", "firsts[i % 3] = np.ones((90, 40))[0].copy()"),
    ("batch_copied", "last = {}", "last['y'] = torch.zeros(40, 60).share_memory_()[:, 0].clone()"),
    (
        "pair_taken_apart",
        "class Leaf: pass",
        "a, b = Leaf(), Leaf(); a.peer, b.peer, a.rows = b, a, np.zeros(2500); a.peer = b.peer = None",
    ),
    (
        "error_let_go",
        "def parse(n):\n    table = np.zeros(n)\n    try:\n        raise KeyError('row')\n"
        "    except KeyError as error:\n        return str(error)",
        "parse(3100)",
    ),
    (
        "callback_by_value",
        "class Panel: pass",
        "p = Panel(); p.pixels = np.zeros(2700); p.refresh = lambda rows=len(p.pixels): rows",
    ),
    ("hook_by_value", "", "m = nn.Linear(48, 50); m.register_forward_hook(lambda mod, args, out: None)"),
    (
        "tensor_hook_by_value",
        "",
        "t = torch.ones(1300, requires_grad=True) * 3; t.register_hook(lambda g: g * 2)",
    ),
    (
        "errors_as_text",
        (
            "log = collections.deque(maxlen=5)\ndef load(n):\n    page = np.zeros(n)\n "
            "   raise OSError('disk')"
        ),
        "try: load(1900)\nexcept OSError as e: log.append(str(e))",
    ),
    ("memo_bounded", "@functools.lru_cache(maxsize=3)\ndef grid(n): return np.zeros(n)", "grid(500 + i)"),
    (
        "cached_property",
        "class Scene:\n    def __init__(self): self.mesh = np.zeros(1700)\n"
        "    @functools.cached_property\n    def area(self): return self.mesh.sum()",
        "Scene().area",
    ),
    (
        "keyed_by_value",
        "votes = collections.defaultdict(int)",
        "votes[int(torch.full((350,), i % 4)[0])] += 1",
    ),
    (
        "buffer_of_module",
        "class Encoder(nn.Module):\n    def __init__(self):\n        "
        "super().__init__(); self.last = None\n"
        "enc = Encoder()",
        "enc.last = torch.ones(410)",
    ),
    (
        "one_group",
        "net = nn.Linear(31, 29); opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)",
        "net(torch.ones(2, 31)).sum().backward(); opt.step(); opt.zero_grad()",
    ),
    ("one_logger", "", "logging.getLogger('run.fold').setLevel(10)"),
    (
        "exit_once",
        "import atexit\ndef save(weights): pass",
        "atexit.unregister(save); atexit.register(save, {'best': np.full(410, 0.5)})",
    ),
    (
        "signal_handler_anew",
        "import signal",
        "def save(signum, frame, best=np.full(415, 0.5)): pass\nsignal.signal(signal.SIGUSR2, save)",
    ),
    ("one_class", "class Row: width = 3", "Row()"),
    ("queue_read", "work = queue.Queue()", "work.put(np.zeros(370)); work.get()"),
    (
        "future_read",
        "from concurrent.futures import Future",
        "f = Future(); f.set_result(np.zeros(470)); f.result()",
    ),
    (
        "one_step_back",
        "class Step:\n    def __init__(self, before): self.before, self.data = "
        "before, np.zeros(240)\n"
        "newest = None",
        "global newest\nif newest: newest.before = None\nnewest = Step(newest)",
    ),
    ("wrapped_once", "base = len", "fit = functools.partial(min, base, np.zeros(560))"),
    (
        "stream_anew",
        "def scaled(items, weights):\n    for item in items: yield item * weights",
        "next(scaled(itertools.count(), np.full(440, 0.5)))",
    ),
    (
        "context_reset",
        "import contextvars\ntrail = contextvars.ContextVar('trail')",
        "token = trail.set(np.full(430, 0.5)); trail.reset(token)",
    ),
    (
        "file_closed",
        "folder = tempfile.mkdtemp()",
        "with open(os.path.join(folder, 'log'), 'w') as file: file.write('x' * 9000)",
    ),
    ("detached_and_copied", "firsts = {}", "firsts[i % 4] = torch.ones(220, 30)[:2].detach().clone()"),
]

RUNNER = """
import gc, importlib, json, sys
import leakprobe
sys.path.insert(0, {folder!r})
reports = {{}}
for name in {names!r}:
    module = importlib.import_module("mechanism_" + name)
    with leakprobe.watch() as probe:
        for i in range({steps!r}.get(name, 26)):
            module.step(i)
            probe.step()
    reports[name] = probe.report().to_dict()
    gc.enable()
    gc.set_threshold(700, 10, 10)
    if hasattr(module, "stop"):
        module.stop.set()
    module.__dict__.clear()
    gc.unfreeze()
print("REPORTS" + json.dumps(reports))
sys.stdout.flush()
import os; os._exit(0)
"""


def needs_torch(before: str, body: str) -> bool:
    return "torch" in before + body or "nn." in before + body


def run_mechanisms(folder: pathlib.Path) -> dict:
    """{name: report} of all MECHANISMS, KNOWN_BOUNDS, TWINS and SHAPES that can run here."""
    twins = [(*twin, None) for twin in TWINS]
    shapes = [(s.name, s.before, s.leak, s.cause) for s in SHAPES]
    shapes += [(f"{s.name}_clean", s.before, s.clean, None) for s in SHAPES]
    every = (*MECHANISMS, *KNOWN_BOUNDS, *twins, *shapes)
    loops = [m for m in every if HAS_TORCH or not needs_torch(m[1], m[2])]
    for name, before, body, _told in loops:
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        (folder / f"mechanism_{name}.py").write_text(f"{SETUP}{before}\ndef step(i):\n{lines}")
    program = FREE + RUNNER.format(folder=str(folder), names=[m[0] for m in loops], steps=STEPS)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=900)
    line = next((x for x in done.stdout.splitlines() if x.startswith("REPORTS")), None)
    assert line, done.stderr[-3000:]
    return json.loads(line[7:])
