"""What went wrong in the probe itself: the loop goes on, and the report says so."""

from leakprobe.model.finding import Note


class Mishap:
    """The first one; those that follow it are as a rule of its making."""

    def __init__(self) -> None:
        self.notes: list[Note] = []

    def cut(self, step: int, error: BaseException) -> None:
        """Remember that an exception of the program came in the middle of a mark."""
        self._keep(
            f"the mark of step {step} was cut short by {type(error).__name__}: its row, or what was found"
            " at it, may be missing"
        )

    def failed(self, step: int, error: Exception) -> None:
        """Remember a failure of the probe."""
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        self._keep(f"leakprobe failed at the mark of step {step} ({what}): its report may lack that step")

    def _keep(self, text: str) -> None:
        if not self.notes:
            self.notes.append(Note(kind="gap", text=text, medium=None))
