"""Keep on this node what it looked like when the pair came up well.

Request: `pair`, `at` (RFC 3339), `values` (name -> value). Answer: empty.
"""

from __future__ import annotations

import os

from dspark_deploy.remote.programs._frame import Call, serve
from dspark_deploy.remote.programs._notes import NOTE, keep
from dspark_deploy.remote.programs._state import not_writable, own_folder, state_folder


def main(call: Call) -> None:
    """See the module."""
    path = os.path.join(own_folder(state_folder(call.request["pair"])), NOTE)
    try:
        keep(path, {"at": call.request["at"], "values": call.request["values"]})
    except OSError as error:
        raise not_writable(path, error) from error
    call.answer({})


if __name__ == "__main__":
    serve(main)
