"""The program that runs in a rank's container."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.remote.program import text_of


def ask(**request: Any) -> subprocess.CompletedProcess[str]:
    """Run it as a container's own Python does."""
    argv = [sys.executable, "-I", "-S", "-c", text_of("inside"), json.dumps({"limit_s": 30, "mounts": [], **request})]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@pytest.fixture(name="package")
def _package(tmp_path: Path) -> Path:
    folder = tmp_path / "vllm"
    (folder / "v1/__pycache__").mkdir(parents=True)
    (folder / "__init__.py").write_text("one")
    (folder / "v1/engine.py").write_text("two")
    (folder / "v1/__pycache__/engine.pyc").write_text("compiled")
    return folder


def test_every_file_of_the_package_but_what_python_compiled(package: Path) -> None:
    (package / "link.py").symlink_to(package / "__init__.py")
    (package / "gone.py").symlink_to(package / "nothing")
    told = json.loads(ask(package=str(package)).stdout)
    assert told["package"] == {"__init__.py": hashed("one"), "v1/engine.py": hashed("two"), "link.py": hashed("one")}


def test_mounted_files_and_folders(package: Path, tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text("exec")
    absent = tmp_path / "absent"
    told = json.loads(
        ask(package=str(tmp_path / "none"), mounts=[str(script), str(package / "v1"), str(absent)]).stdout
    )
    assert told["package"] is None
    assert told["mounted"] == {str(script): hashed("exec"), f"{package}/v1/engine.py": hashed("two"), str(absent): None}


def test_names_that_are_no_text_are_told(package: Path) -> None:
    Path(str(package) + "/\udcff.py").write_text("three")
    assert json.loads(ask(package=str(package)).stdout)["package"]["\udcff.py"] == hashed("three")


def test_it_ends_itself_when_its_time_is_over(package: Path) -> None:
    os.mkfifo(package / "v1/pipe")
    ended = ask(package=str(package), mounts=[str(package / "v1/pipe")], limit_s=1)
    assert ended.returncode == -signal.SIGALRM
