"""The node's memory, in bytes: asked again and again while what a rank held comes back. Request: empty."""

from __future__ import annotations

import os

from dspark_deploy.remote.programs._frame import Call, serve
from dspark_deploy.remote.programs._system import read_memory


def main(call: Call) -> None:
    """See the module."""
    call.answer(read_memory(os.environ.get("DSPARK_NODE_ROOT", "")))


if __name__ == "__main__":
    serve(main)
