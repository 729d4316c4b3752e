"""What belongs to one cause is told once: entries of a trace, and findings, that are put together."""

import dataclasses
import os
import sys

from leakprobe.analysis import growth
from leakprobe.model.frames import is_user_file

#: Of a line's growth, what is less than this share by small amounts is not told by itself.
LEAST_PART = 0.25


def merge_garbage(entries: list) -> list:
    """One entry for unreachable cycles made by the same lines: a walk may enter alike cycles at unlike objects.

    ``entries``: (entry, window, merged epochs), as conclusions.traced_entries gives them.
    """
    kept, at = [], {}
    for entry, window, merged in entries:
        key = (line_of_garbage(entry), window) if entry["kind"] == "garbage" else None
        if key is None or key not in at:
            if key is not None:
                at[key] = len(kept)
            kept.append((entry, window, merged))
            continue
        first = kept[at[key]][0]
        kept[at[key]] = (
            {**first, "members": sum_members([*first["members"], *entry["members"]])},
            window,
            merged,
        )
    return kept


def main_of(members) -> dict:
    """The member with most bytes; autograd nodes, which have no site, only where there is nothing else."""
    return max(
        members, key=lambda m: (m["medium"] != "native", m["bytes"], m["count"], m["site"], str(m["type"]))
    )


def line_of_garbage(entry) -> tuple:
    """The group of the member with most bytes, and whether the collector can free the cycle."""
    main = main_of(entry["members"])
    return main["medium"], main["type_id"], main["site"], entry.get("collectable")


def merge_parts(entries: list) -> list:
    """Entries that hold what one line makes, each of some steps only, put together under the one that holds most.

    That is what a chain of blocks looks like, or a name of its own for each step.
    """
    parts: dict[tuple, list] = {}
    for entry, window, merged in entries:
        if entry["kind"] == "held" and entry["holder"] is not None:
            main = main_of(entry["members"])
            parts.setdefault((main["medium"], main["type_id"], main["site"], window), []).append(
                (entry, merged)
            )
    whole = []
    for (*_key, window), same in parts.items():
        if len(same) > 1:
            first, merged = max(same, key=lambda e: sum(m["bytes"] for m in e[0]["members"]))
            members = sum_members(
                [*first["members"], *(m for e, _ in same if e is not first for m in e["members"])]
            )
            whole.append(({**first, "members": members, "holder_count": len(same)}, window, merged))
    return whole


def merge_small(judged: list, limit: float, line_of) -> list:
    """Entries that grow by less than ``limit`` each and by more together with what their line makes besides, as one.

    ``judged``: (entry, window, merged epochs, Growth); ``line_of(entry)``: the user's line.  What is a small part of
    its line's growth is left out: it comes and goes with the rest.  Returns (entry, window, merged epochs).
    """
    total: dict[tuple, float] = {}
    small: dict[tuple, list] = {}
    for entry, window, merged, found in judged:
        if (
            found is None
            or entry["kind"] != "held"
            or found.pattern not in ("per_step", "per_epoch")
            or line_of(entry) is None
        ):
            continue
        key = (line_of(entry), window)
        total[key] = total.get(key, 0.0) + found.bytes_per_step
        if found.bytes_per_step <= limit:
            small.setdefault(key, []).append((entry, merged, found))
    whole = []
    for key, parts in small.items():
        if total[key] > limit and sum(f.bytes_per_step for *_, f in parts) >= LEAST_PART * total[key]:
            first, merged, _ = max(parts, key=lambda p: p[2].bytes_per_step)
            members = sum_members(
                [*first["members"], *(m for e, *_ in parts if e is not first for m in e["members"])]
            )
            whole.append(
                ({**first, "members": members, "holder_count": len(parts), "is_part": True}, key[1], merged)
            )
    return whole


def sum_members(members: list) -> list:
    """Members with the same type, medium and site as one, in the order they first come."""
    kept: dict[tuple, dict] = {}
    for member in members:
        key = (member["medium"], member["type_id"], member["site"])
        first = kept.get(key)
        if first is None:
            kept[key] = member
            continue
        kept[key] = {
            **first,
            "count": first["count"] + member["count"],
            "bytes": first["bytes"] + member["bytes"],
            "deep_site": first.get("deep_site") or member.get("deep_site") or 0,
            "series": growth.sum_series([first["series"], member["series"]]),
        }
    return list(kept.values())


def merge_findings(findings: list) -> list:
    """Findings that tell one cause, as one with the sum of their bytes; the largest comes first and stands for them."""
    kept: list = []
    for finding in sorted(findings, key=lambda f: (-f.bytes_per_step, f.fingerprint)):
        same = next(
            (
                place
                for place, f in enumerate(kept)
                if f.fingerprint == finding.fingerprint or is_one_cause(f, finding)
            ),
            None,
        )
        if same is None:
            kept.append(finding)
        else:
            kept[same] = added(kept[same], finding)
    return kept


def is_one_cause(first, second) -> bool:
    """True if the second finding is a consequence of the first, or the same thing seen at another of its lines."""
    if (
        first.allocation is None
        or second.allocation is None
        or first.kind != second.kind
        or first.pattern != second.pattern
    ):
        return False
    if first.cause == second.cause == "held_outside_python":
        return (
            first.holder is None
            and second.holder is None
            and place(first.allocation) == place(second.allocation)
        )
    if second.path is None or first.path is None or first.allocation != second.allocation:
        return False
    return begins_in_user_code(first.path, first.allocation_stack) and not begins_in_user_code(
        second.path, second.allocation_stack
    )


def place(frame) -> tuple:
    return frame.filename, frame.function


def begins_in_user_code(path, stack) -> bool:
    """True if the path begins at a module or a frame of the user's own code; ``stack``: Frames that may tell whose."""
    root = path[0] if path else {}
    if root.get("edge") == "module":
        module = sys.modules.get(root.get("text"))
        return root.get("text") == "__main__" or is_user_file(str(getattr(module, "__file__", None) or ""))
    if root.get("edge") == "frame":
        name = str(root.get("text")).rpartition(" in ")[2]
        return any(os.path.basename(f.filename) == name and is_user_file(f.filename) for f in stack)
    return False


def place_of(finding) -> str:
    root = finding.path[0]["text"] if finding.path else ""
    return f"{finding.holder['text']} of {root}" if root else finding.holder["text"]


def added(first, second):
    """The first finding with the bytes of the second; of one holder with its count, else the second's holder is named."""
    is_same = first.fingerprint == second.fingerprint
    also = "" if is_same or second.holder is None else f"; also kept by {place_of(second)}"
    return dataclasses.replace(
        first,
        evidence=first.evidence + also,
        bytes_per_step=round(first.bytes_per_step + second.bytes_per_step, 1),
        live_bytes=first.live_bytes + second.live_bytes,
        count_per_step=round(first.count_per_step + second.count_per_step, 2)
        if is_same
        else first.count_per_step,
        live_count=first.live_count + second.live_count if is_same else first.live_count,
    )
