"""What is replaced in each step, in ever more places that steps leave: hooks that keep their last output."""

import pytest
from fresh import run

LOOP = """
import json, leakprobe, numpy
{setup}
with leakprobe.watch() as probe:
    for i in range(400):
        {step}
        probe.step()
report = probe.report().to_dict()
print(json.dumps([report["verdict"], report["findings"]]))
"""
CALLBACKS = """
class Latest:
    def __call__(self, value):
        self.value = value + 1

callbacks = []
def each(i):
    if i % 5 == 4:
        callbacks.append(Latest())
    value = numpy.ones(2000)
    for one in callbacks:
        one(value)
"""
LARGE_CALLBACKS = CALLBACKS.replace("Latest())", "Latest()); callbacks[-1].name = f'{i:09000}'")
WRAPPERS = """
def call(value):
    return value

def wrapped(inner):
    last = []
    def wrapper(value):
        last[:] = [inner(value) + 1]
        return last[0]
    return wrapper

def each(i):
    global call
    if i % 8 == 7:
        call = wrapped(call)
    call(numpy.ones(2000))
"""


def found(setup, step="each(i)"):
    verdict, findings = run(LOOP.format(setup=setup, step=step))
    return verdict, [f for f in findings if f["medium"] == "numpy"]


@pytest.mark.parametrize(
    ("setup", "places", "cause"),
    [(CALLBACKS, 5, "growing_container"), (WRAPPERS, 8, "growing_chain")],
    ids=["callbacks", "wrappers"],
)
def test_places_that_steps_leave_are_found_by_what_they_keep(setup, places, cause):
    verdict, (finding,) = found(setup)
    assert (verdict, finding["cause"], finding["type"]) == ("growing", cause, "numpy.ndarray")
    assert finding["bytes_per_step"] == pytest.approx(16_000 / places, rel=0.15)
    assert "and replaced since" in finding["evidence"]


LOCALS = """
class Latest:
    def __call__(self, value):
        self.value = value + 1

def train(probe, rests):
    callbacks = []
    for i in range(400):
        if i % 5 == 4 and i < rests:
            callbacks.append(Latest())
        value = numpy.ones(2000)
        for one in callbacks:
            one(value)
        if i == rests:
            callbacks.clear()
        probe.step()
"""
RETURNS = """
import json, leakprobe, numpy
{setup}
with leakprobe.watch() as probe:
    train(probe, {rests})
report = probe.report().to_dict()
print(json.dumps([report["verdict"], report["findings"]]))
"""


@pytest.mark.parametrize(("rests", "expected"), [(400, "growing"), (350, "steady")])
def test_places_that_go_with_their_function_are_told_as_of_the_last_look(rests, expected):
    verdict, findings = run(RETURNS.format(setup=LOCALS, rests=rests))
    assert (verdict, len(findings)) == (expected, expected == "growing")


def test_what_a_holder_keeps_and_what_is_replaced_in_that_are_one_finding():
    verdict, findings = run(LOOP.format(setup=LARGE_CALLBACKS, step="each(i)"))
    (finding,) = findings
    assert (verdict, finding["type"]) == ("growing", "numpy.ndarray")
    assert finding["bytes_per_step"] == pytest.approx((16_000 + 9_000) / 5, rel=0.15)


@pytest.mark.parametrize(
    "step",
    [
        "kept.append(str(i)); batch = larger(i)",
        "kept.append(str(i)); state['batch'] = larger(i)",
        "kept.append([i]); state['last'] = state.get('batch'); state['batch'] = larger(i)",
    ],
    ids=["a local", "an attribute", "two of them"],
)
def test_a_batch_that_gets_larger_beside_a_small_leak_is_none(step):
    setup = "kept, state = [], {}\nlarger = lambda i: [numpy.ones(2000) for _ in range(i // 8)]"
    assert found(setup, step)[1] == []
