"""Measure the cells of a sweep, one after the other; each is handed on as soon as it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace

from dspark_deploy.measure.exact import Counted, Writer
from dspark_deploy.measure.outcome import Outcome, Request
from dspark_deploy.measure.side import Side, is_quiet
from dspark_deploy.measure.sweep import Cell, Plan, SweepTrial, sweep_trial

WARM_UP = ((64, 16), (512, 16))  # (prompt, output) tokens: the second goes beyond the first KV blocks
ENDING_S = 30.0  # for requests that a limit has ended to be let go by the server


async def bench_sweep(
    side: Side,
    plan: Plan,
    done: Collection[tuple[int, int]],
    keep: Callable[[Cell], None],
    say: Callable[[str], None],
) -> None:
    """Every cell that is not `done`. Raises NoAnswer where the server can't be asked for token counts."""
    writer = Writer(side)
    for prompt, output in WARM_UP:
        await _ask(side, await writer.write(prompt), output, plan.cell_limit_s)
    for number, (prompt, concurrency) in enumerate(plan.cells, 1):
        if (prompt, concurrency) in done:
            continue
        cell = await _cell(side, plan, writer, prompt, concurrency)
        keep(cell)
        say(f"[{number}/{len(plan.cells)}] {_words(cell)}")


async def _cell(side: Side, plan: Plan, writer: Writer, prompt: int, concurrency: int) -> Cell:
    cell = Cell(prompt, concurrency, ())
    for _ in range(plan.trials):
        await is_quiet(side)
        await asyncio.sleep(plan.cool_s)
        prompts = [await writer.write(prompt) for _ in range(concurrency)]
        trial, why = await _trial(side, plan, prompts)
        exact = cell.exact and all(each.exact and each.tokens == prompt for each in prompts)
        cell = replace(cell, trials=(*cell.trials, trial), exact=exact, unfinished=why)
        if why:
            await is_quiet(side, ENDING_S)
            break
    return cell


async def _trial(side: Side, plan: Plan, prompts: list[Counted]) -> tuple[SweepTrial, str]:
    """The trial, and why it did not end. Requests that had ended by the limit keep their figures."""
    tasks = [asyncio.create_task(_ask(side, each, plan.output_tokens, plan.cell_limit_s)) for each in prompts]
    try:
        ended, open_ = await asyncio.wait(tasks, timeout=plan.cell_limit_s)
    finally:
        for task in tasks:
            task.cancel()
    await asyncio.gather(*open_, return_exceptions=True)
    trial = sweep_trial([task.result() for task in tasks if task in ended])
    if not open_:
        return trial, ""
    return trial, f"{len(open_)} of {len(tasks)} requests did not end within {plan.cell_limit_s:g} s"


async def _ask(side: Side, prompt: Counted, tokens: int, limit_s: float) -> Outcome:
    request = Request(f"{prompt.tokens} tokens", side.chat(prompt.text, tokens=tokens, whole=True))
    return await side.client.stream(request, answer_s=limit_s)


def _words(cell: Cell) -> str:
    words = f"{cell.prompt} tokens x {cell.concurrency}:"
    if cell.ttft_s is not None and cell.decode_tps is not None and cell.aggregate_tps is not None:
        words += f" TTFT {cell.ttft_s:.2f} s, decode {cell.decode_tps:.1f}, aggregate {cell.aggregate_tps:.1f} tok/s"
    failed = f", {len(cell.failures)} failed" if cell.failures else ""
    return f"{words}{failed}{f'; {cell.unfinished}' if cell.unfinished else ''}"
