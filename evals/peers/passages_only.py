"""The service without answers, for those who give none: `python -m evals.peers.passages_only`, over DATA_DIR.

The same application over HTTP; its generator abstains, so that nothing is scored, written or cited. No caches.
"""

import asyncio
import sys
from dataclasses import replace

from app.__main__ import loop_factory
from app.opening import open_ports
from app.settings import read_settings
from evals.bench.speed import listening
from evals.subjects import Mute


async def serve() -> None:
    """Until it is terminated."""
    async with open_ports(read_settings()) as ports:
        async with listening(replace(ports, generator=Mute(ports.generator))) as url:
            sys.stdout.write(f"passages on {url}\n")
            sys.stdout.flush()
            await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve())
