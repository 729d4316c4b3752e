"""Objects of ctypes in every state are walked: of classes that have no fields yet, and views of others."""

from fresh import run

CODE = """
import ctypes, json
from leakprobe import _core
class Late(ctypes.Structure): pass
class Pair(ctypes.Structure):
    _fields_ = [("x", ctypes.c_double * 40), ("y", ctypes.c_int)]
class Either(ctypes.Union):
    _fields_ = [("x", ctypes.c_double * 40), ("y", ctypes.c_int)]
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(abs)
pair = Pair()
kept = [pair, pair.x, Either(), ctypes.pointer(pair), ctypes.byref(pair), call, ctypes.CDLL(None),
        ctypes.pythonapi, ctypes.pythonapi.Py_IncRef, ctypes.py_object(pair), ctypes.c_char_p(b"some"),
        (ctypes.c_int * 0)(),
        ctypes.create_string_buffer(700), (ctypes.c_char * 90).from_buffer(bytearray(90))]
for kind in (Late, ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._SimpleCData, ctypes._Pointer,
             ctypes._CFuncPtr):
    try: kept.append(kind.__new__(kind))
    except TypeError: pass
_core.start(4, "")
for step in range(5):
    kept.append(ctypes.create_string_buffer(600))
    _core.mark()
    _core.census(True, 0, 100, 1)
print(json.dumps([_core.size_of(one) - type(one).__basicsize__ for one in kept[-3:]]))
"""


def test_objects_in_every_state_are_walked():
    first, *others = run(CODE)
    # Since 3.14 with room for attributes: a word less for each of the first instances of a type.
    assert 600 <= first < 1000 and all(first - 3 * 8 < other <= first for other in others)
