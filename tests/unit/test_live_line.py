"""The live line: on a terminal only, below what the script prints, and gone at the end."""

import fcntl
import importlib.util
import io
import os
import queue
import struct
import subprocess
import sys
import termios
import threading

import forked
import pytest

from leakprobe.cli import live_line as live

#: Ends each read() of the terminal.
END = "\x1c"
PROGRESS = {
    "step": 1200,
    "rss": 2**30,
    "media": {},
    "looked": 1100,
    "suspects": 2,
    "bytes_per_step": 4.0 * 2**20,
}


class Probe:
    def progress(self):
        return PROGRESS


@pytest.fixture
def terminal():
    """(stream, read): a terminal of 24 lines and 80 columns, and what was written to it since the last
    read().

    A thread takes what is written: a terminal that nobody reads stops its writer after some KiB.
    """
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    stream = os.fdopen(theirs, "w")
    parts: queue.SimpleQueue = queue.SimpleQueue()

    def drain():
        try:
            while part := os.read(ours, 65536):
                parts.put(part)
        except OSError:
            pass  # the other side is closed

    def read() -> str:
        stream.write(END)
        stream.flush()
        seen = parts.get()
        while not seen.endswith(END.encode()):
            seen += parts.get()
        return seen.decode().removesuffix(END)

    thread = threading.Thread(target=drain)
    thread.start()
    yield stream, read
    stream.close()
    thread.join()
    os.close(ours)


def test_the_line_is_drawn_on_the_last_row_and_given_back(terminal, monkeypatch):
    stream, read = terminal
    monkeypatch.setattr(sys, "__stderr__", stream)
    monkeypatch.setenv("TERM", "xterm")
    line = live.LiveLine.if_wanted()
    line.show(Probe())
    first = read()
    assert "\x1b[1;23r" in first, "the script's lines scroll above the last one"
    assert (
        "\x1b[24;1H\x1b[2K\x1b[2mleakprobe  step 1,200   RSS 1.0 GiB   +4.0 MiB/step in 2 suspects (step 1,100)"
        in first
    )
    assert first.endswith("\x1b8"), "the cursor is back where the script had it"
    line.show(Probe())
    assert read() == "", "not more often than every quarter of a second"
    line._next = 0.0
    line.show(Probe())
    again = read()
    assert "r" not in again.replace("leakprobe", "").split("\x1b[2m")[0], "the region is set once"
    line.end()
    assert "\x1b[r\x1b[24;1H\x1b[2K" in read()


@pytest.mark.parametrize("changes,words", [
    ({"looked": None}, "not checked yet"), ({"suspects": 0}, "nothing grows (step 1,100)"), ({"suspects": 1}, "in 1 suspect (step 1,100)"), ({"rss": None}, "RSS not known"),
])  # fmt: skip
def test_what_the_line_says(changes, words):
    assert words in live.line_of({**PROGRESS, **changes})


def test_a_narrow_line_has_what_grows():
    assert "RSS" in live.line_within(PROGRESS, 79)
    narrow = live.line_within(PROGRESS, 39)
    assert len(narrow) == 39 and "RSS" not in narrow and "step 1,200   +4.0 MiB/step" in narrow


def test_no_line_in_a_pipe_or_on_a_terminal_that_can_not(terminal, monkeypatch):
    monkeypatch.setattr(sys, "__stderr__", io.StringIO())
    assert live.LiveLine.if_wanted() is None
    monkeypatch.setattr(sys, "__stderr__", terminal[0])
    for name, value in (("TERM", "dumb"), ("LEAKPROBE_LIVE", "0")):
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv(name, value)
        assert live.LiveLine.if_wanted() is None


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_a_run_on_a_terminal_shows_it_and_a_piped_one_does_not(terminal, tmp_path):
    script = tmp_path / "s.py"
    script.write_text(
        "import torch\nw = torch.nn.Linear(2, 2); o = torch.optim.SGD(w.parameters(), lr=0.1)\n"
        "for i in range(16): w(torch.ones(1, 2)).sum().backward(); o.step(); print('step', i)\n"
    )
    stream, read = terminal
    command = ["-m", "leakprobe", "run", str(script)]
    environment = {**os.environ, "TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, *command],
        stderr=stream,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
        timeout=900,
    )
    shown = read()
    assert done.returncode == 0 and "leakprobe  step " in shown and "\x1b[r" in shown.split("steady")[0]
    piped = forked.run(command, env=environment, trains=True)
    assert "\x1b" not in piped.stderr and piped.stdout == done.stdout
