"""What all pages share: what surrounds a template, the scripts that a page carries, how it is written."""

import base64
import functools
import gzip
import importlib.resources
import importlib.util
import json
import os
import re
import secrets
from typing import TYPE_CHECKING, Any

from leakprobe.errors import LeakprobeError
from leakprobe.files import write_private
from leakprobe.model.units import format_rate, format_size
from leakprobe.report.clean import clean

if TYPE_CHECKING:
    import jinja2

PACKAGES = ("jinja2", "plotly")


def check_packages() -> None:
    """Errors: LeakprobeError "missing_package" where a page can't be made."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise LeakprobeError(
            f"the page needs {' and '.join(missing)}: python3 -m pip install {' '.join(missing)}",
            "missing_package",
        )
    if not plotly_script().is_file():
        raise LeakprobeError(
            "the page needs plotly.min.js, which the plotly that is installed lacks (a distribution's,"
            " perhaps): python3 -m pip install plotly has it",
            "missing_package",
        )


def plotly_script() -> Any:  # a Traversable
    """The file in the installed plotly."""
    return importlib.resources.files("plotly").joinpath("package_data").joinpath("plotly.min.js")


def render(template: str, data: dict[str, Any], context: dict[str, Any], *, whole: bool = True) -> str:
    """A page.  data: what its script draws.  whole=False: without plotly.js, for one that has it already."""
    check_packages()
    return (
        environment()
        .get_template(template)
        .render(
            nonce=secrets.token_urlsafe(18),
            data=json_text(data),
            style=asset("page.css"),
            script=asset("charts.js") + asset("page.js"),
            plotly=compressed_plotly() if whole else "",
            **{"live": None, **context},
        )
    )


@functools.lru_cache(maxsize=1)
def environment() -> "jinja2.Environment":
    import jinja2

    loader = jinja2.PackageLoader("leakprobe.report", "templates")
    made = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    made.filters.update(size=format_size, rate=format_rate, clean=clean, count="{:,}".format)
    return made


def write_page(text: str, path: str | os.PathLike[str]) -> None:
    """Write a page, readable by its owner only.

    Errors: LeakprobeError "unwritable_file" or "foreign_file".
    """
    write_private(path, text.encode(errors="backslashreplace"), "page")


def json_text(value: object) -> str:
    """JSON that can stand inside a script element."""
    return (
        json.dumps(value, allow_nan=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace("\u2028", "")
        .replace("\u2029", "")
    )


def asset(name: str) -> str:
    folder = importlib.resources.files("leakprobe.report").joinpath("templates")
    return folder.joinpath(name).read_text(encoding="utf-8")


@functools.lru_cache(maxsize=1)
def compressed_plotly() -> str:
    """plotly.js of the installed plotly, gzip in base64: 2 MB instead of 4.8."""
    script = called_at_once(plotly_script().read_bytes())
    return base64.b64encode(gzip.compress(script, 9, mtime=0)).decode("ascii")


#: A script that is one function, handed over as the last argument of a call, as UMD has it.
FACTORY = re.compile(rb"(\A.{0,2000}?, )(\(\) => \{\n.*\})(\)\);?\s*)\Z", re.DOTALL)


def called_at_once(script: bytes) -> bytes:
    """The script with its one function in parentheses, which tell V8 that it is called at once.

    Without them V8 parses the whole function twice, once to skip it: v8.dev/blog/preparser, "PIFEs".
    """
    return FACTORY.sub(rb"\1(\2)\3", script)
