"""Which references of a path are meant to be: for each element yes, no or unknown, with the reason.

As LeakCanary reads a heap (square.github.io/leakcanary, "How LeakCanary works"): an element that is meant to
live vouches for all above it, one that is not condemns all below it, and the first reference that should not
be lies between.  That one is underlined.
"""

from leakprobe.judge.causes.case import ATTRIBUTE_EDGES, bases, depth_of, is_a, name_of
from leakprobe.judge.causes.hooks import MODULE, OPTIMIZER
from leakprobe.model.entry import Entry, Path, PathNode
from leakprobe.model.finding import Lives, PathRow

#: Types that live as long as a training program does => why.
LASTING = {
    MODULE: "a model and its parts live as long as the training",
    OPTIMIZER: "an optimizer lives as long as its parameters",
    "torch.optim.lr_scheduler.LRScheduler": "a scheduler lives as long as its optimizer",
    "torch.utils.data.dataloader.DataLoader": "a loader is made once and read in each epoch",
    "torch.utils.data.dataset.Dataset": "a dataset is made once and read in each epoch",
    "torch.nn.parameter.Parameter": "a parameter lives as long as its model",
    "logging.Logger": "a logger lives as long as the program",
    "type": "a class lives as long as its module",
}
#: What torch keeps in a Module and an Optimizer for as long as these live.
PARTS = {
    MODULE: frozenset({"_modules", "_parameters", "_buffers"}),
    OPTIMIZER: frozenset({"param_groups", "defaults"}),
}
ROOTS = {
    "module": "a module lives as long as the program",
    "frame": "the function is still running",
    "atexit": "callbacks live until the program ends",
    "signal": "a handler lives until another takes its place",
    "interpreter": "it lives as long as the interpreter",
}


#: What the first reference that should not be says, unless the rhythm is known to be another.
EACH_STEP = "each step leaves one more"


def lifetimes(entry: Entry, each: str = EACH_STEP) -> list[tuple[Lives, str]]:
    """(whether it is meant to live, why) for each element of the entry's path."""
    path = entry.path
    first = first_kept(entry)
    own = [why_lasting(path, at) if first is None or at < first else "" for at in range(len(path))]
    last = max((at for at, why in enumerate(own) if why), default=-1)
    return [state_of(at, own, last, first, each) for at in range(len(path))]


def state_of(at: int, own: list[str], last: int, first: int | None, each: str) -> tuple[Lives, str]:
    if first is not None and at >= first:
        return "no", each if at == first else "kept by what a step has left behind"
    if at <= last:
        return "yes", own[at] or "it leads to something that is meant to live"
    return "unknown", "older than what grows in it"


def first_kept(entry: Entry) -> int | None:
    """The place of the first element that steps have left: below the holder, or what native code keeps."""
    if entry.kind == "garbage" or not entry.path:
        return None
    if entry.holder is None:
        return 1 if entry.kind in ("lost", "outside", "unseen") and len(entry.path) > 1 else None
    below = depth_of(entry.holder, entry.path) + 1
    return below if below < len(entry.path) else None


def why_lasting(path: Path, at: int) -> str:
    """Why an element is meant to live; "" where that is not known."""
    node = path[at]
    if at == 0:
        return ROOTS.get(node.edge, "")
    before = path[at - 1]
    for owner, names in PARTS.items():
        if is_a(before, owner) and node.edge in ATTRIBUTE_EDGES and name_of(node) in names:
            return "torch keeps its parts there"
    return lasting_type(node)


def lasting_type(node: PathNode) -> str:
    known = bases(node)
    return next((why for kind, why in LASTING.items() if kind in known), "")


def with_lifetimes(rows: list[PathRow] | None, entry: Entry, each: str = EACH_STEP) -> list[PathRow] | None:
    """The rows of an entry's path with what is meant to live; ``each``: how often one more is left."""
    if rows is None or len(rows) != len(entry.path):
        return rows
    marked = zip(rows, lifetimes(entry, each), strict=True)
    return [{**row, "lives": lives, "why": why} for row, (lives, why) in marked]
