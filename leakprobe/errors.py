"""The one exception of leakprobe."""


class LeakprobeError(Exception):
    """Something leakprobe was asked for can't be done; the text says what was wrong and what to do.

    ``code`` is a short stable name of the error, for programs ("already_active", "bad_argument", ...).
    """

    def __init__(self, message: str, code: str = "error"):
        super().__init__(message)
        self.code = code
