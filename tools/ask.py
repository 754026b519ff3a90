"""Ask a serving pair one question, as any client would: `dspark status --output json | python ask.py QUESTION`."""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import Any


def ask(status: dict[str, Any], question: str) -> str:
    """The answer's text."""
    body = {
        "model": status["served_name"],
        "messages": [{"role": "user", "content": question}],
        "temperature": 0,
        "max_tokens": 200,
        "chat_template_kwargs": {"thinking": False},
    }
    request = urllib.request.Request(  # noqa: S310  the base URL is the pair's own
        f"{status['base_url']}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  see above
        found: dict[str, Any] = json.loads(answer.read())
    text: str = found["choices"][0]["message"]["content"]
    return f"{text}\n({found['model']}, {found['usage']['completion_tokens']} tokens; {found['system_fingerprint']})"


if __name__ == "__main__":
    sys.stdout.write(ask(json.load(sys.stdin)["result"], sys.argv[1]) + "\n")
