"""Who may import whom in the Python package: layers, arrows that point one way, and no circle of modules.

A deferred import, one inside a function, is an arrow like any other, and so is one for types only.  Deferred
ones are counted, since one that is there to break a circle hides it: debts.json has their number.
"""

import functools
import pathlib
import textwrap

import debts
import pytest
from python_code import Import, circles, imports_of, module_of

ROOT = pathlib.Path(__file__).parents[2] / "leakprobe"

#: Layer => layers that it may import from, beside itself.
MAY_IMPORT = {
    "base": set(),  # errors, units, the core
    "model": {"base"},  # plain frozen data
    "evidence": {"base", "model"},  # series, trends, accounts: what the numbers show
    "judge": {"base", "model", "evidence"},  # verdicts, causes, findings
    "torch": {"base", "model", "evidence"},  # what is asked of torch, and its workers
    "record": {"base", "model"},  # recordings as files
    "report": {"base", "model"},  # renderers; they compute no number
    "watch": {
        "base",
        "model",
        "evidence",
        "judge",
        "torch",
        "record",
        "inspect",
    },  # the engine, when to look, the probe
    "inspect": {
        "base",
        "model",
        "evidence",
        "record",
        "report",
        "torch",
    },  # snapshots, cycles, paths on demand
    "front": {"base", "model", "evidence", "judge", "torch", "record", "report", "watch", "inspect"},
}

#: Module or package => layer.  The longest name that fits counts.
LAYERS = {
    "": "front",
    "__main__": "front",
    "_core": "base",
    "errors": "base",
    "checks": "base",  # arguments of public functions
    "switch": "base",
    "files": "base",  # files from anywhere, read; files for their owner, written
    "version": "base",
    "launchers": "base",
    "model": "model",
    "evidence": "evidence",
    "judge": "judge",
    "watch": "watch",
    "inspect": "inspect",
    "torch": "torch",
    "record": "record",
    "report": "report",
    "cli": "front",
    "demo": "front",
    "integrations": "front",
    "pytest_plugin": "front",
    "pytest_gate": "front",
    "pytest_names": "front",
    "pytest_filters": "front",
    "pytest_kept": "front",
    "pytest_outcome": "front",
    "attached": "front",
    "doctor": "front",
    "preload": "front",
    # Modules that are on the way to the folder of their layer.
    "probe": "watch",
    "recording": "front",  # several recordings as one report
    "audit": "inspect",
    "cycles": "inspect",
    "diff": "inspect",
    "graph": "inspect",
    "memory": "inspect",
    "memory_map": "inspect",
    "retention": "inspect",
    "snapshot": "inspect",
    "report.model": "model",
    "report.cells": "base",  # names of a notebook's cells
    "report.clean": "base",  # text without control characters, for every layer that makes text
    "report.ranks": "evidence",
}


def layer_of(module: str) -> str:
    name = module
    while name and name not in LAYERS:
        name = name.rpartition(".")[0]
    if not name and module:
        pytest.fail(f"leakprobe.{module} belongs to no layer: give it one in LAYERS")
    return LAYERS[name]


@functools.cache
def all_imports() -> list[Import]:
    files = {module_of(path, ROOT): path for path in ROOT.rglob("*.py")}
    modules = {*files, "_core"}
    return [one for name, path in files.items() for one in imports_of(path.read_text(), name, modules)]


def arrows_against_the_layers() -> list[tuple[str, str]]:
    """Imports that point upwards or sideways, those for types too: they are knowledge of the other side."""
    pairs = {(one.importer, one.imported) for one in all_imports()}
    return sorted(p for p in pairs if layer_of(p[1]) not in {layer_of(p[0]), *MAY_IMPORT[layer_of(p[0])]})


def deferred_imports() -> list[Import]:
    return sorted(one for one in all_imports() if one.deferred)


def modules_in_circles() -> list[str]:
    return sorted(set().union(*circles({(one.importer, one.imported) for one in all_imports()})))


def test_the_layers_themselves_point_one_way():
    assert not circles({(above, below) for above, layers in MAY_IMPORT.items() for below in layers})


def test_imports_point_downwards():
    assert arrows_against_the_layers() == []


def test_no_module_imports_itself_over_others():
    assert modules_in_circles() == []


def test_deferred_imports_are_few():
    debts.check_count(debts.load()["deferred"], len(deferred_imports()), "imports inside functions")


SAMPLE = textwrap.dedent(
    """
    from typing import TYPE_CHECKING
    import os, leakprobe.units
    from leakprobe import _core, errors as wrong
    if TYPE_CHECKING:
        from leakprobe.probe import Probe
    try:
        from leakprobe.report import text
    except ImportError:
        pass
    class A:
        def method(self):
            if self:
                from leakprobe.report.model import Report, verdict_of
    """
)


def test_what_an_import_is():
    modules = {"", "_core", "units", "errors", "probe", "report", "report.text", "report.model"}
    found = {(one.imported, one.deferred, one.for_types) for one in imports_of(SAMPLE, "here", modules)}
    assert found == {
        ("units", False, False),
        ("_core", False, False),
        ("errors", False, False),
        ("probe", False, True),
        ("report.text", False, False),
        ("report.model", True, False),
    }
    with pytest.raises(ValueError, match="line 1: a relative import"):
        list(imports_of("from .units import size", "here", modules))


def test_what_a_circle_is():
    assert circles({("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("f", "a")}) == [
        {"a", "b", "c"}
    ]
    assert circles({("a", "b"), ("b", "c"), ("a", "c")}) == []
