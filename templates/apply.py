"""Apply a release's patches to the image, in their order, before vLLM starts.

serve.sh runs this in the container on the image's own Python (3.10 and newer) with the standard library alone. Beside
it lie list.json, which says what to do, and a folder for each patch. Whatever a patch does is said in lines of one
form, which facts/patches.py reads:

    dspark patch: FOLDER/FILE: | a line that it printed
    dspark patch: FOLDER/FILE: applied (exit 0, required)

`already`: it ended well, and no file of the packages folder changed. A required one that fails ends the container here.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FAILED = 51  # what the container exits with; see docs/patches.md
LIMIT_S = 120  # a patch edits some files
TOO_LATE = 124  # what stands for the exit code of one that did not end, as `timeout` has it
SHOWN_LINES, SHOWN_CHARACTERS = 20, 500
GROUP = "vllm.general_plugins"


class Required(Exception):
    """A patch that has to be there is not. The text names it."""


def main(argv: Sequence[str]) -> int:
    """Do all of list.json. Returns the exit code."""
    asked = _parser().parse_args(argv)
    here = Path(__file__).parent
    packages = Path(asked.packages)
    # What programs may want to know: upstream's own look for vLLM in VLLM_ROOT.
    told = {"DSPARK_PACKAGES": str(packages), "DSPARK_FAMILY": asked.family, "DSPARK_IMAGE": asked.image}
    environment = {"VLLM_ROOT": f"{packages}/vllm", **os.environ, **told, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        for patch in json.loads((here / "list.json").read_text(encoding="utf-8")):
            for program in patch["programs"]:
                apply(here / patch["folder"], program, packages, environment)
            if patch["plugin"] is not None:
                switch_on(here, patch["plugin"])
    except Required as failure:
        say(f"FATAL: {failure}: vllm is not started")
        say(f"FATAL: exit code {FAILED}: see docs/patches.md; image {asked.image}, image family {asked.family}")
        return FAILED
    return 0


def say(text: str) -> None:
    """One line for the container's log."""
    print(f"dspark patch: {text}", flush=True)  # noqa: T201  a container's output is its log


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--family", required=True, help="image family that the release was rendered for")
    parser.add_argument("--image", required=True, help="its reference, for messages")
    parser.add_argument("--packages", required=True, help="the folder that holds the vllm package")
    return parser


def apply(folder: Path, program: Mapping[str, Any], packages: Path, environment: Mapping[str, str]) -> None:
    """Run one program and tell its outcome. Raises Required."""
    name, required = f"{folder.name}/{program['file']}", program["required"]
    path = folder / program["file"]
    before = fingerprint(packages)
    code, output = run([*_interpreter(path), str(path), *program["args"]], folder, environment)
    outcome = "failed" if code else "already" if fingerprint(packages) == before else "applied"
    tell(name, outcome, code, output, required=required)


def tell(name: str, outcome: str, code: int, output: str, *, required: bool) -> None:
    """What a patch printed last, and how it ended. Raises Required."""
    for line in output.splitlines()[-SHOWN_LINES:]:
        say(f"{name}: | {line[:SHOWN_CHARACTERS]}")
    say(f"{name}: {outcome} (exit {code}, {'required' if required else 'optional'})")
    if code and required:
        raise Required(f"{name} is required, and failed with exit code {code}")


def run(argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Exit code and output of a program; its whole process group ends with it."""
    child = subprocess.Popen(
        argv,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = child.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
        return TOO_LATE, f"{output}\nit did not end within {LIMIT_S} s, and was ended"
    return child.returncode, output


def fingerprint(packages: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder with its time and size. Python's caches are not counted."""
    found: dict[str, tuple[int, int]] = {}
    waiting = [str(packages)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting += [entry.path] if entry.name != "__pycache__" else []
                else:
                    seen = entry.stat(follow_symlinks=False)
                    found[entry.path] = seen.st_mtime_ns, seen.st_size
    return found


def switch_on(here: Path, plugin: Mapping[str, str]) -> None:
    """See that vLLM will find a plugin where serve.sh lets Python look. Nothing is installed. Raises Required."""
    name = f"{plugin['packages']}: plugin {plugin['name']}"
    sys.path.insert(0, str(here / plugin["packages"]))
    point = next((each for each in metadata.entry_points(group=GROUP) if each.name == plugin["name"]), None)
    module = "" if point is None else point.value.partition(":")[0]
    try:
        found = bool(module) and find_spec(module) is not None
    except ImportError:  # of the package around it
        found = False
    missing = f"no module {module}" if module else f"no entry point of {GROUP}"
    tell(name, "applied" if found else "failed", 0 if found else 1, "" if found else missing, required=True)


def _interpreter(path: Path) -> list[str]:
    return [sys.executable] if path.suffix == ".py" else ["/bin/bash"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
