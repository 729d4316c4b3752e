"""Kinds run as programs under the installed leakprobe.watch(), beside the simulation of its engine on the same loops."""

import json
import random
import subprocess
import sys

from benchmarks.pairs import machine
from benchmarks.rhythms.deciders.first_engine import FIRST_ENGINE
from benchmarks.rhythms.kinds import KINDS
from benchmarks.rhythms.loop import make_loop
from benchmarks.rhythms.measure import measure
from benchmarks.rhythms.simulate import chosen_kinds, decider_of, seeds_of
from benchmarks.rhythms.summary import share

#: Loops of more items or bytes than these are not run: they would measure the machine.
MOST_ITEMS, MOST_BYTES = 30_000, 400e6
#: Seconds that one loop may take.
TIMEOUT_S = 120
#: Programs whose steps other processes run; the other loops of a group share one process, one watch each.
PAYLOADS = ("list", "dict", "string", "array", "view", "tensor", "graph")
PLACES = ("process", "thread", "worker")


def loops_of(args) -> list:
    """Loops of one site that can be run here, in an order that is random and the same each time."""
    found = []
    for steps in args.steps:
        for kind in chosen_kinds(args):
            for seed in seeds_of(args, steps):
                loop = make_loop(KINDS[kind], steps, seed)
                if len(loop.sites) == 1 and can_run(loop):
                    found.append(loop)
    random.Random(0).shuffle(found)
    return found


def can_run(loop) -> bool:
    (site,) = loop.sites
    return len(site.birth) <= MOST_ITEMS and site.bytes.sum() <= MOST_BYTES


def run(args) -> dict:
    """Every payload and place takes its share of the loops in turn; ``--payloads`` and ``--places`` choose among them."""
    decider = decider_of(args.deciders[0]) if args.deciders else FIRST_ENGINE
    groups = [(payload, place) for place in args.places or PLACES for payload in args.payloads or PAYLOADS]
    loops = loops_of(args)
    pairs: dict[tuple, list] = {}
    for number, group in enumerate(groups):
        some = loops[number :: len(groups)]
        told = run_group(some, *group)
        pairs[group] = [
            (loop, answer, measure(loop, decider)) for loop, answer in zip(some, told) if answer is not None
        ]
    rows = {f"{payload} in the {place}": found for (payload, place), found in pairs.items()}
    everything = [pair for found in rows.values() for pair in found]
    rows["all"] = everything
    table = {}
    for name, found in rows.items():
        for grows in (True, False):
            some = [pair for pair in found if pair[0].grows == grows]
            if some:
                table[f"{name}, {'growing' if grows else 'turnover'}"] = row_of(some)
    return {
        "machine": machine(),
        "simulated by": decider.name,
        "real": table,
        "differ": differences(everything),
    }


def run_group(loops, payload: str, place: str) -> list[dict | None]:
    """The answers of one process that runs these loops; None from a loop on that did not end."""
    orders = [
        json.dumps({"kind": o.kind, "steps": o.steps, "seed": o.seed, "payload": payload, "place": place})
        for o in loops
    ]
    command = [sys.executable, "-m", "benchmarks.rhythms.program"]
    try:
        done = subprocess.run(
            command,
            input="\n".join(orders),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S + 5 * len(loops),
        )
        output = done.stdout
        if done.returncode:
            print(done.stderr[-2000:], file=sys.stderr)
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode()
    answers: list[dict | None] = [json.loads(line) for line in output.splitlines() if line.endswith("}")]
    return answers + [None] * (len(loops) - len(answers))


def row_of(pairs) -> dict:
    """Told for real and in simulation; they agree where each share lies in the other's interval of 95 %."""
    real, simulated = (
        share(flags) for flags in zip(*((answer["verdict"] == "growing", o.told) for _, answer, o in pairs))
    )
    same = share((answer["verdict"] == "growing") == o.told for _, answer, o in pairs)
    within = (
        real[2] <= simulated[0] / simulated[1] <= real[3]
        and simulated[2] <= real[0] / real[1] <= simulated[3]
    )
    return {"real": real, "simulated": simulated, "same": same, "agrees": "yes" if within else "no"}


def differences(pairs) -> list[str]:
    """The loops with different verdicts."""
    return [
        f"{loop.kind}, {loop.steps} steps, seed {loop.seed}: {answer['verdict']} {answer['findings']} for real, "
        f"{'told' if outcome.told else 'not told'} in simulation"
        for loop, answer, outcome in pairs
        if (answer["verdict"] == "growing") != outcome.told
    ]
