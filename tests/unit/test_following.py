"""A recording is followed while it is written, on the terminal and by a page: nothing is lost, nobody else is
answered.
"""

import asyncio
import http.client
import io
import json
import os
import subprocess
import sys
import textwrap
import threading
import types
import urllib.parse

import pytest
from sample_reports import finding, report

from leakprobe.cli import main
from leakprobe.cli.follower import Follower
from leakprobe.errors import LeakprobeError
from leakprobe.model.frames import Frame
from leakprobe.record.layout import VERSION_AT
from leakprobe.recording import load_merged

STEPS = 1000
#: A run that keeps something in each step, and says at its end what its recorder lost.  It ends when its
#: standard input does, so that a follower sees it run.
GROWING = textwrap.dedent(
    """
    import sys, leakprobe
    kept = []
    with leakprobe.watch(record=sys.argv[1]) as probe:
        for i in range(int(sys.argv[2])):
            kept.append([float(i + k) for k in range(40)])
            probe.step()
            if i == int(sys.argv[2]) // 2:
                print("half", flush=True)
                sys.stdin.readline()
    print(probe._recorder.lost)
    """
)


class Run:
    """The run, halted at its half until go()."""

    def __init__(self, path, steps=STEPS):
        self.path = str(path)
        command = [sys.executable, "-c", GROWING, self.path, str(steps)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait_for_half(self) -> None:
        assert self.process.stdout.readline() == "half\n"

    def go(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> str:
        """Marks that its recorder lost."""
        return self.process.communicate(timeout=300)[0].strip()


@pytest.fixture
def run(tmp_path):
    found = Run(tmp_path / "run.leak")
    yield found
    found.process.kill()
    found.process.communicate()


def follow(follower, until) -> list:
    """The recordings that were read until one is as wanted."""
    seen = []
    for _ in range(6000):
        newer = follower.poll()
        if newer is not None:
            seen.append(newer)
            if until(newer):
                return seen
        threading.Event().wait(0.01)
    raise AssertionError(f"not seen: {follower.describe()}")


def steps_of(recording) -> list:
    return [row["step"] for row in recording.report.timeline]


def test_a_run_is_followed_to_its_end_and_nothing_is_lost(run):
    follower = Follower([run.path])
    run.wait_for_half()
    seen = follow(follower, lambda recording: len(steps_of(recording)) > STEPS // 4)
    assert seen[-1].state == "running" and "running, step" in follower.describe()
    run.go()
    seen += follow(follower, lambda recording: recording.state == "ended")
    assert run.end() == "0"
    for before, after in zip(seen, seen[1:], strict=False):
        assert steps_of(after)[: len(steps_of(before))] == steps_of(before), "what was seen stays"
    assert steps_of(seen[-1]) == list(range(1, STEPS + 1))
    assert seen[-1].report.verdict == "growing" and follower.version == len(seen)
    assert follower.poll() is None, "nothing is read again that has not changed"


def test_a_killed_run_is_seen_to_have_ended(run):
    follower = Follower([run.path])
    run.wait_for_half()
    follow(follower, lambda recording: recording.state == "running")
    run.process.kill()
    run.process.wait()
    assert follow(follower, lambda recording: recording.state == "cut off")


def test_what_can_not_be_read_is_said_and_waited_for(tmp_path):
    path = tmp_path / "run.leak"
    follower = Follower([path])
    assert follower.state == "waiting" and follower.poll() is None and follower.version == 0
    assert "Waiting for" in follower.describe()
    path.write_bytes(b"no recording")
    for _ in range(6000):
        if follower.poll() is None and "is not a recording" in follower.trouble:
            break
        threading.Event().wait(0.01)
    assert "is not a recording" in follower.trouble
    path.unlink()
    report([finding()]).save(path)
    seen = follow(follower, lambda recording: True)
    assert seen[-1].report.verdict == "growing" and follower.trouble is None


def test_one_reading_at_a_time(tmp_path, monkeypatch):
    path = tmp_path / "run.leak"
    report([finding()]).save(path)
    follower, meanwhile = Follower([path]), []

    def load(paths):
        if not meanwhile:
            meanwhile.append(follower.poll())
        return load_merged(paths)

    monkeypatch.setattr("leakprobe.cli.follower.load_merged", load)
    assert follower.poll() is not None and meanwhile == [None] and follower.version == 1


def test_a_failed_reading_is_rested_from_too(tmp_path, monkeypatch):
    (tmp_path / "run.leak").write_bytes(b"no recording")
    clock, readings = [1000.0], []

    def load(paths):
        readings.append(clock[0])
        clock[0] += 1.0
        return load_merged(paths)

    monkeypatch.setattr("leakprobe.cli.follower.load_merged", load)
    monkeypatch.setattr("leakprobe.cli.follower.time", types.SimpleNamespace(monotonic=lambda: clock[0]))
    follower = Follower([tmp_path / "run.leak"])
    for clock[0] in (1000.0, 1001.5, 1004.9, 1005.1):
        follower.poll()
    assert readings == [1000.0, 1005.1]


# ---- the terminal ----


def test_the_live_view_follows(run):
    pytest.importorskip("textual", reason="the live view needs textual")
    from textual.widgets import DataTable, Sparkline, Static

    from leakprobe.cli.live_view import LiveView

    async def look(app, pilot, until):
        for _ in range(1500):
            await pilot.pause(0.02)
            if until():
                return
        raise AssertionError(app.follower.describe())

    async def drive():
        app = LiveView(Follower([run.path]))
        async with app.run_test(size=(120, 40)) as pilot:
            await look(app, pilot, lambda: app.report is not None and app.report.findings)
            assert app.follower.state == "running"
            assert "KiB/step" in str(app.query_one("#findings", DataTable).get_row_at(0)[1])
            run.go()
            await look(
                app, pilot, lambda: app.follower.state == "ended" and len(app.report.timeline) == STEPS
            )
            assert [row["step"] for row in app.report.timeline] == list(range(1, STEPS + 1))
            assert f"ended, step {STEPS:,}" in str(app.query_one("#status", Static).render())
            await pilot.press("2")
            await pilot.pause()
            assert len(app.query(Sparkline)) >= 2
            await pilot.press("p", "3", "q")

    run.wait_for_half()
    asyncio.run(drive())
    assert run.end() == "0"


class Still:
    """What a Follower of a report that does not change is to the live view."""

    version, state, trouble = 1, "ended", None

    def __init__(self, shown):
        self.recording = types.SimpleNamespace(report=shown)

    def poll(self) -> None: ...

    def describe(self) -> str:
        return "[b]run[/x].leak: ended"


def see(shown, look) -> None:
    """Call look(app) once the live view shows the report."""
    pytest.importorskip("textual", reason="the live view needs textual")
    from leakprobe.cli.live_view import LiveView

    async def drive():
        app = LiveView(Still(shown))
        async with app.run_test(size=(160, 40)) as pilot:
            while app.report is None:
                await pilot.pause(0.01)
            for key in "1234":
                await pilot.press(key)
            look(app)

    asyncio.run(drive())


@pytest.mark.parametrize("name", ["Response[int]", "[/x]", "[link='", ":smile:"])
def test_names_of_the_program_are_no_markup(name):
    shown = report([finding(type=name, medium=name)], [])
    row = {"live_bytes": 1, "peak_bytes": 1}
    shown.timeline[0]["media"][name] = row
    site = {"medium": name, "type": name, "live_bytes": 9, "live_count": 3, "bytes_per_step": 1.0}
    frame = Frame(f"/home/me/{name}.py", 3, name)
    shown.sites = [{**site, "survivors": [], "allocation": frame, "allocation_stack": [frame]}]

    def look(app):
        from rich.console import Console
        from textual.widgets import DataTable, Static

        finding_row = app.query_one("#findings", DataTable).get_row_at(0)
        assert name in finding_row[3].plain
        site_row = app.query_one("#sites", DataTable).get_row_at(0)
        assert name in site_row[0].plain and [cell.plain for cell in site_row[1:3]] == [name, name]
        assert "[b]run[/x].leak" in str(app.query_one("#status", Static).render())
        from leakprobe.cli.live_view import memory_table

        text = io.StringIO()
        Console(file=text, width=160).print(memory_table(shown))
        assert name in text.getvalue()

    see(shown, look)


def test_a_report_without_notes_says_so():
    def look(app):
        from textual.widgets import Static

        assert str(app.query_one("#notes", Static).render()) == "There are no notes."

    see(report([finding()]), look)


class Stream(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self.isatty = lambda: is_terminal


@pytest.fixture
def live(tmp_path, monkeypatch):
    """live(stdin and stderr are terminals) -> the exit code of `leakprobe live` on a screen of its own."""
    pytest.importorskip("textual", reason="the live view needs textual")
    from leakprobe.cli.live_view import LiveView

    screen = LiveView.run
    monkeypatch.setattr(LiveView, "run", lambda self: screen(self, headless=True))
    report([finding()]).save(tmp_path / "run.leak")

    def run(has_stdin=True, has_stderr=True):
        monkeypatch.setattr(sys, "__stdin__", Stream(has_stdin))
        monkeypatch.setattr(sys, "__stderr__", Stream(has_stderr))
        return main(["live", str(tmp_path / "run.leak")])

    return run


@pytest.mark.parametrize("streams", [(True, False), (False, True)])
def test_without_a_terminal_the_live_view_does_not_begin(live, capsys, monkeypatch, streams):
    from leakprobe.cli.live_view import LiveView

    monkeypatch.setattr(LiveView, "run", fail)
    assert live(*streams) == 2
    assert "the live view needs a terminal; --json prints lines" in capsys.readouterr().err


def test_a_live_view_that_fails_is_a_defect(live, monkeypatch):
    from leakprobe.cli.live_view import LiveView

    monkeypatch.setattr(LiveView, "show_status", fail)
    assert live() == 70


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_a_key_ends_the_live_view(live, monkeypatch, key):
    from leakprobe.cli.live_view import LiveView

    monkeypatch.setattr(LiveView, "show_report", lambda self, _: self.simulate_key(key))
    assert live() == 1


def test_without_textual_the_message_says_what_to_install(monkeypatch, tmp_path, capsys):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "textual" else found(name, *a)
    )
    assert main(["live", str(tmp_path / "x.leak")]) == 2
    assert "python3 -m pip install textual" in capsys.readouterr().err


def fail(*_):
    raise AssertionError("it waits")


@pytest.mark.parametrize("arguments", [["live", "--json"], ["live"], ["report", "--serve"]])
def test_what_never_becomes_a_recording_is_not_waited_for(tmp_path, monkeypatch, capsys, arguments):
    if arguments != ["live", "--json"]:
        pytest.importorskip("textual" if arguments == ["live"] else "plotly", reason="needs it")
    monkeypatch.setattr("leakprobe.cli.live.time.sleep", fail)
    monkeypatch.setattr("leakprobe.cli.serve.Server.serve_forever", fail)
    (tmp_path / "notes.txt").write_text("not a recording\n")
    assert main([arguments[0], str(tmp_path / "notes.txt"), *arguments[1:]]) == 2
    assert "notes.txt is not a recording" in capsys.readouterr().err
    newer = tmp_path / "newer.leak"
    report().save(newer)
    with open(newer, "r+b") as file:
        file.seek(VERSION_AT)
        file.write((99).to_bytes(4, "big"))
    assert main([arguments[0], str(tmp_path / "x.leak"), str(newer), *arguments[1:]]) == 2
    assert "schema 99" in capsys.readouterr().err


def test_what_is_waited_for_is_said_once(tmp_path, monkeypatch, capsys):
    path, waits = tmp_path / "run.leak", []

    def sleep(_):
        waits.append(1)
        if len(waits) == 3:
            report().save(path)

    monkeypatch.setattr("leakprobe.cli.live.time.sleep", sleep)
    assert main(["live", "--json", str(path)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["state"] == "ended"
    assert err.startswith("leakprobe: ") and err.count("run.leak") == 1


# ---- the page ----


@pytest.fixture
def served(tmp_path):
    """serve(follower) -> the address of a server of its page."""
    for package in ("jinja2", "plotly"):
        pytest.importorskip(package, reason=f"the page needs {package}")
    from leakprobe.cli.serve import Pages, Server

    servers = []

    def serve(follower):
        server = Server(Pages(follower, lambda found: found, redact=False, source=True), 0)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server.url

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def get(url: str, name: str = "", host: str | None = None):
    """(status, text, headers)."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.request("GET", parts.path + name, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), dict(answer.getheaders())


def test_the_served_page_follows(run, served):
    follower = Follower([run.path])
    url = served(follower)
    run.wait_for_half()
    follow(follower, lambda recording: len(steps_of(recording)) > STEPS // 4)
    status, text, headers = get(url)
    assert status == 200 and "connect-src 'self'" in text and 'data-state="running"' in text
    assert headers["Cache-Control"] == "no-store"
    version = json.loads(get(url, "news")[1])["version"]
    run.go()
    assert run.end() == "0"
    news = {"state": "running"}
    for _ in range(600):
        news = json.loads(get(url, "news")[1])
        if news["state"] == "ended":
            break
        threading.Event().wait(0.05)
    assert news["state"] == "ended" and news["version"] > version and f"step {STEPS:,}" in news["text"]
    part = get(url, "page?part=1")[1]
    assert len(part) < len(text) / 4, "the charts' script is not sent again"
    data = json.loads(part.partition('id="data">')[2].partition("</script>")[0])
    assert data["memory"]["step"][-1] == STEPS and "connect-src" in part


def test_only_who_knows_the_address_is_answered(tmp_path, served):
    path = tmp_path / "run.leak"
    report([finding()]).save(path)
    url = served(Follower([path]))
    parts = urllib.parse.urlsplit(url)
    assert parts.hostname == "127.0.0.1" and get(url)[0] == 200
    for host in (f"localhost:{parts.port}", f"LocalHost:{parts.port}", "127.0.0.1", "localhost"):
        assert get(url, host=host)[0] == 200, "without a port where it is 80"
    for host in (f"evil.example:{parts.port}", "evil.example", "127.0.0.1.evil.example", ":80"):
        assert get(url, host=host)[0] == 403
    status, _, headers = get(url.rstrip("/"))
    assert status == 301 and headers["Location"] == parts.path
    for name in ("", "x/news", f"{'x' * 24}/"):
        status, text, _ = get(f"http://127.0.0.1:{parts.port}/{name}")
        assert status == 403 and "leak" not in text.replace("leakprobe", "")
    assert get(url, "../../etc/passwd")[0] == 404 and get(url, "other")[0] == 404


def test_a_page_that_is_there_early_comes_again(tmp_path, served):
    path = tmp_path / "run\x1b[31m.leak"
    url = served(Follower([path]))
    status, text, headers = get(url)
    assert status == 503 and headers["Refresh"] == "1"
    assert text.startswith("Waiting for ") and "Errno" not in text and "\x1b" not in text
    report([finding()]).save(path)
    while status == 503:
        status, text, headers = get(url)
    assert status == 200 and "Refresh" not in headers and "\x1b" not in text


def test_a_reader_that_goes_away_is_not_told_on_the_terminal(tmp_path, capsys):
    from leakprobe.cli.serve import Pages, Server

    with Server(Pages(Follower([tmp_path]), lambda found: found, False, True), 0) as server:
        for error in (ConnectionResetError(), BrokenPipeError(), ValueError("a defect")):
            try:
                raise error
            except Exception:
                server.handle_error(None, ("127.0.0.1", 1))
    err = capsys.readouterr().err
    assert "a defect" in err and "ConnectionResetError" not in err and "BrokenPipeError" not in err


def test_what_serve_says_on_the_terminal(tmp_path, monkeypatch, capsys):
    for package in ("jinja2", "plotly"):
        pytest.importorskip(package, reason=f"the page needs {package}")
    path = tmp_path / "run\x1b[31m.leak"
    report([finding()]).save(path)

    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("leakprobe.cli.serve.Server.serve_forever", stop)
    assert main(["report", str(path), "--serve"]) == 1
    err = capsys.readouterr().err
    assert "run\\x1b[31m.leak: ended" in err and "\x1b" not in err
    with pytest.raises(SystemExit):
        main(["report", "--serve", str(path)])
    assert "is no port (put --serve behind the recordings)" in " ".join(capsys.readouterr().err.split())


def test_serve_writes_no_file_and_needs_a_free_port(tmp_path, capsys):
    path = tmp_path / "run.leak"
    report([finding()]).save(path)
    assert main(["report", str(path), "--serve", "--html", str(tmp_path / "x.html")]) == 2
    assert "--serve writes no file" in capsys.readouterr().err and not os.path.exists(tmp_path / "x.html")
    from leakprobe.cli.serve import Pages, Server

    pages = Pages(Follower([path]), lambda found: found, redact=False, source=True)
    with Server(pages, 0) as server, pytest.raises(LeakprobeError, match="can't be used"):
        Server(pages, server.server_address[1])
