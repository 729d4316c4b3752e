"""The page in a real browser: charts, a finding opened, a path followed, no error, no request, and
accessibility.
"""

import dataclasses
import os
import shutil
import threading

import pytest
from sample_reports import add_charts, finding, many_sites, note

playwright = pytest.importorskip("playwright.sync_api", reason="the browser test needs playwright")
for package in ("jinja2", "plotly"):
    pytest.importorskip(package, reason=f"the page needs {package}")

from leakprobe.record.writer import Recorder
from leakprobe.report.compare import compare
from leakprobe.report.diff_html import write_comparison

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


#: Name of a page => (how wide, colours).
VIEWS = {
    "light": (1280, "light"),
    "dark": (1280, "dark"),
    "tablet": (768, "light"),
    "narrow": (390, "dark"),
}


def whole_report():
    """A report with all that a page can show."""
    path = [{"text": "train", "edge": "module", "type": "module"}, {"text": "history (list, 60 items)", "edge": "global", "type": "list"},
            {"text": "[59] Tensor", "edge": "index", "type": "torch.Tensor"}]  # fmt: skip
    found = [finding(path=path), *(finding(fingerprint=f"{n}" * 12, bytes_per_step=float(n)) for n in (3, 2))]
    found[1] = dataclasses.replace(found[1], medium="python", type="mine.Row", pattern="within_epoch")
    what = many_sites(300)
    what.verdict, what.findings, what.notes = "growing", found, [note()]
    add_charts(what)
    what.lines = [
        {"filename": f"/home/me/{name}.py", "lineno": n, "bytes_per_step": 9.0 - n, "live_bytes": n}
        for n, name in enumerate("abcdefgh")
    ]
    what.run = {"program": "train.py", "started": 0, "python": "3.11"}
    return what


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "page.html"
    whole_report().to_html(file)
    return file


@pytest.fixture(scope="module", params=VIEWS)
def page(request, browser, page_file):
    width, colours = VIEWS[request.param]
    context = browser.new_context(color_scheme=colours, viewport={"width": width, "height": 900})
    page = watched(context.new_page())
    page.goto(page_file.as_uri())
    draw_all(page)
    yield page
    assert page.problems == [] and asked_of_others(page, page_file) == []
    context.close()


def draw_all(page) -> None:
    """Scroll to each chart, until it is drawn."""
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        page.wait_for_selector(f"#{chart.get_attribute('id')}[data-drawn]", timeout=60000)
    page.wait_for_selector("html[data-drawn]", timeout=60000)


def asked_of_others(page, file) -> list:
    """What was asked for besides the page and what it carries."""
    return [url for url in page.requests if url != file.as_uri() and not url.startswith("blob:")]


def watched(page):
    """The page with what goes wrong in it, and what it asks for."""
    page.problems, page.requests = [], []
    page.on(
        "console",
        lambda message: page.problems.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("request", lambda asked: page.requests.append(asked.url))
    return page


def test_charts_findings_and_paths(page):
    assert page.get_attribute("html", "data-drawn") == "true"
    # Two media, the probe, the rest, RSS; the roles; two bars; a line for each rank.
    for name, count in (("memory", 5), ("roles", 6), ("ranks", 4)):
        assert page.locator(f"#chart-{name} .scatterlayer .trace").count() == count, name
    assert page.locator("#chart-peaks .barlayer .trace").count() == 2
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


def shown_findings(page) -> list:
    return [card.get_attribute("id") for card in page.locator("#finding-list > details:visible").all()]


def test_findings_are_searched_filtered_and_sorted(page):
    search, count = page.locator("#finding-search"), page.locator("#finding-count")
    search.fill("mine.row")
    assert shown_findings(page) == ["finding-2"] and count.inner_text() == "1 of 3 findings"
    search.fill("")
    page.locator("#finding-medium").select_option("python")
    assert shown_findings(page) == ["finding-2"]
    page.locator("#finding-medium").select_option("")
    page.locator("#finding-sort").select_option("text")
    assert len(shown_findings(page)) == 3
    page.locator("#finding-sort").select_option("rate")
    assert shown_findings(page) == ["finding-1", "finding-2", "finding-3"]


def column(page, name: str, number: int) -> list:
    cells = page.locator(f'[data-table="{name}"] tbody tr > :nth-child({number})')
    return cells.all_inner_texts()


def test_sites_are_searched_filtered_sorted_and_shown_in_parts(page):
    tools, rest = page.locator('[data-tools="sites"]'), page.locator('[data-rest="sites"]')
    assert len(column(page, "sites", 1)) == 10 and rest.inner_text().startswith("10 of 300 sites")
    tools.locator("input").fill("part7.py:187")
    assert (
        column(page, "sites", 1) == ["part7.py:187 make"]
        and "1 of 1 that fit, 300 in all" in rest.inner_text()
    )
    tools.locator("input").fill("")
    tools.locator("select").select_option("numpy")
    assert set(column(page, "sites", 3)) == {"numpy"} and "of 100 that fit" in rest.inner_text()
    tools.locator("select").select_option("")
    head = page.locator('[data-table="sites"] thead th').nth(5)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending" and column(page, "sites", 6)[0] == "300"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending" and column(page, "sites", 6)[0] == "1"
    rest.locator("button").click()
    assert len(column(page, "sites", 1)) == 210
    assert page.locator('[data-table="sites"] tbody svg.survivors').count() == 210


def test_a_chart_shows_the_medium_that_is_chosen(page):
    page.locator('[data-choose="peaks"] select').select_option("python")
    assert page.evaluate("document.getElementById('chart-peaks').data[0].y[0]") == 60 * 2499
    page.locator('[data-choose="peaks"] select').select_option("cpu")
    assert page.evaluate("document.getElementById('chart-peaks').data[0].y[0]") == 99 * 2499


def test_the_theme_can_be_switched(page):
    colours = [page.evaluate("getComputedStyle(document.body).backgroundColor")]
    for _ in range(2):
        page.evaluate("delete document.documentElement.dataset.drawn")
        page.locator("#theme").click()
        page.wait_for_selector("html[data-drawn=true]", timeout=60000)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1] and colours[0] == colours[2]


#: Rules of axe: WCAG 2.0 and 2.1, levels A and AA, and what is held to be good practice.
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


def check_with_axe(page) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="the check needs axe-playwright-python"
    )
    results = axe.Axe().run(page, options=RULES)
    assert results.violations_count == 0, results.generate_report()


def test_accessibility(page):
    for summary in page.locator("#finding-2 > summary, .stack > summary, .as-table > summary").all():
        if summary.is_visible():
            summary.click()
    check_with_axe(page)


@pytest.fixture
def unread(browser, page_file):
    """The page as it was opened, nothing of it scrolled to."""
    page = watched(browser.new_page(viewport={"width": 1280, "height": 600}))
    yield page
    assert page.problems == []
    page.close()


def drawn_charts(page) -> list:
    return page.eval_on_selector_all(".chart[data-drawn]", "found => found.map((one) => one.id)")


def test_a_chart_is_drawn_once_it_is_scrolled_to(unread, page_file):
    unread.goto(page_file.as_uri())
    unread.wait_for_selector("html[data-drawn=true]", timeout=60000)
    said = unread.locator("#chart-icicle")
    assert "chart-icicle" not in drawn_charts(unread) and "when it is scrolled to" in said.inner_text()
    said.scroll_into_view_if_needed()
    unread.wait_for_selector("#chart-icicle[data-drawn] .slice", timeout=60000)
    assert "chart-memory" not in drawn_charts(unread), "what lies between was not near"


def test_all_charts_are_drawn_for_print(unread, page_file):
    unread.goto(page_file.as_uri())
    unread.wait_for_selector("html[data-drawn=true]", timeout=60000)
    charts = unread.locator(".chart").count()
    assert len(drawn_charts(unread)) < charts
    unread.evaluate("""addEventListener("beforeprint", () => {
        const charts = [...document.querySelectorAll(".chart")];
        window.printed = charts.filter((one) => one.querySelector(".main-svg path")).length; })""")
    assert unread.pdf().startswith(b"%PDF") and unread.evaluate("printed") == charts
    unread.wait_for_function(f"document.querySelectorAll('.chart[data-drawn]').length === {charts}")


def test_all_charts_are_drawn_by_a_browser_that_does_not_say_what_is_near(unread, page_file):
    unread.add_init_script("delete window.IntersectionObserver; delete window.requestIdleCallback")
    unread.goto(page_file.as_uri())
    unread.wait_for_selector("html[data-drawn=true]", timeout=60000)
    assert len(drawn_charts(unread)) == unread.locator(".chart").count()


#: Of the flame graph {id: (parent, value)}.
BOXES = """(() => { const t = document.getElementById("chart-icicle").data[0];
    return Object.fromEntries(t.ids.map((id, i) => [id, [t.parents[i], t.values[i]]])); })()"""
LEVEL = "document.getElementById('chart-icicle').data[0].level === "


def test_what_is_too_narrow_in_the_flame_graph_is_drawn_when_its_box_is_chosen(unread, page_file):
    unread.set_viewport_size({"width": 390, "height": 900})
    unread.goto(page_file.as_uri())
    unread.locator("#chart-icicle").scroll_into_view_if_needed()
    unread.wait_for_selector("#chart-icicle[data-drawn] .slice", timeout=60000)
    few = unread.evaluate(BOXES)
    assert sum(key.endswith("/others, too narrow to draw") for key in few) == 3, "of each medium"
    for key in few:
        under = [value for parent, value in few.values() if parent == key]
        assert not under or sum(under) == few[key][1], "each box is the sum of what is under it"
    unread.locator("#chart-icicle .slicetext", has_text="python").first.click(force=True)
    unread.wait_for_function(LEVEL + "'/python'")
    assert len(unread.evaluate(BOXES).keys() - few.keys()) > 50
    unread.locator("#chart-icicle .pathbar", has_text="all sites").click(force=True)
    unread.wait_for_function(LEVEL + "'all'")
    assert unread.evaluate(BOXES) == few


@pytest.fixture(scope="module", params=VIEWS)
def diff_page(request, browser, tmp_path_factory):
    """The page of two reports."""
    file = tmp_path_factory.mktemp("diff") / "diff.html"
    older = whole_report()
    older.findings = older.findings[1:]
    older.sites = older.sites[40:]
    write_comparison(compare(older, whole_report()), file)
    width, colours = VIEWS[request.param]
    context = browser.new_context(color_scheme=colours, viewport={"width": width, "height": 900})
    page = watched(context.new_page())
    page.goto(file.as_uri())
    draw_all(page)
    yield page
    assert page.problems == [] and asked_of_others(page, file) == []
    context.close()


def test_the_page_of_a_difference(diff_page):
    assert diff_page.get_attribute("html", "data-drawn") == "true"
    assert diff_page.locator(".state").all_inner_texts() == ["new", "same", "same"]
    assert diff_page.locator("#chart-compare .scatterlayer .trace").count() == 2
    assert column(diff_page, "sites", 4)[0] == "+293 KiB"
    assert diff_page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    check_with_axe(diff_page)


def test_a_page_that_follows_keeps_what_its_reader_has_open(browser, tmp_path):
    from leakprobe.cli.follower import Follower
    from leakprobe.cli.serve import Pages, Server

    what, file = whole_report(), tmp_path / "run.leak"
    what.timeline, what.memory = what.timeline[:500], what.memory[:500]
    recorder = Recorder(str(file), what.run, {"warmup": 5})
    for row, memory in zip(what.timeline, what.memory):
        recorder.mark(row, memory)
    recorder.mark({**what.timeline[-1], "step": 501}, {**what.memory[-1], "step": 501}, what)
    page = watched(browser.new_page())
    with Server(Pages(Follower([file]), lambda found: found, redact=False, source=True), 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.goto(server.url)
        page.wait_for_selector("html[data-drawn=true]", timeout=60000)
        page.wait_for_selector("#live[data-state=running]")
        page.locator("#finding-3 > summary").click()
        page.locator('[data-tools="sites"] input').fill("part7.py")
        page.locator("#chart-memory").scroll_into_view_if_needed()
        page.wait_for_selector("#chart-memory[data-drawn]", timeout=60000)
        recorder.mark({**what.timeline[-1], "step": 777}, {**what.memory[-1], "step": 777}, what)
        recorder.close(what)
        page.wait_for_selector("#live[data-state=ended]", timeout=60000)
        page.wait_for_function(
            "document.getElementById('chart-memory').data[0].x.slice(-1)[0] === 777", timeout=60000
        )
        assert page.locator("#finding-3").get_attribute("open") is not None
        assert page.locator('[data-tools="sites"] input').input_value() == "part7.py"
        assert all(text.startswith("part7.py") for text in column(page, "sites", 1))
        check_with_axe(page)
        server.shutdown()
    own = ("http://127.0.0.1:", "blob:http://127.0.0.1:")
    assert page.problems == [] and all(url.startswith(own) for url in page.requests)
    page.close()
