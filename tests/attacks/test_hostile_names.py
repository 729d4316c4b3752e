"""Names with control characters, markup, formats and lone surrogates, or of three million characters: what a
person reads has none of them, what a program reads is well-formed.
"""

import csv
import io
import json
import os
import re
import sys
import types

import pytest

import leakprobe
from leakprobe import cli

EVIL = "\x1b]0;title\x07\x1b[2J\r\n::error file=x::y\n<script>&\"'`|\u202e[red]b[/red]{0}%s"
LONG = "n" * 3_000_000
CODE = "def make(kept, kind, key):\n    kept[key] = [kind(), bytearray(3000)]\n"
#: name => (file, function, class, module, attribute, key)
NAMES = {
    "file": (EVIL, "make", "Part", "evil", "holder", ""),
    "surrogate": ("a\udcff.py", "make", "Part", "\ud800", "holder", "\ud800"),
    "function": ("made.py", EVIL, "Part", "evil", "holder", ""),
    "class": ("made.py", "make", EVIL, EVIL, "holder", ""),
    "attribute": ("made.py", "make", "Part", "evil", EVIL, EVIL),
    "long": (LONG, LONG, LONG, LONG, LONG, ""),
}


def made_by(file, function):
    """make() of CODE as if it stood in that file under that name."""
    code = compile(CODE, file, "exec")
    inner = next(one for one in code.co_consts if isinstance(one, types.CodeType))
    names = {"co_name": function, **({"co_qualname": function} if sys.version_info >= (3, 11) else {})}
    return types.FunctionType(inner.replace(**names), {"__name__": "evil"})


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_of_them(name, tmp_path, monkeypatch, capsys):
    file, function, kind_name, module_name, attribute, key = NAMES[name]
    make, kind = made_by(file, function), type("Part", (), {})
    kind.__name__ = kind.__qualname__ = kind_name
    kind.__module__ = module_name
    owner = types.ModuleType(module_name)
    monkeypatch.setitem(sys.modules, module_name, owner)
    owner.__dict__[attribute] = holder = {}
    recording = str(tmp_path / "run.leak")
    with leakprobe.watch(record=recording) as probe:
        for step in range(40):
            make(holder, kind, f"{key}{step}")
            probe.step()
    report, out = probe.report(), io.StringIO()
    report.print(file=out, verbose=True)
    report.to_json(tmp_path / "report.json")
    report.to_html(tmp_path / "page.html")
    assert report.verdict == "growing"
    cli.main(["report", recording]), cli.main(["why", recording])
    for form in ("csv", "github", "sarif", "speedscope"):
        cli.main(["export", recording, "--format", form, "-o", str(tmp_path / form)])
    seen = capsys.readouterr()
    texts = [out.getvalue(), seen.out, seen.err]
    texts += [(tmp_path / form).read_text(encoding="utf-8") for form in ("csv", "github")]
    for text in texts:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800-\udfff]", text)
        assert not re.search("^::error file=x", text, re.MULTILINE) and len(text) < 50_000
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>&" not in page and "\u202e" not in page
    for form in ("report.json", "sarif", "speedscope"):
        json.loads((tmp_path / form).read_text(encoding="utf-8"))
    assert list(csv.reader(io.StringIO((tmp_path / "csv").read_text(encoding="utf-8"))))


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no /dev/shm here")
def test_files_of_shared_memory():
    """Names of any bytes, and things there that are no files."""
    pid, made = os.getpid(), []
    names = [b"\x1b[2J\n", b"\xff\xfe", b"n" * 200, b"<script>", b"%s{0}\\012 (deleted)"]
    try:
        with leakprobe.watch() as probe:
            for step in range(60):
                for name in names:
                    made.append(b"/dev/shm/lp-%d-%d-%s" % (pid, step, name))
                    with open(made[-1], "wb") as file:
                        file.write(b"x" * 5000)
                for what, make in (
                    (b"link", lambda p: os.symlink(b"/proc/self/mem", p)),
                    (b"fifo", os.mkfifo),
                ):
                    made.append(b"/dev/shm/lp-%d-%d-%s" % (pid, step, what))
                    make(made[-1])
                probe.step()
        report, out = probe.report(), io.StringIO()
        report.print(file=out, verbose=True)
    finally:
        for path in made:
            os.unlink(path)
    assert not re.search("[\x00-\x08\x0b-\x1f]", out.getvalue())
    json.dumps(report.to_dict())
