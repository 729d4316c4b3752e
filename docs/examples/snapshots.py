import leakprobe

cache: dict[int, dict[str, object]] = {}


def load(count: int) -> None:
    for k in range(count):
        cache[len(cache)] = {"id": k, "name": f"item {k}"}


leakprobe.start()
load(100)
before = leakprobe.snapshot(graph=True)
load(1000)
after = leakprobe.snapshot(graph=True)
leakprobe.stop()
leakprobe.diff(before, after).print(limit=2)
print(leakprobe.why(cache[7])[0].text())
print(leakprobe.retained_size(cache), "bytes would go with the cache")
