"""Dominators, components and distances of the C core against networkx, on random graphs."""

import ctypes
import pathlib
import subprocess
import sys

import pytest

networkx = pytest.importorskip("networkx")
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = pathlib.Path(__file__).parents[2]
NONE = 2**32 - 1

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the shared library is built as on Linux"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    target = tmp_path_factory.mktemp("analyses") / "analyses.so"
    sources = [
        ROOT / "tests/c/analyses_library.c",
        *(ROOT / "src/analysis").glob("*.c"),
        *(ROOT / "src/base").glob("*.c"),
    ]
    flags = [
        "-std=c11",
        "-D_GNU_SOURCE",
        "-O1",
        "-g",
        "-DLEAKPROBE_DEBUG",
        "-shared",
        "-fPIC",
        f"-I{ROOT / 'src'}",
    ]
    done = subprocess.run(
        ["gcc", *flags, *map(str, sources), "-o", str(target), "-lpthread"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(target))


@st.composite
def graphs(draw):
    """(number of nodes, sorted edges): sparse and dense, with loops and edges that are there twice."""
    nodes = draw(st.integers(1, 40))
    node = st.integers(0, nodes - 1)
    return nodes, sorted(draw(st.lists(st.tuples(node, node), max_size=3 * nodes)))


def words(values):
    values = list(values)
    return (ctypes.c_uint32 * max(len(values), 1))(*values)


def pairs(edges):
    return words(number for edge in edges for number in edge)


def as_networkx(nodes, edges):
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(edges)
    return graph


@settings(max_examples=1500, deadline=None, derandomize=True, database=None)
@given(graphs(), st.data())
def test_dominators_and_retained_sizes(library, graph, data):
    nodes, edges = graph
    roots = data.draw(st.lists(st.integers(0, nodes - 1), max_size=4))
    idom, count = words([0] * nodes), (ctypes.c_uint64 * nodes)(*[1] * nodes)
    assert (
        library.analyses_dominators(nodes, pairs(edges), len(edges), words(roots), len(roots), idom, count)
        == 0
    )
    above_all = nodes
    made = as_networkx(nodes, edges + [(above_all, root) for root in roots])
    made.add_node(above_all)
    expected = {
        node: above
        for node, above in networkx.immediate_dominators(made, above_all).items()
        if node != above_all
    }
    found = {
        node: above_all if idom[node] == node else idom[node] for node in range(nodes) if idom[node] != NONE
    }
    assert found == expected
    tree = networkx.DiGraph((above, node) for node, above in expected.items())
    for node in range(nodes):
        assert count[node] == (1 + len(networkx.descendants(tree, node)) if node in expected else 1)


@settings(max_examples=1500, deadline=None, derandomize=True, database=None)
@given(graphs())
def test_components(library, graph):
    nodes, edges = graph
    component = words([0] * nodes)
    assert library.analyses_components(nodes, pairs(edges), len(edges), component) == 0
    found = {}
    for node in range(nodes):
        found.setdefault(component[node], set()).add(node)
    expected = networkx.strongly_connected_components(as_networkx(nodes, edges))
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, expected))


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(graphs(), st.data())
def test_distances(library, graph, data):
    nodes, edges = graph
    root = data.draw(st.integers(0, nodes - 1))
    distance = words([0] * nodes)
    assert library.analyses_distances(nodes, pairs(edges), len(edges), root, distance) == 0
    found = {node: distance[node] for node in range(nodes) if distance[node] != NONE}
    assert found == networkx.single_source_shortest_path_length(as_networkx(nodes, edges), root)


@settings(max_examples=1000, deadline=None, derandomize=True, database=None)
@given(graphs(), st.data())
def test_arranged_along_shortest_paths(library, graph, data):
    nodes, edges = graph
    roots = data.draw(st.lists(st.integers(0, nodes - 1), max_size=6))
    old, parent, found = words([0] * nodes), words([0] * nodes), words([0] * 2 * len(edges))
    given_roots = words(roots), len(roots)
    assert library.analyses_arrange(nodes, pairs(edges), len(edges), *given_roots, old, parent, found) == 0
    assert sorted(old) == list(range(nodes))
    renamed = [(old[found[2 * i]], old[found[2 * i + 1]]) for i in range(len(edges))]
    assert sorted(renamed) == edges
    reached = [node for node in range(nodes) if parent[node] != NONE]
    made = as_networkx(nodes, edges)
    assert {old[node] for node in reached} == set(roots).union(
        *(networkx.descendants(made, root) for root in roots)
    )
    assert reached == list(range(len(reached)))  # what no root reaches comes last
    open_branch = []
    for node in reached:  # a branch is left once and for all
        while parent[node] != node and open_branch[-1] != parent[node]:
            open_branch.pop()
        open_branch.append(node)
