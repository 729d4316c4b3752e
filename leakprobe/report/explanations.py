"""What `leakprobe explain` says of each cause: why memory grows so, and the change that ends it, before and
after.
"""

import dataclasses
import textwrap

from leakprobe.model.causes import CAUSES, printed


@dataclasses.dataclass(frozen=True)
class Explanation:
    """One cause, a key of CAUSES.  before, after: a few lines of Python with the leak and without it."""

    cause: str
    why: str
    before: str
    after: str

    @property
    def code(self) -> str:
        """ "graph-kept": how a report names it."""
        return printed(self.cause)

    @property
    def meaning(self) -> str:
        return CAUSES[self.cause]

    def to_dict(self) -> dict[str, str]:
        parts = {"why": self.why, "before": self.before, "after": self.after}
        return {"code": self.code, "cause": self.cause, "meaning": self.meaning, **parts}


def explained(cause: str, why: str, before: str, after: str) -> Explanation:
    """The texts as they stand below, without their indentation."""
    return Explanation(
        cause, " ".join(why.split()), textwrap.dedent(before).strip(), textwrap.dedent(after).strip()
    )


TENSORS = (
    explained(
        "graph_kept",
        """A tensor that was computed from parameters refers to its autograd graph, and the graph to every
        activation that a backward pass would need.  Whoever keeps the tensor keeps all of it.  Keep the
        number, or the tensor without its graph.""",
        "history.append(loss)",
        "history.append(loss.item())      # or loss.detach() for a tensor",
    ),
    explained(
        "graph_chain",
        """Each step adds to a tensor that still has the graph of all steps before, so the graph gets
        longer with every step.  Cut it where the value is carried over.""",
        """
        total = total + loss
        hidden = rnn(batch, hidden)
        """,
        """
        total = total + loss.detach()
        hidden = rnn(batch, hidden.detach())
        """,
    ),
    explained(
        "view_of_large_base",
        """A slice of a tensor or an array is a view: it has no memory of its own and keeps all of what it
        was cut from.  A copy of the small part lets the large one go.""",
        "firsts.append(batch[0])",
        "firsts.append(batch[0].clone())      # numpy: batch[0].copy()",
    ),
    explained(
        "batch_memory_kept",
        """A DataLoader's batch arrives in shared memory, or in pinned memory with pin_memory=True.  A
        part of it is a view, and keeps the whole batch alive; in shared memory, its file descriptor too.""",
        "for images, labels in loader: seen.append(labels)",
        "for images, labels in loader: seen.append(labels.clone())",
    ),
)

CYCLES = (
    explained(
        "reference_cycle",
        """Objects that refer to each other are not freed when the last name for them goes, but when the
        garbage collector next collects their generation.  Tensors that such objects hold wait with them,
        and the collector is triggered by numbers of objects, not by bytes.""",
        """
        child.parent = parent
        parent.child = child
        """,
        """
        child.parent = weakref.ref(parent)
        parent.child = child
        """,
    ),
    explained(
        "cycle_through_frame",
        """An exception refers to its traceback, the traceback to the frames it came through, and a frame to
        its locals.  An exception that is kept in a local of one of these frames makes a cycle with all of
        their locals in it.  That is why Python deletes the name after `as`.""",
        """
        try:
            load(batch)
        except OSError as error:
            last = error
        """,
        """
        try:
            load(batch)
        except OSError as error:
            last = str(error)
        """,
    ),
    explained(
        "cycle_through_callback",
        """A lambda, a nested function or a bound method refers to the object it was made in.  Kept by
        that same object, it closes a cycle.  A weak reference to the object breaks it.""",
        "self.on_click = lambda: self.draw()",
        """
        draw = weakref.WeakMethod(self.draw)
        self.on_click = lambda: draw()()
        """,
    ),
    explained(
        "cycle_through_hook",
        """A hook is kept by the module or tensor that it is registered on.  If it refers to that module
        or tensor, as a closure or a bound method of it does, the two keep each other.  A module's hook is
        given the module.""",
        "module.register_forward_hook(lambda *args: record(module))",
        "module.register_forward_hook(lambda module, args, output: record(module))",
    ),
    explained(
        "cpp_reference_cycle",
        """Some references are held by C or C++ and are not shown to Python's garbage collector: those of
        autograd nodes, of hooks on tensors, of object arrays of numpy.  A cycle through one is never
        freed, not even by gc.collect().  It must be broken by hand.""",
        "x.register_hook(lambda grad: x.mul_(0.9))",
        """
        handle = x.register_hook(lambda grad: record(grad))
        handle.remove()      # when the backward pass is done
        """,
    ),
    explained(
        "frozen_garbage",
        """gc.freeze() moves every object into a generation that is never collected.  Cycles that are
        garbage at that moment stay for good: collect them first.""",
        "gc.freeze()",
        """
        gc.collect()
        gc.freeze()
        """,
    ),
    explained(
        "traceback_kept",
        """A kept exception keeps its traceback, and with it all frames that it came through and all of
        their locals.  Keep its text, or drop the traceback.""",
        "errors.append(error)",
        "errors.append(error.with_traceback(None))      # or str(error)",
    ),
)

TABLES = (
    explained(
        "unbounded_cache",
        """functools.cache and lru_cache(maxsize=None) never forget an argument.  If arguments do not
        recur, each call adds an entry with its result.""",
        """
        @functools.cache
        def grid(size): ...
        """,
        """
        @functools.lru_cache(maxsize=128)
        def grid(size): ...
        """,
    ),
    explained(
        "cache_keyed_by_objects",
        """Tensors and most other objects hash by identity, so a table keyed by new ones never finds an
        entry again, and keeps every key.  Key it by a value, or hold the keys weakly.""",
        "cache[tensor] = result",
        "cache[int(sample_id)] = result      # or weakref.WeakKeyDictionary()",
    ),
    explained(
        "lru_cache_on_method",
        """The cache of a decorated method is keyed by its arguments, self among them, and belongs to the
        class: it keeps every instance on which the method was called, and for each one all arguments and
        results.  Where one instance is called with ever new arguments, give the cache a maxsize.""",
        """
        class Scene:
            @functools.cache
            def area(self, scale): ...
        """,
        """
        class Scene:
            @functools.cached_property      # or a cache that __init__ makes, one for each instance
            def area(self): ...
        """,
    ),
    explained(
        "hook_kept",
        """register_*_hook() adds a hook each time it is called.  Registered in every step, hooks pile up
        on the module, each with what it refers to, and all of them run.  Register the hook once, or remove
        it by its handle.  A hook that stores what it sees keeps it for as long as the container lives:
        clear the container, or keep only the last value, detached.""",
        """
        for batch in loader:
            layer.register_forward_hook(save)
            model(batch)
        """,
        """
        for batch in loader:
            handle = layer.register_forward_hook(save)
            model(batch)
            handle.remove()
        """,
    ),
    explained(
        "optimizer_state",
        """An optimizer keeps its parameters and, for each, state of the same size (Adam: twice that).
        Parameters that are added or replaced in every step leave theirs behind.""",
        """
        for task in tasks:
            optimizer.add_param_group({"params": head(task).parameters()})
        """,
        """
        for task in tasks:
            optimizer = torch.optim.Adam([*body.parameters(), *head(task).parameters()])
        """,
    ),
    explained(
        "library_registry",
        """Some libraries keep a table of everything that was made by name: logging keeps its loggers,
        weakref.finalize its callbacks, sys.modules the modules.  A new name in every step is a new entry
        that nothing removes.""",
        'log = logging.getLogger(f"train.{step}")',
        """
        log = logging.getLogger("train")
        log.info("step %d", step)
        """,
    ),
    explained(
        "class_per_step",
        """A class is a large object (1 KB and more), in cycles with its own dict and method table.
        Create it once, outside of the loop.""",
        """
        for batch in loader:
            Row = collections.namedtuple("Row", "loss step")
        """,
        """
        Row = collections.namedtuple("Row", "loss step")
        for batch in loader:
            ...
        """,
    ),
    explained(
        "buffering_iterator",
        """itertools.tee() keeps what one of its iterators has produced and another has not yet;
        itertools.cycle() keeps everything it has produced.""",
        "for batch in itertools.cycle(loader): train(batch)",
        """
        while True:
            for batch in loader: train(batch)
        """,
    ),
    explained(
        "queue_not_emptied",
        """A queue without a bound takes whatever is put into it.  It grows if its reader is slower than
        its writer, or has ended.  A bound makes the writer wait instead.""",
        "work = queue.Queue()",
        "work = queue.Queue(maxsize=8)",
    ),
    explained(
        "task_kept",
        """A future or a task keeps its result for as long as it is kept itself.  Take the result and let
        it go.""",
        "futures.append(pool.submit(augment, batch))",
        "futures = [f for f in futures if not f.done()] + [pool.submit(augment, batch)]",
    ),
)

CONTAINERS = (
    explained(
        "module_attribute",
        """An attribute of a model lives as long as the model.  What forward() appends to it stays for the
        whole training, with the graph if it is an activation.""",
        """
        def forward(self, x):
            y = self.layer(x)
            self.outputs.append(y)
        """,
        """
        def forward(self, x):
            y = self.layer(x)
            self.last_output = y.detach()
        """,
    ),
    explained(
        "growing_container",
        """A list, dict or set gets items in every step, and none is removed.  Empty it after use, keep
        only what is needed, or give it a bound.""",
        "seen.append(batch)",
        "seen = collections.deque(maxlen=100)      # once\nseen.append(batch)",
    ),
    explained(
        "growing_attribute",
        """An attribute of an object that outlives the steps collects what each of them makes.""",
        "self.past.append(state)",
        "self.past[:] = [state]      # or clear it at the end of the epoch",
    ),
    explained(
        "growing_chain",
        """Each step makes an object that refers to the one before: nodes of a linked list, wrapped
        iterators, partial functions.  The newest keeps all of them.""",
        "state = Step(previous=state, data=batch)",
        "state = Step(previous=None, data=batch)",
    ),
    explained(
        "growing_buffer",
        """An array, a string or a file in memory is replaced by a larger one, or enlarged, again and again,
        and is copied each time.  Keep only the part that is needed, or write the parts to disk: a list of
        them is not copied, and grows as well.""",
        "table = np.concatenate([table, rows])",
        "np.save(folder / f'{step}.npy', rows)      # or keep only the last rows: table[-1000:]",
    ),
)

ENDINGS = (
    explained(
        "held_outside_python",
        """Native code holds a reference: a C++ object, a callback that was registered, an exit handler.
        The report names the type and the line that made the object; a call of that library releases
        it.""",
        "library.subscribe(callback)",
        """
        subscription = library.subscribe(callback)
        subscription.cancel()
        """,
    ),
    explained(
        "lost_reference",
        """The object's reference count is higher than the number of references that can be found.  Either
        native code keeps it on purpose, or a C extension has not released a reference (a missing
        Py_DECREF).  If you registered nothing with a library, report it to the extension's authors.""",
        "result = extension.parse(text)      # leaks one reference in each call",
        "result = json.loads(text)      # until the extension is fixed",
    ),
    explained(
        "never_closed",
        """An open file, socket or segment of shared memory keeps a descriptor and its buffers until it is
        closed.""",
        "log = open(path)",
        """
        with open(path) as log:
            ...
        """,
    ),
    explained(
        "never_ended",
        """A thread, process or asyncio task that waits for something that never comes keeps its stack, its
        arguments and all of its locals.  Tell it to end, and join it; await or cancel a task.""",
        "threading.Thread(target=worker, args=(batch,)).start()      # in each step",
        """
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            pool.map(worker, loader)
        """,
    ),
    explained(
        "copy_on_access",
        """Forked workers share the dataset's memory with the process until one of them writes to a page.
        Reading a Python object writes its reference count, so each worker ends up copying all of a list
        of Python objects.  Buffers of numpy and torch have one count for millions of numbers.""",
        "self.paths = [...]      # a million strings",
        "self.paths = np.array([...])      # one buffer, read without a write",
    ),
    explained(
        "copied_by_collection",
        """A garbage collection writes to the header of every container.  In a forked worker it copies the
        pages of the whole dataset at once.  It leaves frozen objects alone.""",
        "loader = DataLoader(dataset, num_workers=4)",
        """
        gc.collect()
        gc.freeze()      # before the workers are forked
        loader = DataLoader(dataset, num_workers=4)
        """,
    ),
    explained(
        "native_growth",
        """Memory that C or C++ code takes from malloc grows, and no Python object owns it.  The line of
        the call is known from samples.  If the library has a call that frees or limits this memory, that
        call is missing; else the library leaks.""",
        "handle = library.open_model(path)      # in each step",
        """
        handle = library.open_model(path)
        library.close_model(handle)
        """,
    ),
)

UNKNOWN = explained(
    "unknown",
    """Growth was measured, but no rule fits its shape.  The path, where there is one, still says who
    keeps it: look for the first element that should not be there.  `leakprobe why REC` shows it in
    full.""",
    "",
    "",
)

#: Cause => its explanation.
EXPLANATIONS = {one.cause: one for one in (*TENSORS, *CYCLES, *TABLES, *CONTAINERS, *ENDINGS, UNKNOWN)}
