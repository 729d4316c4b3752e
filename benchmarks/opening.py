"""How long a browser takes to open a page of many findings and sites, to sort and to search it.

Chromium without a window, by playwright; a new one for each repetition. Milliseconds since the navigation
began: "ready": the text stands and the tables answer; "drawn": all charts are drawn. "sort" and "search":
of all sites, until the table shows the result.
"""

import importlib
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

from benchmarks import pairs

ROOT = pathlib.Path(__file__).parent.parent
#: Notes when the page's own marks appear.
WATCH = """
window.marks = {};
new MutationObserver(() => {
  for (const name of ["ready", "drawn"])
    if (document.documentElement.dataset[name] && !marks[name]) marks[name] = performance.now();
}).observe(document, {attributes: true, subtree: true, attributeFilter: ["data-ready", "data-drawn"]});
"""
SORT = """() => { const began = performance.now();
document.querySelectorAll('[data-table="sites"] thead button')[0].click();
document.body.offsetHeight; return performance.now() - began; }"""
SEARCH = """() => { const began = performance.now();
const field = document.querySelector('[data-tools="sites"] input');
field.value = "part7.py"; field.dispatchEvent(new Event("input"));
document.body.offsetHeight; return performance.now() - began; }"""


def add_arguments(parser) -> None:
    parser.add_argument("--findings", type=int, default=100)
    parser.add_argument("--sites", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=7)


def open_once(runner, chromium: str, url: str) -> dict[str, float]:
    browser = runner.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.add_init_script(WATCH)
    page.goto(url)
    page.wait_for_selector("html[data-drawn=true]", timeout=120_000)
    found = dict(page.evaluate("marks"))
    found["sort"], found["search"] = page.evaluate(SORT), page.evaluate(SEARCH)
    browser.close()
    return found


def run(args) -> dict:
    from playwright import sync_api

    chromium = os.environ.get("LEAKPROBE_TEST_BROWSER") or shutil.which("chromium")
    sys.path.insert(0, str(ROOT / "tests" / "unit"))
    report = importlib.import_module("sample_reports").many_sites(args.sites, args.findings)
    with tempfile.TemporaryDirectory() as folder, sync_api.sync_playwright() as runner:
        path = pathlib.Path(folder, "page.html")
        report.to_html(path)
        url, size = path.as_uri(), path.stat().st_size
        found = [open_once(runner, chromium, url) for _ in range(args.repetitions)]
    rows = {
        name: {
            "least, ms": min(f[name] for f in found),
            "median, ms": statistics.median(f[name] for f in found),
        }
        for name in ("ready", "drawn", "sort", "search")
    }
    facts = {"findings": args.findings, "sites": args.sites, "MiB of the page": size / 2**20}
    return {"benchmark": "opening", "machine": pairs.machine(), "rows": rows, "facts": facts}
