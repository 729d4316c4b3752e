"""What audit() prices, against what a forked process copies when it reads everything."""

import json
import subprocess
import sys

import pytest
from fresh import run

MEASURE = """
import gc, json, os
import leakprobe
from leakprobe import _core
n = 60_000
texts = ["%0100d" % k for k in range(n)]
class Data: pass
data = Data()
{make}
del texts
gc.collect(); gc.freeze()
def private_after(read):
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        read()
        os.write(there, b"%d" % _core.process_memory()["private"])
        os._exit(0)
    os.close(there)
    size = int(os.read(here, 100))
    os.close(here)
    os.waitpid(child, 0)
    return size
few = list({keys})[:100]
def read(keys={keys}):
    x = data.x
    for k in keys:
        {item}
base = private_after(lambda: read(few))
measured = private_after(read) - base
found = leakprobe.audit(data, num_workers=3)
row = next(r for r in found if r.name.startswith("dataset.x"))
print(json.dumps([measured, row.copied_per_worker, row.copied_in_all, row.bytes, row.holds, row.fix, row.padding]))
"""

CASES = {
    "list of str": ("data.x = [t + '.' for t in texts]", "x[k]", "list of 60,000 str", 60_000 * 150),
    "object array": (
        "import numpy as np\ndata.x = np.array([t + '.' for t in texts], dtype=object)",
        "x[k]",
        "numpy.ndarray object",
        60_000 * 158,
    ),
    "list of dicts": (
        "data.x = [{'id': k + 300, 'text': t + '.'} for k, t in enumerate(texts)]",
        "x[k]['id'], x[k]['text']",
        "list of 60,000 dict",
        None,
    ),
    "object column": (
        "import pandas as pd\ndata.x = pd.DataFrame({'t': pd.Series([t + '.' for t in texts], dtype=object)})",
        "x['t'].array[k]",
        "DataFrame of 60,000 rows (object)",
        60_000 * 158,
    ),
    "arrow column": (
        "import pandas as pd\ndata.x = pd.Series(texts, dtype='string[pyarrow]')",
        "x.array[k]",
        "Series of 60,000 rows",
        60_000 * 104,
    ),
    "arrow array": (
        "import pandas as pd\ndata.x = pd.array(texts, dtype='string[pyarrow]')",
        "x[k]",
        "",
        60_000 * 104,
    ),
    "numpy": ("import numpy as np\ndata.x = np.array(texts)", "x[k]", "numpy.ndarray <U100", 60_000 * 400),
    "tensor": (
        "import torch\ndata.x = torch.zeros(n, 100, dtype=torch.uint8)",
        "x[k, 0]",
        "torch.Tensor uint8",
        60_000 * 100,
    ),
    "dict of tensors": (
        "import torch\ndata.x = {k: torch.zeros(20) for k in range(n)}",
        "x[k].shape; x[k][0]",
        "dict of 60,000 torch.Tensor",
        None,
    ),
    "memory map": (
        "import numpy as np, tempfile\ndata.x = np.memmap(tempfile.TemporaryFile(), np.uint8, 'w+', shape=(n, 100)); data.x.sum()",
        "int(x[k, 0])",
        "numpy.memmap",
        60_000 * 100,
    ),
    "datasets": (
        "import datasets\ndata.x = datasets.Dataset.from_dict({'t': texts})",
        "x[k]['t'] if k % 50 == 0 else None",
        "datasets.arrow_dataset.Dataset",
        60_000 * 104,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_price_is_what_a_forked_process_copies(name):
    make, item, holds, size = CASES[name]
    for module in ("torch", "numpy", "pandas", "datasets"):
        if f"import {module}" in make:
            pytest.importorskip(module)
    if "pyarrow" in make:
        pytest.importorskip("pyarrow")
    measured, priced, in_all, held, text, fix, padding = run(
        MEASURE.format(make=make, item=item, keys="range(n)")
    )
    assert text.startswith(holds) and in_all == 3 * priced
    assert size is None or 0.8 < held / size < 1.2
    if priced > 4 << 20:
        assert 0.8 < priced / measured < 1.2, (priced, measured)
        assert "Arrow" in fix or "array" in fix
    else:
        assert priced < 1 << 20 and measured < 3 << 20, (priced, measured)
    assert padding == 0 if name != "numpy" else padding > 0.6 * held


def test_the_command_prints_a_table_and_json(tmp_path):
    (tmp_path / "data.py").write_text(
        "class D:\n    def __init__(self): self.names = [str(k) * 20 for k in range(50_000)]\nmake = D\n"
    )

    def command(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "leakprobe", "audit", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=900,
        )

    table = command("data:make", "--workers", "2")
    assert table.returncode == 0 and "dataset.names" in table.stdout and "50,000" in table.stdout
    found = json.loads(command("data:make", "--workers", "2", "--json").stdout)
    assert found["copied_in_all"] == 2 * found["copied_per_worker"] > 10_000_000
    for target, word in (
        ("data", "MODULE:FACTORY"),
        ("nodata:make", "no module nodata"),
        ("data:gone", "no gone"),
    ):
        done = command(target)
        assert done.returncode == 2 and word in done.stderr
