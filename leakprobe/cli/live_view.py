"""The terminal application of ``leakprobe live``, on textual.  It shows reports and computes nothing."""

import contextlib
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.css.query import NoMatches
from textual.widgets import DataTable, Footer, Sparkline, Static, TabbedContent, TabPane

from leakprobe.cli.follower import Follower
from leakprobe.model.finding import Finding
from leakprobe.model.report import Report
from leakprobe.model.roles import SHOWN_ROLES, roles_over_steps
from leakprobe.model.rows import live_bytes
from leakprobe.model.units import format_rate, format_size
from leakprobe.report.clean import clean
from leakprobe.report.text import (
    VERDICT_STYLE,
    amount_of,
    cause_text,
    frame_text,
    rows_of,
    verdict_line,
    what_grows,
)

#: Seconds between two questions whether the recording has changed, and marks in a sparkline.
INTERVAL_S, MOST_MARKS = 0.5, 240
#: Rows of the table of sites.
MOST_SITES = 200


class LiveView(App[None]):
    """Findings with all that is known of one, memory, sites and notes of the recording of a Follower."""

    TITLE = "leakprobe live"
    CSS = """
    #status { height: auto; padding: 0 1; background: $panel; }
    #verdict { height: auto; padding: 0 1; }
    #tabs { height: 1fr; }
    #memory-rows { padding: 0 1; height: auto; margin-bottom: 1; }
    #findings { height: 40%; min-height: 5; }
    #detail { border-top: solid $accent; padding: 0 1; }
    Sparkline { height: 3; margin: 0 1 1 1; }
    .name { padding: 0 1; }
    #sites { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False),
        Binding("p", "pause", "Pause"),
        Binding("1", "show('findings-tab')", "Findings"),
        Binding("2", "show('memory-tab')", "Memory"),
        Binding("3", "show('sites-tab')", "Sites"),
        Binding("4", "show('notes-tab')", "Notes"),
    ]

    def __init__(self, follower: Follower):
        super().__init__()
        self.follower = follower
        self.shown_version = 0
        self.report: Report | None = None
        self.is_paused = False
        self._chosen: str | None = None  # fingerprint of the finding whose details are shown

    def compose(self) -> ComposeResult:
        yield Static(clean(self.follower.describe()), id="status", markup=False)
        yield Static("", id="verdict")
        with TabbedContent(id="tabs"):
            with TabPane("Findings", id="findings-tab"):
                yield DataTable(id="findings", cursor_type="row", zebra_stripes=True)
                with VerticalScroll():
                    yield Static("", id="detail")
            with TabPane("Memory", id="memory-tab"), VerticalScroll(id="memory"):
                yield Static("No step was marked yet.", id="memory-rows")
            with TabPane("Sites", id="sites-tab"):
                yield DataTable(id="sites", cursor_type="row", zebra_stripes=True)
            with TabPane("Notes", id="notes-tab"), VerticalScroll():
                yield Static("", id="notes")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#findings", DataTable).add_columns("", "rate", "live", "what grows", "line")
        self.query_one("#sites", DataTable).add_columns(
            "allocated at", "type", "memory", "growth", "live", "count"
        )
        self.set_interval(INTERVAL_S, self.look)
        self.look()

    def action_pause(self) -> None:
        self.is_paused = not self.is_paused
        self.show_status()

    def action_show(self, tab: str) -> None:
        self.query_one(TabbedContent).active = tab

    @work(thread=True, exclusive=True)
    def look(self) -> None:
        """In a thread, since a long recording takes a moment to read."""
        if not self.is_paused:
            self.follower.poll()
            self.call_from_thread(self.take)

    def take(self) -> None:
        """Show what was read; while the application ends, its parts are gone one by one.

        The version is asked first: a recording that comes in between is shown again, not missed.
        """
        version, recording = self.follower.version, self.follower.recording
        with contextlib.suppress(NoMatches):
            self.show_status()
            if recording is not None and version != self.shown_version:
                self.shown_version = version
                self.show_report(recording.report)

    def show_report(self, report: Report) -> None:
        self.report = report
        self.query_one("#verdict", Static).update(
            Text(verdict_line(report), style=VERDICT_STYLE[report.verdict])
        )
        self.show_findings(report)
        self.show_memory(report)
        self.show_sites(report)
        notes = Text("\n").join(Text.assemble((f"{n.kind}  ", "cyan"), clean(n.text)) for n in report.notes)
        self.query_one("#notes", Static).update(notes if notes.plain else "There are no notes.")

    def show_status(self) -> None:
        pause = "   paused" if self.is_paused else ""
        self.query_one("#status", Static).update(clean(self.follower.describe()) + pause)

    # ---- findings ----

    def show_findings(self, report: Report) -> None:
        table = self.query_one("#findings", DataTable)
        chosen = self._chosen
        table.clear()
        for number, finding in enumerate(report.findings, 1):
            rate, _, live = amount_of(finding).partition("   ")
            line = frame_text(finding.allocation) if finding.allocation else ""
            cells = in_text(str(number), Text(rate, style="bold red"), live, what_grows(finding), line)
            table.add_row(*cells, key=f"{number} {finding.fingerprint}")
        row = next((i for i, f in enumerate(report.findings) if f.fingerprint == chosen), 0)
        if report.findings:
            table.move_cursor(row=row)
            self.show_detail(row)
        else:
            self.query_one("#detail", Static).update("Nothing grows so far.")

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        if event.data_table.id == "findings" and self.report is not None:
            self.show_detail(event.cursor_row)

    def show_detail(self, row: int) -> None:
        if self.report is None or not 0 <= row < len(self.report.findings):
            return
        finding = self.report.findings[row]
        self._chosen = finding.fingerprint
        with contextlib.suppress(NoMatches):
            self.query_one("#detail", Static).update(detail_of(finding))

    # ---- memory ----

    def show_memory(self, report: Report) -> None:
        if not report.timeline:
            return
        self.query_one("#memory-rows", Static).update(memory_table(report))
        box = self.query_one("#memory", VerticalScroll)
        for number, (name, values) in enumerate(series_of(report).items()):
            found = box.query(f"#line-{number}")
            least, most, now = (format_size(value) for value in (min(values), max(values), values[-1]))
            text = f"{name}   {least} to {most}, {now} now"
            if found:
                box.query_one(f"#name-{number}", Static).update(text)
                box.query_one(f"#line-{number}", Sparkline).data = values
            else:
                box.mount(Static(text, id=f"name-{number}", classes="name", markup=False))
                box.mount(Sparkline(values, id=f"line-{number}", summary_function=max))

    # ---- sites ----

    def show_sites(self, report: Report) -> None:
        table = self.query_one("#sites", DataTable)
        table.clear()
        for site in report.sites[:MOST_SITES]:
            stack = site["allocation_stack"]
            frame = site["allocation"] or (stack[0] if stack else None)
            cells = in_text(
                frame_text(frame) if frame else "line not known",
                site["type"] or "buffers",
                site["medium"],
                format_rate(site["bytes_per_step"]) if site["bytes_per_step"] else "",
                format_size(site["live_bytes"]),
                f"{site['live_count']:,}",
            )
            table.add_row(*cells)


def in_text(*cells: str | Text) -> list[Text]:
    """Cells of a table, which takes a plain string for markup: "list[int]" would lose what is in brackets."""
    return [Text(clean(cell)) if isinstance(cell, str) else cell for cell in cells]


def detail_of(finding: Finding) -> Table:
    """All that is known of one finding, as `leakprobe report` prints it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in rows_of(finding):
        style = "bold green" if label == "fix" else ""
        grid.add_row(Text(label, style="dim"), Text(clean(text), style=style))
    if not any(label == "cause" for label, _ in rows_of(finding)):
        grid.add_row(Text("cause", style="dim"), Text(cause_text(finding)))
    return grid


def series_of(report: Report) -> dict[str, list[float]]:
    """{"resident (RSS)": bytes at the last marks, medium: ...} of what had any."""
    rows, memory = report.timeline[-MOST_MARKS:], report.memory[-MOST_MARKS:]
    names = sorted({name for row in rows for name in row["media"]}, key=lambda n: (n != "python", n))
    found: dict[str, list[float]] = {}
    if all(row["rss"] is not None for row in memory):
        found["resident (RSS)"] = [row["rss"] for row in memory]
    for name in names:
        found[clean(name)] = [live_bytes(row["media"], name) for row in rows]
    return {name: values for name, values in found.items() if any(values)}


def memory_table(report: Report) -> Table:
    """Live and peak bytes of the last mark by medium, and by role where they were read."""
    last = report.timeline[-1]
    table = Table(
        box=None, pad_edge=False, title=f"step {last['step']:,}, epoch {last['epoch']}", title_justify="left"
    )
    for name in ("memory", "live", "peak of the step"):
        table.add_column(name, justify="left" if name == "memory" else "right")
    for medium, row in sorted(last["media"].items()):
        table.add_row(*in_text(medium, format_size(row["live_bytes"]), format_size(row["peak_bytes"])))
    for medium, readings in roles_over_steps(report.memory).items():
        step, roles = readings[-1]
        parts = ", ".join(f"{role} {format_size(roles[role])}" for role in SHOWN_ROLES if roles.get(role))
        table.add_row(Text(f"{clean(medium)} at step {step:,}: {parts}", style="dim"))
    return table
