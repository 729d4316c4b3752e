"""What the tests of the trace share: a program with a leaky loop in a fresh process, its holders as data."""

import json
import subprocess
import sys
import textwrap

import forked

PRELUDE = """
import gc, json, os, sys
import leakprobe
from leakprobe import _core
PACKAGE = os.path.dirname(leakprobe.__file__) + os.sep
OUT = {}

def begin(*media):
    gc.collect()
    _core.start(16, PACKAGE)
    if media:
        _core.native_install(list(media))

def loop(step, count=14):
    for i in range(count):
        step(i)
        _core.mark()

def trace(first=2, last=9, **options):
    census = _core.census(True, first, last, 2)
    objects = [(g[1], g[2]) for g in census.groups if g[2] >= 16 and g[2] != 2]
    blocks = [(g[0], g[1]) for g in _core.ledger_groups(first, last, 2)]
    del census
    return _core.trace(objects, blocks, first, last, **options)

def done(result=None, **more):
    print("RESULT" + json.dumps({"trace": result, **more}))
"""


def run(body: str, *, expect: int = 0) -> dict:
    """Run PRELUDE and body in a process of its own; what it passed to done()."""
    program = PRELUDE + textwrap.dedent(body)
    if "import torch" in body:
        result = forked.run(["-c", program])
    else:
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=900)
    assert result.returncode == expect, result.stderr[-3000:]
    line = [l for l in result.stdout.splitlines() if l.startswith("RESULT")]
    return json.loads(line[-1][6:]) if line else {}


def holders(result: dict) -> list:
    return result["trace"]["holders"]


def texts(entry: dict) -> list[str]:
    return [p["text"] for p in entry["path"]]


def path_of(entry: dict) -> str:
    return " -> ".join(texts(entry))


def with_holder(result: dict, text: str) -> dict:
    """The one entry whose holder's text begins with ``text``."""
    found = [h for h in holders(result) if h["holder"] and h["holder"]["text"].startswith(text)]
    assert len(found) == 1, [
        (h["kind"], h["holder"] and h["holder"]["text"], path_of(h)) for h in holders(result)
    ]
    return found[0]


def bytes_of(entry: dict, medium: str) -> int:
    return sum(m["bytes"] for m in entry["members"] if m["medium"] == medium)


def types_of(entry: dict) -> set:
    return {m["type"] for m in entry["members"]}
