"""Results as Markdown."""

from benchmarks.rhythms.kinds import KINDS
from benchmarks.rhythms.summary import wilson

SORTS = ("growing", "turnover")


def of(result: dict) -> str:
    """Sums of all deciders, then a row a kind for each."""
    parts = [sums(result)]
    for name, found in result["deciders"].items():
        parts += [f"### {name}", growing_rows(found["rows"]), turning_rows(found["rows"])]
    return "\n\n".join(part for part in parts if part)


def markdown(head: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(share) -> str:
    """A share with its interval."""
    hits, of, *_ = share
    low, high = wilson(hits, of)
    return f"{hits / of:.3f} ({low:.3f} to {high:.3f})" if of else "none"


def brief(share) -> str:
    hits, of, *_ = share
    return f"{hits / of:.2f}" if of else ""


def number(value) -> str:
    return "" if value is None else f"{value:.3g}"


def sums(result: dict) -> str:
    """Deciders side by side, in both parts; told of the growing and of the others, over all lengths and at
    each.
    """
    rows, lengths = [], []
    for name, found in result["deciders"].items():
        for part in ("open", "held out"):
            totals = {
                key.split(", ", 1)[1]: row for key, row in found["totals"].items() if key.startswith(part)
            }
            growing, turning = (totals.get(f"{what}, all steps") for what in SORTS)
            if growing and turning:
                lengths = [key.split()[1] for key in totals if key.startswith("growing") and "all" not in key]
                at_each = [
                    " / ".join(brief(totals[f"{what}, {n} steps"]["told"]) for n in lengths) for what in SORTS
                ]
                rows.append([name, part, *cells(growing, turning, found, part, *at_each)])
    at = f"at {' / '.join(lengths)}"
    head = [
        "decider",
        "part",
        "growing: found",
        at,
        "onset right",
        "rate right",
        "steps until found",
    ]
    return markdown([*head, "turnover: found", at, "found at any mark", "area, statistic"], rows)


def cells(growing: dict, turning: dict, found: dict, part: str, grown: str, turned: str) -> list[str]:
    areas = [(curves[part]["area"], name) for name, curves in found["curves"].items()]
    return [
        shown(growing["told"]),
        grown,
        *(brief(growing[key]) for key in ("onset right", "rate right")),
        number(growing["steps until told"]),
        shown(turning["told"]),
        turned,
        brief(turning["told at any mark, of all"]),
        "{:.3f}, {}".format(*max(areas)) if areas else "",
    ]


def by_length(row: dict) -> list[str]:
    return [f"{told}/{of}" if of else "-" for told, of in row["told by steps"].values()]


def growing_rows(rows: dict) -> str:
    chosen = {name: row for name, row in rows.items() if KINDS[name].grows}
    if not chosen:
        return ""
    lengths = list(next(iter(chosen.values()))["told by steps"])
    head = [
        f"growing, found at {' / '.join(lengths)}",
        "found",
        "onset error",
        "rate ratio",
        "until found",
    ]
    return markdown(
        head,
        [
            [
                f"{name}: {' '.join(by_length(row))}",
                shown(row["told"]),
                number(row["onset error"]),
                number(row["rate ratio"]),
                number(row["steps until told"]),
            ]
            for name, row in chosen.items()
        ],
    )


def turning_rows(rows: dict) -> str:
    chosen = {name: row for name, row in rows.items() if not KINDS[name].grows}
    if not chosen:
        return ""
    lengths = list(next(iter(chosen.values()))["told by steps"])
    head = [
        f"turnover, found at {' / '.join(lengths)}",
        "found",
        "found of all",
        "found at any mark",
        "withdrawn",
    ]
    return markdown(
        head,
        [
            [
                f"{name}: {' '.join(by_length(row))}",
                shown(row["told"]),
                *(
                    brief(row[key])
                    for key in ("told of all", "told at any mark, of all", "withdrawn, of all")
                ),
            ]
            for name, row in chosen.items()
        ],
    )


def of_real(result: dict) -> str:
    """Real loops beside their simulation."""
    rows = [
        [
            name,
            *(shown(row[key]) for key in ("real", "simulated", "same")),
            row["agrees"],
            str(row.get("no answer", "not counted")),
        ]
        for name, row in result["real"].items()
    ]
    head = ["found for real", "found in simulation", "the same verdict", "within the intervals", "no answer"]
    return markdown(["loops", *head], rows)
