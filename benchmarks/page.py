"""The tables of benchmarks/README.md and docs/internals.md, made from results/ by `python -m benchmarks
page`.

A table stands between <!-- table: NAME --> and <!-- end -->.
"""

import json
import pathlib
import re
import shlex

from benchmarks import everything, targets

HERE = pathlib.Path(__file__).parent
PAGES = [HERE / "README.md", HERE.parent / "docs" / "internals.md"]
RHYTHMS = HERE / "results"
PLACE = re.compile(r"(<!-- table: (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def cell(value) -> str:
    return targets.number(value) if isinstance(value, (int, float)) else "" if value is None else str(value)


def of_rows(rows: dict, means: dict | None = None) -> str:
    """{name: {column: number}} as Markdown, with a last line of means."""
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [
        f"| {name} | " + " | ".join(cell(row.get(column)) for column in columns) + " |"
        for name, row in rows.items()
    ]
    if means:
        lines.append(
            "| **geometric mean** | "
            + " | ".join(f"**{cell(means[c])}**" if c in means else "" for c in columns)
            + " |"
        )
    return "\n".join(lines)


def of_part(result: dict) -> str:
    if "failed" in result:
        return f"Failed: {result['failed']}"
    text = of_rows(result["rows"], result.get("geometric_mean"))
    if "rivals" in result:
        text += "\n\n" + of_rows(
            {
                name: row if isinstance(row, dict) else {"over gc.collect()": "failed"}
                for name, row in result["rivals"].items()
            }
        )
    facts = {
        k: v
        for k, v in {**result.get("facts", {}), **result.get("churn", {})}.items()
        if not isinstance(v, dict)
    }
    if facts:
        text += "\n\n" + "; ".join(f"{name} {cell(value)}" for name, value in facts.items()) + "."
    machine = result["machine"]
    about = [machine["cpu"], machine["compiler"], result["date"], *filter(None, [result.get("commit")])]
    return f"{text}\n\n{', '.join(about)}; `{command_of(result)}`."


def command_of(result: dict) -> str:
    """What measures this part again."""
    return shlex.join(["python", "-m", "benchmarks", result["benchmark"], *result["arguments"]])


def tables(result: dict) -> dict[str, str]:
    """{"hooks, depth 10, Python 3.11.7": Markdown, ..., "targets": Markdown}."""
    made = {
        f"{part}, Python {version}": of_part(found)
        for part, versions in result["parts"].items()
        for version, found in versions.items()
    }
    rhythms = json.loads((RHYTHMS / "rhythms.json").read_text())
    return {
        **made,
        **of_rhythms(rhythms),
        "targets": targets.table(result, rhythms),
        "cost": targets.cost(result),
        "all parts": "\n\n".join(
            f"### {title[:1].upper()}{title[1:]}\n\n{text}" for title, text in made.items()
        ),
    }


def of_rhythms(simulated: dict) -> dict[str, str]:
    """The tables of the simulated loops, and of those that ran for real."""
    from benchmarks.rhythms import tables as rhythms

    real = json.loads((RHYTHMS / "rhythms_real.json").read_text())
    loops = f"{loops_of(simulated)}, each under every decider."
    if "of the model" in simulated:
        apart = simulated["of the model"]
        loops = (
            f"{loops_of(simulated)}, each under every decider but the model. The model's rows were put in by "
            f"hand from a run of its own: {loops_of(apart)}, of seeds from {apart['first seed']:,} on."
        )
    return {
        "rhythms": f"{rhythms.sums(simulated)}\n\n{loops}",
        "rhythms, real": f"{rhythms.of_real(real)}\n\nSimulated by: {real['simulated by']}.",
    }


def loops_of(simulated: dict) -> str:
    counts, date = simulated["loops"], simulated.get("date")
    loops = f"{counts['growing']:,} loops that grow and {counts['turnover']:,} that do not"
    return f"{loops} ({date})" if date else loops


def renewed(text: str, result: dict) -> str:
    """The page with its tables as of this result."""
    made = tables(result)
    return PLACE.sub(lambda found: found[1] + made[found[2]] + "\n" + found[3], text)


def read() -> dict:
    return json.loads(everything.RESULT.read_text())


def write() -> None:
    for path in PAGES:
        path.write_text(renewed(path.read_text(), read()))
