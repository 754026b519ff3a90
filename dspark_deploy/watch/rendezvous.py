"""Wait until a rank is where its peer can meet it."""

from __future__ import annotations

from collections.abc import Callable

from dspark_deploy.errors import LaunchFailed
from dspark_deploy.remote.clock import Clock
from dspark_deploy.watch.rank import RankWatch
from dspark_deploy.watch.verdict import last_lines

RENDEZVOUS_S = 120  # from container start to the marker line; 6 s on a published boot
TURN_S = 0.02


def await_rendezvous(
    watch: RankWatch, turn: Callable[[], None], clock: Clock, *, limit_s: float = RENDEZVOUS_S
) -> None:
    """Return once the rank has printed its family's marker line. Raises LaunchFailed when it takes too long.

    A container that runs proves nothing: it may still be preparing files, or hang before it dials. `turn` judges both
    ranks, and raises when one fails.
    """
    deadline = clock.now() + limit_s
    while not watch.marked.is_set():
        turn()
        if clock.now() > deadline:
            raise LaunchFailed(
                f"{watch.where}: the {watch.node} rank did not reach the rendezvous within {limit_s:.0f} s",
                why=last_lines(watch),
                remedy=f"mend what its last lines name, or look with `docker exec` on the {watch.node} while it runs",
                node=watch.node,
            )
        clock.sleep(TURN_S)
