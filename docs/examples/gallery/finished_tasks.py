"""Finished asyncio tasks

The set keeps tasks from being collected while they run, as the documentation of asyncio advises.
Nobody takes them out.
"""

import asyncio

import numpy as np

import leakprobe

tasks = set()


async def fetch(shard):
    await asyncio.sleep(0)
    return np.full(5_000, shard)


async def main():
    for shard in range(60):
        task = asyncio.create_task(fetch(shard))
        tasks.add(task)
        await task
        probe.step()


with leakprobe.watch() as probe:
    asyncio.run(main())
probe.report().print()
