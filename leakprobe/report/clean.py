"""Text from the watched program, made safe to show."""


def clean(text: object) -> str:
    """The text with characters that are not printable as escapes."""
    text = str(text)
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    )
