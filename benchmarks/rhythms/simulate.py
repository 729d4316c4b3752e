"""Simulated loops under deciders, as one result."""

import collections
import concurrent.futures
import importlib
import sys
import time

from benchmarks import rhythms
from benchmarks.pairs import machine
from benchmarks.rhythms import plots, summary
from benchmarks.rhythms.deciders import DECIDERS
from benchmarks.rhythms.kinds import HELD_OUT, KINDS, is_held_out, names_hash
from benchmarks.rhythms.loop import make_loop
from benchmarks.rhythms.measure import Outcome, measure
from benchmarks.rhythms.verdict import Decider


def decider_of(name: str) -> Decider:
    """A decider by its name, or by MODULE:ATTRIBUTE."""
    if name in DECIDERS:
        return DECIDERS[name]
    module, _, attribute = name.partition(":")
    if not attribute:
        raise SystemExit(f"no decider {name!r}: one of {', '.join(DECIDERS)}, or MODULE:ATTRIBUTE")
    return getattr(importlib.import_module(module), attribute)


def chosen_kinds(args) -> list[str]:
    kinds = [name for name in KINDS if not args.kinds or any(part in name for part in args.kinds)]
    return [name for name in kinds if args.part == "both" or is_held_out(name) == (args.part == "held out")]


def seeds_of(args, steps: int) -> range:
    count = args.long_seeds if steps >= rhythms.LONG else args.seeds
    return range(args.first_seed, args.first_seed + count)


def cell(kind: str, steps: int, seeds: range, deciders: list[str]) -> dict[str, list[Outcome]]:
    """The outcomes of one kind at one length, by decider."""
    loops = [make_loop(KINDS[kind], steps, seed) for seed in seeds]
    return {name: [measure(loop, decider_of(name)) for loop in loops] for name in deciders}


def outcomes_of(args, deciders: list[str]) -> dict[str, list[Outcome]]:
    """All outcomes, by decider."""
    cells = [
        (kind, steps, seeds_of(args, steps), deciders) for steps in args.steps for kind in chosen_kinds(args)
    ]
    found: dict[str, list[Outcome]] = collections.defaultdict(list)
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        for done, result in enumerate(pool.map(cell, *zip(*cells)), 1):
            for name, outcomes in result.items():
                found[name] += outcomes
            if sys.stderr.isatty():
                print(f"\r{done}/{len(cells)}", end="", file=sys.stderr)
    return found


def run(args) -> dict:
    names = args.deciders or list(DECIDERS)
    began = time.monotonic()
    outcomes = outcomes_of(args, names)
    found = {decider_of(name).name: part_of(decider_of(name), outcomes[name], args) for name in names}
    loops = next(iter(outcomes.values()))
    result = {
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "seconds": round(time.monotonic() - began, 1),
        "loops": {"growing": sum(o.grows for o in loops), "turnover": sum(not o.grows for o in loops)},
        "kinds": {"all": names_hash(KINDS), "held out": names_hash(HELD_OUT)},
        "deciders": found,
    }
    if args.page:
        plots.write(args.page, result)
    return result


def part_of(decider: Decider, outcomes: list[Outcome], args) -> dict:
    """What is printed of one decider."""
    shown = [o for o in outcomes if args.held_out_rows or not is_held_out(o.kind)]
    return {
        "totals": summary.totals(outcomes),
        "rows": summary.rows_by_kind(shown),
        "curves": {
            name: {
                part: summary.curve([o for o in outcomes if summary.part_of(o.kind) == part], name, direction)
                for part in ("open", "held out")
            }
            for name, direction in decider.statistics.items()
        },
    }
