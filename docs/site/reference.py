"""Writes docs/reference-*.md from the code: python docs/site/reference.py.  A test fails where they are
behind it.
"""

import argparse
import ast
import importlib
import inspect
import json
import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parent.parent
ROOT = DOCS.parent
MADE = "<!-- made by docs/site/reference.py: change the docstring, the option or the schema, and run that -->"

#: Names beyond leakprobe.__all__ that a user meets: (heading, import path).
MORE = [
    ("leakprobe.model.report", ("Report",)),
    ("leakprobe.recording", ("load", "load_all", "load_merged", "merged", "save", "Recording")),
    ("leakprobe.judge.suppressions", ("load_rules", "suppress")),
    ("leakprobe.integrations.tensorboard", ("write_scalars",)),
    ("leakprobe.integrations.ray", ("watched",)),
    ("leakprobe.model.units", ("parse_size", "parse_rate")),
]
#: The same for modules that import what may be missing here: read from the source.
INTEGRATIONS = [
    ("leakprobe.integrations.lightning", ("LeakprobeCallback",)),
    ("leakprobe.integrations.huggingface", ("LeakprobeCallback",)),
    ("leakprobe.integrations.accelerate", ("LeakprobeCallback",)),
    ("leakprobe.integrations.prometheus", ("MemoryCollector", "to_text")),
]
#: Variable => what it does; the test compares the names with those in the sources.
VARIABLES = {
    "LEAKPROBE": "`0`, `false`, `no` or `off`: nothing is watched; `watch()` does nothing and its report is inconclusive, `leakprobe run` runs the script alone, pytest's tests run once. `1`, `true`, `yes` and `on` leave leakprobe on, other values are an error",
    "LEAKPROBE_STEPS": "stands in for `leakprobe run --steps`",
    "LEAKPROBE_WARMUP": "stands in for `leakprobe run --warmup`",
    "LEAKPROBE_LIMIT": "stands in for `leakprobe run --limit`",
    "LEAKPROBE_RECORD": "stands in for `leakprobe run --record`",
    "LEAKPROBE_HTML": "stands in for `leakprobe run --html`",
    "LEAKPROBE_JSON": "stands in for `leakprobe run --json`",
    "LEAKPROBE_EXIT_CODE": "stands in for `leakprobe run --exit-code`",
    "LEAKPROBE_SUPPRESSIONS": "stands in for `leakprobe run --suppressions`",
    "LEAKPROBE_WORKERS": "`0` stands in for `leakprobe run --no-workers`",
    "LEAKPROBE_ANNOTATE": "`1` stands in for `leakprobe run --annotate`",
    "LEAKPROBE_NATIVE": "`1` stands in for `leakprobe run --native`",
    "LEAKPROBE_PRELOADED": "set by `leakprobe run --native` for its second start; not for users",
    "LEAKPROBE_LIVE": "`0`: no line about the run on the terminal",
    "LEAKPROBE_FREE_LISTS": "`kept`: before Python 3.13, leave CPython's free lists in use; objects of those types then have no line",
    "LEAKPROBE_MECHANISM": "`allocator`: use the allocator hook even where creation events are available (for tests)",
}


def summary(text) -> str:
    """A docstring as Markdown: "name: text" becomes an item of a list, ``name`` becomes `name`."""
    lines: list[str] = []
    for line in inspect.cleandoc(text or "").replace("<", "&lt;").splitlines():
        found = re.match(r"([a-z_]+(?:, [a-z_]+)*): ", line)
        if found:
            lines += [""] if lines and lines[-1] and not lines[-1].startswith(("- ", "  ")) else []
            line = f"- `{found[1]}`: {line[found.end() :]}"
        elif lines and lines[-1].startswith(("- ", "  ")) and line:
            line = "" + "  " + line.strip() if line.startswith(" ") or line[0].islower() else "\n" + line
        lines.append(line)
    return re.sub(r"``(.+?)``", r"`\1`", "\n".join(lines))


def own_doc(item) -> str:
    """The docstring, or nothing where it is the one that a dataclass makes or that is inherited."""
    text = item.__doc__ or ""
    return "" if isinstance(item, type) and text.startswith(f"{item.__name__}(") else summary(text)


def signature(name: str, item) -> str:
    """As a reader would call it."""
    text = re.sub(r"~(?=\w)", "", str(inspect.signature(item)))  # a type variable
    text = re.sub(r"frozenset\(\{.*?\}\)", "ALL", text)
    text = re.sub(r"(: |-> )'(.*?)'", r"\1\2", text)
    # Versions differ in which modules they name.
    text = re.sub(r"\b(leakprobe|typing|collections|os)(\.\w+)*\.(\w+)", r"\3", text)
    return name + re.sub(r"\((?:self,? ?)?/?", "(", text)


def members(item):
    """(name, text, doc) of the public methods and properties, in the order of the source."""
    of_core = [base for base in item.__bases__ if base.__module__ == "leakprobe._core"]
    for name, value in [pair for cls in [*of_core, item] for pair in vars(cls).items()]:
        if name.startswith("_") or name == "core":
            continue
        value = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if isinstance(value, property):
            yield f".{name}", summary(value.fget.__doc__)
        elif inspect.isfunction(value) or inspect.ismethoddescriptor(value):
            yield "." + signature(name, value).replace("(cls, ", "("), summary(value.__doc__)


def entry(name: str, item) -> str:
    if not callable(item):
        return (
            f"### {name}\n\n`{', '.join(sorted(item))}`\n" if isinstance(item, frozenset) else f"### {name}\n"
        )
    lines = [
        f"### {name}\n",
        f"```text\n{signature(name, item) if not is_made_by_us(item) else name}\n```\n",
        own_doc(item) + "\n",
    ]
    if isinstance(item, type):
        lines += [f"- `{text}`: {' '.join(doc.split())}" for text, doc in members(item) if doc]
        lines.append("")
    return "\n".join(lines)


def entries_of_source(module: str, names: tuple[str, ...]) -> list[str]:
    """As entry(), of a module that is not imported."""
    text = (ROOT / f"{module.replace('.', '/')}.py").read_text()
    nodes = {
        node.name: node for node in ast.parse(text).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))
    }
    return [entry_of_source(nodes[name]) for name in names]


def entry_of_source(node: ast.ClassDef | ast.FunctionDef) -> str:
    functions = (
        {f.name: f for f in node.body if isinstance(f, ast.FunctionDef)}
        if isinstance(node, ast.ClassDef)
        else {}
    )
    made = functions.get("__init__", node)
    shown = f"{node.name}({arguments_of(made)})" if isinstance(made, ast.FunctionDef) else node.name
    doc = summary(ast.get_docstring(node))
    lines = [f"### {node.name}\n", f"```text\n{shown}\n```\n", doc + "\n"]
    for name, function in functions.items():
        about = ast.get_docstring(function)
        if about and not name.startswith(("_", "on_")):  # on_*: what the framework calls
            is_property = any(ast.unparse(d) == "property" for d in function.decorator_list)
            call = name if is_property else f"{name}({arguments_of(function)})"
            lines.append(f"- `.{call}`: {' '.join(summary(about).split())}")
    return "\n".join([*lines, ""])


def arguments_of(function: ast.FunctionDef) -> str:
    text = ast.unparse(function.args)
    return re.sub(r"(: [^,=]+)=", r"\1 = ", re.sub(r"^self(, )?", "", text))


def is_made_by_us(item) -> bool:
    """True for classes whose objects only leakprobe makes: their constructor is nobody's business."""
    return isinstance(item, type) and item.__module__.startswith("leakprobe")


def api() -> str:
    import leakprobe

    parts = [
        f"{MADE}\n",
        "# Python\n\nBytes are bytes, rates are per step. Errors are `LeakprobeError` with a stable `code`.\n\n## leakprobe\n",
    ]
    parts += [entry(name, getattr(leakprobe, name)) for name in leakprobe.__all__]
    for module, names in MORE:
        parts.append(f"## {module}\n")
        parts += [entry(name, getattr(importlib.import_module(module), name)) for name in names]
    for module, names in INTEGRATIONS:
        parts.append(f"## {module}\n")
        parts += entries_of_source(module, names)
    return "\n".join(parts)


def options_of(parser) -> str:
    lines = ["| option | what |", "|---|---|"]
    for action in parser._actions:
        if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)):
            continue
        value = action.metavar or (", ".join(map(str, action.choices)) if action.choices else "")
        many = {"*": " ...", "+": " ...", argparse.REMAINDER: " ..."}.get(action.nargs, "")
        text = ", ".join(action.option_strings) or value
        takes = action.option_strings and action.nargs != 0 and value
        lines.append(f"| `{text}{f' {value}' if takes else ''}{many}` | {action.help or ''} |")
    return "\n".join(lines)


def command_line() -> str:
    from leakprobe.cli import VERBS, build_parser

    parser = build_parser()
    verbs = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices
    parts = [
        f"{MADE}\n",
        "# Command line\n\n`leakprobe VERB ...`, or `python -m leakprobe VERB ...`.\n",
        parser.epilog[:1].upper() + parser.epilog[1:] + ".\n",
    ]
    for name, about in VERBS.items():
        parts.append(
            f"## leakprobe {name}\n\n{about[:1].upper()}{about[1:]}.\n\n{summary(verbs[name].description)}\n\n{options_of(verbs[name])}\n"
        )
    return "\n".join(parts)


def type_of(part: dict) -> str:
    if "$ref" in part:
        return f"[{part['$ref'].rpartition('/')[2]}](#{part['$ref'].rpartition('/')[2]})"
    if "anyOf" in part:
        return " or ".join(type_of(p) for p in part["anyOf"])
    if "enum" in part:
        return ", ".join(f"`{v}`" for v in part["enum"])
    if "const" in part:
        return f"`{part['const']}`"
    kind = part.get("type", "")
    if kind == "array":
        return f"list of {type_of(part.get('items', {}))}"
    return " or ".join("null" if k == "null" else k for k in ([kind] if isinstance(kind, str) else kind))


def keys_of(part: dict, prefix: str = "") -> list[str]:
    lines = []
    for name, inner in part.get("properties", {}).items():
        needed = "" if name in part.get("required", ()) else " (where it applies)"
        lines.append(f"| `{prefix}{name}` | {type_of(inner)}{needed} | {inner.get('description', '')} |")
        items = inner.get("items", inner)
        lines += keys_of(items, f"{prefix}{name}{'[]' if inner.get('type') == 'array' else ''}.")
        if isinstance(inner.get("additionalProperties"), dict):
            lines += keys_of(inner["additionalProperties"], f"{prefix}{name}.*.")
    return lines


def json_keys() -> str:
    from leakprobe.model.causes import CAUSES

    schema = json.loads((DOCS / "report.schema.json").read_text())
    head = "| key | type | what |\n|---|---|---|\n"
    parts = [
        f"{MADE}\n",
        f"# The report as JSON\n\n{schema['description']} The schema itself is `docs/report.schema.json`.\n\n{head}"
        + "\n".join(keys_of(schema))
        + "\n",
    ]
    for name, part in schema["$defs"].items():
        parts.append(f"## {name}\n\n{head}" + "\n".join(keys_of(part)) + "\n")
    causes = "\n".join(f"| `{name}` | {text} |" for name, text in CAUSES.items())
    return "\n".join([*parts, f"## Causes\n\n| cause | what it means |\n|---|---|\n{causes}\n"])


def options() -> str:
    from leakprobe import pytest_plugin

    variables = "\n".join(f"| `{name}` | {text} |" for name, text in VARIABLES.items())
    ini = "\n".join(f"| `{name}` | {text} |" for name, text in pytest_plugin.INI.items())
    return (
        f"{MADE}\n\n# Options and variables\n\n## Environment variables\n\n| variable | what |\n|---|---|\n{variables}\n\n"
        f"## Ini options of pytest\n\n| option | what |\n|---|---|\n{ini}\n\n[In a test suite](pytest.md) has the markers and the command line.\n\n"
        "## Options of watch()\n\nThey are in [Python](reference-api.md#watch).\n"
    )


PAGES = {
    "reference-api.md": api,
    "reference-cli.md": command_line,
    "reference-json.md": json_keys,
    "reference-options.md": options,
}


def main() -> None:
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
