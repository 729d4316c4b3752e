"""Which frame of a stack is told as the user's own."""

import json

from leakprobe.model.frames import innermost_user_frame

GENERATED = ("<eval_with_key>.7", 3, "forward")
OWN = ("/home/me/train.py", 40, "fit")
LIBRARY = (json.__file__, 9, "loads")


def test_code_made_at_run_time_is_not_told_where_a_file_called_it():
    assert innermost_user_frame([GENERATED, LIBRARY, OWN]) == OWN


def test_code_made_at_run_time_is_told_where_nothing_else_is():
    assert innermost_user_frame([LIBRARY, GENERATED, ("<string>", 1, "<module>")]) == GENERATED


def test_a_stack_of_libraries_has_no_line_of_the_user():
    assert innermost_user_frame([LIBRARY]) is None
