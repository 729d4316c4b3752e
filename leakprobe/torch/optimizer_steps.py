"""Who is called after each step of any optimizer.

torch goes through its own hooks while they run, so that none may be taken out of there: by a watch that
ends in a hook, or in another thread.  One hook is given to torch, once in a process, and stays; it calls
those who listen.
"""

from collections.abc import Callable
from typing import Any

Listener = Callable[[Any, Any, Any], None]

#: Replaced, never changed.
_listeners: tuple[Listener, ...] = ()
#: torch.optim.optimizer where the hook is: another one, if torch was imported anew.
_hooked: Any = None


def listen(optim: Any, listener: Listener) -> None:
    """Call ``listener(optimizer, args, kwargs)`` after each step, from now on.

    ``optim``: the module torch.optim.optimizer.
    """
    global _listeners, _hooked
    _listeners = (*_listeners, listener)
    if _hooked is not optim:
        _hooked = optim
        optim.register_optimizer_step_post_hook(_stepped)


def leave(listener: Listener) -> None:
    global _listeners
    _listeners = tuple(known for known in _listeners if known != listener)


def _stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
    for listener in _listeners:
        if listener in _listeners:  # one before it may have ended the watch
            listener(optimizer, args, kwargs)
