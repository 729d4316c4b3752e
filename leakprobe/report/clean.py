"""Text from the watched program, made safe to show."""

from leakprobe.report.cells import with_cell_names


def clean(text: object) -> str:
    """The text with characters that are not printable as escapes, and cells of a notebook by their names."""
    shown = with_cell_names(str(text))
    return (
        shown
        if shown.isprintable()
        else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    )
