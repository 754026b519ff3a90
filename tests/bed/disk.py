"""A node's disk: an ext4 image with the upper layer of its root, its /dev, and dockerd's store with all images loaded.

Made once for a machine and a set of images, then copied for every node that starts.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

from . import hardware
from .packages import SYSTEM_PATH, alone, cache_folder
from .stock import Stock

SOURCES = Path(__file__).read_bytes() + hardware.SOURCES
"""What decides the content of a disk, read when it is imported: a file that is edited meanwhile is not what runs."""
KEPT_AT_TOP = {
    "bin",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "sbin",
    "usr",
    "var",
    "proc",
    "sys",
    "dev",
    "run",
    "mnt",
}
"""Every other folder at the top is hidden, above all the one with the checkout under test: a tool that forgets to copy
a file must not find it on the node."""
EMPTIED = [
    *("root", "home", "srv", "opt", "tmp", "mnt", "usr/local", "usr/src", "etc/ssh", "etc/docker"),
    *("var/log", "var/tmp", "var/cache", "var/lib/docker", "var/lib/apt"),
]
HIDDEN = [
    "usr/bin/sudo",
    "usr/bin/systemctl",
    "usr/sbin/policy-rc.d",
    "etc/profile.d",
]  # a node here has no init system
DEVICES = {
    "null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0),
    "kmsg": (1, 11), "fuse": (10, 229), "infiniband/rdma_cm": (10, 61),
    **{f"infiniband/uverbs{number}": (231, 192 + number) for number in range(4)},
}  # fmt: skip
LINKS = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
PLUGINS = {"stable": "/usr/local/lib/bed/compose-stable", "newer": "/usr/local/lib/bed/compose-newer"}
PLUGIN_LINK = "usr/local/lib/docker/cli-plugins/docker-compose"
OS_RELEASE = 'PRETTY_NAME="Ubuntu 24.04.3 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\n'
DGX_RELEASE = 'DGX_NAME="DGX Spark"\nDGX_PRETTY_NAME="NVIDIA DGX Spark"\nDGX_SWBUILD_VERSION="7.2.3"\n'


def golden(stock: Stock, checkout: Path, load_images: Callable[[Path, Path], None]) -> Path:
    """The image to copy nodes from. `load_images` is called with a new one, and the archive, when there is none yet."""
    key = hashlib.sha256(f"{stock.fingerprint()} {stock.disk_size} {checkout}".encode() + SOURCES)
    path = cache_folder() / f"{stock.name}-{key.hexdigest()[:16]}.img"
    with alone(stock.name):
        if not path.exists():
            for old in cache_folder().glob(f"{stock.name}-*.img*"):
                old.unlink(missing_ok=True)
            new = path.with_suffix(".img.part")
            make(new, checkout, stock.disk_size)
            with stock.archive() as images:
                load_images(new, images)
            new.rename(path)
    return path


def make(image: Path, checkout: Path, size: str) -> None:
    """Make a new disk without images. `size` is as truncate reads it."""
    run("truncate", "-s", size, str(image))
    lazy = "lazy_itable_init=1,lazy_journal_init=1,nodiscard"
    run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", lazy, str(image))
    mounted = image.with_suffix(".mnt")
    mounted.mkdir()
    try:
        run("mount", "-o", "loop", str(image), str(mounted))
        try:
            _fill(mounted, checkout)
        finally:
            run("umount", str(mounted))
    finally:
        mounted.rmdir()


def _fill(disk: Path, checkout: Path) -> None:
    for name in ("upper", "work", "docker", "dev"):
        (disk / name).mkdir()
    upper = disk / "upper"
    for name in EMPTIED:
        folder = upper / name
        folder.mkdir(parents=True)
        os.setxattr(folder, "trusted.overlay.opaque", b"y")
    hidden = {entry.name for entry in Path("/").iterdir()} - KEPT_AT_TOP - set(EMPTIED)
    hidden |= {name for name in HIDDEN if Path("/", name).exists()}
    relative = str(checkout.resolve()).lstrip("/")
    if relative.split("/")[0] in KEPT_AT_TOP and not any(relative.startswith(name) for name in EMPTIED):
        hidden.add(relative)
    for name in hidden:
        _whiteout(upper / name)
    (upper / "tmp").chmod(0o1777)
    (upper / "var/tmp").chmod(0o1777)
    (upper / "root").chmod(0o700)
    for name, text in _programs().items():
        _put(upper / name, text, 0o755)
    for name in PLUGINS.values():
        _put(upper / name.lstrip("/"), "")  # to be mounted over
    (upper / PLUGIN_LINK).parent.mkdir(parents=True)
    (upper / PLUGIN_LINK).symlink_to(PLUGINS["stable"])
    _put(upper / "etc/docker/daemon.json", "{}\n")
    _put(upper / "etc/os-release", OS_RELEASE)
    _put(upper / "etc/dgx-release", DGX_RELEASE)
    _fill_dev(disk / "dev")


def _programs() -> dict[str, str]:
    real_runc = shutil.which("runc", path=SYSTEM_PATH) or "runc"
    return {
        "usr/bin/nvidia-smi": hardware.NVIDIA_SMI,
        "usr/bin/ibdev2netdev": hardware.IBDEV2NETDEV,
        "usr/bin/nvidia-container-runtime-hook": hardware.NVIDIA_HOOK,
        "usr/local/lib/bed/runc": hardware.RUNC.replace("@RUNC@", real_runc),  # on dockerd's PATH only
    }


def _fill_dev(dev: Path) -> None:
    for name in ("pts", "shm", "mqueue", "infiniband"):
        (dev / name).mkdir()
    for name, (major, minor) in DEVICES.items():
        os.mknod(dev / name, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        (dev / name).chmod(0o666)
    for name, target in LINKS.items():
        (dev / name).symlink_to(target)


def _whiteout(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))


def _put(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def fstab(folder: Path, binds: dict[str, Path]) -> str:
    """The mounts of a node below FOLDER/root, in order. `binds`: file on the node -> file of this machine."""
    root = folder / "root"
    rows = [
        ("proc", root / "proc", "proc", "nosuid,nodev,noexec"),
        ("sysfs", root / "sys", "sysfs", "nosuid,nodev,noexec"),
        ("tmpfs", root / "run", "tmpfs", "mode=755,size=64m"),
        (folder / "disk/dev", root / "dev", "none", "bind"),
        ("devpts", root / "dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=620,gid=5"),
        ("tmpfs", root / "dev/shm", "tmpfs", "mode=1777"),
        (folder / "disk/docker", root / "var/lib/docker", "none", "bind"),
        # /sys/class/infiniband can't be made in sysfs: put a tmpfs there and bind each class back from a second sysfs,
        # and the control groups too, which a fresh sysfs does not have below it.
        ("sysfs", folder / "sys", "sysfs", "X-mount.mkdir"),
        ("/sys/fs/cgroup", root / "sys/fs/cgroup", "none", "rbind"),
        ("tmpfs", root / "sys/class", "tmpfs", "mode=755,size=1m"),
    ]
    folders = {f"/sys/class/{entry.name}": folder / "sys/class" / entry.name for entry in Path("/sys/class").iterdir()}
    folders["/sys/class/infiniband"] = folder / "infiniband"
    rows += [(source, root / path.lstrip("/"), "none", "bind,X-mount.mkdir") for path, source in folders.items()]
    files = {"/proc/meminfo": folder / "meminfo", **binds}
    rows += [(source, root / path.lstrip("/"), "none", "bind") for path, source in files.items()]
    return "".join(" ".join(map(str, (*row, 0, 0))) + "\n" for row in rows)


def copy(golden_image: Path, target: Path) -> None:
    """Copy an image with its holes."""
    run("cp", "--sparse=always", "--reflink=auto", str(golden_image), str(target))


def run(*argv: str) -> None:
    """Run a program of the machine; its error text is in the exception."""
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
