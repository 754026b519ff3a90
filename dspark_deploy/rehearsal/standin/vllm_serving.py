"""Rank 0 once it has booted: the API is open, and the log tells of it."""

from __future__ import annotations

import os
import threading
import time

from .vllm_api import ROUTES, Server
from .vllm_boot import Boot
from .vllm_generate import Engine
from .vllm_log import API_SERVER, WORKER, Death

STATISTICS_S = 10


def serve(server: Server) -> None:
    """Serve until the engine is dead."""
    boot = server.boot
    boot.enter("server")
    boot.pass_time("server")
    server.engine = Engine(boot)
    arguments, log = boot.arguments, boot.log
    message = f"Starting vLLM server on http://{arguments.host or '0.0.0.0'}:{arguments.port}"  # noqa: S104
    log.info(API_SERVER, "api_server.py:1325", message)
    log.info(API_SERVER, "launcher.py:38", "Available routes are:")
    for verb, routes in ROUTES.items():
        for route in routes:
            log.info(API_SERVER, "launcher.py:47", f"Route: {route}, Methods: {verb}")
    log.uvicorn(f"Started server process [{os.getpid()}]")
    log.uvicorn("Waiting for application startup.")
    server.server_activate()
    log.uvicorn("Application startup complete.")
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    threading.Thread(target=_statistics, args=(boot, server.engine), daemon=True).start()
    threading.Thread(target=_die_by_switch, args=(boot,), daemon=True).start()
    server.engine.dead.wait()
    time.sleep(0.5)  # the request that found it out gets its answer
    for line in ("Shutting down", "Waiting for application shutdown.", "Application shutdown complete."):
        log.uvicorn(line)
    log.uvicorn(f"Finished server process [{os.getpid()}]")  # and it ends with 0, as the real one does


def _die_by_switch(boot: Boot) -> None:
    try:
        boot.enter("serving")
    except Death as death:
        for line in death.lines:
            boot.log.failure(WORKER, "multiproc_executor.py:843", line)
        os._exit(death.code)


def _statistics(boot: Boot, engine: Engine) -> None:
    """Every ten seconds a line about what went through, as long as anything does."""
    metrics, before = engine.metrics, (0, 0)
    while True:
        time.sleep(STATISTICS_S)
        now = (metrics.prompt_tokens, metrics.generation_tokens)
        prompt, generated = (new - old for new, old in zip(now, before, strict=True))
        if not (prompt or generated or metrics.running or metrics.waiting):
            continue
        message = f"Engine 000: Avg prompt throughput: {prompt / STATISTICS_S:.1f} tokens/s, "
        message += f"Avg generation throughput: {generated / STATISTICS_S:.1f} tokens/s, "
        message += f"Running: {metrics.running} reqs, Waiting: {metrics.waiting} reqs, "
        message += f"GPU KV cache usage: {100 * metrics.usage:.1f}%, Prefix cache hit rate: 0.0%"
        boot.log.info(API_SERVER, "loggers.py:257", message)
        if engine.drafts and metrics.steps:
            length = 1 + metrics.accepted / metrics.steps
            message = (
                f"SpecDecoding metrics: Mean acceptance length: {length:.2f}, Accepted: {metrics.accepted} tokens, "
            )
            rate = 100 * metrics.accepted / (metrics.steps * engine.drafts)
            boot.log.info(API_SERVER, "metrics.py:100", f"{message}Avg Draft acceptance rate: {rate:.1f}%")
        before = now
