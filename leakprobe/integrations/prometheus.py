"""Memory for Prometheus, with prometheus_client: as text on request, or from a server that it scrapes.

with leakprobe.watch() as probe:
    prometheus_client.REGISTRY.register(MemoryCollector(probe))
    prometheus_client.start_http_server(9000)
    for batch in probe.steps(loader):
        train_step(batch)

Nothing is served or sent unless you ask for it.
"""

from collections.abc import Iterator
from typing import Any

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
except ImportError:
    raise ImportError(
        "leakprobe.integrations.prometheus needs prometheus_client: python3 -m pip install prometheus-client"
    ) from None

from leakprobe import launchers
from leakprobe.probe import Probe

#: Key of Probe.progress() => name and help of a gauge.
GAUGES = {
    "rss": ("leakprobe_resident_bytes", "Resident memory of the process."),
    "suspects": ("leakprobe_suspects", "Groups of objects and blocks that grew as of the last check."),
    "bytes_per_step": ("leakprobe_suspects_bytes_per_step", "How fast these grow, in bytes per step."),
}


class MemoryCollector:
    """A collector for a registry of prometheus_client: a probe's memory as of its last mark.

    leakprobe_live_bytes{medium}, leakprobe_resident_bytes, leakprobe_suspects,
    leakprobe_suspects_bytes_per_step and leakprobe_steps_total; in a job of several ranks each has the label
    "rank".  Before the first mark there are none.  A scrape may come from any thread, and waits for a mark
    that is under way.
    """

    def __init__(self, probe: Probe):
        self._probe = probe

    def collect(self) -> Iterator[Any]:
        now = self._probe.progress()
        if now is None:
            return
        place = launchers.place()
        labels = {"rank": str(place.rank)} if place is not None and place.world_size > 1 else {}
        live = GaugeMetricFamily(
            "leakprobe_live_bytes", "Bytes alive, by kind of memory.", labels=["medium", *labels]
        )
        for medium, size in sorted(now["media"].items()):
            live.add_metric([medium, *labels.values()], size)
        yield live
        steps = CounterMetricFamily("leakprobe_steps", "Steps marked.", labels=[*labels])
        steps.add_metric([*labels.values()], now["step"])
        yield steps
        for key, (name, about) in GAUGES.items():
            if now[key] is not None:
                gauge = GaugeMetricFamily(name, about, labels=[*labels])
                gauge.add_metric([*labels.values()], now[key])
                yield gauge


def to_text(probe: Probe) -> str:
    """The metrics of MemoryCollector in Prometheus's text format."""
    registry = CollectorRegistry()
    registry.register(MemoryCollector(probe))
    text: bytes = generate_latest(registry)
    return text.decode()
