"""One node's pull while it works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from dspark_deploy.facts.pull import PullEnd, PullProgress, parse_end, parse_progress
from dspark_deploy.remote.host import Host

ANSWER_S = 30.0  # the program tells twice a second, and ends itself where the registry stalls


def follow_pull(host: Host, request: Mapping[str, Any], tell: Callable[[str, PullProgress], None]) -> PullEnd:
    """Pull on that node, and tell how far it is. Raises StepFailed or NodeUnreachable."""
    with closing(host.start("pull", request, timeout_s=ANSWER_S)) as session:
        while "progress" in (answer := session.receive(timeout_s=ANSWER_S)):
            tell(host.name, parse_progress(answer["progress"]))
        return parse_end(answer["end"])
