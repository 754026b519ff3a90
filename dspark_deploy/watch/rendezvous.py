"""Wait until a rank is where its peer can meet it."""

from __future__ import annotations

from dspark_deploy.errors import LaunchFailed
from dspark_deploy.remote.clock import Clock
from dspark_deploy.watch.rank import RankWatch

RENDEZVOUS_S = 120  # from container start to the marker line; 6 s on a published boot
TURN_S = 0.02
STATE_TURNS = 10  # look at the container each so many turns


def await_rendezvous(watch: RankWatch, where: str, clock: Clock, *, limit_s: float = RENDEZVOUS_S) -> None:
    """Return once the rank has printed its family's marker line. Raises LaunchFailed when it dies or takes too long.

    A container that runs proves nothing: it may still be preparing files, or hang before it dials.
    """
    deadline = clock.now() + limit_s
    turn = 0
    while not watch.marked.is_set():
        if turn % STATE_TURNS == 0:
            watch.check()
        if clock.now() > deadline:
            raise LaunchFailed(
                f"{where}: the {watch.node} rank did not reach the rendezvous within {limit_s:.0f} s",
                why=watch.tail() or "it printed nothing",
                remedy=f"mend what its last lines name, or look with `docker exec` on the {watch.node} while it runs",
                node=watch.node,
            )
        clock.sleep(TURN_S)
        turn += 1
