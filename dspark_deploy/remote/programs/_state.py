"""The folder on a node that belongs to one pair: releases, lock, answers. Nobody but the SSH user reads it."""

from __future__ import annotations

import os
import pwd

from dspark_deploy.remote.programs._frame import Refused

PRIVATE = 0o700
SECRETS = "secrets.env"  # the API key; on the head alone


def state_folder(pair: str) -> str:
    """Where the node keeps what it knows of `pair`. It need not exist."""
    return os.path.expanduser(f"~/.local/share/dspark/{pair}")


def secrets_at(folder: str) -> float | None:
    """When the key in a pair's folder was written, seconds since the epoch; None where there is none."""
    try:
        return os.stat(f"{folder}/{SECRETS}").st_mtime
    except FileNotFoundError:
        return None


def own_folder(*parts: str) -> str:
    """Make the folder, its parents too, closed to others. Raises Refused, naming path, owner and user."""
    path = os.path.join(*parts)
    try:
        os.makedirs(path, PRIVATE, exist_ok=True)
        if os.stat(path).st_mode & 0o777 != PRIVATE:
            os.chmod(path, PRIVATE)
    except OSError as error:
        raise not_writable(path, error) from error
    return path


def not_writable(path: str, error: OSError) -> Refused:
    """Why `path` can't be written, in terms of who owns what."""
    existing = path
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    owner, user = _name(os.stat(existing).st_uid), _name(os.geteuid())
    return Refused(
        f"{path} can't be written: {error.strerror}",
        why=f"{existing} belongs to {owner}, and the user here is {user}",
        remedy=f"make {existing} writable for {user} on that node, or free space where the disk is full",
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
