"""Keep a node's half of a release: one tar stream in, a whole folder or nothing at the end.

Request: `pair`, `release`, `files` (name, or path below the release, -> sha256; the manifest's included), `keep` (ids
that pruning leaves alone).
Payload: the tar. Answer: `changed` (false: the release was there already), `removed` (ids that were pruned).
"""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import tarfile

from dspark_deploy.remote.programs._frame import Call, Refused, serve
from dspark_deploy.remote.programs._release import holds
from dspark_deploy.remote.programs._state import PRIVATE, not_writable, own_folder, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

KEPT_RELEASES = 5
PART = ".part-"
SHARED = 0o755  # of folders in a release


def main(call: Call) -> None:
    """See the module."""
    release, files = call.request["release"], call.request["files"]
    _expect_below(files)
    if "/" in release or release.startswith("."):
        raise Refused(f"{release!r} is no release id")
    folder = own_folder(state_folder(call.request["pair"]), "releases")
    target = os.path.join(folder, release)
    _remove_leftovers(folder)
    changed = not holds(target, files)
    if changed:
        _place(call, folder, target, files)
    os.utime(target)  # the newest are kept: it is in use again
    removed = _prune(folder, {release, *call.request.get("keep", ())})
    call.answer({"changed": changed, "removed": removed})


def _place(call: Call, folder: str, target: str, files: Mapping[str, str]) -> None:
    """Unpack beside the target, check, rename. Whatever goes wrong, nothing incomplete stays."""
    part = os.path.join(folder, f"{PART}{os.getpid()}")
    try:
        os.mkdir(part, PRIVATE)
        lock = os.open(part, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)  # how a later run tells a live part from a dead one
        payload = call.payload()
        call.end_with_session(lambda: shutil.rmtree(part, ignore_errors=True))
        _unpack(payload, part)
        if not holds(part, files):
            raise Refused("the release arrived damaged", why="a file is missing or its hash differs")
        if os.path.lexists(target):
            os.rename(target, f"{part}-broken")
        os.rename(part, target)
        os.fsync(lock)
        _sync(folder)
        shutil.rmtree(f"{part}-broken", ignore_errors=True)
    except OSError as error:
        raise not_writable(target, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _unpack(payload: bytes, folder: str) -> None:
    """Write the archive's files. Raises Refused for anything but plain files with plain names."""
    with tarfile.open(fileobj=io.BytesIO(payload), mode="r:") as archive:
        for member in archive:
            _expect_below([member.name])
            content = archive.extractfile(member) if member.isreg() else None
            if content is None:
                raise Refused(f"the archive holds {member.name}, which is no plain file")
            if "/" in member.name:
                _make_folders(folder, os.path.dirname(member.name))
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(os.path.join(folder, member.name), flags, member.mode & 0o777)
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(descriptor, member.mode & 0o777)  # whatever the umask
                file.write(content.read())
                file.flush()
                os.fsync(descriptor)


def _make_folders(folder: str, below: str) -> None:
    """The folders that a file lies in. A container may run as another user, and has to get to what is mounted."""
    path = folder
    for part in below.split("/"):
        path = os.path.join(path, part)
        try:
            os.mkdir(path, SHARED)
        except FileExistsError:
            continue
        os.chmod(path, SHARED)  # whatever the umask; the release's own folder stays closed


def _expect_below(names: Collection[str]) -> None:
    for name in names:
        if "\0" in name or not {"", ".", ".."}.isdisjoint(name.split("/")):
            raise Refused(f"{name!r} is no name of a file in a release")


def _remove_leftovers(folder: str) -> None:
    """Remove what runs left that died while they unpacked."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith(PART) and _is_dead(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_dead(part: str) -> bool:
    try:
        descriptor = os.open(part, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _prune(folder: str, keep: Collection[str]) -> list[str]:
    """Remove all but the newest releases and those in `keep`."""
    names = [name for name in os.listdir(folder) if not name.startswith(".")]
    names.sort(key=lambda name: os.stat(os.path.join(folder, name)).st_mtime, reverse=True)
    removed = [name for name in names[KEPT_RELEASES:] if name not in keep]
    for name in removed:
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    return removed


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    serve(main)
