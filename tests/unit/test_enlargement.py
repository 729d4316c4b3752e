"""Whether what a line makes larger is made of what it replaces: programs, the marked line allocates."""

import itertools
import linecache
import textwrap

import pytest

from leakprobe.judge.enlargement import carries_over
from leakprobe.model.entry import PathNode


def node(text: str, edge: str) -> PathNode:
    return PathNode(text, edge, "__main__.Some")


NUMBERS = itertools.count()
MAIN = node("__main__", "module")
ROWS = (MAIN, node("rows Tensor", "global"))
OWN = (MAIN, node("bank Bank", "global"), node(".rows Tensor", "attribute"))
KEY = (MAIN, node("chat (dict, 1 item)", "global"), node("['said'] (str, 90 items)", "item"))
LOCAL = (node("Trainer.train() in own.py", "frame"), node("rows Tensor", "local"))
X = (MAIN, node("x Tensor", "global"), node("._base Tensor", "_base"))

MODULE = (
    MAIN,
    node("net Net", "global"),
    PathNode(".table Embedding", "attribute", "torch.nn.modules.sparse.Embedding"),
    PathNode(".weight Parameter", "attribute", "torch.nn.parameter.Parameter"),
)
OPTIMIZER = (
    MAIN,
    node("opt SGD", "global"),
    PathNode(".param_groups (list, 1 item)", "attribute", "list"),
    PathNode("[0] Parameter", "index", "torch.nn.parameter.Parameter"),
)
FRAME = (
    MAIN,
    PathNode("rows DataFrame", "global", "pandas.core.frame.DataFrame"),
    PathNode("._mgr BlockManager", "attribute", "pandas.core.internals.managers.BlockManager"),
    PathNode(".blocks (tuple, 1 item)", "attribute", "tuple"),
)

#: name: (program, path to the block, whether it carries over).  Lines that end in #1 allocate, #2 called it.
PROGRAMS = {
    "a global joined": ("for b in data:\n  rows = torch.cat([rows, b]) #1", ROWS, True),
    "what a library's object keeps": (
        "for b in data:\n  rows = pd.concat([rows, b], ignore_index=True) #1",
        FRAME,
        True,
    ),
    "a text": ("for b in data:\n  rows += b #1", ROWS, True),
    "a key": ("for b in data:\n  chat['said'] += f'{b}' #1", KEY, True),
    "an attribute": ("def add(self, b):\n  self.rows = np.append(self.rows, b) #1", OWN, True),
    "a module's weight, copied into a larger module": (
        "def resize(self, n):\n  old = self.table.weight.data\n  self.table = Embedding(n, old.shape[1]) #1\n"
        "  self.table.weight.data[: len(old)] = old",
        MODULE,
        True,
    ),
    "the same where the path is the optimizer's": (
        "def resize(self, n):\n  old = self.table.weight.data\n  self.table = Embedding(n, old.shape[1]) #1\n"
        "  self.table.weight.data[: len(old)] = old",
        OPTIMIZER,
        True,
    ),
    "a module of another size": (
        "def resize(self, n):\n  old = self.table.weight\n  self.table = Embedding(n, old.shape[1]) #1",
        MODULE,
        False,
    ),
    "a registered buffer": (
        "def f(self, b):\n  self.register_buffer('rows', cat([self.rows, b])) #1",
        OWN,
        True,
    ),
    "two steps": (
        "def add(self, b):\n  both = [self.rows, b]\n  result = cat(both) #1\n  return result\n"
        "def step(self, b):\n  self.rows = self.add(b) #2",
        OWN,
        True,
    ),
    "parts that are appended": (
        "def add(self, b):\n  both = []\n  both.append(self.rows)\n  both.append(b)\n"
        "  self.rows = cat(both) #1",
        OWN,
        True,
    ),
    "a parameter": (
        "def join(old, b):\n  return cat([old, b]) #1\nfor b in data:\n  rows = join(rows, b) #2",
        ROWS,
        True,
    ),
    "another parameter": (
        "def pad(old, n):\n  return cat([old, zeros(n)]) #1\nfor n in sizes:\n  rows = pad(read(n), n) #2",
        ROWS,
        False,
    ),
    "the first time elsewhere": (
        "for b in data:\n  if rows is None:\n    rows = b\n  else:\n    rows = cat([rows, b]) #1",
        ROWS,
        True,
    ),
    "under another name": (
        "def add(self, b):\n  out = cat([self.rows, b]) #1\n  self.rows = out\n  optimizer.step()",
        (node("add() in own.py", "frame"), node("out Tensor", "local")),
        True,
    ),
    "a local of the loop's function": (
        "class Trainer:\n  def train(self):\n    rows = zeros(0)\n    for b in data:\n"
        "      rows = cat([rows, b]) #1",
        LOCAL,
        True,
    ),
    "a buffer that is extended": ("for b in data:\n  rows.extend(b) #1", ROWS, True),
    "a buffer of a library": ("for b in data:\n  write(b, rows) #1", ROWS, True),
    "a larger one that counts itself": ("def f(self):\n  self.rows = ones(len(self.rows) + 9) #1", OWN, True),
    "a global of a function": (
        "def step(i):\n  global rows\n  if i == 0:\n    rows = open()\n  rows.write(f'{i}') #1",
        ROWS,
        True,
    ),
    "a global that a function makes anew": (
        "def step(i):\n  global rows\n  rows = read(i)\n  rows = rows - rows.mean() #1",
        ROWS,
        False,
    ),
    "a larger array that is filled with the old one": (
        "def add(self, b):\n  if self.n == len(self.rows):\n    new = zeros(2 * self.n) #1\n"
        "    new[:self.n] = self.rows\n    self.rows = new\n  self.rows[self.n] = b",
        OWN,
        True,
    ),
    "a larger tensor that is copied to": (
        "def add(self, b):\n  new = empty(self.n + len(b)) #1\n  new[:self.n].copy_(self.rows)\n"
        "  self.rows = new",
        OWN,
        True,
    ),
    "a larger array that numpy copies to": (
        "for b in data:\n  new = empty(n) #1\n  copyto(new[:k], rows)\n  rows = new",
        ROWS,
        True,
    ),
    "a padded batch that is filled with rows": (
        "def collate(self, items):\n  n = max(map(len, items))\n  rows = zeros(len(items), n) #1\n"
        "  for i, item in enumerate(items):\n    rows[i, :len(item)] = item\n  self.rows = rows",
        OWN,
        False,
    ),
    "a table that is written in place": (
        "def f(self, n):\n  if len(self.rows) < n:\n    self.rows = zeros(n) #1\n  self.rows.copy_(read(n))\n"
        "  self.rows[0] += 1",
        OWN,
        False,
    ),
    "a batch": ("for n in sizes:\n  rows = read(n) #1", ROWS, False),
    "a batch with other statements": (
        "for n in sizes:\n  x = read(n); loss = f(x); optimizer.zero_grad() #1",
        X,
        False,
    ),
    "a batch made anew of itself": ("for n in sizes:\n  x = read(n)\n  x = x - x.mean() #1", X, False),
    "a batch padded twice": ("for n in sizes:\n  x = read(n)\n  x = pad(x)\n  x = pad(x) #1", X, False),
    "the argument of forward": (
        "class Net:\n  def forward(self, x):\n    for layer in self.layers:\n      x = layer(x)\n"
        "    x = x - x.mean() #1\n"
        "    self.rows = x.detach()\nfor n in sizes:\n  batch = read(n)\n  loss = net(batch) #2",
        OWN,
        False,
    ),
    "what calls it adds up": (
        "def step(self, n):\n  self.rows = ones(n) #1\nfor n in sizes:\n  loss += trainer.step(n) #2",
        OWN,
        False,
    ),
    "what calls it is a method": (
        "def step(self, n):\n  self.rows = ones(n) #1\nfor n in sizes:\n  bank.rows.step(n) #2",
        OWN,
        False,
    ),
    "a table made anew when it is too short": (
        "def table(self, n):\n  if self.rows is None or len(self.rows) < n:\n    n = int(1.5 * n)\n"
        "    angle = arange(n)\n    self.rows = angle.cos() #1\n  return self.rows",
        OWN,
        False,
    ),
    "a value of the loop's head": ("for rows in data:\n  rows = rows + 1 #1", ROWS, False),
    "a value of a with": ("for n in sizes:\n  with take(n) as rows:\n    rows = rows + 1 #1", ROWS, False),
}


@pytest.fixture
def stack_of():
    """stack_of(PROGRAM): the frames of its marked lines, the innermost first."""

    def stack_of(program: str):
        lines = textwrap.dedent(program).splitlines(True)
        name = f"/home/me/own{next(NUMBERS)}.py"  # sources are read once
        added.append(name)
        linecache.cache[name] = len(program), None, lines, name
        marked = {line.rstrip()[-1]: number for number, line in enumerate(lines, 1) if "#" in line}
        return [(name, marked[mark], "f") for mark in sorted(marked)]

    added: list[str] = []
    yield stack_of
    for name in added:
        del linecache.cache[name]


@pytest.mark.parametrize(("program", "path", "carried"), PROGRAMS.values(), ids=PROGRAMS)
def test_what_the_lines_say(stack_of, program, path, carried):
    assert carries_over(stack_of(program), path) is carried


def test_a_library_is_followed_to_the_line_that_called_it(stack_of):
    library = [("/venv/site-packages/library.py", 3, "cat")]
    assert carries_over([*library, *stack_of(PROGRAMS["a global joined"][0])], ROWS) is True
    assert carries_over([*library, *stack_of(PROGRAMS["a batch"][0])], ROWS) is False
    assert carries_over(library, ROWS) is None


def test_without_a_path_it_is_what_the_line_assigns_to(stack_of):
    assert carries_over(stack_of(PROGRAMS["a global joined"][0])) is True
    assert carries_over(stack_of(PROGRAMS["an attribute"][0])) is True
    assert carries_over(stack_of(PROGRAMS["a batch"][0])) is False
    assert carries_over([]) is None
