"""Wait until the head's API answers with what was planned, and both ranks live meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dspark_deploy.errors import LaunchFailed
from dspark_deploy.plan.served import Served
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.served import HTTP_OK, Api, NoAnswer
from dspark_deploy.watch.rank import RankWatch

FIRST_TURN_S = 0.03
LAST_TURN_S = 1.0
GROWTH = 1.15
SAY_EVERY_S = 10


def await_api(
    api: Api,
    served: Served,
    watches: Sequence[RankWatch],
    clock: Clock,
    say: Callable[[str], None],
    *,
    limit_s: float,
) -> None:
    """Return once /v1/models names the served model at its length.

    Raises LaunchFailed when a rank dies, another model answers, or `limit_s` is over. Never silent for long: `say`
    is told what is waited for.
    """
    started = clock.now()
    said, turn_s = started, FIRST_TURN_S
    while True:
        check_all(watches)
        models = served_models(api)
        if models is not None:
            judge_models(models, served)
            return
        now = clock.now()
        if now - started > limit_s:
            raise _too_long(served, watches, limit_s)
        if now - said >= SAY_EVERY_S:
            say(f"{now - started:.0f} s: {last_words(watches)}")
            said = now
        clock.sleep(turn_s)
        turn_s = min(turn_s * GROWTH, LAST_TURN_S)


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


def _too_long(served: Served, watches: Sequence[RankWatch], limit_s: float) -> LaunchFailed:
    return LaunchFailed(
        f"head: the API did not answer on port {served.port} within {limit_s:.0f} s, both ranks still run",
        why="\n".join(f"{watch.node}: {watch.tail(1)}" for watch in watches),
        remedy="raise --timeout if the last lines show progress, else mend what they name",
        node="head",
    )


# What a rank says that ends because its peer did: the echo, not the cause.
ECHOES = ("recvValue failed", "Connection was likely closed", "Connection reset by peer")


def check_all(watches: Sequence[RankWatch]) -> None:
    """Raise LaunchFailed for the rank that died. Where both did, for the one that does not only tell of the other."""
    deaths: list[LaunchFailed] = []
    for watch in watches:
        try:
            watch.check()
        except LaunchFailed as death:
            deaths.append(death)
    if deaths:
        raise min(deaths, key=lambda death: any(echo in death.why for echo in ECHOES))


def last_words(watches: Sequence[RankWatch]) -> str:
    """Each rank's last line, for a wait that has to say what it waits for."""
    return " | ".join(f"{watch.node}: {watch.tail(1)[-100:] or 'nothing yet'}" for watch in watches)
