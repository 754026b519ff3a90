"""The files of one release that this node keeps.

Request: `pair`, `release`. Answer: `files`, name -> content, or null where the node keeps no such release whole. Bytes
that are no UTF-8 are lone surrogates (PEP 383).
"""

from __future__ import annotations

import os

from dspark_deploy.remote.programs._frame import Call, serve
from dspark_deploy.remote.programs._release import kept_whole
from dspark_deploy.remote.programs._state import state_folder


def main(call: Call) -> None:
    """See the module."""
    releases = f"{state_folder(call.request['pair'])}/releases"
    release = call.request["release"]
    if release not in kept_whole(releases):
        call.answer({"files": None})
        return
    root, files = f"{releases}/{release}", {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
                files[os.path.relpath(path, root)] = file.read()
    call.answer({"files": files})


if __name__ == "__main__":
    serve(main)
