"""A program whose classes, instances and modules run code, or raise, at whatever they are asked: the watch,
its report, a snapshot, cycles and chains ask none of them.
"""

import sys

sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/hooks")
from fresh import run

CLASSES = """
    import collections, json, sys, types
    import leakprobe
    asked, listens = [], [False]
    def answer(*question):
        if listens[0]:
            asked.append(question)
            raise RuntimeError(question)
    def method(name):
        return lambda self, *args, **named: answer(name)
    class Meta(type):
        def __getattribute__(cls, name):
            answer("of the class", name)
            return type.__getattribute__(cls, name)
        def __call__(cls): return type.__call__(cls)
        __instancecheck__, __subclasscheck__, __eq__, __repr__, __len__, __bool__ = map(
            method, ["instancecheck", "subclasscheck", "class eq", "class repr", "class len", "class bool"]
        )
        def __hash__(cls):
            answer("class hash")
            return 1
    METHODS = '''eq hash len repr str sizeof bool iter contains getitem format index int reduce reduce_ex
        dir call ne lt getattr next enter exit bytes fspath array dlpack torch_function buffer length_hint'''
    space = {f"__{name}__": method(name) for name in METHODS.split()}
    def getattribute(self, name):
        answer("attribute", name)
        return object.__getattribute__(self, name)
    space["__getattribute__"] = getattribute
    space["__class__"] = property(lambda self: answer("class"))
    space["__dict__"] = property(lambda self: answer("dict"))
    PARENTS = [(), list, dict, set, tuple, str, int, bytes, bytearray, float, frozenset, collections.deque]
    kinds = [
        Meta(f"Hostile{n}", (parent,) if parent else (), dict(space))
        for n, parent in enumerate(PARENTS)
    ]
    globals().update((f"Hostile{n}", kind) for n, kind in enumerate(kinds))
    Moduleless = Meta("Moduleless", (), {**space, "__module__": types.SimpleNamespace()})
    kinds.append(Moduleless)
"""


def test_objects_and_classes_are_asked_nothing(tmp_path):
    out = run(
        CLASSES
        + f"""
    kept = [[] for _ in kinds]
    with leakprobe.watch(record={str(tmp_path / "run.leak")!r}) as probe:
        for step in range(60):
            for kind, some in zip(kinds, kept):
                listens[0] = False
                some.append([kind(), bytearray(3000)])
                listens[0] = True
            probe.step()
    report = probe.report()
    texts = [str(report), json.dumps(report.to_dict())]
    report.to_html({str(tmp_path / "page.html")!r})
    snapshot = leakprobe.snapshot(graph=True)
    leakprobe.find_cycles()
    leakprobe.why(kept[0])
    listens[0] = False
    print(json.dumps([asked, report.verdict, len(report.findings)]))
    """
    )
    assert out[:2] == [[], "growing"]
    assert out[2] > 0


def test_modules_may_be_any_object(tmp_path):
    """Some packages put objects there that import when they are asked for an attribute, and fail."""
    (tmp_path / "owning.py").write_text(
        "import sys\nclass Owner:\n    def __init__(self): self.rows = []\nowner = Owner()\n"
    )
    out = run(
        CLASSES
        + f"""
    sys.path.insert(0, {str(tmp_path)!r})
    import owning
    owner = owning.owner
    class Lazy(types.ModuleType):
        def __getattribute__(self, name): answer("module", name)
    class Other:
        __slots__ = ()
        def __getattribute__(self, name): answer("no module", name)
    listens[0] = True
    for name in ("owning", "torch.multiprocessing.reductions", "torch.utils.hooks", "torch.autograd.graph"):
        sys.modules[name] = Lazy(name)
    for name in ("torch", "numpy", "torch.nn", "torch.optim.optimizer", "IPython"):
        sys.modules[name] = Other()
    class Part: pass
    with leakprobe.watch() as probe:
        for step in range(60):
            owner.rows.append([Part(), bytearray(3000)])
            probe.step()
    report = probe.report()
    text = str(report)
    print(json.dumps([asked, report.verdict]))
    """
    )
    assert out == [[], "growing"]


def test_datasets_are_asked_nothing():
    out = run(
        CLASSES
        + """
    from leakprobe.torch.datasets import DatasetWalk
    class Data: pass
    data = Data()
    made = [kind() for kind in kinds]
    vars(data).update((f"part{n}", one) for n, one in enumerate(made))
    data.paths = [str(n) for n in range(1000)]
    listens[0] = True
    walked = DatasetWalk(data)
    texts = [one.describe() for one in walked.attributes]
    found = [one.name for one in walked.attributes if one.length == 1000]
    walked = DatasetWalk(made[0])
    print(json.dumps([asked, found]))
    """
    )
    assert out == [[], ["dataset.paths"]]
