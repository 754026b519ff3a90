from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

WRITER = """
import os, sys
from dspark_deploy.remote.programs._frame import WHOLE, Call
os.setpgrp()
call = Call()
with WHOLE:
    call.end_with_session(lambda: print("the session has ended", flush=True))
    open(sys.argv[1]).read()
    open(sys.argv[2], "w").write("whole")
open(sys.argv[1]).read()  # for ever: nobody opens it for writing once more
"""


def test_what_is_being_written_is_finished_before_the_end_of_the_session_ends_the_program(tmp_path: Path) -> None:
    gate, written = tmp_path / "gate", tmp_path / "written"
    subprocess.run(["mkfifo", str(gate)], check=True)
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(gate), str(written)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    ) as program:
        assert program.stdin
        assert program.stdout
        program.stdin.write(b'{"request": {}, "marker": "", "payload": 0}\n')
        program.stdin.close()
        assert program.stdout.readline() == b"the session has ended\n"
        gate.write_text("go on")
        assert program.wait(20) == -signal.SIGKILL
    assert written.read_text() == "whole"
