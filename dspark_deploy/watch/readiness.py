"""Wait until the head's API answers with what was planned, and both ranks live meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from dspark_deploy.errors import KeyRefused, LaunchFailed
from dspark_deploy.plan.served import Served
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.parallel import alongside
from dspark_deploy.remote.served import HTTP_OK, Api, NoAnswer
from dspark_deploy.watch.rank import RankWatch
from dspark_deploy.watch.verdict import last_lines

FIRST_ASK_S = 0.03
LAST_ASK_S = 1.0
GROWTH = 1.15
TURN_S = 0.2  # a line that ends the wait is to be told within a second


def await_api(
    api: Api,
    served: Served,
    ranks: Mapping[str, RankWatch],
    turn: Callable[[], None],
    clock: Clock,
    *,
    limit_s: float,
) -> None:
    """Return once /v1/models names the served model at its length.

    `turn` judges both ranks meanwhile, and raises when one fails. Raises LaunchFailed when another model answers, or
    `limit_s` is over.
    """
    started = clock.now()
    ask_s, next_ask = FIRST_ASK_S, started
    while True:
        turn()
        if clock.now() >= next_ask:
            models = alongside(partial(_models, api), turn, clock, turn_s=TURN_S)
            if models is not None:
                judge_models(models, served)
                return
            next_ask = clock.now() + ask_s
            ask_s = min(ask_s * GROWTH, LAST_ASK_S)
        if clock.now() - started > limit_s:
            raise _too_long(served, ranks, limit_s)
        clock.sleep(min(ask_s, TURN_S))


def _models(api: Api) -> dict[str, int | None] | None:
    """What it serves. A start gives its own key to what it starts: what refuses that is not what was started."""
    try:
        return served_models(api)
    except KeyRefused as error:
        raise LaunchFailed(error.message, remedy=error.remedy, node="head") from error


def served_models(api: Api) -> dict[str, int | None] | None:
    """Model name -> max_model_len as the API lists them; None where nothing answers, or nothing of that shape."""
    try:
        answer = api.get("/v1/models", timeout_s=5)
    except NoAnswer:
        return None  # nothing listens yet: the limit or a rank's state ends the wait
    if answer.status != HTTP_OK:
        return None
    match answer.document():
        case {"data": [*entries]}:
            return {str(entry["id"]): entry.get("max_model_len") for entry in entries if "id" in entry}
        case _:
            return None


def judge_models(models: dict[str, int | None], served: Served) -> None:
    """Raise LaunchFailed where what answers is not what was planned."""
    if served.served_name not in models:
        raise LaunchFailed(
            f"head: the API serves {', '.join(sorted(models)) or 'no model'}, planned was {served.served_name}",
            why="another server answers on that port, or the files on the node are not the release's",
            remedy=f"see what listens on port {served.port} of the head",
            node="head",
        )
    length = models[served.served_name]
    if length != served.max_model_len:
        raise LaunchFailed(
            f"head: {served.served_name} is served with max_model_len {length}, planned was {served.max_model_len}",
            why="another server answers on that port, or the files on the node are not the release's",
            remedy=f"see what listens on port {served.port} of the head",
            node="head",
        )


def _too_long(served: Served, ranks: Mapping[str, RankWatch], limit_s: float) -> LaunchFailed:
    return LaunchFailed(
        f"head: the API did not answer on port {served.port} within {limit_s:.0f} s, both ranks still run",
        why="\n".join(f"{node}: {last_lines(rank, 1)}" for node, rank in ranks.items()),
        remedy="raise --timeout if the last lines show progress, else mend what they name",
        node="head",
    )
