"""Growth that is known and harmless: tables of the interpreter and of libraries that stop or prune themselves.

An entry names the module and the name that the retention path begins with, and what the table does.
Findings whose holder is such a table become notes of kind "bounded".
"""

#: (module, name of the global) => why it is no leak.
BUILT_IN = {
    ("torch.multiprocessing.reductions", "shared_cache"): "torch's table of shared storages, pruned each time it doubles from 128",
    ("re", "_cache"): "compiled patterns, emptied when full",
}


def known_table(path) -> str | None:
    """Why growth under this path is no leak, or None.  ``path``: dicts with text, edge, type, root first."""
    if not path or len(path) < 2 or path[0].get("edge") != "module":
        return None
    name = str(path[1].get("text")).split(" ")[0]
    return BUILT_IN.get((path[0].get("text"), name))
