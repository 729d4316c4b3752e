"""Which frame of a stack is told as the user's own."""

import json
import sys
import types

from leakprobe.model.frames import innermost_user_frame

GENERATED = ("<eval_with_key>.7", 3, "forward")
CELL = ("<ipython-input-3-0123456789ab>", 2, "<module>")
OWN = ("/home/me/train.py", 40, "fit")
LIBRARY = (json.__file__, 9, "loads")


def test_code_made_at_run_time_is_not_told_where_a_file_called_it():
    assert innermost_user_frame([GENERATED, LIBRARY, OWN]) == OWN


def test_code_made_at_run_time_is_told_where_nothing_else_is():
    assert innermost_user_frame([LIBRARY, GENERATED, ("<string>", 1, "<module>")]) == GENERATED


def test_a_stack_of_libraries_has_no_line_of_the_user():
    assert innermost_user_frame([LIBRARY]) is None


def test_a_cell_of_ipython_is_told_within_the_program_that_embeds_it(monkeypatch):
    assert innermost_user_frame([CELL, LIBRARY, OWN]) == OWN, (
        "IPython does not know it: it is of another process"
    )
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(_filename_map={CELL[0]: 3}))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert innermost_user_frame([CELL, LIBRARY, OWN]) == CELL
    assert innermost_user_frame([GENERATED, LIBRARY, CELL, LIBRARY, OWN]) == CELL
