"""Reports made by hand, for the tests of what is printed and written."""

from leakprobe.model.finding import Finding, Note
from leakprobe.model.frames import Frame
from leakprobe.model.report import Report

USER = Frame("/home/me/train.py", 58, "training_step")
STACK = [
    Frame("/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 125, "Linear.forward"),
    Frame("/home/me/model.py", 21, "forward"),
    USER,
]
MEDIA = {
    "python": {
        "mechanism": "allocator hook",
        "active": True,
        "why_not": None,
        "live_bytes": 2**20,
        "as_of_step": 65,
        "unmatched_events": 0,
    },
    "pinned": {
        "mechanism": None,
        "active": False,
        "why_not": "no CUDA build of torch",
        "live_bytes": 0,
        "as_of_step": 65,
        "unmatched_events": 0,
    },
}


def finding(**changes) -> Finding:
    """The finding of a kept loss."""
    values = {
        "fingerprint": "0123456789ab",
        "kind": "retained",
        "pattern": "per_step",
        "medium": "cpu",
        "type": "torch.Tensor",
        "bytes_per_step": 6.0 * 2**20,
        "count_per_step": 3.0,
        "live_bytes": 360 * 2**20,
        "live_count": 180,
        "confidence": 0.95,
        "evidence": "58 of 58 measured steps still have survivors, 3 a step",
        "allocation": USER,
        "allocation_stack": STACK,
        "holder": {
            "text": "history (list, 60 items)",
            "type": "list",
            "grown_at": USER.to_dict(),
            "length": 60,
        },
        "path": [
            {"text": "history (list, 60 items)", "edge": "global", "type": "list"},
            {"text": "[59] Tensor", "edge": "item", "type": "torch.Tensor"},
        ],
        "cycle": None,
        "cause": "graph_kept",
        "fix": "keep loss.item(), train.py:61",
    }
    return Finding(**{**values, **changes})


def report(findings=(), notes=(), verdict=None, measured=60, warmup=5) -> Report:
    return Report(
        verdict=verdict or ("growing" if findings else "steady"),
        steps={"warmup": warmup, "measured": measured},
        findings=list(findings),
        notes=list(notes),
        lines=[{"filename": USER.filename, "lineno": USER.lineno, "bytes_per_step": 1.0, "live_bytes": 2}]
        if findings
        else [],
        media=MEDIA,
        timeline=[
            {"step": 1, "epoch": 0, "time": 0.5, "media": {"python": {"live_bytes": 1, "peak_bytes": 1}}}
        ],
        memory=[{"step": 1, "rss": 10, "python_heap": 1, "native_accounted": 0, "probe_overhead": 0}],
    )


def note(**changes) -> Note:
    return Note(**{"kind": "bounded", "text": "filling, 3 of 10", "medium": "python", **changes})


def peak(allocation=USER) -> dict:
    """The highest point of the CPU's memory, by role and line."""
    return {
        "medium": "cpu",
        "step": 2,
        "bytes": 3 * 2**20,
        "parts": [
            {"role": "activation", "allocation": allocation, "count": 1200, "bytes": 2 * 2**20},
            {"role": "other", "allocation": None, "count": 1, "bytes": 2**20},
        ],
    }


def many_sites(count: int, findings: int = 0) -> Report:
    """A report of that many sites, each of a line of its own, three calls deep."""
    found = [
        finding(fingerprint=f"{n:012x}", bytes_per_step=1000.0 * (findings - n), type=f"mine.Type{n}")
        for n in range(findings)
    ]
    what = report(found)
    what.sites = [
        {
            "medium": ("cpu", "python", "numpy")[n % 3],
            "type": None if n % 3 == 0 else f"mine.Type{n % 40}",
            "live_bytes": 1000 * (count - n),
            "live_count": n + 1,
            "bytes_per_step": 9.5 if n % 5 == 0 else None,
            "survivors": [[s, s + 9, 3, n % 7 + 1] for s in range(0, 1000, 10)],
            "allocation": Frame(f"/home/me/part{n % 90}.py", n, "make"),
            "allocation_stack": [
                Frame(f"/home/me/part{n % 90}.py", n, "make"),
                Frame(f"/home/me/model{n % 9}.py", n % 50, "forward"),
                USER,
            ],
        }
        for n in range(count)
    ]
    return what


ROLES = {"parameter": 40, "gradient": 40, "optimizer state": 80, "activation": 500, "batch": 30, "other": 9}


def add_charts(what: Report, marks: int = 10_000) -> None:
    """Give a report of sites all else that a page draws: memory, roles, peaks of epochs and ranks."""
    sizes = {"python": (50, 60), "cpu": (90, 99)}
    what.timeline = [
        {
            "step": n,
            "epoch": n // (marks // 4),
            "time": n / 9,
            "media": {
                name: {"live_bytes": live * n, "peak_bytes": peak * n} for name, (live, peak) in sizes.items()
            },
        }
        for n in range(1, marks + 1)
    ]
    what.memory = [
        {"step": n, "rss": 2**20 + 200 * n, "python_heap": n, "native_accounted": 0, "probe_overhead": 2**10}
        for n in range(1, marks + 1)
    ]
    for row in what.memory[::100]:
        row.update({f"cpu as {role}": size * row["step"] for role, size in ROLES.items()})
    what.peaks = [peak()]
    what.ranks = [
        {
            "medium": medium,
            "rates": {rank: 2048.0 if rank != 2 else 2.0**20 for rank in range(4)},
            "outliers": [2],
            "series": {
                rank: [(step, step * (9 if rank == 2 else 1)) for step in range(1, 900)] for rank in range(4)
            },
        }
        for medium in ("cpu", "rss")
    ]
