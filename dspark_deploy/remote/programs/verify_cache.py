"""Look at one model in this node's cache, quickly. See _cache_snapshot.py for the request; `pair` comes with it.

One answer: the snapshot's document, with what an earlier `hash_cache` found out about files unchanged since.
"""

from __future__ import annotations

from dspark_deploy.remote.programs._cache_journal import Journal
from dspark_deploy.remote.programs._cache_snapshot import Snapshot
from dspark_deploy.remote.programs._frame import Call, end_group, serve
from dspark_deploy.remote.programs._state import state_folder


def main(call: Call) -> None:
    """See the module."""
    call.end_with_session()
    snapshot, journal = Snapshot(call.request), Journal(state_folder(call.request["pair"]))
    snapshot.read()
    journal.remind(snapshot, of_faults=True)
    call.answer({**snapshot.document(), "hashed": journal.last(snapshot), "not_kept": ""})
    end_group()


if __name__ == "__main__":
    serve(main)
