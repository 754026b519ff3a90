"""Listen to both engines, so that a rank's death is known at once and not at the next look."""

from __future__ import annotations

import queue
import threading

from dspark_deploy.errors import DsparkError
from dspark_deploy.remote.host import EngineEvent, Events, Host


class EventWatch:
    """What happens to the pair's containers on one node, in a thread of its own. `woke` is set by whatever comes,
    the end of it included: an engine that went away is news too."""

    def __init__(self, host: Host, pair: str, woke: threading.Event) -> None:
        """Raises StepFailed or NodeUnreachable where the engine can't be listened to."""
        self.node = host.name
        self._woke = woke
        self._events: Events = host.engine().events(pair)
        self._arrived: queue.SimpleQueue[EngineEvent] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether nothing more will come: the engine or the connection is gone."""
        return self._ended.is_set()

    def arrived(self) -> tuple[EngineEvent, ...]:
        """What has come since it was asked last."""
        found = []
        while not self._arrived.empty():
            found.append(self._arrived.get())
        return tuple(found)

    def close(self) -> None:
        """Stop listening."""
        self._events.close()

    def _follow(self) -> None:
        try:
            for event in self._events:
                self._arrived.put(event)
                self._woke.set()
        except DsparkError:
            # The next look at the node meets the same error, and tells it.
            return
        finally:
            self._ended.set()
            self._woke.set()
