"""What it costs a run that its recording is followed by `leakprobe live` and by `leakprobe report --serve`.

Pairs: a run of --steps steps of a fixed work each, recorded, alone and followed by both, in turn. The
followers are processes of their own: the terminal's application without a terminal, and the server with a
client that asks as the page does, once a second. "processor": seconds of the run's process; "commits put
off": marks that found the file held by a reader, of all commits; "lost": marks that are missing in the
recording, which must be none. The ratios of the pairs have a 95 % interval, by bootstrap. On
a machine that has other work the clock says nothing, and the processor time little below 5 %.
"""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap

from benchmarks import pairs

RUN = textwrap.dedent(
    """
    import json, sys, time, leakprobe
    from leakprobe.record import writer
    held, delay, commits, failed, commit = [0], [0.0], [0], writer.Recorder._failed, writer.Recorder._commit
    def counted_failure(self, error, began):
        held[0] += "locked" in str(error)
        delay[0] += time.monotonic() - began if "locked" in str(error) else 0.0
        return failed(self, error, began)
    def counted_commit(self, ended=None):
        commits[0] += 1
        return commit(self, ended)
    writer.Recorder._failed, writer.Recorder._commit = counted_failure, counted_commit
    kept, steps, work = [], int(sys.argv[2]), int(sys.argv[3])
    def step(i):
        total = 0
        for k in range(work):
            total += k % 7
        kept.append([float(i + k) for k in range(20)])
    with leakprobe.watch(record=sys.argv[1]) as probe:
        print("begun", flush=True)
        began, wall = time.process_time(), time.perf_counter()
        for i in range(steps):
            step(i)
            probe.step()
        took, wall = time.process_time() - began, time.perf_counter() - wall
    lost = probe._recorder.lost
    found = {"processor": took, "wall": wall, "held": held[0], "delay": delay[0], "lost": lost}
    print(json.dumps({**found, "commits": commits[0]}))
    """
)
LIVE = textwrap.dedent(
    """
    import asyncio, sys
    from leakprobe.cli.live_view import LiveView
    from leakprobe.cli.follower import Follower
    async def main():
        app = LiveView(Follower([sys.argv[1]]))
        async with app.run_test(size=(120, 40)) as pilot:
            print("up", flush=True)
            while app.follower.state != "ended":
                await pilot.pause(0.1)
            print(len(app.report.timeline))
    asyncio.run(main())
    """
)
CLIENT = textwrap.dedent(
    """
    import json, sys, time, urllib.request
    version = None
    while True:
        news = json.load(urllib.request.urlopen(sys.argv[1] + "news"))
        if news["version"] != version:
            version = news["version"]
            if version:
                text = urllib.request.urlopen(sys.argv[1] + "page?part=1").read().decode()
        if news["state"] == "ended":
            break
        time.sleep(1)
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    print(data["memory"]["step"][-1])
    """
)


def add_arguments(parser) -> None:
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--work", type=int, default=40_000, help="turns of a loop in each step")


def python(code: str, *arguments, **options):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def on_core(number: int):
    """For preexec_fn: the run has a core of its own, as far as leakprobe's own processes go."""
    cores = sorted(os.sched_getaffinity(0))
    return lambda: os.sched_setaffinity(0, {cores[number]})


def one_run(args, followed: bool) -> dict:
    """What the run says at its end; with what the followers saw last."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.leak")
        live = client = server = None
        if followed:
            server = subprocess.Popen(
                [sys.executable, "-m", "leakprobe", "report", path, "--serve"],
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=on_core(-1),
            )
            server.stderr.readline()
            url = re.search(r"http://\S+", server.stderr.readline())[0]
            live = python(LIVE, path, preexec_fn=on_core(-1))
            client = python(CLIENT, url, preexec_fn=on_core(-1))
            live.stdout.readline()
        run = python(RUN, path, args.steps, args.work, preexec_fn=on_core(0))
        found = json.loads(run.communicate()[0].splitlines()[-1])
        if followed:
            found["live saw"] = int(live.communicate()[0].split()[-1])
            found["page saw"] = int(client.communicate()[0].split()[-1])
            server.send_signal(signal.SIGINT)
            server.wait()
        return found


def run(args) -> dict:
    alone, followed = [], []
    one_run(args, False)  # a first one, for what a first run reads from the disk
    for number in range(args.pairs):
        for which in ((alone, followed), (followed, alone))[number % 2]:
            which.append(one_run(args, which is followed))
    rows = {
        name: {
            "processor, s": min(r["processor"] for r in found),
            "median, s": statistics.median(r["processor"] for r in found),
            "commits": sum(r["commits"] for r in found),
            "put off": sum(r["held"] for r in found),
            "ms lost to readers, of a run": 1000 * statistics.mean(r["delay"] for r in found),
            "marks lost": sum(r["lost"] for r in found),
        }
        for name, found in (("alone", alone), ("followed", followed))
    }
    for clock, name in (("processor", "processor"), ("wall", "clock")):
        ratios = [b[clock] / a[clock] for a, b in zip(alone, followed)]
        rows[f"followed over alone, {name}"] = pairs.summary(ratios)
    facts = {
        "followed over alone, minima": rows["followed"]["processor, s"] / rows["alone"]["processor, s"],
        "load of the machine": os.getloadavg()[0],
        "steps": args.steps,
        "pairs": args.pairs,
        "last step that live showed": min(r["live saw"] for r in followed),
        "last step that the page showed": min(r["page saw"] for r in followed),
    }
    return {"benchmark": "following", "machine": pairs.machine(), "rows": rows, "facts": facts}
