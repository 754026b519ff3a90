"""Where everything of a pair lies, below its one folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """The files of a pair that more than one part of it knows. A node's own are below the folder of its role."""

    folder: Path

    @classmethod
    def below(cls, state_home: Path) -> Places:
        """The user's one pair."""
        return cls(state_home / "dspark" / "rehearsal")

    @property
    def spec(self) -> Path:
        """What the background process is to make."""
        return self.folder / "spec.json"

    @property
    def facts(self) -> Path:
        """What it made; written last."""
        return self.folder / "pair.json"

    @property
    def alive(self) -> Path:
        """Locked by the background process for as long as it lives; holds its process id."""
        return self.folder / "alive"

    @property
    def log(self) -> Path:
        """What the background process says."""
        return self.folder / "background.log"

    @property
    def inventory(self) -> Path:
        """The pair, as the tool is told of it."""
        return self.folder / "inventory.yaml"

    @property
    def ssh_config(self) -> Path:
        """How the tool reaches both nodes."""
        return self.folder / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        """Both nodes' host keys."""
        return self.folder / "known_hosts"

    @property
    def key(self) -> Path:
        """What both nodes let in."""
        return self.folder / "key"

    @property
    def programs(self) -> Path:
        """Holds a program `ssh`, for machines without OpenSSH."""
        return self.folder / "openssh"
