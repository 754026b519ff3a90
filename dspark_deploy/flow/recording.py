"""`doctor --record` and `--replay`: everything a checkup rested on, in a folder that can be attached to a report.

The folder is laid out like a user's own: an inventory, a profile with its model and family beside it, and one JSON
document a node with what its programs answered. A replay is the same checkup over these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from dspark_deploy import __version__
from dspark_deploy.errors import ConfigError, DsparkError, NodeUnreachable
from dspark_deploy.facts import parse
from dspark_deploy.facts.redact import Redaction, redaction_of
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import Inventory
from dspark_deploy.plan.resolve import Workload
from dspark_deploy.remote.recorded import PROBE, RecordedHost, RecordingHost

SCHEMA = 1  # of a node's document; what the probe answered carries its own
INVENTORY = "inventory.yaml"
NODES = ("head", "worker")
LOGIN = re.compile(r"[\w.-]+@[\w.:\[\]%-]+\w")


def record(
    directory: Path,
    inventory: Inventory,
    workload: Workload | None,
    hosts: Mapping[str, RecordingHost],
    unreachable: Mapping[str, DsparkError],
) -> tuple[str, ...]:
    """Write all of it, redacted. Returns the files. Raises ConfigError where the folder can't be written."""
    redactions = {
        node: redaction_of(node, host.answers[PROBE]) if PROBE in host.answers else Redaction()
        for node, host in hosts.items()
    }
    gone = {node: error for node, error in unreachable.items() if isinstance(error, NodeUnreachable)}
    texts = {
        INVENTORY: _inventory(inventory, workload, redactions),
        **(_workload(workload) if workload is not None else {}),
        **{f"{node}.json": _answers(node, host, redactions[node]) for node, host in hosts.items()},
        **{f"{node}.json": _silence(node, error, inventory) for node, error in gone.items()},
    }
    try:
        for name, document in texts.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{directory} can't be written: {error.strerror}", remedy="give another folder") from error
    return tuple(str(directory / name) for name in texts)


def _inventory(inventory: Inventory, workload: Workload | None, redactions: Mapping[str, Redaction]) -> Any:
    # What names files of this user's machine stays here.
    document = inventory.model_dump(
        mode="json",
        exclude_none=True,
        exclude={"ssh_config": True, "profile": True, "patches": True, "api": {"key_file"}},
    )
    for node in NODES:
        named = {**document[node], "host": f"{node}-machine"}
        document[node] = redactions.get(node, Redaction()).of(named)
    return document if workload is None else {**document, "profile": workload.profile.name}


def _workload(workload: Workload) -> dict[str, Any]:
    """The profile as it was resolved, overrides included, and the data files it names: the reader may have others."""
    profile = workload.profile.model_copy(update={"family": workload.family.name, "model": workload.model.name})
    plain = Redaction()
    return {
        f"profiles/{profile.name}.yaml": plain.of(_data(profile)),
        f"profiles/models/{workload.model.name}.yaml": plain.of(_data(workload.model)),
        f"profiles/families/{workload.family.name}.yaml": plain.of(_data(workload.family)),
    }


def _data(model: BaseModel) -> Any:
    return model.model_dump(mode="json", exclude={"patches"})  # their folders are this machine's


def _answers(node: str, host: RecordingHost, redaction: Redaction) -> dict[str, Any]:
    told = {"answers": host.answers, "failed": host.failed, "asked": host.asked}
    return {"schema": SCHEMA, "node": node, "tool": __version__, **redaction.of(told)}


def _silence(node: str, error: DsparkError, inventory: Inventory) -> dict[str, Any]:
    """Of a node that was not reached: its host and login stand in what the error says."""
    host = getattr(inventory, node).host
    said = [
        LOGIN.sub(f"{node}-machine", text.replace(host, f"{node}-machine")) for text in (error.message, error.remedy)
    ]
    return {"schema": SCHEMA, "node": node, "tool": __version__, "unreachable": said[0], "remedy": said[1]}


def replay(directory: Path, wish: Wish) -> tuple[Wish, dict[str, RecordedHost], dict[str, NodeUnreachable]]:
    """The wish that finds the recorded inventory and profile, the recorded nodes, and why others are not there.

    Raises ConfigError for a folder that is no recording, or one of another schema.
    """
    folder = wish.directory / directory
    documents = {node: _read(folder / f"{node}.json") for node in NODES}
    hosts = {node: RecordedHost(node, each) for node, each in documents.items() if "answers" in each}
    unreachable = {
        node: NodeUnreachable(each["unreachable"], remedy=each["remedy"], node=node)
        for node, each in documents.items()
        if "unreachable" in each
    }
    inventory = wish.directory / (wish.inventory or folder / INVENTORY)
    there = replace(wish, inventory=inventory, directory=folder, environment={})
    return there, hosts, unreachable


def _read(path: Path) -> dict[str, Any]:
    remedy = "give the folder that `dspark doctor --record DIR` wrote"
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        probed = document.get("answers", {}).get(PROBE, {"schema": parse.SCHEMA})
        schemas = ((document["schema"], SCHEMA), (probed["schema"], parse.SCHEMA))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", remedy=remedy) from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is no recording of a node: {error}", remedy=remedy) from error
    for recorded, known in schemas:
        if recorded != known:
            raise ConfigError(
                f"{path} was recorded with schema {recorded}, and this dspark reads {known}",
                why=f"it was written by dspark {document.get('tool', 'of an unknown version')}",
                remedy="replay it with that version, or record anew",
            )
    return document
