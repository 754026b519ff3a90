"""Text that leaves this machine: without names of machines and users, addresses, places and secrets. Pure.

The same thing gets the same new name in every text that goes through one `Anonymous`, so that what belonged together
can still be seen to. Names are known from documents (`names_in`); addresses, logins and the like are known by their
look. In doubt a text is hidden: a version of four numbers looks like an address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from dspark_deploy.facts.redact import HIDDEN, SECRETS

KINDS = {
    "hostname": "machine",
    "host": "machine",
    "user": "user",
    "home": "place",
    "machine_id": "id",
    "boot_id": "id",
    "mac": "id",
}
"""Keys of documents whose values are names, and what kind they are of."""

# Words that stand in every log, and users that every Spark has: as names they tell nothing, and hiding them would hide
# the sense. In a login or a home they are hidden all the same.
PLAIN = frozenset({
    "root", "head", "worker", "local", "localhost", "dspark", "docker", "vllm", "model", "user", "home",
    "nvidia", "ubuntu", "admin", "spark", "dgx", "test",
})  # fmt: skip
SHORTEST = 3  # of a name that is looked for in texts
# Where images, models and sources come from: a report is of no use without.
KNOWN_SITES = ("localhost", "ghcr.io", "docker.io", "nvcr.io", "quay.io", "huggingface.co", "github.com", "hf.co")

_SITE = re.compile(r"(?<=://)(?:[^/\s@\"']+@)?([A-Za-z0-9][\w.-]*)")
_LOGIN = re.compile(r"[\w.+-]+@(?!sha256:)(?:\[[\da-fA-F:.%]+\]|[A-Za-z0-9][\w.-]*\w|\w)")
_MAC = re.compile(r"\b(?:[\da-fA-F]{2}:){5}[\da-fA-F]{2}\b")
_IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:])(?:[\da-fA-F]{0,4}:){2,7}(?:[\da-fA-F]{1,4}|\d{1,3}(?:\.\d{1,3}){3})?(?![\w:])")
_HOME = re.compile(r"(?<=/home/)[\w.-]+|(?<=/Users/)[\w.-]+")
_UNIT = re.compile(r"\bGPU-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b|\bSHA256:[\w+/=]{40,}")
_VARIABLE = re.compile(
    r"\b([A-Z][A-Z0-9_]*(?:TOKEN(?!S)|SECRET|PASSWORD|PASSWD|API_KEY|CREDENTIAL)[A-Z0-9_]*['\"]?\s*[=:]\s*)(['\"]?)[^\s'\",]+"
)
_FLAG = re.compile(r"(--(?:api-key|hf-token|password)[=\s]+)(\S+)")


class Anonymous:
    """One set of new names. `names` are known ones: name -> kind."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._kinds = {
            name: kind for name, kind in names.items() if len(name) >= SHORTEST and name.lower() not in PLAIN
        }
        longest_first = sorted(self._kinds, key=len, reverse=True)
        words = "|".join(map(re.escape, longest_first))
        self._known = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])") if words else None
        self._given: dict[str, str] = {}
        self._numbers: dict[str, int] = {}

    def of(self, text: str) -> str:
        """The text with all of it replaced."""
        text = _VARIABLE.sub(rf"\1\2{HIDDEN}", _FLAG.sub(rf"\1{HIDDEN}", SECRETS.sub(HIDDEN, text)))
        text = _SITE.sub(self._site, text)
        if self._known is not None:
            text = self._known.sub(lambda match: self.named(self._kinds[match[0]], match[0]), text)
        for pattern, renamed in self._by_their_look():
            text = pattern.sub(renamed, text)
        return text

    def named(self, kind: str, old: str) -> str:
        """The new name of something that is known to be a name; numbered in the order in which they are met."""
        key = f"{kind}:{old.lower()}"
        if key not in self._given:
            self._numbers[kind] = self._numbers.get(kind, 0) + 1
            self._given[key] = f"{kind}-{self._numbers[kind]}"
        return self._given[key]

    def _by_their_look(self) -> Iterator[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
        yield _LOGIN, lambda match: self.named("login", match[0])
        yield _UNIT, lambda match: self.named("id", match[0])
        yield _MAC, lambda match: self.named("id", match[0])
        yield _HOME, lambda match: match[0] if match[0].startswith("user-") else self.named("user", match[0])
        yield _IPV6, self._address
        yield _IPV4, self._address

    def _site(self, match: re.Match[str]) -> str:
        """A URL's login and host."""
        host = match[1].lower()
        if _IPV4.fullmatch(host) or any(host == each or host.endswith(f".{each}") for each in KNOWN_SITES):
            return match[1]
        return self.named("machine", match[1])

    def _address(self, match: re.Match[str]) -> str:
        try:
            address = ip_address(match[0])
        except ValueError:
            return match[0]
        if address.is_loopback or address.is_unspecified or str(address).startswith("255."):
            return match[0]
        return self.named("address", str(address))


def names_in(document: Any, key: str = "") -> dict[str, str]:
    """Every name that a document tells: name -> kind."""
    found: dict[str, str] = {}
    if isinstance(document, Mapping):
        for name, value in document.items():
            found |= names_in(value, str(name))
    elif isinstance(document, list | tuple):
        for value in document:
            found |= names_in(value, key)
    elif isinstance(document, str) and key in KINDS:
        found[document] = KINDS[key]
    elif isinstance(document, str) and key == "who":
        user, _, machine = document.partition("@")
        found |= {user: "user", machine: "machine"}
    return found


def names_in_text(text: str) -> dict[str, str]:
    """The users and machines of the logins that stand in it: elsewhere they may stand alone."""
    found: dict[str, str] = {}
    for login in _LOGIN.findall(text):
        user, _, machine = login.rpartition("@")
        found |= {user: "user", machine.strip("[]"): "machine"}
    return found
