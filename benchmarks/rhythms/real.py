"""Kinds run as programs under the installed leakprobe.watch(), beside the simulation of its engine on the
same loops.
"""

import json
import random
import select
import subprocess
import sys
import tempfile

from benchmarks.pairs import machine
from benchmarks.rhythms.deciders.model import MODEL
from benchmarks.rhythms.kinds import KINDS, is_held_out
from benchmarks.rhythms.loop import make_loop
from benchmarks.rhythms.measure import measure
from benchmarks.rhythms.simulate import chosen_kinds, decider_of, seeds_of
from benchmarks.rhythms.summary import share

#: Loops of more items or bytes than these are not run: they would measure the machine.
MOST_ITEMS, MOST_BYTES = 30_000, 400e6
#: Seconds that one loop may take.
TIMEOUT_S = 300
#: What is kept, and where: payloads.py and program.py have each.
PAYLOADS = ("list", "dict", "string", "array", "view", "tensor", "graph")
PLACES = ("process", "thread", "worker", "training", "loader")


def loops_of(args) -> list:
    """Loops of one site that can be run here, in an order that is random and the same each time.

    Not those of a block that gives way to a larger one: no payload carries the old content over, and without
    that it is no growth.
    """
    found = []
    for steps in args.steps:
        for kind in chosen_kinds(args):
            for seed in seeds_of(args, steps):
                loop = make_loop(KINDS[kind], steps, seed)
                if len(loop.sites) == 1 and loop.pattern != "replaced" and can_run(loop):
                    found.append(loop)
    random.Random(0).shuffle(found)
    return found


def can_run(loop) -> bool:
    (site,) = loop.sites
    return len(site.birth) <= MOST_ITEMS and site.bytes.sum() <= MOST_BYTES


def run(args) -> dict:
    """Each loop is run once, payloads and places in turn; ``--payloads`` and ``--places`` choose among
    them.
    """
    decider = decider_of(args.deciders[0]) if args.deciders else MODEL
    groups = [(payload, place) for place in args.places or PLACES for payload in args.payloads or PAYLOADS]
    runs = [(loop, *groups[number % len(groups)]) for number, loop in enumerate(loops_of(args))]
    pairs: dict[str, list] = {
        name: [] for name in [*PAYLOADS, *(f"in the {place}" for place in PLACES), "all"]
    }
    for (loop, payload, place), answer in zip(runs, answers_of(runs)):
        outcome = measure(loop, decider)
        for name in (payload, f"in the {place}", "all"):
            pairs[name].append((loop, answer, outcome))
    table = {}
    for name, found in pairs.items():
        for grows in (True, False):
            some = [pair for pair in found if pair[0].grows == grows]
            if some:
                table[f"{name}, {'growing' if grows else 'turnover'}"] = row_of(some)
    return {
        "machine": machine(),
        "simulated by": decider.name,
        "real": table,
        "differ": differences(pairs["all"]),
    }


def answers_of(runs) -> list[dict | None]:
    """The answers of (loop, payload, place), None where there is none: a process runs one after another,
    until one fails.
    """
    answers: list[dict | None] = []
    while len(answers) < len(runs):
        rest = runs[len(answers) :]
        found = run_process(rest)
        answers += found if len(found) == len(rest) else [*found, None]
    return answers


def run_process(runs) -> list[dict]:
    """The answers of one process, up to the run that failed or took too long."""
    orders = [
        json.dumps({"kind": o.kind, "steps": o.steps, "seed": o.seed, "payload": payload, "place": place})
        for o, payload, place in runs
    ]
    command = [sys.executable, "-m", "benchmarks.rhythms.program"]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        answers = []
        for order in orders:
            line = ask(process, order)
            if not line:
                process.kill()
                errors.seek(0)
                print(f"no answer to {order}: {errors.read()[-500:]}", file=sys.stderr)
                break
            answers.append(json.loads(line))
    return answers


def ask(process, order: str) -> str:
    """The line that answers an order; empty if there is none in time."""
    try:
        process.stdin.write(order + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return ""
    ready, _, _ = select.select([process.stdout], [], [], TIMEOUT_S)
    return process.stdout.readline() if ready else ""


def row_of(pairs) -> dict:
    """Told for real, of the loops that gave an answer, and in simulation; they agree where each share lies in
    the other's interval of 95 %.  No answer is another verdict than the simulation's.
    """
    told = [(verdict_of(answer), o.told) for _, answer, o in pairs]
    real = share(verdict for verdict, _ in told if verdict is not None)
    simulated, same = share(t for _, t in told), share(verdict == t for verdict, t in told)
    within = (
        real[1] > 0
        and real[2] <= simulated[0] / simulated[1] <= real[3]
        and simulated[2] <= real[0] / real[1] <= simulated[3]
    )
    agrees = "yes" if within else "no"
    silent = len(told) - real[1]
    return {"real": real, "simulated": simulated, "same": same, "agrees": agrees, "no answer": silent}


def verdict_of(answer: dict | None) -> bool | None:
    """Whether growth was told; None without an answer."""
    return None if answer is None else answer["verdict"] == "growing"


def differences(pairs) -> list[str]:
    """The loops of open kinds with different verdicts."""
    return [
        f"{loop.kind}, {loop.steps} steps, seed {loop.seed}: {said(answer)} for real, "
        f"{'found' if outcome.told else 'not found'} in simulation"
        for loop, answer, outcome in pairs
        if verdict_of(answer) != outcome.told and not is_held_out(loop.kind)
    ]


def said(answer: dict | None) -> str:
    return "no answer" if answer is None else f"{answer['verdict']} {answer['findings']}"
