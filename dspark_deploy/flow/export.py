"""`history export`: one run as an archive fit for a bug report, without names, addresses and secrets."""

from __future__ import annotations

import getpass
import gzip
import io
import json
import socket
import tarfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspark_deploy import __version__
from dspark_deploy.boot.quote import masked
from dspark_deploy.errors import ConfigError
from dspark_deploy.facts import redact
from dspark_deploy.facts.anonymous import KINDS, Anonymous, names_in, names_in_text
from dspark_deploy.flow.intention import load_inventory_of, read_settings
from dspark_deploy.flow.key import key_of
from dspark_deploy.flow.runs import RunFolder, find_run
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import Inventory

ENDINGS = (".tar.gz", ".tgz")
MOST_BYTES = 32 << 20  # of one file; a longer log keeps its end, where it died
ABOUT = """\
One run of dspark {version}: `{command}` of one pair. Names of machines and users, addresses, logins and secrets are
replaced: the same thing has the same new name in every file. Please read it before you attach it to a report.
"""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The archive."""

    run: str
    archive: str
    files: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class _Redaction:
    """Everything that is taken out of a text."""

    anonymous: Anonymous
    key: str | None  # of the served API, as this machine has it

    def of(self, text: str) -> str:
        plain = text if self.key is None else redact.masked(text, self.key)
        return self.anonymous.of(masked(plain))


def export_run(wish: Wish, name: str, archive: Path | None) -> ExportReport:
    """Write it, to `dspark-run-ID.tar.gz` here unless said otherwise. Raises ConfigError."""
    run = find_run(wish, name)
    target = wish.directory / (archive or f"dspark-run-{run.id}.tar.gz")
    if not target.name.endswith(ENDINGS):  # an inventory that is named by mistake must not be written over
        raise ConfigError(
            f"{target} is no archive by its name", remedy=f"name one that ends in {ENDINGS[0]}: --to FILE"
        )
    redaction = _Redaction(Anonymous(_names(run, wish)), _key(wish))
    command = run.document("run.json").get("command") or "?"
    contents = {"ABOUT.txt": ABOUT.format(version=__version__, command=command)}
    for path in run.files():
        contents[path.name] = _redacted(path, redaction)
    try:
        _write(target, f"dspark-run-{run.id}", contents)
    except OSError as error:
        remedy = "name an archive in a folder that you may write to: --to FILE"
        raise ConfigError(f"{target} can't be written: {error.strerror}", remedy=remedy) from error
    return ExportReport(run.id, str(target), tuple(contents), target.stat().st_size)


def _names(run: RunFolder, wish: Wish) -> dict[str, str]:
    """Every name that is known: of this machine, of the inventory where it is at hand, of the run's own documents."""
    names = {
        socket.gethostname(): "machine",
        getpass.getuser(): "user",
        str(wish.home): "place",
        wish.home.name: "user",
    }
    names[run.pair] = "pair"
    with suppress(ConfigError):  # the inventory is another pair's or gone: then the documents alone tell
        names |= _of_inventory(load_inventory_of(wish))
    for path in run.files():
        names |= names_in_text(_text(path))
        if path.suffix == ".json":
            names |= names_in(run.document(path.name))
    for event in run.events():
        names |= names_in(event)
    return {name: kind for name, kind in names.items() if name}


def _key(wish: Wish) -> str | None:
    key = None
    with suppress(ConfigError):  # without an inventory the variable alone can tell it
        settings = read_settings(wish)
        key = settings.api_key
        key = key_of(load_inventory_of(wish), settings)
    return None if key is None else key.get_secret_value()


def _of_inventory(inventory: Inventory) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in (inventory.head, inventory.worker):
        names[node.spec.host] = "machine"
        names[node.spec.user or ""] = "user"
    return names


def _redacted(path: Path, redaction: _Redaction) -> str:
    text = _text(path)
    if path.suffix == ".json":
        with suppress(ValueError):
            return json.dumps(_each(json.loads(text), redaction), indent=2) + "\n"
    return "".join(f"{_line(line, redaction)}\n" for line in text.splitlines())


def _text(path: Path) -> str:
    return path.read_bytes()[-MOST_BYTES:].decode("utf-8", "replace")


def _line(line: str, redaction: _Redaction) -> str:
    """A line of a log, or an event."""
    if line.startswith("{"):
        with suppress(ValueError):
            return json.dumps(_each(json.loads(line), redaction))
    return redaction.of(line)


def _each(value: Any, redaction: _Redaction, key: str = "") -> Any:
    """A document with every text in it redacted; numbers and the shape stay."""
    if isinstance(value, dict):
        return {redaction.of(name): _each(item, redaction, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_each(item, redaction, key) for item in value]
    if not isinstance(value, str):
        return value
    return redaction.anonymous.named(KINDS[key], value) if key in KINDS and value else redaction.of(value)


def _write(target: Path, folder: str, contents: dict[str, str]) -> None:
    part = target.with_name(f".{target.name}.part")
    try:
        _pack(part, folder, contents)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _pack(path: Path, folder: str, contents: dict[str, str]) -> None:
    """Owned by nobody, of no time: the archive tells nothing of its maker."""
    with (
        path.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, text in contents.items():
            data = text.encode()
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
