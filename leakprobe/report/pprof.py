"""A profile for pprof: gzipped protocol buffers by github.com/google/pprof, proto/profile.proto.

The few messages are written here, since the wire format is a page long (protobuf.dev, "Encoding") and the
library would be a dependency of all users: a field is a varint of its number and kind, then a varint, or a
length and the bytes of a text or of a message.
"""

import gzip
import io
from collections.abc import Iterable, Sequence

from leakprobe.model.frames import Frame
from leakprobe.model.report import Report
from leakprobe.report.clean import clean
from leakprobe.report.samples import AMOUNTS, Sample, program_of, samples_of, whole

#: Kinds of a field.
VARINT, BYTES = 0, 2
#: Fields of Profile, Sample, Label, Location, Line, Function, ValueType and Mapping.
PROFILE = {
    "sample_type": 1, "sample": 2, "mapping": 3, "location": 4, "function": 5, "string_table": 6,
    "time_nanos": 9, "comment": 13, "default_sample_type": 14,
}  # fmt: skip
SAMPLE = {"location_id": 1, "value": 2, "label": 3}
LABEL = {"key": 1, "str": 2}
LOCATION = {"id": 1, "mapping_id": 2, "line": 4}
LINE = {"function_id": 1, "line": 2}
FUNCTION = {"id": 1, "name": 2, "system_name": 3, "filename": 4}
VALUE_TYPE = {"type": 1, "unit": 2}
MAPPING = {"id": 1, "filename": 5, "has_functions": 7, "has_filenames": 8, "has_line_numbers": 9}
#: Amounts in the order of a sample's values, and how pprof is to call them: -sample_index=growth_space.
TYPES = {
    "live-count": "live_objects",
    "live": "live_space",
    "growth-count": "growth_objects_per_step",
    "growth": "growth_space_per_step",
}


def to_pprof(parts: Sequence[tuple[str, Report]]) -> bytes:
    """The samples of (label, report) pairs, with labels "medium", "type", "cause", "finding" and "origin"."""
    tables = Tables(program_of(parts))
    samples = b"".join(message(PROFILE["sample"], tables.sample(sample)) for sample in samples_of(parts))
    types = b"".join(
        message(PROFILE["sample_type"], tables.value_type(name, AMOUNTS[amount][1]))
        for amount, name in TYPES.items()
    )
    starts = [report.run.get("started") for _label, report in parts]
    started = min((at for at in starts if isinstance(at, (int, float))), default=0)
    comment = tables.text("growth is per step, of leakprobe's findings; live is as of its last check")
    tail = [
        number(PROFILE["time_nanos"], int(started * 10**9)),
        number(PROFILE["comment"], comment),
        number(PROFILE["default_sample_type"], tables.text(TYPES["growth"])),
    ]
    return zipped(b"".join([types, samples, *tail, tables.encoded()]))


def zipped(data: bytes) -> bytes:
    """With a name in its header, by which a file is known as leakprobe's (leakprobe/files.py), and without a
    clock: the same report gives the same bytes.
    """
    out = io.BytesIO()
    with gzip.GzipFile("leakprobe.pb", "wb", fileobj=out, mtime=0) as file:
        file.write(data)
    return out.getvalue()


class Tables:
    """The tables of a profile: texts, functions and locations, each once; only texts are counted from 0."""

    def __init__(self, program: str) -> None:
        self._texts: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[tuple[int, int], int] = {}
        self._program = self.text(program)

    def text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def location(self, frame: Frame) -> int:
        function = (clean(frame.function), clean(frame.filename))
        place = (self._functions.setdefault(function, len(self._functions) + 1), frame.lineno)
        return self._locations.setdefault(place, len(self._locations) + 1)

    def sample(self, sample: Sample) -> bytes:
        """Innermost frame first, as pprof has it."""
        locations = [self.location(frame) for frame in reversed(sample.frames)]
        values = [whole(AMOUNTS[amount][2](sample)) for amount in TYPES]
        labels = {
            "medium": sample.medium,
            "type": sample.type,
            "cause": sample.cause,
            "finding": sample.finding,
            "origin": sample.origin,
        }
        return (
            packed(SAMPLE["location_id"], locations)
            + packed(SAMPLE["value"], values)
            + b"".join(
                message(SAMPLE["label"], self.label(key, value)) for key, value in labels.items() if value
            )
        )

    def label(self, key: str, value: str) -> bytes:
        return number(LABEL["key"], self.text(key)) + number(LABEL["str"], self.text(clean(value)))

    def value_type(self, name: str, unit: str) -> bytes:
        return number(VALUE_TYPE["type"], self.text(name)) + number(VALUE_TYPE["unit"], self.text(unit))

    def encoded(self) -> bytes:
        """All tables; the texts last, since functions add some."""
        mapping = number(MAPPING["id"], 1) + number(MAPPING["filename"], self._program)
        mapping += b"".join(number(field, 1) for name, field in MAPPING.items() if name.startswith("has_"))
        rows = [message(PROFILE["mapping"], mapping)]
        for (function, line), place in self._locations.items():
            of_line = number(LINE["function_id"], function) + number(LINE["line"], line)
            row = number(LOCATION["id"], place) + number(LOCATION["mapping_id"], 1)
            rows.append(message(PROFILE["location"], row + message(LOCATION["line"], of_line)))
        for (name, filename), function in self._functions.items():
            fields = {"name": name, "system_name": name, "filename": filename}
            row = b"".join(number(FUNCTION[field], self.text(text)) for field, text in fields.items())
            rows.append(message(PROFILE["function"], number(FUNCTION["id"], function) + row))
        rows += [message(PROFILE["string_table"], text.encode()) for text in self._texts]
        return b"".join(rows)


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; a negative number as its 64-bit two's complement."""
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    return varint(field << 3 | VARINT) + varint(value)


def message(field: int, data: bytes) -> bytes:
    return varint(field << 3 | BYTES) + varint(len(data)) + data


def packed(field: int, values: Iterable[int]) -> bytes:
    return message(field, b"".join(map(varint, values)))
