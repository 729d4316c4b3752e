"""Loops with truth: which of those that grow a decider finds, and whether it is silent on those that do not.

Over a hundred kinds of loops (kinds.py) are simulated by the births and deaths of their items, at several
lengths and many seeds. A decider sees of each site what an engine can know (history.py), at marks a twentieth
apart, and says whether it grows. Results stand in two parts: open kinds, and a third that is held out; of
those only sums are printed.  With --real the same kinds run as programs under leakprobe.watch(), beside their
simulation.
"""

#: How many seeds of each kind at each length, and how many of loops of LONG steps or more for each of those.
SEEDS, LONG_SEEDS, LONG = 15, 3, 5_000
STEPS = (100, 300, 1_000, 10_000)


def add_arguments(parser) -> None:
    parser.add_argument("--steps", type=int, nargs="*", default=list(STEPS), help="lengths of the loops")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="loops of each kind and length")
    parser.add_argument("--long-seeds", type=int, default=LONG_SEEDS, help=f"the same from {LONG:,} steps on")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=[], help="parts of the names of kinds")
    parser.add_argument("--part", choices=("both", "open", "held out"), default="both")
    parser.add_argument(
        "--deciders",
        nargs="*",
        default=[],
        help="by name, or MODULE:ATTRIBUTE of another; default: all named",
    )
    parser.add_argument(
        "--held-out-rows",
        action="store_true",
        help="rows of the held-out kinds too: not while a model is built",
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", help="where to write the plots, a page that needs nothing else")
    parser.add_argument("--real", action="store_true", help="run kinds as programs under leakprobe.watch()")
    parser.add_argument("--payloads", nargs="*", default=[], help="with --real: only what they keep")
    parser.add_argument("--places", nargs="*", default=[], help="with --real: only where they run")


def run(args) -> dict:
    from benchmarks.rhythms import real, simulate

    return real.run(args) if args.real else simulate.run(args)


def table(result: dict) -> str:
    from benchmarks.rhythms import tables

    return tables.of_real(result) if "real" in result else tables.of(result)
