"""The contract of the core: rows with names, constants from C, and a stub that says what each name is."""

import ast
import pathlib
import pickle

from leakprobe import _core
from leakprobe.model import frames

STUB = ast.parse((pathlib.Path(__file__).parents[2] / "leakprobe" / "_core.pyi").read_text())


def declared(kind):
    return [node for node in STUB.body if isinstance(node, kind)]


def test_the_stub_names_what_the_module_has():
    """What stubtest checks in full (.ci/lint), for those who have no mypy at hand."""
    names = {node.name for node in declared(ast.FunctionDef)}
    names |= {node.target.id for node in declared(ast.AnnAssign)}
    for node in declared(ast.ClassDef):
        if "type_check_only" not in map(ast.unparse, node.decorator_list):
            names.add(node.name)
    assert names == {name for name in dir(_core) if not name.startswith("_")}


def test_every_row_is_a_tuple_with_the_names_of_the_stub():
    rows = [node for node in declared(ast.ClassDef) if ast.unparse(node).find("structseq[") > 0]
    assert len(rows) > 20
    for node in rows:
        fields = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
        made = getattr(_core, node.name)(range(len(fields)))
        assert isinstance(made, tuple) and made == tuple(range(len(fields)))
        assert [getattr(made, field) for field in fields] == list(made), node.name
        assert type(made).__match_args__ == tuple(fields)
        assert pickle.loads(pickle.dumps(made)) == made


def test_the_stub_documents_what_it_declares():
    silent = [
        node.name
        for node in ast.walk(STUB)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        and not ast.get_docstring(node)
        and not (isinstance(node, ast.FunctionDef) and node.decorator_list)
    ]
    assert not silent


def test_no_dict_of_anything():
    assert "Any" not in {node.id for node in ast.walk(STUB) if isinstance(node, ast.Name)}


def test_the_numbers_of_sites_come_from_the_core():
    assert frames.SELF_SITE == _core.SITE_SELF and frames.FIRST_SITE == _core.SITE_FIRST
    assert set(frames.SPECIAL_SITES) == {
        getattr(_core, name) for name in dir(_core) if name.startswith("SITE_") and name != "SITE_FIRST"
    }
    assert max(frames.SPECIAL_SITES) < _core.SITE_FIRST
