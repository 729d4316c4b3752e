"""What memory of a training step is for, and how a mark's row of Report.memory names it.

A reading of roles adds keys such as "cpu as activation" to the row of its mark: the bytes of each role at the
highest point of the step that ended there.
"""

from collections.abc import Iterable, Mapping
from typing import Any

#: Roles by what they are for; "other" is the rest.
SHOWN_ROLES = ("parameter", "gradient", "optimizer state", "activation", "batch", "other")
_AS = " as "


def role_key(medium: str, role: str) -> str:
    """The key of a row of Report.memory."""
    return f"{medium}{_AS}{role}"


def roles_in(row: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """{medium: {role: bytes}} of a row of Report.memory; {} where no reading was taken."""
    found: dict[str, dict[str, int]] = {}
    for key, value in row.items():
        medium, between, role = key.rpartition(_AS)
        if between and role in SHOWN_ROLES and isinstance(value, (int, float)):
            found.setdefault(medium, {})[role] = int(value)
    return found


def roles_over_steps(
    memory: Iterable[Mapping[str, Any]],
) -> dict[str, list[tuple[int, dict[str, int]]]]:
    """{medium: [(step, {role: bytes})]} of the marks with a reading, rising."""
    found: dict[str, list[tuple[int, dict[str, int]]]] = {}
    for row in memory:
        for medium, roles in roles_in(row).items():
            found.setdefault(medium, []).append((row["step"], roles))
    return found
