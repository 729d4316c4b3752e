"""From plain data, which may come from anywhere, back to a Report: what has the wrong type is an error."""

import dataclasses
import math

from leakprobe.errors import LeakprobeError
from leakprobe.report.model import SCHEMA_VERSION, Finding, Frame, Note, Report

NUMBER = (int, float)
#: Field of a finding or note => the types it may have.
TYPES = {
    "fingerprint": (str,), "kind": (str,), "pattern": (str,), "text": (str,), "evidence": (str,), "cause": (str,),
    "medium": (str, type(None)), "type": (str, type(None)), "fix": (str, type(None)),
    "bytes_per_step": NUMBER, "count_per_step": NUMBER, "live_bytes": NUMBER, "live_count": NUMBER, "confidence": NUMBER,
}
VERDICTS = ("growing", "steady", "inconclusive")


def parse_report(data) -> Report:
    """The Report of Report.to_dict().  Errors: LeakprobeError "wrong_schema" or "unreadable_file"."""
    if not isinstance(data, dict) or data.get("schema_version") != SCHEMA_VERSION:
        raise LeakprobeError(f"this is no leakprobe report of schema version {SCHEMA_VERSION}", "wrong_schema")
    try:
        return Report(
            verdict=one_of(data["verdict"], VERDICTS),
            steps={key: number(data["steps"][key]) for key in ("warmup", "measured")},
            findings=[parse_item(Finding, f) for f in data["findings"]],
            notes=[parse_item(Note, n) for n in data["notes"]],
            lines=[line_row(row) for row in data["lines"]],
            media={str(name): medium_row(row) for name, row in data["media"].items()},
            timeline=[timeline_row(row) for row in data["timeline"]],
            memory=[memory_row(row) for row in data["memory"]],
            sites=[site_row(row) for row in data.get("sites", [])],
            run={str(k): v for k, v in data.get("run", {}).items() if isinstance(v, (str, int, float, type(None)))},
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise LeakprobeError(f"this report is damaged: {type(error).__name__}: {error}", "unreadable_file") from error


def parse_item(kind, data: dict):
    """A Finding or Note of its dict; unknown keys are left out."""
    values = {}
    for field in dataclasses.fields(kind):
        if field.name in data:
            values[field.name] = parse_field(field.name, data[field.name])
    return kind(**values)


def parse_field(name: str, value):
    if name == "allocation":
        return value and frame(value)
    if name == "allocation_stack":
        return None if value is None else [frame(f) for f in value]
    if name in ("path", "cycle"):
        return None if value is None else [element(e) for e in value]
    if name == "holder":
        return value and holder(value)
    if name in TYPES and not (value is None and name not in ("kind", "text")):
        return number(value) if TYPES[name] is NUMBER else of_type(value, TYPES[name])
    return value


def frame(value: dict) -> Frame:
    return Frame(text(value["filename"]), number(value["lineno"]), text(value["function"]))


def element(value: dict) -> dict:
    kind = value["type"]
    return {"text": text(value["text"]), "edge": text(value["edge"]), "type": None if kind is None else text(kind)}


def holder(value: dict) -> dict:
    grown_at, length, kind = value.get("grown_at"), value.get("length"), value.get("type")
    return {
        "text": text(value["text"]),
        "type": None if kind is None else text(kind),
        "grown_at": frame(grown_at).to_dict() if grown_at else None,
        "length": None if length is None else number(length),
    }


def line_row(row: dict) -> dict:
    return {"filename": text(row["filename"]), **{k: number(row[k]) for k in ("lineno", "bytes_per_step", "live_bytes")}}


def medium_row(row: dict) -> dict:
    return {
        "mechanism": of_type(row["mechanism"], (str, type(None))),
        "active": bool(row["active"]),
        "why_not": of_type(row["why_not"], (str, type(None))),
        **{key: number(row[key]) for key in ("live_bytes", "as_of_step", "unmatched_events")},
    }


def timeline_row(row: dict) -> dict:
    media = {str(m): {key: number(v[key]) for key in ("live_bytes", "peak_bytes")} for m, v in row["media"].items()}
    return {"step": number(row["step"]), "epoch": number(row["epoch"]), "time": number(row["time"]), "media": media}


def memory_row(row: dict) -> dict:
    number(row["step"])
    return {text(key): of_type(value, (str, type(None), *NUMBER)) for key, value in row.items()}


def site_row(row: dict) -> dict:
    rate, kind, user = row["bytes_per_step"], row["type"], row["allocation"]
    return {
        "medium": text(row["medium"]),
        "type": None if kind is None else text(kind),
        "live_bytes": number(row["live_bytes"]),
        "live_count": number(row["live_count"]),
        "bytes_per_step": None if rate is None else number(rate),
        "survivors": [[number(n) for n in span[:4]] for span in row["survivors"]],
        "allocation": user and frame(user),
        "allocation_stack": [frame(f) for f in row["allocation_stack"]],
    }


def of_type(value, types):
    if not isinstance(value, types) or isinstance(value, bool):
        raise TypeError(f"{value!r:.40} where {' or '.join(t.__name__ for t in types)} belongs")
    return value


def text(value) -> str:
    return of_type(value, (str,))


def number(value):
    if not math.isfinite(of_type(value, NUMBER)):
        raise ValueError(f"{value!r} where a finite number belongs")
    return value


def one_of(value, choices):
    if value not in choices:
        raise ValueError(f"{value!r:.40} is none of {', '.join(choices)}")
    return value
