"""mypy --strict over the package, and its list of lax modules, which only shrinks.

pyproject.toml lists, under [[tool.mypy.overrides]] with ignore_errors, the modules that are not strict yet.
This runs mypy without that list and finds: errors in modules that are not listed, and listed modules without
any, which must be taken out.  Options go to mypy.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

LISTED = re.compile(r"\[\[tool\.mypy\.overrides\]\]\nmodule = \[([^\]]*)\]\nignore_errors = true\n")


def module_of(path: str) -> str:
    return path.removesuffix(".pyi").removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def main(options: list[str]) -> int:
    settings = pathlib.Path("pyproject.toml").read_text()
    listed = set(re.findall(r'"([\w.]+)"', "".join(LISTED.findall(settings))))
    with tempfile.TemporaryDirectory() as folder:
        strict = pathlib.Path(folder, "pyproject.toml")
        strict.write_text(LISTED.sub("", settings))
        command = [sys.executable, "-m", "mypy", "--config-file", str(strict), "--no-error-summary", *options]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.stderr or done.returncode not in (0, 1):
        sys.exit(f"mypy failed:\n{done.stderr or done.stdout}")
    lines = [(module_of(line.partition(":")[0]), line) for line in done.stdout.splitlines()]
    errors = [line for module, line in lines if module not in listed]
    paid = sorted(listed - {module for module, line in lines if ": error: " in line})
    for line in [
        *errors,
        *(f"pyproject.toml: {name} is strict now: take it out of the list" for name in paid),
    ]:
        print(line)
    print(f"mypy: {len(errors)} findings; {len(listed)} modules are not strict yet")
    return 1 if errors or paid else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
