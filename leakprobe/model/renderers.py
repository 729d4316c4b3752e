"""How a report is shown, written and read: the front door registers the functions of the layers above, the
data knows none.

What is registered is called by name, so that data needs no import of what renders it.
"""

from collections.abc import Callable
from typing import Any

_registered: dict[str, Callable[..., Any]] = {}


def register(name: str, function: Callable[..., Any]) -> None:
    """Let ``call(name, ...)`` call ``function``; a later registration replaces an earlier one."""
    _registered[name] = function


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call what was registered as ``name``.  Errors: KeyError if nothing was."""
    return _registered[name](*args, **kwargs)
