"""Where this node's user keeps Hugging Face caches, and which checkpoints lie there. Looks only.

Request: `directories` (checkpoints that are plain folders below a Hugging Face home), `also` (further homes to look at,
~ is the home here). Answer: `places`: see facts/places.py, in the order in which the library itself would look.
"""

from __future__ import annotations

import os
import re

from dspark_deploy.remote.programs._cache_places import free_bytes
from dspark_deploy.remote.programs._frame import Call, serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

HUB_SETTINGS = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")  # huggingface_hub, constants.py, in its order
HOME_SETTINGS = (("HF_HOME", ""), ("XDG_CACHE_HOME", "/huggingface"))
USUAL = "~/.cache/huggingface"
# Where people put large files. A login's variables are often set for interactive shells alone: those files are read,
# as text, and not run.
OTHERS = ("/data/huggingface", "/srv/huggingface", "/opt/huggingface", "/mnt/huggingface", "/models/huggingface")
LOGIN_FILES = ("~/.bashrc", "~/.bash_profile", "~/.profile", "~/.zshrc", "~/.zshenv", "/etc/environment")
ASSIGNMENT = re.compile(
    r"""^\s*(?:export\s+)?(HF_HOME|HF_HUB_CACHE|HUGGINGFACE_HUB_CACHE|XDG_CACHE_HOME)=(['"]?)(\S+)\2"""
)
FOLDER = "models--"


def main(call: Call) -> None:
    """See the module."""
    call.end_with_session()
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for setting, hf_home, hub in candidates(call.request["also"]):
        place = read_place(setting, hf_home, hub, call.request["directories"])
        found.setdefault((place["hf_home"], place["hub"]), place)
    call.answer({"places": list(found.values())})


def candidates(also: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """What says so, the Hugging Face home, the hub cache."""
    for path in also:
        yield "asked for", path, f"{path}/hub"
    settings = login_settings()
    usual = next((f"{settings[name][0]}{below}" for name, below in HOME_SETTINGS if name in settings), USUAL)
    for name in HUB_SETTINGS:
        if name in settings:
            yield _said(name, settings), usual, settings[name][0]
    for name, below in HOME_SETTINGS:
        if name in settings:
            path = f"{settings[name][0]}{below}"
            yield _said(name, settings), path, f"{path}/hub"
    for path in (USUAL, *OTHERS):
        yield "the usual place" if path == USUAL else "a usual place", path, f"{path}/hub"


def login_settings() -> dict[str, tuple[str, str]]:
    """Variable -> its value and the file that sets it; "" is this login's own environment."""
    found: dict[str, tuple[str, str]] = {}
    for file in LOGIN_FILES:
        found.update({name: (value, file) for name, value in _assignments(file)})
    names = (*HUB_SETTINGS, *(name for name, _ in HOME_SETTINGS))
    found.update({name: (os.environ[name], "") for name in names if os.environ.get(name)})
    return found


def _assignments(file: str) -> Iterator[tuple[str, str]]:
    try:
        with open(_on_node(file), encoding="utf-8", errors="replace") as lines:
            matches = [ASSIGNMENT.match(line) for line in lines]
    except OSError:
        return
    for match in matches:
        value = re.sub(r"^(\$HOME|\$\{HOME\})(?=/|$)", "~", match[3].strip("'\"")) if match else ""
        if match and "$" not in value and "`" not in value and value.startswith(("/", "~")):
            yield match[1], value


def _on_node(file: str) -> str:
    """A file of the user's, or of the system, which may lie below another root."""
    return os.path.expanduser(file) if file.startswith("~") else os.environ.get("DSPARK_NODE_ROOT", "") + file


def _said(name: str, settings: dict[str, tuple[str, str]]) -> str:
    file = settings[name][1]
    return f"{name} in {file}" if file else name


def read_place(setting: str, hf_home: str, hub: str, directories: Sequence[str]) -> dict[str, Any]:
    """One home and its hub cache, as this user sees them."""
    hf_home, hub = (os.path.normpath(os.path.expanduser(path)) for path in (hf_home, hub))
    existing = hf_home
    while not os.path.exists(existing) and existing not in {"/", ""}:
        existing = os.path.dirname(existing)
    return {
        "setting": setting,
        "hf_home": hf_home,
        "hub": hub,
        "there": os.path.isdir(hf_home),
        "writable": os.access(existing, os.W_OK),
        "free_bytes": free_bytes(hf_home),
        "models": sorted(_models(hub)),
        "directories": [name for name in directories if os.path.isdir(f"{hf_home}/{name}")],
    }


def _models(hub: str) -> Iterator[str]:
    """The hub's names of what has a snapshot there, whole or not."""
    try:
        names = os.listdir(hub)
    except OSError:
        return
    for name in names:
        snapshots = f"{hub}/{name}/snapshots"
        if name.startswith(FOLDER) and os.path.isdir(snapshots) and os.listdir(snapshots):
            yield name[len(FOLDER) :].replace("--", "/", 1)


if __name__ == "__main__":
    serve(main)
