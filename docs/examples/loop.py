import leakprobe

kept = []
with leakprobe.watch(warmup=3) as probe:
    for number in range(30):
        kept.append(bytearray(10_000))
        probe.step()
report = probe.report()
report.print()
report.to_json("report.json")
