"""What still breaks a rule, in debts.json: lists and counts that only shrink.

A test fails when something breaks a rule and is not listed, and also when something listed breaks it no
more.  After a change for the better:

    python3 tests/rules/debts.py --lower     # takes out what is paid; adds nothing and raises no count

Sections of debts.json:

    deferred      number of imports of the package's own modules inside functions
    numbers       number of literals in the C that measures
    long_files    files over the limit, with the number of lines that they may have
    long_functions  functions of C over the limit, with the number of lines
    long_lines    Python files with lines over the limit, with their number
"""

import json
import pathlib
import sys
from typing import Any

FILE = pathlib.Path(__file__).with_name("debts.json")


def load() -> dict[str, Any]:
    return json.loads(FILE.read_text())


def check_list(listed: list[Any], found: list[Any], what: str) -> None:
    """``found`` are all that break a rule today; they must be those that are listed."""
    new = [entry for entry in found if entry not in listed]
    paid = [entry for entry in listed if entry not in found]
    assert not new, f"{what}: {new}; fix them, the list takes no new ones"
    assert not paid, f"{what}: {paid} are no longer so; python3 tests/rules/debts.py --lower"


def check_count(bound: int, count: int, what: str) -> None:
    assert count <= bound, f"{what}: {count}, the bound is {bound} and only sinks"
    assert count == bound, (
        f"{what}: {count}, fewer than the bound of {bound}; python3 tests/rules/debts.py --lower"
    )


def check_lengths(listed: dict[str, int], found: dict[str, int], what: str) -> None:
    check_list(sorted(listed), sorted(found), what)
    grown = {name: lines for name, lines in found.items() if lines > listed[name]}
    assert not grown, f"{what}: {grown} are longer than before: {listed}"


def lowered(old: Any, new: Any) -> Any:
    """``old`` without what ``new`` has no more, and with the lower ones of its counts."""
    if isinstance(old, dict):
        return {key: lowered(value, new[key]) for key, value in old.items() if key in new}
    if isinstance(old, list):
        return [entry for entry in old if entry in new]
    return min(old, new)


def today() -> dict[str, Any]:
    import test_c_rules
    import test_numbers
    import test_python_layers

    return {
        "deferred": len(test_python_layers.deferred_imports()),
        "numbers": sum(test_numbers.counts("c").values()),
        "long_files": test_c_rules.long_files(),
        "long_functions": test_c_rules.long_functions(),
        "long_lines": test_c_rules.long_lines(),
    }


def main(arguments: list[str]) -> None:
    debts = lowered(load(), today()) if FILE.exists() else today()
    text = json.dumps(debts, indent=1) + "\n"
    if arguments == ["--lower"]:
        FILE.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
