"""The page in a real browser: charts, a finding opened, a path followed, no error, no request, and
accessibility.
"""

import os
import shutil

import pytest
from sample_reports import USER, finding, note, report

playwright = pytest.importorskip("playwright.sync_api", reason="the browser test needs playwright")
for package in ("jinja2", "plotly"):
    pytest.importorskip(package, reason=f"the page needs {package}")

BROWSER = (
    os.environ.get("LEAKPROBE_TEST_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        pytest.skip("there is no Chromium here; LEAKPROBE_TEST_BROWSER names one")
    with playwright.sync_playwright() as runner:
        browser = runner.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    path = [{"text": "train", "edge": "module", "type": "module"}, {"text": "history (list, 60 items)", "edge": "global", "type": "list"},
            {"text": "[59] Tensor", "edge": "index", "type": "torch.Tensor"}]  # fmt: skip
    found = [finding(path=path), *(finding(fingerprint=f"{n}" * 12, bytes_per_step=float(n)) for n in (3, 2))]
    what = report(found, [note()])
    what.timeline = [
        {
            "step": n,
            "epoch": n // 2500,
            "time": n / 9,
            "media": {
                "python": {"live_bytes": 50 * n, "peak_bytes": 0},
                "cpu": {"live_bytes": 90 * n, "peak_bytes": 0},
            },
        }
        for n in range(1, 10001)
    ]
    what.memory = [
        {"step": n, "rss": 2**20 + 200 * n, "python_heap": n, "native_accounted": 0, "probe_overhead": 2**10}
        for n in range(1, 10001)
    ]
    what.sites = [
        {"medium": medium, "type": None, "live_bytes": 2**20 * n, "live_count": 3, "bytes_per_step": rate, "survivors": [[s, s + 99, 9, 9] for s in range(0, 10000, 100)],
         "allocation": USER, "allocation_stack": finding().allocation_stack[:n]}
        for n, medium, rate in ((3, "cpu", 4.0), (2, "python", None), (1, "numpy", None))
    ]  # fmt: skip
    what.run = {"program": "train.py", "started": 0, "python": "3.11"}
    file = tmp_path_factory.mktemp("page") / "page.html"
    what.to_html(file)
    return file


@pytest.fixture(scope="module", params=["light", "dark", "narrow"])
def page(request, browser, page_file):
    options = {
        "viewport": {"width": 390, "height": 844}
        if request.param == "narrow"
        else {"width": 1280, "height": 900}
    }
    context = browser.new_context(color_scheme="dark" if request.param == "dark" else "light", **options)
    page = context.new_page()
    page.problems, page.requests = [], []
    page.on(
        "console",
        lambda message: page.problems.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("request", lambda asked: page.requests.append(asked.url))
    page.goto(page_file.as_uri())
    page.wait_for_selector("html[data-drawn]", timeout=60000)
    yield page
    assert page.problems == [] and page.requests == [page_file.as_uri()]
    context.close()


def test_charts_findings_and_paths(page):
    assert page.get_attribute("html", "data-drawn") == "true"
    assert (
        page.locator("#chart-memory .scatterlayer .trace").count() == 5
    )  # two media, the probe, the rest, RSS
    assert page.locator("#chart-icicle .slice").count() >= 6
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
        "nothing sticks out at the side"
    )
    third = page.locator("#finding-3")
    assert third.get_attribute("open") is None
    third.locator("summary").first.click()
    assert third.get_attribute("open") is not None and third.locator(".evidence").is_visible()
    nodes = page.locator("#finding-1 .path .node")
    assert nodes.all_inner_texts()[0] == "train" and nodes.count() == 3
    more = page.locator("#finding-1 .path .more").nth(2)
    assert not more.is_visible()
    nodes.nth(2).click()
    assert more.is_visible() and more.inner_text() == "torch.Tensor, reached by index"
    assert nodes.nth(2).get_attribute("aria-expanded") == "true"


def test_the_theme_can_be_switched(page):
    colours = [page.evaluate("getComputedStyle(document.body).backgroundColor")]
    for _ in range(2):
        page.evaluate("delete document.documentElement.dataset.drawn")
        page.locator("#theme").click()
        page.wait_for_selector("html[data-drawn=true]", timeout=60000)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1] and colours[0] == colours[2]


def test_accessibility(page):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="the check needs axe-playwright-python"
    )
    for summary in page.locator("#finding-2 > summary, .stack > summary").all():
        if summary.is_visible():
            summary.click()
    # The boxes of plotly's icicle are its own; the table of survivors says the same.
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
    results = axe.Axe().run(
        page, context={"exclude": [["#chart-memory"], ["#chart-icicle"]]}, options=options
    )
    assert results.violations_count == 0, results.generate_report()
