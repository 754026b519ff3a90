"""What a probe told of a node, without what is nobody else's business. Pure.

The same thing gets the same new name wherever it stands, so that what the checks compare stays comparable.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

HIDDEN = "[redacted]"
MASK = "***"
SECRET_NAME = re.compile(r"token|secret|password|passwd|api_?key|credential|authorization", re.IGNORECASE)
SECRETS = re.compile(
    r"hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{8,}|nvapi-[\w-]{8,}|AKIA[A-Z0-9]{12,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|(?i:(?<=bearer )\S+)|(?i:(?<=token=)\S+)|(?i:(?<=password=)\S+)"
)


@dataclass(frozen=True, slots=True)
class Redaction:
    """One node's names, and what stands for them."""

    texts: Mapping[str, str] = field(default_factory=dict)  # wherever they stand, also within another text
    fields: Mapping[str, str] = field(default_factory=dict)  # key -> its new value
    users: Mapping[str, str] = field(default_factory=dict)  # as a part of a path, before an @, at the end after `of`

    def of(self, value: Any, key: str = "") -> Any:
        """`value` with every text in it redacted; numbers and the shape stay."""
        if isinstance(value, Mapping):
            return {self._text(str(name)): self.of(each, str(name)) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(each, key) for each in value]
        if not isinstance(value, str):
            return value
        if key in self.fields:
            return self.fields[key]
        if key.isupper() and SECRET_NAME.search(key):  # a variable of the environment
            return HIDDEN
        return self._text(value)

    def _text(self, text: str) -> str:
        for old, new in sorted(self.texts.items(), key=lambda each: -len(each[0])):
            text = text.replace(old, new)
        for old, new in self.users.items():
            user = re.escape(old)
            part = rf"(?<=/){user}(?=/|$)|" if text.startswith("/") else ""
            text = re.sub(rf"{part}\b{user}(?=@)|(?<= of ){user}$", new, text)
        return SECRETS.sub(HIDDEN, text)


def masked(text: str, secret: str) -> str:
    """`text` with MASK wherever it holds `secret`: as it is, in a URL, or in JSON."""
    for form in {secret, quote(secret, safe=""), json.dumps(secret)[1:-1]}:
        text = text.replace(form, MASK)
    return text


def redaction_of(node: str, document: Mapping[str, Any]) -> Redaction:
    """What to hide of a node whose probe told `document`: home, user and machine names, and what identifies it."""
    texts = {document["home"]: f"/home/{node}-user"}
    for name in ("machine_id", "boot_id"):
        if document[name]:
            texts[document[name]] = _pseudonym(document[name])
    for netdev in document["netdevs"]:
        if netdev["mac"] and netdev["mac"] != "00:00:00:00:00:00":
            texts[netdev["mac"]] = _pseudonym(netdev["mac"])
    user = f"{node}-user"
    return Redaction(texts, {"user": user, "hostname": f"{node}-machine"}, {document["user"]: user})


def _pseudonym(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
