"""python -m benchmarks: measure all, and print the targets beside what was reached.  With a NAME: one
benchmark alone.
"""

import argparse
import compileall
import importlib
import json
import os
import pathlib
import re
import sys

NAMES = [
    "delays",
    "differences",
    "following",
    "graph",
    "hooks",
    "instructions",
    "mallocs",
    "marks",
    "memory",
    "native",
    "opening",
    "recycled",
    "rhythms",
    "training",
    "turns",
    "workers",
]


def table(result) -> str:
    """The rows of a result as a Markdown table, the geometric mean last."""
    from benchmarks import page

    facts = result.get("facts")
    return page.of_rows(result["rows"], result.get("geometric_mean")) + (f"\n\n{facts}" if facts else "")


def compact(text: str) -> str:
    """JSON with each list of mere numbers on one line."""
    return re.sub(r"\[[-+.\deE,\s]+\]", lambda found: " ".join(found[0].split()), text)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True)
    for name in ["everything", *NAMES]:
        module = importlib.import_module(f"benchmarks.{name}")
        command = commands.add_parser(
            name, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run, table=getattr(module, "table", table))
        if name != "everything":
            command.add_argument("--json", type=pathlib.Path, help="where to write the result")
    commands.add_parser(
        "page",
        description="Write the tables of benchmarks/README.md and docs/internals.md anew from results/.",
    )
    return parser


def compile_leakprobe() -> None:
    """What is installed has its bytecode beside it: to compile it is no part of what it costs."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(pathlib.Path(__file__).parent.parent / "leakprobe", quiet=1)


def parsed(words: list[str]) -> argparse.Namespace:
    """Without a name first, everything is meant."""
    is_named = bool(words) and (not words[0].startswith("-") or words[0] in ("-h", "--help"))
    return build_parser().parse_args(words if is_named else ["everything", *words])


def main() -> int:
    args = parsed(sys.argv[1:])
    if args.name == "page":
        from benchmarks import page

        page.write()
        return 0
    compile_leakprobe()
    result = args.run(args)
    if args.name == "everything":
        return result
    print(json.dumps(result["machine"]))
    print(args.table(result))
    if args.json:
        args.json.write_text(compact(json.dumps(result, indent=1)) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
