"""dspark itself as the bed's client runs it, and what a user of the served pair would do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.warm import ToolRun

from .bed import Bed
from .run import Ran

DSPARK = Path(sys.executable).with_name("dspark")
_ASK = """
import json, sys, urllib.request
url, body = sys.argv[1:]
request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
print(urllib.request.urlopen(request, timeout=20).read().decode())
"""


def dspark(bed: Bed, *words: str | Path, **inventory: Any) -> Ran:
    """Run one command line of dspark against the bed's pair. `inventory` changes its inventory."""
    return begin(bed, *words, **inventory).end()


def begin(bed: Bed, *words: str | Path, **inventory: Any) -> ToolRun:
    """The same, while it runs."""
    bed.inventory(**inventory)
    return bed.tool.start(*map(str, words), cwd=bed.client, environment=bed.environment())


def result(ran: Ran) -> Any:
    """The `result` of a command that was run with --output json."""
    return ran.json()["result"]


def started(bed: Bed, *words: str | Path, **inventory: Any) -> Ran:
    """The same as a process of its own from its start on, as a user has it."""
    bed.inventory(**inventory)
    return bed.run([DSPARK, *words])


def chat(bed: Bed, base_url: str, model: str, text: str = "Say hello.") -> dict[str, Any]:
    """One chat over the head's management address, as any client would have it."""
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 32}
    body["chat_template_kwargs"] = {"thinking": False}  # with thinking at max, 32 tokens never reach the answer
    ran = bed.run([sys.executable, "-c", _ASK, f"{base_url}/chat/completions", json.dumps(body)]).check()
    answer: dict[str, Any] = ran.json()
    return answer


def error_lines(ran: Ran) -> list[str]:
    """The three-line error on standard error: its lines from `error:` on."""
    lines = ran.stderr.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("error:")]
    assert starts, ran
    return lines[starts[-1] :]


def nothing_is_left(bed: Bed) -> None:
    """No container, no listener of a served pair and no process of ours on either node."""
    for node in bed.nodes:
        assert node.containers() == [] if node.api.ping() else True, node.alias
        assert node.listening() <= {2222}, node.alias
        assert node.processes() == [], node.alias
