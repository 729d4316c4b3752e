"""Lines of the user's own source around what a finding names."""

import os
from collections.abc import Collection, Iterable

from leakprobe.model.bounds import SOURCE_AROUND, SOURCE_BYTES, SOURCE_WIDTH
from leakprobe.model.finding import Finding
from leakprobe.model.frames import is_user_file
from leakprobe.report.cells import lines_of_cell


def places_of(findings: Iterable[Finding]) -> set[tuple[str, int]]:
    """(filename, lineno) of the user's own lines that findings name: where they allocate and where the holder
    grows.
    """
    found = set()
    for finding in findings:
        frames = [(f.filename, f.lineno) for f in [finding.allocation] if f is not None]
        grown_at = finding.holder["grown_at"] if finding.holder else None
        if grown_at:
            frames.append((grown_at["filename"], grown_at["lineno"]))
        found |= {frame for frame in frames if frame[1] > 0 and is_user_file(frame[0])}
    return found


def excerpts(places: Collection[tuple[str, int]]) -> dict[str, dict[int, str]]:
    """{filename: {lineno: text}} of the lines around each place, of files that can be read here."""
    found: dict[str, dict[int, str]] = {}
    for filename in sorted({name for name, _ in places}):
        lines = lines_of_cell(filename) or read_lines(filename)
        for lineno in sorted(number for name, number in places if name == filename):
            for near in range(max(1, lineno - SOURCE_AROUND), min(len(lines), lineno + SOURCE_AROUND) + 1):
                found.setdefault(filename, {})[near] = lines[near - 1][:SOURCE_WIDTH]
    return found


def read_lines(filename: str) -> list[str]:
    try:
        if (
            not os.path.isfile(filename) or os.path.getsize(filename) > SOURCE_BYTES
        ):  # a pipe would wait for its writer
            return []
        with open(filename, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []
