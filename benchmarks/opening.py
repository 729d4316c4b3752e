"""How long a browser takes to open a page of many sites, to draw its charts, to sort and to search it.

Chromium without a window, a new one for each repetition, and no debugger on the page: one that is attached
makes V8 parse plotly.js three times more, for the lines in the stacks of errors it catches. The page says
itself what it measured, in its title. Milliseconds since the navigation began, with the findings and
without: "ready": the text stands and the tables answer; "first view": so do all charts that are in the
window; "all charts": all are drawn, each scrolled to when the one before is drawn. "a chart": the longest
wait for one that was scrolled to. "sort" and "search": of all sites, until the table shows the result.
"processor": of the page's process, all its threads, until then: what a machine with nothing else to do
needs at most.
"""

import contextlib
import html
import importlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from benchmarks import pairs

ROOT = pathlib.Path(__file__).parent.parent
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--window-size=1280,900",
    "--remote-debugging-port=0",
]
#: Runs in the page: notes when its own marks appear, scrolls through it, and says what it found in its title.
WATCH = """
"use strict";
const PAUSE = 200;  /* in which the processor time is read from outside */
const marks = {}, root = document.documentElement, waits = [];
const inView = (box) => {
  const at = box.getBoundingClientRect();
  return at.top < innerHeight && at.bottom > 0;
};
const until = (holds) => new Promise((done) => {
  const look = () => { if (!holds()) return; watcher.disconnect(); done(); };
  const watcher = new MutationObserver(look);
  watcher.observe(root, {attributes: true, subtree: true, attributeFilter: ["data-ready", "data-drawn"]});
  look();
});
const timed = (act) => {
  const began = performance.now();
  act();
  document.body.offsetHeight;
  return performance.now() - began;
};
(async () => {
  await until(() => root.dataset.ready);
  marks.ready = performance.now();
  const charts = [...document.querySelectorAll(".chart")];
  await until(() => charts.filter(inView).every((box) => box.dataset.drawn));
  marks["first view"] = performance.now();
  document.title = "viewed";
  await new Promise((done) => setTimeout(done, PAUSE));
  await until(() => root.dataset.drawn);
  for (const box of charts) {
    const began = performance.now();
    box.scrollIntoView({block: "center", behavior: "instant"});
    await until(() => box.dataset.drawn);
    waits.push(performance.now() - began);
  }
  marks["all charts"] = performance.now() - PAUSE;
  marks["a chart"] = Math.max(...waits);
  document.title = "drawn";
  setTimeout(() => {
    marks.sort = timed(() => document.querySelector('[data-table="sites"] thead button').click());
    marks.search = timed(() => {
      const field = document.querySelector('[data-tools="sites"] input');
      field.value = "part7.py";
      field.dispatchEvent(new Event("input"));
    });
    document.title = "measured " + JSON.stringify(marks);
  }, 1000);
})();
"""
#: Seconds after which a page that said nothing is given up.
PATIENCE = 120


def add_arguments(parser) -> None:
    parser.add_argument("--findings", type=int, default=100)
    parser.add_argument("--sites", type=int, default=10_000)
    parser.add_argument("--marks", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=7)


class Browser:
    """A new Chromium; its pages are opened and listed without a debugger on them."""

    def __init__(self, folder: str):
        command = os.environ.get("LEAKPROBE_TEST_BROWSER") or shutil.which("chromium")
        self._process = subprocess.Popen(
            [command, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        port = pathlib.Path(folder, "DevToolsActivePort")
        wait_for(lambda: port.exists() and port.read_text().strip())
        self._url = f"http://127.0.0.1:{port.read_text().split()[0]}/json/"

    def ask(self, what: str, method: str = "GET"):
        return json.load(urllib.request.urlopen(urllib.request.Request(self._url + what, method=method)))

    def title(self, page: str) -> str:
        return next(found["title"] for found in self.ask("list") if found["id"] == page)

    def processor_ms(self) -> float:
        """Of all processes of pages, as far as they live."""
        import psutil

        found = 0.0
        for process in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "--type=renderer" in process.cmdline():
                    found += sum(process.cpu_times()[:2])
        return 1000 * found

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


def wait_for(found):
    """What the function finds, once it finds something."""
    end = time.monotonic() + PATIENCE
    while not (what := found()):
        if time.monotonic() > end:
            raise TimeoutError("the browser said nothing")
        time.sleep(0.02)
    return what


def open_once(url: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(folder)
        try:
            before = browser.processor_ms()
            page = browser.ask(f"new?{url}", "PUT")["id"]
            wait_for(lambda: browser.title(page).startswith(("viewed", "drawn", "measured ")))
            viewed = browser.processor_ms() - before
            wait_for(lambda: browser.title(page).startswith(("drawn", "measured ")))
            drawn = browser.processor_ms() - before
            said = wait_for(lambda: re.match(r"measured (.*)", browser.title(page)))
            return {
                **json.loads(html.unescape(said[1])),
                "first view, processor": viewed,
                "all charts, processor": drawn,
            }
        finally:
            browser.close()


def write_page(folder: str, args, findings: int) -> pathlib.Path:
    """A page that draws all there is, and measures itself."""
    sys.path.insert(0, str(ROOT / "tests" / "unit"))
    samples = importlib.import_module("sample_reports")
    report = samples.many_sites(args.sites, findings)
    samples.add_charts(report, args.marks)
    path = pathlib.Path(folder, f"page{findings}.html")
    report.to_html(path)
    text = path.read_text()
    nonce = re.search(r"nonce-([\w-]+)", text)[1]
    path.write_text(text.replace("</title>", f'</title><script nonce="{nonce}">{WATCH}</script>', 1))
    return path


def run(args) -> dict:
    rows, sizes, loads = {}, {}, []
    with tempfile.TemporaryDirectory() as folder:
        pages = {count: write_page(folder, args, count) for count in (args.findings, 0)}
        found: dict[int, list] = {count: [] for count in pages}
        for _ in range(args.repetitions):
            for count, path in pages.items():
                found[count].append(open_once(path.as_uri()))
                loads.append(os.getloadavg()[0])
        sizes = {count: path.stat().st_size for count, path in pages.items()}
    for count, all_found in found.items():
        for name in all_found[0]:
            values = [one[name] for one in all_found]
            rows[f"{count} findings: {name}"] = {
                "least, ms": min(values),
                "median, ms": statistics.median(values),
            }
    facts = {
        "sites": args.sites,
        "marks": args.marks,
        "MiB of the page": sizes[args.findings] / 2**20,
        "load of the machine": statistics.median(loads),
    }
    return {"benchmark": "opening", "machine": pairs.machine(), "rows": rows, "facts": facts}
