"""A home of its own for every test, a docker command that answers from a script, and real SSH servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dspark_deploy.remote.local import LocalHost
from tests.remote.sshd import Sshd, missing_sshd
from tests.remote.stub_docker import StubDocker


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory, for this process and what it starts."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return folder


@pytest.fixture
def local(home: Path) -> Iterator[LocalHost]:
    """This machine as the head."""
    del home
    host = LocalHost("head")
    yield host
    host.close()


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StubDocker:
    """A docker command in front of the real one, and nothing of this machine's own docker."""
    monkeypatch.setenv("DSPARK_NODE_ROOT", str(tmp_path / "no-root"))
    stub = StubDocker(tmp_path / "bin")
    stub.install(monkeypatch)
    return stub


@pytest.fixture
def sshd(tmp_path: Path, home: Path) -> Iterator[Sshd]:
    """An OpenSSH server on loopback whose one user is this one; `home` is its home there too."""
    reason = missing_sshd()
    if reason:
        pytest.skip(reason)
    with Sshd(tmp_path / "sshd", home) as server:
        yield server
