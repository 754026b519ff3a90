"""What the known-hosts files say of a machine's key: the same answer that OpenSSH would give."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import paramiko

HASHED = "|1|"
LINE_FIELDS = 3  # names, key type, key
Verdict = Literal["known", "unknown", "changed", "revoked"]


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One line of a known-hosts file that speaks of the machine."""

    path: Path
    line: int
    marker: str  # "", "@revoked", "@cert-authority"
    type: str  # ssh-ed25519, ssh-rsa, …
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        return fingerprint(self.blob)


def fingerprint(blob: bytes) -> str:
    """As `ssh-keygen -l` prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def known_keys(files: Sequence[Path], name: str) -> tuple[KnownKey, ...]:
    """Every line about `name` (`host`, `[host]:port`), in the order of the files. A missing file has none."""
    return tuple(key for path in files for key in _lines(path, name))


def judge(blob: bytes, known: Sequence[KnownKey], without_port: Sequence[KnownKey] = ()) -> Verdict:
    """What the lines about a machine mean for the key that it offers.

    `without_port` are lines about the same host without its port: OpenSSH accepts a key that stands there.
    """
    if any(key.marker == "@revoked" and key.blob == blob for key in known):
        return "revoked"
    plain = [key for key in known if not key.marker]
    if any(key.blob == blob for key in (*plain, *(key for key in without_port if not key.marker))):
        return "known"
    return "changed" if plain else "unknown"


def add_key(path: Path, name: str, key_type: str, blob: bytes, *, hashed: bool) -> None:
    """Append a line to a known-hosts file; it and its folder are made where they are missing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shown = paramiko.HostKeys.hash_host(name) if hashed else name
    line = f"{shown} {key_type} {base64.b64encode(blob).decode()}\n"
    with path.open("ab+") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            line = line if file.read() == b"\n" else f"\n{line}"
        file.write(line.encode())


def _lines(path: Path, name: str) -> Iterator[KnownKey]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # most machines lack most of these files
        return
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < LINE_FIELDS or fields[0].startswith("#") or not _speaks_of(fields[0], name):
            continue
        try:
            blob = base64.b64decode(fields[2], validate=True)
        except binascii.Error:
            continue  # as OpenSSH: a line that can't be read says nothing
        yield KnownKey(path, number, marker, fields[1], blob)


def _speaks_of(patterns: str, name: str) -> bool:
    """`a,*.b,!c` or one hash."""
    if patterns.startswith(HASHED):
        return _hash_matches(patterns, name)
    lower = name.lower()
    matched = False
    for pattern in patterns.lower().split(","):
        # `[host]:port` holds what fnmatch takes for a set of characters.
        if fnmatchcase(lower, pattern.lstrip("!").replace("[", "[[]")):
            if pattern.startswith("!"):
                return False
            matched = True
    return matched


def _hash_matches(hashed: str, name: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part) for part in hashed.removeprefix(HASHED).split("|"))
    except ValueError:
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)
