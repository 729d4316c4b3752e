"""What of a dataset forked DataLoader workers would copy by reading it, before training.

Reading a Python object writes its reference count, so a worker ends up with its own copy of every page on
which objects lie that it reads.  Data of numpy arrays, tensors, Arrow tables and mapped files stays shared.
"""

import dataclasses
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from leakprobe.checks import checked_int
from leakprobe.model.units import format_size
from leakprobe.torch.datasets import Attribute, DatasetWalk

#: Items that are looked at to price another form of a container, evenly spread; the rest is taken to be like
#: them.
SAMPLE = 500_000
#: What torch and malloc add to the data of a small tensor in C++, whose reference counts are written when it
#: is indexed, and at most so much of it is copied when the data is large; measured on torch 2.13.
TENSOR_BYTES, MOST_OF_TENSOR = 400, 4400
#: Less than this is not worth another form.
SMALL_BYTES = 1 << 20


#: What an attribute or an item of it is: anything, told apart when it is looked at.
Value = Any
#: Another form of a container, and its bytes.
Form = tuple[str, int]


@dataclasses.dataclass
class AuditRow:
    """One attribute.  All sizes in bytes; ``instead``: (form, bytes) of forms that are not copied."""

    name: str
    holds: str
    bytes: int
    copied_per_worker: int
    copied_in_all: int
    padding: int
    instead: list[Form]
    fix: str

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


class Audit:
    """The rows of an audit, most copied first; iterate over it, print() it, or take to_dict()."""

    def __init__(self, rows: list[AuditRow], num_workers: int) -> None:
        self.rows, self.num_workers = rows, num_workers

    def __iter__(self) -> Iterator[AuditRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        copied = format_size(self.copied_per_worker)
        return f"<leakprobe audit: {copied} copied by each of {self.num_workers} workers>"

    @property
    def copied_per_worker(self) -> int:
        """Bytes that one worker copies when it reads everything."""
        return sum(row.copied_per_worker for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        return {
            "num_workers": self.num_workers,
            "copied_per_worker": self.copied_per_worker,
            "copied_in_all": self.copied_per_worker * self.num_workers,
            "rows": [row.to_dict() for row in self.rows],
        }

    def print(self, file: TextIO | None = None) -> None:
        """Print the table to ``file``, or to standard output."""
        from leakprobe.report.text import print_rows

        in_all = self.copied_per_worker * self.num_workers
        title = (
            f"forked workers that read everything copy {format_size(self.copied_per_worker)} each, "
            f"{format_size(in_all)} in {self.num_workers}"
        )
        cells = [
            (
                row.name,
                row.holds,
                format_size(row.bytes),
                format_size(row.copied_per_worker),
                format_size(row.copied_in_all),
                row.fix,
            )
            for row in self.rows
        ]
        print_rows(
            title,
            ["attribute", "holds", "size", "copied/worker", f"x {self.num_workers}", "instead"],
            cells,
            file,
        )


def audit(dataset: object, num_workers: int = 4) -> Audit:
    """Estimate what ``num_workers`` forked workers would copy of ``dataset`` by reading all of it.

    Returns an Audit with a row per attribute.  No code of the dataset runs, except that items of its
    containers are read.  Workers that are spawned share nothing: each has all of it.
    Errors: LeakprobeError "bad_argument"; "limit" where the dataset has too many objects to walk.
    """
    checked_int("num_workers", num_workers, 0)
    walk = DatasetWalk(dataset, keep_values=True)
    rows = [row_of(a, walk.values[a.region], num_workers) for a in walk.attributes]
    walk.values.clear()
    return Audit(sorted(rows, key=lambda r: (-r.copied_per_worker, -r.bytes)), num_workers)


def row_of(attribute: Attribute, value: Value, num_workers: int) -> AuditRow:
    tensors, tensor_bytes = tensors_in(value)
    outside = tensor_bytes + arrow_bytes(value) + mapped_bytes(value)
    copied = attribute.copied_bytes
    if tensors > 1:
        copied += round(tensors * min(TENSOR_BYTES + tensor_bytes / tensors, MOST_OF_TENSOR))
    instead, padding = (forms_of(value), padding_of(value))
    fix = fix_of(copied, padding, instead)
    return AuditRow(
        name=attribute.name,
        holds=holds(attribute, value),
        bytes=attribute.bytes + attribute.array_bytes + outside,
        copied_per_worker=copied,
        copied_in_all=copied * num_workers,
        padding=padding,
        instead=instead,
        fix=fix,
    )


def fix_of(copied: int, padding: int, instead: Iterable[Form]) -> str:
    forms = ", ".join(f"{name} {format_size(size)}" for name, size in instead)
    if padding >= SMALL_BYTES:
        return f"{format_size(padding)} of it is padding; without: {forms}"
    if copied < SMALL_BYTES:
        return "stays shared" if copied < 64 * 1024 else "small"
    return forms or "a numpy array, a tensor or an Arrow table"


def holds(attribute: Attribute, value: Value) -> str:
    kind = root_of(value)
    if kind == "pandas":
        return pandas_text(value)
    if kind == "numpy":
        shape = "x".join(map(str, value.shape))
        return f"{attribute.type} {value.dtype} {shape}"
    if kind == "torch":
        return f"{attribute.type} {str(value.dtype).removeprefix('torch.')} {'x'.join(map(str, value.shape))}"
    return attribute.describe()


# ---- memory outside of objects ----


def root_of(value: Value) -> str | None:
    """ "numpy", "torch", "pandas", "pyarrow" or "datasets" for their central types, else None; nothing is
    imported.
    """
    for name, types in (
        ("numpy", ("ndarray",)),
        ("torch", ("Tensor",)),
        ("pandas", ("DataFrame", "Series")),
        ("pyarrow", ("Table", "Array", "ChunkedArray")),
        ("datasets", ("Dataset",)),
    ):
        module = sys.modules.get(name)
        if module is not None and isinstance(
            value, tuple(t for t in (getattr(module, n, None) for n in types) if t)
        ):
            return name
    return None


def tensors_in(value: Value) -> tuple[int, int]:
    """(tensors, bytes of their storages) of a tensor, or of the items of a list, tuple or dict."""
    items = (
        value if type(value) in (list, tuple) else list(value.values()) if type(value) is dict else [value]
    )
    storages: dict[int, int] = {}
    count = 0
    for item in items:
        if root_of(item) != "torch":
            if count == 0 and len(items) > 1:
                break
            continue
        storage = item.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        count += 1
    return count, sum(storages.values())


def arrow_bytes(value: Value) -> int:
    kind = root_of(value)
    if kind == "datasets":
        return int(value.data.nbytes)
    if kind == "pyarrow":
        return int(value.nbytes)
    if kind == "pandas":
        columns = [value] if value.ndim == 1 else [value[name] for name in value.columns]
        return sum(
            int(c.memory_usage(index=False))
            for c in columns
            if "pyarrow" in str(getattr(c.array, "dtype", "")) or is_arrow_array(c.array)
        )
    return int(value.nbytes) if is_arrow_array(value) else 0


def is_arrow_array(value: Value) -> bool:
    """True for the arrays in which pandas keeps columns of Arrow's."""
    return any(
        t.__name__.startswith("Arrow") and t.__module__.startswith("pandas.") for t in type(value).__mro__
    )


def mapped_bytes(value: Value) -> int:
    """Of a numpy.memmap: its pages belong to the file."""
    memmap = getattr(sys.modules.get("numpy"), "memmap", None)
    return int(value.nbytes) if memmap is not None and isinstance(value, memmap) else 0


# ---- other forms ----


def forms_of(value: Value) -> list[Form]:
    """(form, bytes) of the forms that hold the same without an object per item, smallest first."""
    items = items_of(value)
    if items is None:
        return []
    count, sample = items
    if not sample:
        return []
    first = sample[0]
    scale = count / len(sample)
    if all(type(v) in (str, bytes) for v in sample):
        return text_forms(sample, count, scale)
    if all(type(v) in (int, float, bool) for v in sample):
        return [("numpy", 8 * count)]
    if type(first) is dict:
        size = sum(column_bytes([v.get(key) for v in sample if type(v) is dict]) for key in first)
        return [("Arrow table", round(size * scale))]
    if root_of(first) in ("torch", "numpy"):
        return [
            (
                "one stacked array and offsets",
                round(sum(int(v.nbytes) for v in sample) * scale) + 8 * (count + 1),
            )
        ]
    if type(first) in (list, tuple):
        flat = [x for v in sample if type(v) in (list, tuple) for x in v]
        return [("Arrow list array", round((column_bytes(flat) + 4 * len(sample)) * scale))]
    return []


def items_of(value: Value) -> tuple[int, list[Value]] | None:
    """(how many, at most SAMPLE of them), or None for what has no items of its own."""
    kind = root_of(value)
    if type(value) in (list, tuple):
        return len(value), list(value[:: -(-len(value) // SAMPLE) or 1])
    if type(value) is dict:
        return len(value), list(itertools.islice(value.values(), 0, None, -(-len(value) // SAMPLE) or 1))
    if kind == "numpy" and value.dtype.kind in "OUS":
        return value.size, value.reshape(-1)[:: -(-value.size // SAMPLE) or 1].tolist()
    if kind == "pandas":
        columns = [value] if value.ndim == 1 else [value[name] for name in value.columns]
        objects = [c for c in columns if c.dtype == object]
        stride = -(-len(value) * len(objects) // SAMPLE) or 1
        return (
            (len(value) * len(objects), [v for c in objects for v in c.iloc[::stride].tolist()])
            if objects
            else None
        )
    return None


def text_forms(sample: Sequence[str | bytes], count: int, scale: float) -> list[Form]:
    sizes = [len(v.encode("utf-8", "surrogatepass")) if type(v) is str else len(v) for v in sample]
    content = round(sum(sizes) * scale)
    forms = [("Arrow", content + 4 * (count + 1)), ("packed buffer and offsets", content + 8 * (count + 1))]
    forms.append(("numpy S", max(sizes) * count))
    if type(sample[0]) is str:
        forms.append(("numpy U", 4 * max(map(len, sample)) * count))
    return sorted(forms, key=lambda form: form[1])


def column_bytes(values: Sequence[Value]) -> int:
    """Bytes of a column of an Arrow table."""
    texts = [v for v in values if type(v) in (str, bytes)]
    if texts:
        return sum(
            len(v.encode("utf-8", "surrogatepass")) if type(v) is str else len(v) for v in texts
        ) + 4 * len(values)
    return 8 * len(values)


def padding_of(value: Value) -> int:
    """Bytes of a fixed-width text array beyond what its texts need."""
    if root_of(value) != "numpy" or value.dtype.kind not in "US" or not value.size:
        return 0
    forms = dict(forms_of(value))
    return max(0, int(value.nbytes) - forms["Arrow"])


def pandas_text(value: Value) -> str:
    columns = [value] if value.ndim == 1 else [value[name] for name in value.columns]
    kinds = ", ".join(sorted({str(c.dtype) for c in columns}))
    return f"{type(value).__name__} of {len(value):,} rows ({kinds})"
