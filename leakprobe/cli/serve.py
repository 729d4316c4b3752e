"""The page of a recording on this machine's loopback address, which follows a run that goes on.

Only this machine is answered, and only who knows the address that was printed: it has a secret in it, and the
name that a browser asks for must be this machine's, so that no page from elsewhere can read it.
"""

import http.server
import json
import secrets
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from leakprobe.cli.follower import Follower
from leakprobe.errors import LeakprobeError
from leakprobe.model.report import Report
from leakprobe.report.clean import clean
from leakprobe.report.html import Live, page

ADDRESS = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost")
#: Headers of each answer: nothing is kept, nothing is guessed, nothing is told to others.
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Pages:
    """What is served: made when it is asked for, and again when the recording has changed."""

    def __init__(self, follower: Follower, made_of: Callable[[Report], Report], redact: bool, source: bool):
        self._follower, self._made_of = follower, made_of
        self._redact, self._source = redact, source
        self._lock = threading.Lock()
        self._made: dict[bool, tuple[int, str]] = {}

    def news(self) -> str:
        """{"version", "state", "text"} as JSON."""
        with self._lock:
            self._follower.poll()
            found = {
                "version": self._follower.version,
                "state": self._follower.state,
                "text": self.said(),
            }
        return json.dumps(found)

    def said(self) -> str:
        """What is followed, and how far it is."""
        return clean(self._follower.describe())

    def page(self, whole: bool) -> str | None:
        """The page as of now, or None while nothing can be read."""
        with self._lock:
            if whole:
                self._follower.poll()
            recording, version = self._follower.recording, self._follower.version
            if recording is None:
                return None
            if self._made.get(whole, (-1, ""))[0] != version:
                live = Live(self.said(), self._follower.state, version)
                report = self._made_of(recording.report)
                text = page(report, redact=self._redact, source=self._source, live=live, whole=whole)
                self._made[whole] = version, text
            return self._made[whole][1]


class Server(http.server.ThreadingHTTPServer):
    """Listens on loopback only.  ``url``: where the page is."""

    daemon_threads = True

    def __init__(self, pages: Pages, port: int):
        self.pages, self.secret = pages, secrets.token_urlsafe(18)
        try:
            super().__init__((ADDRESS, port), Handler)
        except (OSError, OverflowError) as error:
            raise LeakprobeError(
                f"--serve: port {port} of {ADDRESS} can't be used: {error}; "
                "without a number, a free port is chosen",
                "bad_argument",
            ) from error

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_address[1]}/{self.secret}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that has gone in the middle is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    """GET of the page, of its newer parts, and of the news that there are any."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "leakprobe", ""

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        path, _, query = self.path.partition("?")
        folder, slash, name = path.removeprefix("/").partition("/")
        if not self.is_asked_here() or not secrets.compare_digest(folder.encode(), server.secret.encode()):
            return self.answer(403, "text/plain", "This address is not one that leakprobe gave out.")
        if not slash:  # from there the page could not ask for its news
            return self.answer(HTTPStatus.MOVED_PERMANENTLY, "text/plain", "", Location=f"/{folder}/")
        if name == "news":
            return self.answer(200, "application/json", server.pages.news())
        if name in ("", "page"):
            text = server.pages.page(whole=query != "part=1")
            if text is None:
                return self.answer(503, "text/plain", server.pages.said(), Refresh="1")
            return self.answer(200, "text/html", text)
        return self.answer(404, "text/plain", "There is no such page.")

    def is_asked_here(self) -> bool:
        """True if the name that was asked for is this machine's: another one may have been pointed at it."""
        return self.headers.get("Host", "").partition(":")[0].lower() in NAMES

    def answer(self, status: int, kind: str, text: str, **more: str) -> None:
        data = text.encode(errors="backslashreplace")
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": f"{kind}; charset=utf-8", **more}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except ConnectionError:  # the reader has gone
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the terminal is the user's."""
