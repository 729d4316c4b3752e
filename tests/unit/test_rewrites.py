"""The change that a fix shows: from the syntax tree of the user's line, for lines as people write them."""

import importlib
import sys

import pytest

from leakprobe.judge.causes import Case
from leakprobe.judge.rewrites import REWRITES, shown_change
from leakprobe.judge.statements import growing_frame
from leakprobe.model.entry import Holder, PathNode

LIST = PathNode("kept (list, 60 items)", "global", "list")
ROOT = PathNode("__main__", "module", "module")
ARRAY, TENSOR = (PathNode("[0] x", "index", f"{kind}") for kind in ("numpy.ndarray", "torch.Tensor"))
PAIR = PathNode("[7] (tuple, 2 items)", "item", "tuple")
SLICE = PathNode("[0] memoryview", "index", "memoryview")
QUEUE = (
    PathNode("jobs Queue", "global", "queue.Queue"),
    PathNode(".queue (deque, 9 items)", "attribute", "collections.deque"),
)

#: cause, source, elements of the path from the holder on, what is shown ("" for nothing)
HOOKS = (
    PathNode("net Net", "global", "__main__.Net", ("torch.nn.modules.module.Module", "__main__.Net")),
    PathNode(
        "._forward_hooks (OrderedDict, 60 items)",
        "attribute",
        "collections.OrderedDict",
        ("collections.OrderedDict", "dict"),
    ),
)
LINES = [
    (
        "graph_kept",
        "kept.append(loss)  # a # b",
        (LIST,),
        "`kept.append(loss)` becomes `kept.append(loss.detach())`",
    ),
    (
        "graph_kept",
        "loss.backward(); kept.append(loss)",
        (LIST,),
        "`kept.append(loss)` becomes `kept.append(loss.item())`",
    ),
    (
        "graph_kept",
        "kept[i] = {'step': 3, 'loss': f(x)}",
        (LIST,),
        "`kept[i] = {'step': 3, 'loss': f(x)}` becomes `kept[i] = {'step': 3, 'loss': f(x).detach()}`",
    ),
    (
        "graph_kept",
        "kept.append('é', loss)",
        (LIST,),
        "`kept.append('é', loss)` becomes `kept.append('é', loss.detach())`",
    ),
    ("graph_kept", "keep(loss)", (LIST,), ""),
    (
        "view_of_large_base",
        "kept[i] = (image[:8], float(losses[worst]))",
        (LIST, PAIR, ARRAY),
        "`kept[i] = (image[:8], float(losses[worst]))` becomes "
        "`kept[i] = (image[:8].copy(), float(losses[worst]))`",
    ),
    (
        "graph_kept",
        "total.backward(); journal.note('at %d: %s', n, value=total)",
        (LIST,),
        "`journal.note('at %d: %s', n, value=total)` becomes "
        "`journal.note('at %d: %s', n, value=total.item())`",
    ),
    ("graph_kept", "total.backward(); journal.note('%s', other)", (LIST,), ""),
    ("graph_kept", "kept.append(\n    loss)", (LIST,), ""),
    ("graph_chain", "total += a + b", (LIST,), "`total += a + b` becomes `total += (a + b).detach()`"),
    (
        "graph_chain",
        "self.total = loss + self.total",
        (LIST,),
        "`self.total = loss + self.total` becomes `self.total = loss.detach() + self.total`",
    ),
    (
        "graph_chain",
        "state['h'] = cell(x, state['h'])",
        (LIST,),
        "`state['h'] = cell(x, state['h'])` becomes `state['h'] = cell(x, state['h'].detach())`",
    ),
    (
        "view_of_large_base",
        "kept.append(x[0])",
        (LIST, ARRAY),
        "`kept.append(x[0])` becomes `kept.append(x[0].copy())`",
    ),
    (
        "view_of_large_base",
        "kept.append(x[0])",
        (LIST, TENSOR),
        "`kept.append(x[0])` becomes `kept.append(x[0].clone())`",
    ),
    (
        "view_of_large_base",
        "kept.append(m[:5])",
        (LIST, SLICE),
        "`kept.append(m[:5])` becomes `kept.append(bytes(m[:5]))`",
    ),
    ("batch_memory_kept", "kept.add(y)", (LIST, TENSOR), "`kept.add(y)` becomes `kept.add(y.clone())`"),
    ("batch_memory_kept", "kept.extend(many)", (LIST, TENSOR), ""),
    (
        "batch_memory_kept",
        "kept.extend([y])",
        (LIST, TENSOR),
        "`kept.extend([y])` becomes `kept.extend([y.clone()])`",
    ),
    (
        "growing_container",
        "kept.append(x)\nkept = []",
        (LIST,),
        "`kept = []` becomes `kept = collections.deque(maxlen=1000)`",
    ),
    ("growing_container", "kept.append(x)\nkept = []\nkept = []", (LIST,), ""),
    ("growing_container", "kept.append(x)\nkept = load()", (LIST,), ""),
    (
        "queue_not_emptied",
        "jobs.put(x)\njobs = queue.Queue()",
        QUEUE,
        "`jobs = queue.Queue()` becomes `jobs = queue.Queue(maxsize=1000)`",
    ),
    ("queue_not_emptied", "jobs.put(x)\njobs = queue.Queue(5)", QUEUE, ""),
    (
        "hook_kept",
        "net.register_forward_hook(see)",
        HOOKS,
        "`net.register_forward_hook(see)` becomes `handle = net.register_forward_hook(see); ...; "
        "handle.remove()`",
    ),
    ("hook_kept", "h = net.register_forward_hook(see)", HOOKS, ""),
    ("hook_kept", "net.register_forward_hook(lambda *out: seen.append(out))", (LIST,), ""),
    ("hook_kept", "seen.append(out)", (LIST,), ""),
    (
        "growing_container",
        "kept.append(x); print(len(kept), kept[-1]); kept = []",
        (LIST,),
        "`kept = []` becomes `kept = collections.deque(maxlen=1000)`",
    ),
    (
        "graph_kept",
        "kept.append(Row(3, score=loss))",
        (LIST, PathNode("[2] Row", "index", "__main__.Row"), TENSOR),
        "`kept.append(Row(3, score=loss))` becomes `kept.append(Row(3, score=loss.detach()))`",
    ),
    ("graph_kept", "kept.append(row)", (LIST, PathNode("[2] Row", "index", "__main__.Row"), TENSOR), ""),
    ("growing_container", "kept.append(x); mean = torch.stack(kept)\nkept = []", (LIST,), ""),
    ("growing_container", "heapq.heappush(kept, x)\nkept = []", (LIST,), ""),
    ("growing_container", "kept.append(x); last = kept[-20:]\nkept = []", (LIST,), ""),
    ("growing_container", "kept = kept + [x]\nkept = []", (LIST,), ""),
    (
        "view_of_large_base",
        "kept.append((n, x))",
        (LIST, PAIR, PathNode("[1] x", "index", "numpy.ndarray")),
        "`kept.append((n, x))` becomes `kept.append((n, x.copy()))`",
    ),
    (
        "traceback_kept",
        "\ntry: f()\nexcept OSError as e: kept.append((i, e))",
        (LIST,),
        "`kept.append((i, e))` becomes `kept.append((i, str(e)))`",
    ),
    ("traceback_kept", "kept.append(e)", (LIST,), ""),
    (
        "growing_buffer",
        "all = torch.cat([all, new(3)])",
        (LIST,),
        "`all = torch.cat([all, new(3)])` becomes `all = torch.cat([all, new(3)])[-1000:]`",
    ),
    (
        "growing_buffer",
        "all = np.append(all, row)",
        (LIST,),
        "`all = np.append(all, row)` becomes `all = np.append(all, row)[-1000:]`",
    ),
    (
        "growing_buffer",
        "net.seen = torch.cat((net.seen, a, b), dim=0)",
        (LIST,),
        "`net.seen = torch.cat((net.seen, a, b), dim=0)` becomes "
        "`net.seen = torch.cat((net.seen, a, b), dim=0)[-1000:]`",
    ),
    ("growing_buffer", "all = torch.cat([a, b])", (LIST,), ""),
    ("growing_buffer", "all = torch.cat([all, b], dim=1)", (LIST,), ""),
    ("growing_buffer", "all = torch.cat([all, b], 1)", (LIST,), ""),
    (
        "unbounded_cache",
        "kept(3)\n@functools.cache\ndef kept(n): pass",
        (LIST,),
        "`@functools.cache` becomes `@functools.lru_cache(maxsize=1000)`",
    ),
    (
        "unbounded_cache",
        "kept(3)\n@lru_cache(maxsize=None)\ndef kept(n): pass",
        (LIST,),
        "`@lru_cache(maxsize=None)` becomes `@lru_cache(maxsize=1000)`",
    ),
    ("unbounded_cache", "kept(3)\n@other\ndef kept(n): pass", (LIST,), ""),
    ("reference_cycle", "kept.append(loss)", (LIST,), ""),
    ("graph_kept", "this is no Python", (LIST,), ""),
]


@pytest.mark.parametrize("cause, source, path, shown", LINES)
def test_change_is_shown_on_the_line(cause, source, path, shown, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(source, encoding="utf-8")
    at = len(path) - 1 if path in (QUEUE, HOOKS) else 0
    holder = Holder(path[at].text, path[at].type, 60, None, 1, 0, 0, 0, 0, 0)
    case = Case("held", "per_step", (ROOT, *path), holder, frozenset(), frozenset(), "train.py:1")
    line = 3 if source.startswith("\ntry") else 1
    assert shown_change(cause, case, (str(script), line, "<module>")) == shown


def test_every_rule_has_a_line():
    assert {line[0] for line in LINES if line[3]} == set(REWRITES)


def test_no_line_shows_nothing(tmp_path):
    case = Case("held", "per_step", (ROOT, LIST), None, frozenset(), frozenset(), None)
    assert shown_change("graph_kept", case, None) == ""
    assert shown_change("graph_kept", case, (str(tmp_path / "gone.py"), 3, "step")) == ""


TOTAL = PathNode(".total Tensor", "attribute", "torch.Tensor")
NODE = PathNode(".grad_fn AddBackward0", "grad_fn", "AddBackward0")
OWNER = PathNode("run Run", "global", "__main__.Run")
GROWING = [
    ((OWNER, TOTAL, NODE), 3, "def step(x):\n    y = net(x)\n    self.total += y\n", 3),
    ((OWNER, TOTAL, NODE), 2, "def step(x):\n    y = net(x)\n    self.total = self.total + y\n", 3),
    ((OWNER, TOTAL, NODE), 2, "def step(x):\n    y = net(x)\n    self.other += y\n", None),
    ((PathNode("['h'] Tensor", "item", "torch.Tensor"),), 1, "x = 1\ny = net(x)\ns['h'] = cell(s['h'])\n", 3),
    ((LIST,), 1, "x = 1\ny = net(x)\nfor i in y:\n    kept.append(i)\n", 4),
    ((PathNode("kept (dict, 9 items)", "global", "dict"),), 1, "x = 1\nkept = {}\nkept[x] = 2\n", 3),
    ((LIST,), 1, "x = 1\ny = net(x)\nother.append(y)\n", None),
]
HOOKED = (
    PathNode("net Net", "global", "__main__.Net"),
    PathNode(".gain Parameter", "attribute", "torch.nn.parameter.Parameter"),
    PathNode("._backward_hooks (OrderedDict, 60 items)", "_backward_hooks", "collections.OrderedDict"),
)
GROWING += [
    (HOOKED, 3, "def step(x):\n    y = net(x)\n    net.gain.register_hook(partial(f, y))\n", 3),
    (HOOKED, 3, "def step(x):\n    y = net(x)\n    net.gain = y\n", None),
]


@pytest.fixture
def main_script(tmp_path, monkeypatch):
    """Makes a file with a text, which is that of __main__ then."""

    def make(source):
        script = tmp_path / "train.py"
        script.write_text(source)
        monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script), raising=False)
        return script

    return make


@pytest.mark.parametrize("path, depth, source, line", GROWING)
def test_line_that_grows_is_found_in_the_functions_of_the_stack(path, depth, source, line, main_script):
    script = main_script(source)
    found = growing_frame((ROOT, *path), depth, [(str(script), 2, "step")])
    assert found == (None if line is None else (str(script), line, "step"))


NAMED_BY_PLACE = [
    ("kept = []\nbatch = load()\ndef keep(row):\n    kept.append(row)\n", 4, "keep"),
    (
        "kept = []\nbatch = load()\nclass Bank:\n    class In:\n        def keep(self, row):\n"
        "            kept.append(row)\n",
        6,
        "Bank.In.keep",
    ),
    (
        "kept = []\nbatch = load()\ndef of(n):\n    def keep(row):\n        kept.append(row)\n"
        "    return keep\n",
        5,
        "of.<locals>.keep",
    ),
    ("kept = []\nbatch = load()\nkept.append(batch)\n", 3, "step"),
]


@pytest.mark.parametrize("source, line, name", NAMED_BY_PLACE)
def test_a_line_in_another_function_than_the_frames_has_that_ones_name(source, line, name, main_script):
    script = main_script(source)
    assert growing_frame((ROOT, LIST), 1, [(str(script), 2, "step")]) == (str(script), line, name)


#: The text of __main__, the module whose global ``kept`` is, the line that grows it.
GLOBALS = [
    ("def other(p):\n    kept = {}\n    kept[p] = 1\nload()\nkept[i] = 1\n", "__main__", 5),
    ("def other(kept):\n    kept[0] = 1\nload()\n", "__main__", None),
    ("def other():\n    global kept\n    kept = [*kept, 1]\nload()\n", "__main__", 3),
    ("kept = {}\nload()\nkept[1] = 2\n", "linecache", None),
    ("import linecache\nload()\nlinecache.kept[1] = 2\n", "linecache", 3),
    ("import linecache as lines\nload()\nlines.kept[1] = 2\n", "linecache", 3),
    ("import linecache\nload()\nself.kept[1] = 2\n", "linecache", None),
    ("from linecache import kept\nload()\nkept[1] = 2\n", "linecache", 3),
    ("from xml.dom import minidom\nload()\nminidom.kept[1] = 2\n", "xml.dom.minidom", 3),
    ("from . import minidom\nload()\nminidom.kept[1] = 2\n", "xml.dom.minidom", 3),
    ("from .minidom import kept\nload()\nkept[1] = 2\n", "xml.dom.minidom", 3),
    ("from .idom import kept\nload()\nkept[1] = 2\n", "xml.dom.minidom", None),
]


@pytest.mark.parametrize("source, owner, line", GLOBALS)
def test_a_global_is_named_where_its_module_is_known(source, owner, line, main_script):
    importlib.import_module(owner)
    script = main_script(source)
    at = source.split("\n").index("load()") + 1
    kept = PathNode("kept (dict, 9 items)", "global", "dict")
    found = growing_frame((PathNode(owner, "module", "module"), kept), 1, [(str(script), at, "<module>")])
    assert (found and found[1]) == line
