"""python -m benchmarks NAME: measure, print a table, write a JSON beside the others in benchmarks/results/."""

import argparse
import importlib
import json
import pathlib

HERE = pathlib.Path(__file__).parent
NAMES = ["graph", "hooks", "instructions", "memory", "recycled", "workers"]


def table(result) -> str:
    """The rows of a result as a Markdown table, the geometric mean last."""
    columns = list(next(iter(result["rows"].values())))
    lines = ["| workload | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, row in result["rows"].items():
        lines.append(f"| {name} | " + " | ".join(f"{row[c]:.2f}" for c in columns) + " |")
    mean = result["geometric_mean"]
    if mean:
        lines.append("| **geometric mean** | " + " | ".join(f"**{mean[c]:.2f}**" if c in mean else "" for c in columns) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True)
    for name in NAMES:
        module = importlib.import_module(f"benchmarks.{name}")
        command = commands.add_parser(name, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        module.add_arguments(command)
        command.add_argument("--json", type=pathlib.Path, help="where to write the result")
        command.set_defaults(run=module.run, table=getattr(module, "table", table))
    args = parser.parse_args()
    result = args.run(args)
    print(json.dumps(result["machine"]))
    print(args.table(result))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
