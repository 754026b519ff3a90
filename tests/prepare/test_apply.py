"""apply.py on folders that stand for an image, as serve.sh runs it in the container."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.facts.patches import PatchOutcome, patch_outcomes

PROGRAM = Path(__file__).parents[2] / "templates" / "apply.py"
CHANGES = "import os, pathlib\npathlib.Path(os.environ['VLLM_ROOT'], 'new.py').write_text('')\n"


@dataclass
class Patched:
    """A release's folder of patches beside an image's packages."""

    folder: Path
    entries: list[dict[str, Any]] = field(default_factory=list)

    @property
    def packages(self) -> Path:
        return self.folder / "packages"

    def program(self, name: str, text: str, *args: str, required: bool = True) -> None:
        """One more program, in a folder of its own."""
        folder = f"{len(self.entries) + 1}-own"
        (self.folder / folder).mkdir()
        (self.folder / folder / name).write_text(text)
        entry = {"file": name, "args": args, "required": required}
        self.entries.append({"folder": folder, "programs": [entry], "plugin": None})

    def run(self, *, limit_s: int = 120) -> subprocess.CompletedProcess[str]:
        (self.folder / "apply.py").write_text(PROGRAM.read_text().replace("LIMIT_S = 120", f"LIMIT_S = {limit_s}"))
        (self.folder / "list.json").write_text(json.dumps(self.entries))
        words = ["--family", "anemll", "--image", "name:tag", "--packages", str(self.packages)]
        argv = [sys.executable, "-I", str(self.folder / "apply.py"), *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)

    def outcomes(self) -> tuple[PatchOutcome, ...]:
        return patch_outcomes(self.run().stdout.splitlines())


@pytest.fixture
def patched(tmp_path: Path) -> Patched:
    (tmp_path / "packages/vllm").mkdir(parents=True)
    return Patched(tmp_path)


def test_what_changed_a_file_is_applied_and_what_did_not_was_so_already(patched: Patched) -> None:
    patched.program("a.py", CHANGES)
    patched.program("b.sh", 'echo "$DSPARK_FAMILY $DSPARK_IMAGE $1 $0"\n', "--status")
    path = patched.folder / "2-own/b.sh"
    assert patched.outcomes() == (
        PatchOutcome("1-own/a.py", "applied", 0, True),
        PatchOutcome("2-own/b.sh", "already", 0, True, (f"anemll name:tag --status {path}",)),
    )


def test_an_optional_one_that_fails_is_told_and_the_next_one_runs(patched: Patched) -> None:
    patched.program("a.sh", "for n in $(seq 30); do echo $n; done; exit 3\n", required=False)
    patched.program("b.py", CHANGES)
    first, second = patched.outcomes()
    assert (first.outcome, first.exit_code, first.tail) == ("failed", 3, tuple(map(str, range(11, 31))))
    assert second.outcome == "applied"
    assert patched.run().returncode == 0


def test_a_required_one_that_fails_ends_the_start_with_its_output(patched: Patched) -> None:
    patched.program("a.sh", "echo out; echo err >&2; exit 7\n")
    patched.program("b.py", CHANGES)
    ran = patched.run()
    assert ran.returncode == 51
    assert ran.stdout.splitlines()[:4] == [
        "dspark patch: 1-own/a.sh: | out",
        "dspark patch: 1-own/a.sh: | err",
        "dspark patch: 1-own/a.sh: failed (exit 7, required)",
        "dspark patch: FATAL: 1-own/a.sh is required, and failed with exit code 7: vllm is not started",
    ]
    assert not (patched.packages / "vllm/new.py").exists()


def test_one_that_does_not_end_is_ended_with_all_that_it_started(patched: Patched) -> None:
    patched.program("a.sh", "echo begun; sleep 60 & sleep 60\n", required=False)
    (only,) = patch_outcomes(patched.run(limit_s=1).stdout.splitlines())
    assert (only.exit_code, only.tail) == (124, ("begun", "it did not end within 1 s, and was ended"))


@pytest.mark.parametrize(
    ("point", "package", "outcome", "said"),
    [
        ("gb10 = own.part:go", "own/part.py", "applied", ()),
        ("gb10 = other:go", "own/part.py", "failed", ("no module other",)),
        ("another = own:go", "own/part.py", "failed", ("no entry point of vllm.general_plugins",)),
    ],
)
def test_a_plugin_that_vllm_would_not_find_ends_the_start(
    patched: Patched, point: str, package: str, outcome: str, said: tuple[str, ...]
) -> None:
    folder = patched.folder / "1-own"
    for name, text in (
        (package, ""),
        ("own/__init__.py", "raise RuntimeError('imported, where vllm is not there yet')\n" if "own:" in point else ""),
        ("own-0.dist-info/entry_points.txt", f"[vllm.general_plugins]\n{point}\n"),
        ("own-0.dist-info/METADATA", "Metadata-Version: 2.1\nName: own\nVersion: 0\n"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    patched.entries.append({"folder": "1-own", "programs": [], "plugin": {"name": "gb10", "packages": "1-own"}})
    (only,) = patched.outcomes()
    assert (only.name, only.outcome, only.tail) == ("1-own: plugin gb10", outcome, said)
