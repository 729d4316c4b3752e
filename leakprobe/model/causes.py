"""The closed list of causes: the name that a finding carries, and what it means."""

CAUSES = {
    "graph_kept": "a tensor is kept with its autograd graph",
    "graph_chain": "a running total or state is carried from step to step with its graph",
    "view_of_large_base": "a small view keeps the whole buffer it was cut from",
    "batch_memory_kept": "part of a batch in shared or pinned memory is kept, and the whole batch with it",
    "reference_cycle": "objects refer to each other in a cycle that waits for the garbage collector",
    "cycle_through_frame": "an exception or frame is kept in a local of the frame it belongs to",
    "cycle_through_callback": "a callback refers to the object that keeps it",
    "cycle_through_hook": "a hook refers to the tensor or module that keeps it",
    "cpp_reference_cycle": "a cycle that goes through C++ and that the garbage collector cannot free",
    "frozen_garbage": "garbage was frozen (gc.freeze()) before it was collected, and now it never is",
    "traceback_kept": "an exception is kept, and with it the frames it came through and all their locals",
    "unbounded_cache": "a cache without a bound keeps every entry",
    "cache_keyed_by_objects": "a table keyed by tensors or objects never finds the same key again",
    "lru_cache_on_method": "an lru_cache on a method keeps every instance and argument of its calls",
    "hook_kept": "a hook is registered again and again, or keeps what it saw",
    "module_attribute": "an attribute of a module collects what each step makes",
    "optimizer_state": "the optimizer is given new parameters in each step and keeps their state",
    "library_registry": "a library's table gets a new entry in each step",
    "class_per_step": "a new class is created in each step",
    "buffering_iterator": "an iterator keeps every item it has produced",
    "queue_not_emptied": "more is put into a queue than is taken out of it",
    "task_kept": "finished tasks or futures are kept with their results",
    "growing_container": "a container gets more items than it loses",
    "growing_attribute": "an attribute collects what each step makes",
    "growing_chain": "each step adds a link to a chain, which keeps what all earlier steps have left behind",
    "growing_buffer": "a buffer is replaced by a larger one, again and again",
    "held_outside_python": "native code keeps it",
    "lost_reference": "no known object refers to it: native code keeps it or has lost a reference",
    "never_closed": "a file, socket or segment is opened in each step and never closed",
    "never_ended": "each step starts a thread, process or task that never ends",
    "copy_on_access": "workers copy the dataset's memory page by page, because reading an object writes its reference count",
    "copied_by_collection": "a garbage collection in the workers copies the dataset's memory, because it writes to every container",
    "native_growth": "native code allocates memory that it does not free",
    "unknown": "the cause is not known",
}


def printed(cause: str) -> str:
    """ "graph-kept": as texts name the cause "graph_kept" of JSON."""
    return cause.replace("_", "-")
