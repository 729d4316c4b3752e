"""A second loop and its clean twin for each rule of causes, of another shape than those of mechanisms.py."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Shape:
    """Code before the loop, the leaking body, the body that does the same and keeps nothing."""

    name: str
    cause: str
    before: str
    leak: str
    clean: str


SHAPES = [
    Shape(
        "copied_text",
        "native_growth",
        "import ctypes\nlibc = ctypes.CDLL(None); libc.strdup.restype = ctypes.c_void_p\n"
        "page = b'word ' * 9000",
        "libc.strdup(page)",
        "libc.free(ctypes.c_void_p(libc.strdup(page)))",
    ),
    Shape(
        "results_in_a_dataclass",
        "graph_kept",
        "import dataclasses\nnet = nn.Linear(19, 210)\n@dataclasses.dataclass\nclass Outcome:\n"
        "    step: int\n"
        "    loss: object\nclass Recorder:\n    def __init__(self): self.outcomes = collections.deque()\n"
        "    def on_batch_end(self, outcome): self.outcomes.append(outcome)\nrecorder = Recorder()",
        "loss = net(torch.ones(14, 19)).relu().sum()\nrecorder.on_batch_end(Outcome(i, loss))",
        "loss = net(torch.ones(14, 19)).relu().sum()\nrecorder.on_batch_end(loss.item())",
    ),
    Shape(
        "a_page_that_three_lines_write",
        "growing_buffer",
        "import io\npage = io.BytesIO()\ndef head(i): page.write(b'<h1>' * 300)\n"
        "def body(i): page.write(b'row ' * 700)\ndef foot(i): page.write(bytes(900 + i % 7))",
        "head(i); body(i); foot(i)",
        "head(i); body(i); foot(i)\nif i % 12 == 11: page.seek(0); page.truncate()",
    ),
    Shape(
        "states_saved_one_behind_the_other",
        "growing_buffer",
        "import io\nnet = nn.Linear(31, 17)\nclass Keeper:\n"
        "    def __init__(self): self.stream = io.BytesIO()\n"
        "    def keep(self, state): torch.save(state, self.stream)\nkeeper = Keeper()",
        "keeper.keep(net.state_dict())",
        "keeper.stream.seek(0); keeper.stream.truncate(); keeper.keep(net.state_dict())",
    ),
    Shape(
        "moving_mean",
        "graph_chain",
        "net = nn.Linear(23, 60)\nclass Meter:\n    def __init__(self): self.mean = torch.zeros(60)\n"
        "    def update(self, x): self.mean = torch.lerp(self.mean, x, 0.1)\nmeter = Meter()",
        "meter.update(net(torch.ones(6, 23)).mean(0))",
        "meter.update(net(torch.ones(6, 23)).mean(0).detach())",
    ),
    Shape(
        "narrow_rows",
        "view_of_large_base",
        "Row = collections.namedtuple('Row', 'step values')\nrows = collections.deque()",
        "rows.append(Row(i, torch.ones(170, 33).narrow(0, 0, 3).numpy()))",
        "rows.append(Row(i, torch.ones(170, 33).narrow(0, 0, 3).numpy().sum()))",
    ),
    Shape(
        "masks_on_the_host",
        "batch_memory_kept",
        "class Sample: pass\nsamples = {}",
        "batch = torch.ones(55, 70).share_memory_()\n"
        "samples[i] = Sample(); samples[i].mask = batch[:4].cpu()",
        "batch = torch.ones(55, 70).share_memory_()\n"
        "samples[i % 3] = Sample(); samples[i % 3].mask = batch[:4].clone()",
    ),
    Shape(
        "parents_and_children",
        "reference_cycle",
        "gc.set_threshold(10**6)\nclass Branch:\n"
        "    __slots__ = ('parent', 'children', 'grid', '__weakref__')\n"
        "    def __init__(self, parent=None):\n        self.parent, self.children = parent, []\n"
        "        self.grid = np.zeros(2300)",
        "root = Branch(); root.children.append(Branch(root))",
        "root = Branch(); root.children.append(Branch(weakref.proxy(root)))",
    ),
    Shape(
        "own_frame",
        "cycle_through_frame",
        "import inspect\ngc.disable()\ndef where(table):\n    frame = inspect.currentframe()\n"
        "    return frame.f_lineno\n"
        "def where_else(table):\n    frame = inspect.currentframe()\n    try: return frame.f_lineno\n"
        "    finally: del frame",
        "where(np.zeros(3300))",
        "where_else(np.zeros(3300))",
    ),
    Shape(
        "table_of_handlers",
        "cycle_through_callback",
        "gc.disable()\nclass Session:\n    def __init__(self, weak):\n        self.pixels = np.zeros(2900)\n"
        "        call = weakref.WeakMethod(self.finish) if weak else functools.partial(self.finish, 3)\n"
        "        self.handlers = {'done': [call]}\n    def finish(self, code): return code",
        "Session(weak=False)",
        "Session(weak=True)",
    ),
    Shape(
        "hook_of_itself",
        "cycle_through_hook",
        "gc.disable()\nclass Gauge(nn.Module):\n    def __init__(self, watching):\n"
        "        super().__init__()\n"
        "        self.fc = nn.Linear(44, 61)\n        self.register_forward_pre_hook(watching or self.look)\n"
        "    def look(self, module, args): return None",
        "Gauge(None)",
        "Gauge(lambda module, args: None)",
    ),
    Shape(
        "gradient_of_a_gradient",
        "cpp_reference_cycle",
        "def penalty():\n    w = torch.ones(1500, requires_grad=True)\n"
        "    (w ** 2).sum().backward(create_graph=True)\n    return w",
        "penalty().grad.sum().item()",
        "w = penalty(); w.grad.sum().item(); w.grad = None",
    ),
    Shape(
        "frozen_before_each_fork",
        "frozen_garbage",
        "def before_fork(): gc.freeze()\ndef build():\n    stack = [bytearray(8700)]; stack.append(stack)",
        "build(); before_fork()",
        "build(); gc.collect(); before_fork()",
    ),
    Shape(
        "failures_of_a_retry",
        "traceback_kept",
        "import sys, traceback\nfailures = {}\ndef fetch(n):\n    page = np.zeros(n)\n    return page[n]",
        "try: fetch(2050)\nexcept IndexError: failures[i] = sys.exc_info()",
        "try: fetch(2050)\nexcept IndexError: failures[i % 2] = traceback.format_exc()",
    ),
    Shape(
        "pickler_of_a_run",
        "unbounded_cache",
        "import pickle\nsink = open(os.devnull, 'wb'); pickler = pickle.Pickler(sink)",
        "pickler.dump({'step': i, 'weights': np.full(540, 0.5)})",
        "pickler.dump({'step': i, 'weights': np.full(540, 0.5)}); pickler.clear_memo()",
    ),
    Shape(
        "masks_of_a_fold",
        "lru_cache_on_method",
        "class Block(nn.Module):\n    def __init__(self):\n"
        "        super().__init__(); self.fc = nn.Linear(41, 39)\n"
        "    @functools.lru_cache(maxsize=None)\n    def mask(self, n): return n\n"
        "@functools.lru_cache(maxsize=None)\ndef mask(n): return n",
        "Block().mask(8)",
        "Block(); mask(8)",
    ),
    Shape(
        "plans_by_request",
        "cache_keyed_by_objects",
        "class Request:\n    def __init__(self, n): self.shape, self.body = (n, 3), bytes(900)\nplans = {}",
        "plans[Request(4)] = 'plan'",
        "plans[Request(4).shape] = 'plan'",
    ),
    Shape(
        "hook_after_each_step",
        "hook_kept",
        "net = nn.Linear(7, 9); opt = torch.optim.SGD(net.parameters(), 0.1)",
        "note = np.zeros(1250)\nopt.register_step_post_hook(lambda *args: note.fill(1))\nopt.step()",
        "note = np.zeros(1250)\nh = opt.register_step_post_hook(lambda *args: note.fill(1))\n"
        "opt.step(); h.remove()",
    ),
    Shape(
        "outputs_of_validation",
        "module_attribute",
        "class Classifier(nn.Module):\n    def __init__(self):\n"
        "        super().__init__(); self.fc = nn.Linear(13, 27)\n"
        "        self.outputs = collections.defaultdict(list)\n"
        "    def validation_step(self, x):\n        with torch.no_grad(): logits = self.fc(x)\n"
        "        self.outputs['val'].append({'logits': logits, 'best': logits.argmax(1)})\n"
        "    def on_validation_epoch_end(self): self.outputs.clear()\nmodel = Classifier()",
        "model.validation_step(torch.ones(31, 13))",
        "model.validation_step(torch.ones(31, 13)); model.on_validation_epoch_end()",
    ),
    Shape(
        "a_head_for_each_task",
        "optimizer_state",
        "body = nn.Linear(18, 26); opt = torch.optim.Adam(body.parameters())\nhead = nn.Linear(26, 34)\n"
        "opt.add_param_group({'params': list(head.parameters())})\ndef train(head):\n"
        "    head(body(torch.ones(5, 18))).sum().backward(); opt.step(); opt.zero_grad()",
        "new = nn.Linear(26, 34); opt.add_param_group({'params': list(new.parameters())}); train(new)",
        "train(head)",
    ),
    Shape(
        "sources_of_made_code",
        "library_registry",
        "import linecache\nsource = ['def scaled(x):\\n', *[f'    x = x * {k} + 1\\n"
        "' for k in range(60)], '    return x\\n']",
        "name = f'<made {i}>'; text = [f'{line} # {i}' for line in source]\n"
        "linecache.cache[name] = (len(text), None, text, name)",
        "name = '<made>'; text = [f'{line} # {i}' for line in source]\n"
        "linecache.cache[name] = (len(text), None, text, name)",
    ),
    Shape(
        "codecs_of_a_run",
        "library_registry",
        "import codecs\ndef search(table, name): return None",
        "codecs.register(functools.partial(search, np.full(400, 0.5)))",
        "find = functools.partial(search, np.full(400, 0.5)); codecs.register(find); codecs.unregister(find)",
    ),
    Shape(
        "subclasses_registered",
        "class_per_step",
        "class Layer:\n    kinds = []\n    def __init_subclass__(cls, register=True):\n"
        "        if register: Layer.kinds.append(cls)\n"
        "class Dense(Layer): pass\ndef build(width):\n    class Custom(Layer):\n"
        "        size = width\n        def forward(self, x): return x\n    return Custom()",
        "build(i)",
        "Dense()",
    ),
    Shape(
        "a_tuple_type_each",
        "class_per_step",
        "rows = []",
        "rows.append(collections.namedtuple('Row', 'step loss')(i, 0.5))",
        "rows.append((i, 0.5))",
    ),
    Shape(
        "endless_epochs",
        "buffering_iterator",
        "def read():\n    for _ in range(10**6): yield torch.zeros(270)\n"
        "batches = itertools.cycle(read()); plain = read()",
        "next(batches)",
        "next(plain)",
    ),
    Shape(
        "enlarged_in_many_slots",
        "growing_buffer",
        "slots = np.empty(64, dtype=object)\nfor n in range(64): slots[n] = np.zeros((200, 10))\n"
        "row = np.ones((9, 10))",
        "for n in range(i % 2, 64, 2): slots[n] = np.vstack([slots[n], row])",
        "for n in range(i % 2, 64, 2): slots[n] = np.vstack([slots[n][9:], row])",
    ),
    Shape(
        "given_to_a_thread",
        "queue_not_emptied",
        "import collections\nwork, never = collections.deque(), threading.Event()\n"
        "class Feeder(threading.Thread): pass\n"
        "Feeder(target=lambda items: never.wait(), args=(work,), daemon=True).start()\ndel work\n"
        "feeder = next(t for t in threading.enumerate() if isinstance(t, Feeder))",
        "feeder._args[0].append(np.zeros(310))",
        "feeder._args[0].append(np.zeros(310)); len(feeder._args[0]) > 4 and feeder._args[0].popleft()",
    ),
    Shape(
        "requests_to_a_coroutine",
        "queue_not_emptied",
        "import asyncio\nclass Server:\n    def __init__(self): self.inbox = asyncio.Queue()\n"
        "server = Server()",
        "server.inbox.put_nowait({'rows': np.zeros(380)})",
        "server.inbox.put_nowait({'rows': np.zeros(380)}); server.inbox.get_nowait()",
    ),
    Shape(
        "tasks_in_a_set",
        "task_kept",
        "import asyncio\nloop = asyncio.new_event_loop(); tasks = set()\n"
        "async def fetch(n): return np.zeros(n)",
        "t = loop.create_task(fetch(490)); tasks.add(t); loop.run_until_complete(t)",
        "t = loop.create_task(fetch(490)); tasks.add(t); t.add_done_callback(tasks.discard)\n"
        "loop.run_until_complete(t)",
    ),
    Shape(
        "metrics_by_name",
        "growing_container",
        "class Metrics:\n    __slots__ = ('values',)\n"
        "    def __init__(self): self.values = collections.defaultdict(list)\n"
        "    def log(self, **named):\n"
        "        for key, value in named.items(): self.values[key].append(value)\n"
        "metrics = Metrics()",
        "metrics.log(confusion=np.zeros((17, 19)))",
        "metrics.log(accuracy=0.5)",
    ),
    Shape(
        "results_as_attributes",
        "growing_attribute",
        "import types\nrun = types.SimpleNamespace()",
        "setattr(run, f'fold_{i}', np.zeros(340))",
        "setattr(run, f'fold_{i % 2}', np.zeros(340))",
    ),
    Shape(
        "wrapped_now_and_then",
        "growing_chain",
        "def timed(function, seen): return lambda x: function(x + seen.size)\ncall = abs",
        "global call\nif i % 5 == 0: call = timed(call, np.zeros(900))",
        "global call\nif i % 5 == 0: call = timed(abs, np.zeros(900))",
    ),
    Shape(
        "configuration_over_configuration",
        "growing_chain",
        "config = {}",
        "global config\nconfig = {'base': config, 'table': np.zeros(250)}",
        "global config\nconfig = {'base': {}, 'table': np.zeros(250)}",
    ),
    Shape(
        "linked_pairs",
        "growing_chain",
        "class Undo: past = None\nundo = Undo()",
        "undo.past = (np.zeros(255), undo.past)",
        "undo.past = (np.zeros(255), None)",
    ),
    Shape(
        "scores_appended",
        "growing_buffer",
        "class Curve:\n    __slots__ = ('scores',)\n    def __init__(self): self.scores = np.zeros(0)\n"
        "    def add(self, new, most=10**9): self.scores = np.append(self.scores, new)[-most:].copy()\n"
        "curve = Curve()",
        "curve.add(np.ones(650))",
        "curve.add(np.ones(650), 650)",
    ),
    Shape(
        "memory_of_a_script",
        "held_outside_python",
        "from typing import List\nclass Memory(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.items = torch.jit.Attribute([], List[torch.Tensor])\n"
        "    def forward(self, x: torch.Tensor):\n        self.items.append(x * 2)\n        return x\n"
        "memory = torch.jit.script(Memory())",
        "memory(torch.ones(610))",
        "memory(torch.ones(610)); memory.items = []",
    ),
    Shape(
        "inputs_of_a_script",
        "held_outside_python",
        "from typing import List\nclass Inputs(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.seen = torch.jit.Attribute([], List[torch.Tensor])\n"
        "    def forward(self, x: torch.Tensor):\n        self.seen.append(x)\n        return x\n"
        "inputs = torch.jit.script(Inputs())",
        "inputs(torch.ones(620))",
        "inputs(torch.ones(620)); inputs.seen = []",
    ),
    Shape(
        "functions_of_a_database",
        "lost_reference",
        "import sqlite3\nbase = sqlite3.connect(':memory:')",
        "base.create_function(f'scale_{i}', 1, functools.partial(max, np.zeros(520)))",
        "base.create_function('scale', 1, functools.partial(max, np.zeros(520)))",
    ),
    Shape(
        "counted_once_too_often",
        "lost_reference",
        "import ctypes\nup, down = ctypes.pythonapi.Py_IncRef, ctypes.pythonapi.Py_DecRef",
        "row = np.zeros(530); up(ctypes.py_object(row))",
        "row = np.zeros(530); up(ctypes.py_object(row)); down(ctypes.py_object(row))",
    ),
    Shape(
        "result_as_a_pointer",
        "lost_reference",
        "import ctypes\nmake = ctypes.pythonapi.PyBytes_FromStringAndSize; make.restype = ctypes.c_void_p\n"
        "make.argtypes = [ctypes.c_char_p, ctypes.c_ssize_t]\ntext = b'x' * 4100",
        "make(text, 4100)",
        "ctypes.pythonapi.Py_DecRef(ctypes.py_object(ctypes.cast(make(text, 4100), ctypes.py_object).value))",
    ),
    Shape(
        "archives",
        "never_closed",
        "path = os.path.join(tempfile.mkdtemp(), 'part.npz'); np.savez(path, x=np.zeros(70)); archives = {}",
        "archives[i] = np.load(path)",
        "with np.load(path) as archive: archive['x']",
    ),
    Shape(
        "a_pool_for_each",
        "never_ended",
        "from concurrent.futures import ThreadPoolExecutor\npools = []",
        "pools.append(ThreadPoolExecutor(1)); pools[-1].submit(len, ()).result()",
        "with ThreadPoolExecutor(1) as pool: pool.submit(len, ()).result()",
    ),
]
