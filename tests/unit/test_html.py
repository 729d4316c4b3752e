"""The page: what is in it, what is left out, and that nothing of the watched program becomes markup."""

import json
import re
import stat
import types

import pytest
from sample_reports import USER, finding, many_sites, note, peak, report

from leakprobe.errors import LeakprobeError
from leakprobe.model.frames import Frame

pytest.importorskip("jinja2", reason="the page needs jinja2")
pytest.importorskip("plotly", reason="the page needs plotly")

from leakprobe.report import charts, diff_html, html, notebook, pages, pictures
from leakprobe.report.compare import compare
from leakprobe.report.words import Words

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


@pytest.mark.parametrize(
    "measured, why", [(0, "0 steps measured, at least 9 are needed"), (60, "came too rarely")]
)
def test_a_page_without_a_verdict_says_one_reason(measured, why):
    text = html.page(report(verdict="inconclusive", measured=measured))
    assert text.count(why) >= 2 and "Too few steps" not in text


class Counted(list):
    """Rows that count how often they are gone through."""

    passes = 0

    def __iter__(self):
        Counted.passes += 1
        return super().__iter__()


@pytest.mark.parametrize("render", [html.page, notebook.of_report], ids=["page", "notebook"])
def test_what_a_page_takes_grows_by_findings_and_sites_not_by_their_product(render):
    def passes(count):
        frames = [Frame(f"/home/me/m{k}.py", k + 1, "f") for k in range(count)]
        found = [
            finding(fingerprint=f"{k:012x}", allocation=f, allocation_stack=[f]) for k, f in enumerate(frames)
        ]
        what = report(found)
        site = {"medium": "cpu", "type": None, "live_bytes": 9, "live_count": 3, "bytes_per_step": 1.0}
        what.sites = Counted(
            {**site, "survivors": [[1, 2, 3, 9]], "allocation": f, "allocation_stack": [f]} for f in frames
        )
        what.lines = Counted(
            {"filename": f.filename, "lineno": f.lineno, "bytes_per_step": 1.0, "live_bytes": 2}
            for f in frames
        )
        what.source = {f.filename: {f.lineno: "f()"} for f in frames}
        Counted.passes = 0
        assert "survivors" in render(what) or "<svg" in render(what)
        return Counted.passes

    assert passes(3) == passes(9)


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
    assert data_of(text)["memory"]["media"] == {EVIL.replace("\x1b", "\\x1b"): [1]}


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


@pytest.mark.parametrize(
    "text, shown",
    [
        (
            "in the recording /home/me/Acme Merger 2026/q3 plans/run.leak: gone",
            "in the recording run.leak: gone",
        ),
        ("/home/me/train.py:58 and /home/you/made.py", "train.py:58 and made.py"),
        ("/home/me/train.py 3.0 KiB/step of I/O", "train.py 3.0 KiB/step of I/O"),
        ("files of /dev/shm, 3 B/step, grow", "files of shm, 3 B/step, grow"),
        ("data/train and/or <a/b>", "data/train and/or <a/b>"),
        ("/home/me/v1.2 (final, mine): it's/data/x.bin", "x.bin"),
        ("/home/me/v1.2 (final, mine): it's/x.bin of 3", "x.bin of 3"),
    ],
)
def test_redacted_texts(text, shown):
    frame = type(USER)("/home/me/v1.2 (final, mine): it's/train.py", 50, "step")
    words = Words(True, [report([finding(allocation_stack=[frame])])])
    assert words(text) == shown and Words()(text) == text


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
    assert values[""] == 25 and values["/cpu"] == 15 and values["/cpu/training_step  train.py:58"] == 10
    alone = "/cpu/train.py (callers not known)"
    assert values[alone] == values[f"{alone}/training_step  train.py:58"] == 5
    assert values["/numpy/line not known/buffers of numpy"] == 10
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


@pytest.mark.parametrize("tail", [b"}));", b"})); \n", b"}))"])
def test_a_script_that_is_one_function_is_marked_as_called_at_once(tail):
    umd = (
        b"(\nfunction(root, factory) {\n root.X = factory();\n} (this, () => {\nreturn [() => {\n}];\n" + tail
    )
    marked = umd.replace(b"this, () =>", b"this, (() =>").replace(b"}))", b"})))")
    assert pages.called_at_once(umd) == marked
    for other in (b"var Plotly = (() => {\n})();", b"", b"define([], function() {\n});"):
        assert pages.called_at_once(other) == other


def test_small_boxes_are_put_together():
    what = report()
    frames = [type(USER)(f"/x/{name}.py", 1, "f") for name in "abc"]
    what.sites = [
        {"medium": "cpu", "type": None, "live_bytes": size, "live_count": 1, "bytes_per_step": None,
         "survivors": [], "allocation": USER, "allocation_stack": [frame, USER]}
        for frame, size in zip(frames, (100_000, 9, 8))
    ]  # fmt: skip
    tree = data_of(html.page(what))["icicle"]
    values = dict(zip(tree["ids"], tree["values"]))
    assert values["/cpu/training_step  train.py:58/2 smaller"] == 17 and len(values) == 6


def test_labels_are_readable():
    words = Words()
    frame = type(USER)
    assert words.label(frame("/x/torch/optim/__init__.py", 3, "f")) == "f  optim/__init__.py:3"
    assert words.label(frame("/x/a.py", 3, "go.<locals>.<listcomp>")) == "go.list comprehension  a.py:3"
    assert words.label(frame("/x/a.py", 3, "<module>")) == "top level  a.py:3"
    what = report()
    stack = [frame("/t/linear.py", 1, "forward"), frame("/t/module.py", 2, "Module._call_impl"), USER]
    what.sites = [
        {"medium": "cpu", "type": None, "live_bytes": 1, "live_count": 1, "bytes_per_step": None,
         "survivors": [], "allocation": USER, "allocation_stack": stack}
    ]  # fmt: skip
    labels = data_of(html.page(what))["icicle"]["labels"]
    assert labels[2:4] == ["training_step  train.py:58", "forward  linear.py:1"]


def test_roles_are_drawn_where_they_were_read():
    what = report()
    assert "no torch optimizer took a step" in html.page(what)
    what.memory = [{**what.memory[0], "cpu as parameter": 10, "cpu as activation": 30, "cpu as tail": 1}]
    text = html.page(what)
    roles = data_of(text)["roles"]["cpu"]
    assert roles["step"] == [1] and roles["roles"]["parameter"] == [10] and roles["roles"]["batch"] == [0]
    section = text.partition('<section id="roles"')[2].partition("</section>")[0]
    assert ">40 B<" in section and ">30 B<" in section


def test_the_highest_point_by_line_is_in_the_section_of_roles():
    what = report()
    what.memory[0]["cpu as activation"] = 2**21
    what.peaks = [peak(Frame("/home/me/<b>.py", 7, "f"))]
    section = html.page(what).partition('<section id="roles"')[2].partition("</section>")[0]
    assert "What was live in cpu at its highest point of these steps, step 2" in section
    assert "<td>&lt;b&gt;.py:7 f</td>" in section and "<td>line not known</td>" in section
    assert (
        "/home/me" not in html.page(what, redact=True).partition('id="roles"')[2].partition("</section>")[0]
    )


def test_peaks_of_epochs_are_the_highest_rows():
    what = report()
    sizes = [(1, 0, 10, 40), (2, 0, 20, 70), (3, 0, 5, 60), (4, 1, 9, 9), (5, 1, 8, 90)]
    what.timeline = [
        {"step": s, "epoch": e, "time": 0.1, "media": {"cpu": {"live_bytes": live, "peak_bytes": peak}}}
        for s, e, live, peak in sizes
    ]
    text = html.page(what)
    assert data_of(text)["peaks"] == {
        "cpu": {"epoch": [0, 1], "step": [2, 5], "peak": [70, 90], "end": [5, 8]}
    }
    assert 'id="peaks"' in text and "1 to 3" in text
    assert 'id="peaks"' not in html.page(report()), "one epoch has nothing to compare"


def test_ten_thousand_sites_are_in_the_page_and_few_in_its_markup():
    what = many_sites(10_000)
    text = html.page(what)
    table = data_of(text)["tables"]["sites"]
    assert [len(column["texts"]) for column in table["columns"]] == [10_000] * 7
    assert text.count('<tr class="grows">') <= 12 and len(data_of(text)["icicle"]["ids"]) <= 401
    assert "10 of 10,000" in text and len(text) < 9 * 2**20


def test_a_picture_as_text_has_its_bars_where_they_were_born():
    text = pictures.levels([[0, 9, 3, 100], [90, 99, 3, 50]], 99)
    assert len(text) == pictures.MOST_LEVELS and text[0] == "z" and text[-1] not in "0z"
    assert set(text[6:42]) == {"0"} and pictures.levels([], 0) == "0" * pictures.MOST_LEVELS


def test_a_page_of_two_reports_says_what_became_of_each_finding():
    older = report([finding(), finding(fingerprint="a" * 12, bytes_per_step=100.0)])
    newer = report([finding(bytes_per_step=9.0 * 2**20), finding(fingerprint="b" * 12, type=EVIL)])
    text = diff_html.comparison_page(compare(older, newer))
    states = re.findall(r'<span class="state (\w+)">', text)
    assert states == ["new", "changed", "gone"] and "<s>+6.0 MiB/step</s>" in text
    assert "A: growing" in text and "B: growing" in text and "<script>alert" not in text
    assert data_of(text)["compare"]["rss"]["A"] == {"step": [1], "bytes": [10]}
    assert "No findings in either" in diff_html.comparison_page(compare(report(), report()))


def test_a_page_of_two_snapshots_has_their_rows():
    path = ({"text": "kept (list, 3 items)", "edge": "global", "type": "list"},)
    rows = [
        types.SimpleNamespace(
            medium="python", type=EVIL, where="a.py:3", count_diff=2, size_diff=2048, path=path
        ),
        types.SimpleNamespace(
            medium="cpu", type=None, where="b.py:4", count_diff=-1, size_diff=-5, path=None
        ),
    ]
    text = diff_html.diff_page(types.SimpleNamespace(rows=rows, steps=(3, 9)))
    assert (
        "From step 3 to step 9: 2 rows changed" in text and "+2.0 KiB" in text and "<script>alert" not in text
    )
    assert "kept (list, 3 items)" in text and "Findings, by what" not in text


def test_a_diff_can_be_written_as_a_page(tmp_path):
    from leakprobe.cli import main

    for name, found in (("a", report()), ("b", report([finding()]))):
        found.save(tmp_path / f"{name}.leak")
    paths = [str(tmp_path / name) for name in ("a.leak", "b.leak", "d.html")]
    assert main(["diff", paths[0], paths[1], "--html", paths[2]]) == 0
    assert "B: growing" in (tmp_path / "d.html").read_text()
    assert main(["diff", paths[0], paths[1], "--html", paths[1]]) == 2, "what is read is not written over"


def test_bytes_on_a_device_are_no_part_of_resident_memory():
    what = report()
    media = {"python": {"live_bytes": 1, "peak_bytes": 1}, "cuda:0": {"live_bytes": 50, "peak_bytes": 50}}
    what.timeline = [{"step": n, "epoch": 0, "time": n, "media": media} for n in (1, 2)]
    what.memory = [
        {"step": n, "rss": 100, "python_heap": 1, "native_accounted": 50, "probe_overhead": 9} for n in (1, 2)
    ]
    assert data_of(html.page(what))["memory"]["rest"] == [90, 90]


def test_the_picture_of_a_finding_is_of_its_type():
    what = report([finding(type="list", medium="python")])
    line = what.findings[0]
    row = {"medium": "python", "live_bytes": 900, "live_count": 9, "bytes_per_step": 1.0, "type": "dict",
           "survivors": [[1, 1, 9, 900]], "allocation": line.allocation,
           "allocation_stack": line.allocation_stack}  # fmt: skip
    what.sites = [row, {**row, "type": "list", "live_bytes": 70, "survivors": [[1, 1, 7, 70]]}]
    assert ": 7 alive" in html.finding_survivors(html.Known(what), line)
    what.sites = [row]
    assert "born in step 1: 9 alive" in html.finding_survivors(html.Known(what), line)


def test_redacted_pages_have_no_folders_in_the_source():
    what = report([finding()])
    what.source = {USER.filename: {USER.lineno: 'x = open("/home/me/secret-project/x.txt").read()'}}
    text = html.page(what, redact=True)
    assert "x.txt" in text and "secret-project" not in text
