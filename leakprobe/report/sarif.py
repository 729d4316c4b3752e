"""Findings for code scanning: SARIF 2.1.0 (OASIS), which code hosts and editors show beside the lines."""

import json
import os
from collections.abc import Sequence
from typing import Any

from leakprobe.model.causes import CAUSES
from leakprobe.model.finding import Finding, Note
from leakprobe.model.frames import Frame
from leakprobe.model.report import Report
from leakprobe.report.clean import clean
from leakprobe.report.places import grown_at, inside, is_file, place_of, quoted, uri_of
from leakprobe.report.text import amounts, cause_text, path_text, what_grows

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
#: Where the causes are explained.
HELP = "https://torch-leakprobe.github.io/torch-leakprobe/reference-json/#causes"
#: The name of the folder that URIs are relative to.
BASE = "SRCROOT"
#: Notes that are results: growth that a rule of the user's allows.
SUPPRESSED = "suppressed"


def to_sarif(report: Report, root: str | None = None) -> str:
    """The findings as results of level "error", suppressed growth as suppressed results.

    root: the folder that paths are relative to, by default the current one; those elsewhere stay absolute.
    The fingerprint is a finding's own, so that a code host knows it again in another run.
    """
    root = root or os.getcwd()
    items: list[Finding | Note] = [
        *report.findings,
        *(note for note in report.notes if note.kind == SUPPRESSED),
    ]
    causes = sorted({rule_of(item) for item in items})
    program = str(report.run.get("program", ""))
    run = {
        "tool": {"driver": driver(causes, str(report.run.get("leakprobe", "")))},
        "originalUriBaseIds": {BASE: {"uri": uri_of(os.path.join(os.path.abspath(root), ""))}},
        "results": [result(item, causes, root, program) for item in items],
        "invocations": [{"executionSuccessful": True}],
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": report.verdict, "steps": report.steps},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, allow_nan=False) + "\n"


def rule_of(item: Finding | Note) -> str:
    return item.cause if item.cause in CAUSES else "unknown"


def driver(causes: Sequence[str], version: str) -> dict[str, Any]:
    """leakprobe, and the causes that the results refer to."""
    rules = [
        {
            "id": cause,
            "name": "".join(word.capitalize() for word in cause.split("_")),
            "shortDescription": {"text": sentence(CAUSES[cause])},
            "fullDescription": {"text": f"Memory grows from step to step: {CAUSES[cause]}."},
            "help": {
                "text": f"{sentence(CAUSES[cause])} The result names the line, what keeps it, and the fix."
            },
            "helpUri": HELP,
            "defaultConfiguration": {"level": "error"},
        }
        for cause in causes
    ]
    known = {"version": version} if version else {}
    return {
        "name": "leakprobe",
        "informationUri": "https://github.com/torch-leakprobe/torch-leakprobe",
        **known,
        "rules": rules,
    }


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def result(item: Finding | Note, causes: Sequence[str], root: str, program: str) -> dict[str, Any]:
    """A finding, or the note that a suppressed one became."""
    place = place_of(item) or (Frame(program, 1, "") if os.path.isabs(program) else None)
    data: dict[str, Any] = {
        "ruleId": rule_of(item),
        "ruleIndex": causes.index(rule_of(item)),
        "level": "error",
        "message": {"text": text_of(item)},
    }
    if place is not None and is_file(place.filename):
        data["locations"] = [location(place, root)]
    grower = grown_at(item)
    if grower is not None and is_file(grower.filename):
        grows = {"message": {"text": "the line that last grew what keeps it"}}
        data["relatedLocations"] = [location(grower, root) | {"id": 1} | grows]
    if item.allocation_stack:
        frames = [{"location": location(frame, root)} for frame in item.allocation_stack]
        data["stacks"] = [{"message": {"text": "allocated at"}, "frames": frames}]
    if isinstance(item, Note):
        data["suppressions"] = [{"kind": "external", "justification": clean(item.text)}]
    else:
        data["partialFingerprints"] = {"leakprobeFingerprint/v1": item.fingerprint}
    return data | {"properties": properties(item)}


def text_of(item: Finding | Note) -> str:
    """A line each: how much of what, who keeps it, the cause, the fix."""
    if isinstance(item, Note):
        return clean(item.text)
    lines = [f"{amounts(item)}: {what_grows(item)}"]
    kept = item.path or item.cycle
    lines += [f"Kept by {path_text(kept)}"] if kept else []
    lines += [f"Cause: {cause_text(item)}"]
    lines += [f"Fix: {item.fix}"] if item.fix else []
    return "\n".join(map(clean, lines))


def location(frame: Frame, root: str) -> dict[str, Any]:
    """A line of a file, and the function it belongs to."""
    data: dict[str, Any] = {}
    if is_file(frame.filename):
        place: dict[str, Any] = {"artifactLocation": artifact(frame.filename, root)}
        if frame.lineno > 0:
            place["region"] = {"startLine": frame.lineno}
        data["physicalLocation"] = place
    if frame.function:
        data["logicalLocations"] = [{"fullyQualifiedName": clean(frame.function), "kind": "function"}]
    return data


def artifact(filename: str, root: str) -> dict[str, str]:
    relative = inside(filename, root)
    if relative is None:
        return {"uri": uri_of(filename)}
    return {"uri": quoted(relative), "uriBaseId": BASE}


def properties(item: Finding | Note) -> dict[str, Any]:
    """The numbers of the finding, under the names that the report in JSON has."""
    names = ("kind", "pattern", "medium", "type", "bytes_per_step", "count_per_step", "live_bytes",
             "live_count", "confidence", "evidence")  # fmt: skip
    return {name: getattr(item, name) for name in names if getattr(item, name, None) is not None}
