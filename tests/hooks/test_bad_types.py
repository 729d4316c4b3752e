"""Foreign types with a faulty tp_traverse (tests/ext/bad_traverse.c): skipped and counted, never followed."""

import sysconfig

import pytest
from native_support import build, linux_only, run_fresh

pytestmark = linux_only

PRELUDE = """
import gc, importlib.machinery, importlib.util, os, sys
gc.collect()
gc.disable()  # CPython's own collector would crash on these
import leakprobe
from leakprobe import _core
spec = importlib.util.spec_from_loader("bad_traverse", importlib.machinery.ExtensionFileLoader("bad_traverse", sys.argv[1]))
bad = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bad)
class Node: pass
def leave(*values):
    print(*values, flush=True)
    os._exit(0)  # the end of the interpreter would collect
"""


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    return build(
        "bad_traverse.c",
        tmp_path_factory.mktemp("ext") / "bad_traverse.so",
        f"-I{sysconfig.get_path('include')}",
    )


MODES = {
    0: "NULL",
    1: "a small number",
    2: "no multiple of 8",
    3: "an unmapped page",
    4: "a freed block",
    5: "noise",
    6: "a count and no type",
    7: "a kernel's address",
    8: "text",
    9: "the last address",
}


@pytest.mark.parametrize("mode", MODES, ids=MODES.values())
def test_one_faulty_object(extension, mode):
    out = run_fresh(
        PRELUDE
        + f"""
before = _core.trace([], [], 0, 5)["skipped"]
kept = [bad.BadTraverse({mode}, Node()) for _ in range(3)]
skipped = _core.trace([], [], 0, 5)["skipped"] - before
cycles = [c for c in leakprobe.find_cycles() if "Node" in c.text() or "Bad" in c.text()]
paths = [str(p) for p in leakprobe.why(kept[1])]
assert leakprobe.retained_size(kept) > 0
census = _core.census(True, 0, 5, 3)
leave(skipped, len(cycles), paths)
""",
        extension,
    ).split(maxsplit=2)
    assert out[:2] == ["3", "0"] and "__main__ -> kept (list, 3 items) -> [1] BadTraverse" in out[2]


def test_what_such_a_type_says_rightly_is_followed(extension):
    run_fresh(
        PRELUDE
        + """
node = Node()
node.inner = Node()
inner = node.inner
kept = [bad.BadTraverse(mode, node) for mode in range(10)]
del node
paths = [str(p) for p in leakprobe.why(inner)]
assert any("BadTraverse" in p and ".inner Node" in p for p in paths), paths
leave("fine")
""",
        extension,
    )


def test_under_a_watch(extension):
    run_fresh(
        PRELUDE
        + """
kept = []
with leakprobe.watch(warmup=2) as probe:
    for i in range(30):
        kept.append([bad.BadTraverse(mode, Node()) for mode in range(10)])
        probe.step()
report = probe.report()
(finding,) = report.findings
assert finding.kind == "retained" and "kept (list" in finding.holder["text"], finding
leave("fine")
""",
        extension,
    )
