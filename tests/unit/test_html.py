"""The page: what is in it, what is left out, and that nothing of the watched program becomes markup."""

import json
import re
import stat

import pytest
from sample_reports import USER, finding, note, report

from leakprobe.errors import LeakprobeError

pytest.importorskip("jinja2", reason="the page needs jinja2")
pytest.importorskip("plotly", reason="the page needs plotly")

from leakprobe.report import charts, html, pages, pictures

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "project" / "train.py"
    path.parent.mkdir()
    path.write_text("".join(f"line_{n} = {n}\n" for n in range(1, 100)))
    return path


def data_of(text: str) -> dict:
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL).group(1)
    )


def test_the_page_says_what_the_report_says():
    text = html.page(report([finding()], [note()]))
    for words in ("<h1>Growing</h1>", "+6.0 MiB/step", "360 MiB live", "a tensor is kept with its autograd graph", "keep loss.item(), train.py:61",
                  "history (list, 60 items)", "58 of 58 measured steps", "filling, 3 of 10", "no CUDA build of torch", "Linear.forward"):  # fmt: skip
        assert words in text, words
    assert "<h1>Steady</h1>" in html.page(report()) and "Nothing grows." in html.page(report())
    assert "Too few steps" in html.page(report(verdict="inconclusive", measured=0, warmup=0))


def test_the_holder_is_marked_on_the_path():
    text = html.page(report([finding()]))
    assert re.search(
        r'<li class="root holder">\s*<button[^>]*><span>history \(list, 60 items\)</span><em>grows</em>', text
    )


def test_what_comes_from_the_program_is_text():
    evil = finding(
        type=EVIL, evidence=EVIL, fix=EVIL, fingerprint=EVIL, medium=EVIL,
        path=[{"text": EVIL, "edge": EVIL, "type": EVIL}], cycle=[{"text": EVIL, "edge": EVIL, "type": EVIL}],
    )  # fmt: skip
    what = report([evil], [note(text=EVIL)])
    what.media = {EVIL: {**what.media["pinned"], "why_not": EVIL}}
    what.run = {"program": EVIL, "torch": EVIL, "recordings": EVIL}
    what.timeline = [
        {"step": 1, "epoch": 0, "time": 0.5, "media": {EVIL: {"live_bytes": 1, "peak_bytes": 1}}}
    ]
    what.sites = [{"medium": EVIL, "type": EVIL, "live_bytes": 9, "live_count": 3, "bytes_per_step": 1.0, "survivors": [[1, 2, 3, 9]],
                   "allocation": None, "allocation_stack": [USER]}]  # fmt: skip
    what.source = {USER.filename: {USER.lineno: EVIL}}
    text = html.page(what)
    assert "<script>alert" not in text and "<img" not in text and "\x1b" not in text
    assert len(re.findall("<script", text)) == 3
    assert data_of(text)["memory"]["media"] == {EVIL: [1]}


def test_only_its_own_script_may_run_and_nothing_is_loaded():
    text = html.page(report([finding()]))
    nonce = re.search(r"script-src 'nonce-([\w-]+)'", text).group(1)
    assert f'<script nonce="{nonce}">' in text and nonce not in html.page(report([finding()]))
    without_plotly = re.sub(r'<script type="text/plain" id="plotly">.*?</script>', "", text, flags=re.DOTALL)
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", without_plotly) and "default-src 'none'" in text


def test_source_is_shown_with_the_growth_of_its_lines(source):
    frame = type(USER)(str(source), 50, "step")
    what = report([finding(allocation=frame, allocation_stack=[frame], holder=None)])
    what.lines = [{"filename": str(source), "lineno": 50, "bytes_per_step": 2048.0, "live_bytes": 9}]
    text = html.page(what)
    assert "line_46 = 46" in text and "line_54 = 54" in text and "line_55" not in text
    assert re.search(r'<tr class="hot"><td>\+2\.0 KiB/step <i>allocates</i></td><td>50</td>', text)
    assert "line_50" not in html.page(what, source=False)


def test_redacted_pages_name_no_folder(source):
    frame = type(USER)(str(source), 50, "step")
    what = report(
        [
            finding(
                allocation=frame, allocation_stack=[frame], fix=f"look at {source}:50", evidence=str(source)
            )
        ],
        [note(text=f"in {source}")],
    )
    what.run = {"program": "/home/me/secret/train.py", "python": "3.11"}
    what.lines = [{"filename": str(source), "lineno": 50, "bytes_per_step": 2048.0, "live_bytes": 9}]
    assert "project" in html.page(what)
    text = html.page(what, redact=True, source=False)
    assert "project" not in text and "/home" not in text and "secret" not in text and "train.py:50" in text


def test_a_recording_brings_its_source_along(source, tmp_path):
    from leakprobe import recording

    frame = type(USER)(str(source), 50, "step")
    report([finding(allocation=frame, allocation_stack=[frame], holder=None)]).save(tmp_path / "run.leak")
    source.unlink()
    text = html.page(recording.load(tmp_path / "run.leak").report)
    assert "line_50 = 50" in text and "line_54 = 54" in text


def test_many_marks_are_thinned_and_the_page_stays_small():
    what = report([finding()])
    what.timeline = [
        {
            "step": n,
            "epoch": n // 1000,
            "time": n / 9,
            "media": {"python": {"live_bytes": n, "peak_bytes": n}},
        }
        for n in range(1, 20001)
    ]
    what.memory = [
        {"step": n, "rss": 3 * n, "python_heap": n, "native_accounted": 0, "probe_overhead": n}
        for n in range(1, 20001)
    ]
    text = html.page(what)
    memory = data_of(text)["memory"]
    assert len(memory["step"]) <= charts.MOST_POINTS + 1 and memory["step"][-1] == 20000
    assert memory["rest"][-1] == 20000 and len(memory["epochs"]) == 20
    assert len(text) < 3 * 2**20


def test_thinning_keeps_the_peaks():
    what = report()
    what.timeline = [{"step": n, "epoch": 0, "time": n / 9, "media": {}} for n in range(1, 20001)]
    what.memory = [
        {
            "step": n,
            "rss": {7777: 99, 13_131: 1}.get(n, 50),
            "python_heap": 0,
            "native_accounted": 0,
            "probe_overhead": 0,
        }
        for n in range(1, 20001)
    ]
    memory = data_of(html.page(what))["memory"]
    found = dict(zip(memory["step"], memory["rss"]))
    assert found[7777] == 99 and found[13_131] == 1 and memory["step"] == sorted(memory["step"])


def test_ranks_have_a_table_with_those_first_that_stand_out():
    what = report([], [note(kind="ranks", text="cpu: rank 0 in words")])
    assert 'id="ranks"' not in html.page(what) and "rank 0 in words" in html.page(what)
    what.ranks = [
        {"medium": "cpu", "rates": {r: 2048.0 if r != 5 else 2.0**20 for r in range(80)}, "outliers": [5]}
    ]
    text = html.page(what)
    section = text.partition('<section id="ranks"')[2].partition("</section>")[0]
    assert (
        section.index("+1.0 MiB/step") < section.index("+2.0 KiB/step")
        and section.count("stands out</span>") == 1
    )
    assert (
        section.count('<th scope="row">') == 64
        and "16 more ranks" in section
        and "rank 0 in words" not in text
    )


def test_the_icicle_adds_up():
    what = report()
    row = {
        "medium": "cpu",
        "type": None,
        "live_bytes": 10,
        "live_count": 1,
        "bytes_per_step": None,
        "survivors": [],
        "allocation": USER,
    }
    inner = type(USER)("/x/a.py", 1, "f")
    what.sites = [
        {**row, "allocation_stack": [inner, USER]},
        {**row, "live_bytes": 5, "allocation_stack": [USER]},
        {**row, "medium": "numpy", "allocation_stack": []},
    ]
    tree = data_of(html.page(what))["icicle"]
    values = dict(zip(tree["ids"], tree["values"]))
    assert values[""] == 25 and values["/cpu"] == 15 and values["/cpu/train.py:58 training_step"] == 15
    for key, value in values.items():
        children = [values[i] for i, parent in zip(tree["ids"], tree["parents"]) if parent == key]
        assert not children or sum(children) == value
    assert set(tree["parents"]) - {None} <= set(tree["ids"])


def test_bars_of_survivors_lie_where_they_were_born():
    text = pictures.survivors([[0, 9, 3, 100], [90, 99, 3, 50]], 99, 5)
    xs = [float(x) for x in re.findall(r'<rect x="([\d.]+)"', text)]
    heights = [
        float(h) for h in re.findall(r'<rect x="[\d.]+" y="[\d.]+" width="[\d.]+" height="([\d.]+)"', text)
    ]
    assert (
        xs[0] == 0
        and xs[1] == pytest.approx(0.9 * pictures.WIDTH)
        and heights[0] == pytest.approx(2 * heights[1], rel=0.1)
    )
    assert "born in steps 90 to 99: 3 alive, 50 B" in text
    assert "<svg" in pictures.survivors([], 0, 0)


def test_the_file_is_its_owners_and_a_missing_folder_is_an_error(tmp_path):
    report().to_html(tmp_path / "page.html")
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o600
    with pytest.raises(LeakprobeError, match="can't be written"):
        report().to_html(tmp_path / "missing" / "page.html")


def test_without_the_packages_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(pages, "PACKAGES", ("jinja2", "no_such_package"))
    with pytest.raises(
        LeakprobeError, match=r"the page needs no_such_package: python3 -m pip install no_such_package"
    ) as error:
        report().to_html(tmp_path / "page.html")
    assert error.value.code == "missing_package"


def test_a_plotly_without_its_script_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(pages, "plotly_script", lambda: tmp_path / "plotly.min.js")
    with pytest.raises(LeakprobeError, match=r"plotly\.min\.js, .* python3 -m pip install plotly") as error:
        report().to_html(tmp_path / "page.html")
    assert error.value.code == "missing_package"
