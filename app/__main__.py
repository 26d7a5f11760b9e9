"""Serves the HTTP API: `python -m app` or `sextant-api`."""

import argparse
import asyncio
import math
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from typing import Any

from app.errors import SextantError
from app.settings import Settings, read_settings


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 after a graceful stop, 1 where the service cannot open what it needs, 2 for wrong arguments."""
    try:
        settings = read_settings()
    except ValueError as error:
        return _refuse(f"settings: {error}", status=2)
    arguments = _parser(settings).parse_args(argv)
    from app.http.access import is_loopback  # after --help, which stays quick

    if not settings.api_keys and not is_loopback(arguments.host):
        return _refuse(
            f"refusing to bind {arguments.host}: without API keys anyone who reaches it reads everything. "
            'Set API_KEYS, for instance {"<long random key>": {"tenant": "default"}}, or bind 127.0.0.1.',
            status=2,
        )
    try:
        listener = _bind(arguments.host, arguments.port)
    except (OSError, OverflowError) as error:  # the latter for a port beyond 65535
        why = getattr(error, "strerror", None) or error
        return _refuse(f"cannot listen on {arguments.host} port {arguments.port}: {why}")
    try:
        with listener:
            _run(_serve(settings, listener))
    except SextantError as error:
        return _refuse(f"{error.title}: {error}")
    except OSError as error:
        return _refuse(f"cannot start: {error}")
    return 0


def _parser(settings: Settings) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sextant-api",
        description="Answer questions over the ingested filings. Further settings come from the environment or .env.",
    )
    parser.add_argument("--host", default=settings.api_host, help="address to bind (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=settings.api_port, help="port to bind, 0 for a free one (default: %(default)s)"
    )
    return parser


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


def _run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Of the loop that the service runs on: uvloop where there is one."""
    try:
        from uvloop import new_event_loop
    except ImportError:  # it does not exist for Windows
        return asyncio.new_event_loop
    return new_event_loop


async def _serve(settings: Settings, listener: socket.socket) -> None:
    """Opens first, so that what is missing is said in one line; closes after the last request is answered."""
    import uvicorn

    from app.http.logging import configure_logging
    from app.main import create_app
    from app.opening import open_ports

    configure_logging(settings.log_level, settings.log_format)
    async with open_ports(settings, uploads=settings.accept_uploads) as ports:
        app = create_app(lambda _: nullcontext(ports), settings)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=math.ceil(settings.request_timeout_s) + 5,
        )
        host, port = listener.getsockname()[:2]
        sys.stdout.write(f"Sextant answers on http://{f'[{host}]' if ':' in host else host}:{port}\n")
        sys.stdout.flush()
        # uvicorn raises the signal that stopped it once more, which would end the process before the ports are closed.
        for stop in (signal.SIGINT, signal.SIGTERM):
            signal.signal(stop, lambda *_: None)
        await uvicorn.Server(config).serve(sockets=[listener])


def _refuse(why: str, status: int = 1) -> int:
    sys.stderr.write(f"sextant-api: {why}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
