"""The one client that measures. It never retries, drops nothing that failed, and says what it cost itself."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from dspark_deploy.measure.answer import Gathered, Malformed
from dspark_deploy.measure.outcome import Failure, Outcome, Request
from dspark_deploy.remote.served import HTTP_OK, Answer, NoAnswer
from dspark_deploy.remote.streams import BadStatus, Streams

ANSWER_S = 600.0  # between two events: a prompt of a hundred thousand tokens among others takes minutes to its first


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of all requests so far."""

    requests: int
    failures: dict[str, int]  # timeout, refused, status, shape -> how many
    connections: int
    retries: int = 0  # never: a retry would hide a failure and spoil a time


class Client:
    """Asks one server. Methods that ask return an Outcome, whatever happened; only a lost node is raised."""

    def __init__(self, streams: Streams, *, answer_s: float = ANSWER_S) -> None:
        self._streams = streams
        self._answer_s = answer_s
        self._requests = 0
        self._failures: Counter[str] = Counter()

    @property
    def tally(self) -> Tally:
        """See Tally."""
        return Tally(self._requests, dict(self._failures), self._streams.connections)

    async def stream(self, request: Request, *, answer_s: float | None = None) -> Outcome:
        """Ask for a stream; usage is asked for with it. `answer_s`: another limit than the client's."""
        body = {**request.body, "stream": True, "stream_options": {"include_usage": True}}
        gathered, times = Gathered(), list[float]()
        sent_s = [time.monotonic()]  # the last one counts
        failed: dict[str, Any] = {}
        try:
            stream = self._streams.events(request.path, body, timeout_s=answer_s or self._answer_s, sent=sent_s.append)
            async with aclosing(stream) as events:
                async for event in events:
                    if gathered.take_event(event.data):
                        times.append(event.at_s)
        except (BadStatus, NoAnswer, Malformed) as error:
            failed = _failed(error)
        else:
            if not gathered.finish_reason:
                failed = {"failure": "shape", "why": "the stream ended before the answer did"}
        return self._counted(_outcome(request, sent_s[-1], gathered, tuple(times)), failed)

    async def whole(self, request: Request) -> Outcome:
        """Ask for the answer in one piece. Its only event is its end."""
        gathered = Gathered()
        sent_s = time.monotonic()
        failed: dict[str, Any] = {}
        try:
            gathered.take_document(await self._document(request))
        except (BadStatus, NoAnswer, Malformed) as error:
            failed = _failed(error)
        return self._counted(_outcome(request, sent_s, gathered, (time.monotonic(),)), failed)

    async def get(self, path: str, *, timeout_s: float = 10.0) -> Answer:
        """A plain GET. Raises NoAnswer."""
        return await self._streams.ask("GET", path, timeout_s=timeout_s)

    async def post(self, path: str, document: Any, *, timeout_s: float = 60.0) -> Answer:
        """A plain POST. Raises NoAnswer."""
        return await self._streams.ask("POST", path, document, timeout_s=timeout_s)

    async def _document(self, request: Request) -> str:
        answer = await self._streams.ask("POST", request.path, dict(request.body), timeout_s=self._answer_s)
        if answer.status != HTTP_OK:
            raise BadStatus(answer)
        return answer.text

    def _counted(self, outcome: Outcome, failed: dict[str, Any]) -> Outcome:
        self._requests += 1
        if failed:
            self._failures[failed["failure"]] += 1
            outcome = replace(outcome, **failed)
        return outcome


def _outcome(request: Request, sent_s: float, gathered: Gathered, event_s: tuple[float, ...]) -> Outcome:
    return Outcome(
        request=request,
        sent_s=sent_s,
        ended_s=time.monotonic(),
        event_s=event_s,
        text="".join(gathered.text),
        reasoning="".join(gathered.reasoning),
        tool_calls=gathered.tool_calls,
        finish_reason=gathered.finish_reason,
        prompt_tokens=gathered.prompt_tokens,
        completion_tokens=gathered.completion_tokens,
    )


def _failed(error: BadStatus | NoAnswer | Malformed) -> dict[str, Any]:
    kind: Failure
    match error:
        case BadStatus():
            return {"failure": "status", "why": str(error), "status": error.answer.status}
        case NoAnswer():
            kind = "timeout" if error.timed_out else "refused"
            return {"failure": kind, "why": str(error), "tls": error.tls}
        case Malformed():
            return {"failure": "shape", "why": str(error)}
