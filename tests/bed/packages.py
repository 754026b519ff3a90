"""What the bed needs from the distribution: Debian packages, and the compose v2 plugin of a newer suite.

`compose_binary()` works without a bed and as an ordinary user: it only downloads a package and unpacks it.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = {
    "dockerd": ("docker.io",),
    "docker": ("docker.io", "docker-cli"),  # its own package from trixie on
    "runc": ("runc",),
    "sshd": ("openssh-server",),
    "ssh": ("openssh-client",),
    "ip": ("iproute2",),
    "iptables": ("iptables",),
    "unshare": ("util-linux",),
    "nsenter": ("util-linux",),
    "mount": ("mount",),
    "mkfs.ext4": ("e2fsprogs",),
    "setpriv": ("util-linux",),
    "python3": ("python3",),
}
"""Program -> packages that may bring it. Looked up in SYSTEM_PATH only: /usr/local is hidden on the nodes."""

SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
PLUGIN = "usr/libexec/docker/cli-plugins/docker-compose"


class BedUnavailable(Exception):
    """The bed, or a part of it, can't be had on this machine. The message says why and how to get it."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """What /etc/os-release says."""

    id: str
    like: str
    codename: str

    @property
    def is_ubuntu(self) -> bool:
        return self.id == "ubuntu" or "ubuntu" in self.like

    @property
    def is_supported(self) -> bool:
        return self.id == "debian" or self.is_ubuntu


def distribution(os_release: Path = Path("/etc/os-release")) -> Distribution:
    """Read the distribution; a file that is missing gives empty names."""
    try:
        text = os_release.read_text()
    except OSError:
        text = ""
    values = dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', text, flags=re.MULTILINE))
    return Distribution(values.get("ID", ""), values.get("ID_LIKE", ""), values.get("VERSION_CODENAME", ""))


def cache_folder() -> Path:
    """Where archives and binaries are kept between runs; made when missing."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "dspark-bed"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def alone(what: str) -> Iterator[None]:
    """Have it to oneself: several workers of a test run may need the same at once."""
    with (cache_folder() / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def missing_programs() -> list[str]:
    """The PROGRAMS that this machine does not have."""
    return [name for name in PROGRAMS if shutil.which(name, path=SYSTEM_PATH) is None]


def install_packages() -> None:
    """Install what is missing, by apt. Needs root. Raises BedUnavailable when something stays missing."""
    with alone("packages"):
        _install_missing()


def _install_missing() -> None:
    if not missing_programs():
        return
    with suppress(subprocess.CalledProcessError), _no_service_starts():
        _apt(["apt-get", "-q", "update"])
        for position in range(max(len(packages) for packages in PROGRAMS.values())):
            missing = missing_programs()
            wanted = sorted({PROGRAMS[name][position] for name in missing if len(PROGRAMS[name]) > position})
            if wanted:
                _apt(["apt-get", "-q", "install", "-y", "--no-install-recommends", *wanted])
    if left := missing_programs():
        wanted = sorted({PROGRAMS[name][0] for name in left})
        raise BedUnavailable(f"it needs {', '.join(left)}, and apt could not install {' '.join(wanted)}")


def install_library(file: str, package: str) -> None:
    """Install the package of a shared library that this machine does not have. Needs root."""
    if any(Path("/usr/lib").glob(f"*-linux-gnu/{file}")):
        return
    try:
        _apt(["apt-get", "-q", "update"])
        _apt(["apt-get", "-q", "install", "-y", "--no-install-recommends", package])
    except subprocess.CalledProcessError as error:
        raise BedUnavailable(f"apt could not install {package}: {_last_line(error)}") from error


@contextmanager
def _no_service_starts() -> Iterator[None]:
    """Keep dockerd and sshd of the machine itself from being started by their packages."""
    policy = Path("/usr/sbin/policy-rc.d")
    if policy.exists():
        yield
        return
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink()


def compose_binary(*, newer: bool = False) -> Path:
    """The compose v2 plugin as a program of its own, out of the distribution's package; nothing is installed.

    `newer=False` is the version of Debian's stable suite, 2.26.1, which drops `gpus: all` in silence; `newer=True`
    is one that honours it (2.30 and later). Kept in cache_folder(). Raises BedUnavailable when the package
    can't be had.
    """
    kept = cache_folder() / f"compose-{'newer' if newer else 'stable'}-{platform.machine()}"
    if kept.exists():
        return kept
    with alone("compose"):
        if not kept.exists():
            _take_out_plugin(kept, newer=newer)
    return kept


def _take_out_plugin(kept: Path, *, newer: bool) -> None:
    release = distribution()
    if not release.is_supported:
        raise BedUnavailable("compose is taken from a package of Debian or Ubuntu, and this is neither")
    package = "docker-compose-v2" if release.is_ubuntu else "docker-compose"
    suites = _suites(release, newer=newer)
    failures = []
    for suite in suites:
        with tempfile.TemporaryDirectory(prefix="dspark-bed-") as folder:
            try:
                plugin = _download(package, suite, Path(folder))
            except (subprocess.CalledProcessError, OSError, BedUnavailable) as error:
                failures.append(f"{suite}: {_last_line(error)}")
                continue
            part = kept.with_suffix(".part")
            shutil.copy(plugin, part)
            part.chmod(0o755)
            part.replace(kept)
            return
    raise BedUnavailable(f"no {package} with the compose v2 plugin could be downloaded ({'; '.join(failures)})")


def _suites(release: Distribution, *, newer: bool) -> tuple[str, ...]:
    """Suites to try, in order. Bookworm's own docker-compose is the old one, written in Python."""
    if release.is_ubuntu:
        return (f"{release.codename}-updates", release.codename)
    if newer:
        return ("forky", "sid")
    return ("trixie",)


def _download(package: str, suite: str, folder: Path) -> Path:
    """Download and unpack a package of a suite that need not be this machine's. Returns the plugin's path."""
    for part in ("lists/partial", "cache/archives/partial", "out"):
        (folder / part).mkdir(parents=True)
    (folder / "sources.list").write_text(_source_line(suite) + "\n")
    settings = {
        "Dir::Etc::SourceList": str(folder / "sources.list"),
        "Dir::Etc::SourceParts": "-",
        "Dir::Etc::Preferences": "-",
        "Dir::Etc::PreferencesParts": "-",
        "Dir::State::Lists": str(folder / "lists"),
        "Dir::Cache": str(folder / "cache"),
        "APT::Default-Release": "",
        "APT::Sandbox::User": "root" if os.geteuid() == 0 else "",
        "Acquire::Languages": "none",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    _apt(["apt-get", "-q", *options, "update"], cwd=folder)
    _apt(["apt-get", "-q", *options, "download", package], cwd=folder)
    archive = next(folder.glob("*.deb"))
    _apt(["dpkg-deb", "-x", str(archive), str(folder / "out")], cwd=folder)
    plugin = folder / "out" / PLUGIN
    if not plugin.is_file():
        raise BedUnavailable(f"{archive.name} holds no {PLUGIN}")
    return plugin


def _source_line(suite: str, apt: Path = Path("/etc/apt")) -> str:
    """This machine's own main archive, with another suite. Raises BedUnavailable when no such source is found."""
    release = distribution()
    component = "universe" if release.is_ubuntu else "main"
    for uri, suites, signed_by in _sources(apt):
        if release.codename in suites:
            options = f"[signed-by={signed_by}] " if signed_by else ""
            return f"deb {options}{uri} {suite} {component}"
    raise BedUnavailable(f"{apt} names no archive of {release.codename}")


def _sources(apt: Path) -> Iterator[tuple[str, list[str], str]]:
    """Each binary source of this machine: address, suites, keyring (empty when apt's default holds)."""
    for file in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.list"))]:
        for line in file.read_text().splitlines() if file.is_file() else ():
            if found := re.match(r"deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)", line):
                signed = re.search(r"signed-by=(\S+)", found[1] or "")
                yield found[2], [found[3]], signed[1] if signed else ""
    for file in sorted((apt / "sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n", "", file.read_text())):
            fields = {name.lower(): value.strip() for name, value in re.findall(r"(?m)^([\w-]+):(.*)$", stanza)}
            if "deb" in fields.get("types", "").split() and fields.get("enabled", "yes") != "no":
                for uri in fields.get("uris", "").split():
                    yield uri, fields.get("suites", "").split(), fields.get("signed-by", "")


def _apt(argv: list[str], cwd: Path | None = None) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    subprocess.run(argv, check=True, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)


def _last_line(error: Exception) -> str:
    text = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
    return (text.strip().splitlines() or [str(error)])[-1]
