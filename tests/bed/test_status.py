"""`status` of a pair in trouble, and its watch while a node goes away and comes back."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any

from .bed import Bed
from .tool import DSPARK, dspark, result


def until(watch: subprocess.Popen[str], state: str) -> Any:
    """The first look from here on that says `state`."""
    assert watch.stdout is not None
    for line in watch.stdout:
        found = json.loads(line)
        if found["result"]["state"] == state:
            return found
    raise AssertionError(f"the watch ended without {state}: {watch.communicate()}")


def test_a_watch_tells_of_a_node_that_is_lost_and_of_a_rank_that_died_meanwhile(bed: Bed) -> None:
    dspark(bed, "up", "-q").check()
    watch = bed.popen([DSPARK, "status", "--watch", "--every", "200ms", "--output", "json"])
    assert until(watch, "serving")["exit_code"] == 0
    bed.worker.stop_sshd(sessions=True)
    unknown = until(watch, "unknown")
    assert unknown["exit_code"] == 5
    (trouble,) = unknown["result"]["troubles"]
    assert (trouble["node"], "ssh" in trouble["remedy"]) == ("worker", True)
    bed.worker.api.kill(bed.worker.containers()[0].id)
    bed.worker.start_sshd()
    split = until(watch, "split")
    watch.send_signal(signal.SIGINT)
    assert watch.wait(20) == 130
    (trouble,) = split["result"]["troubles"]
    assert (trouble["node"], bool(trouble["since"])) == ("worker", True)
    once = dspark(bed, "status", "--output", "json")
    assert (once.returncode, result(once)["state"]) == (8, "split")


def test_the_remedy_for_an_unknown_host_key_is_the_one_of_that_error(bed: Bed) -> None:
    ran = dspark(bed, "status", worker__host="spark-worker-unknown")
    assert ran.returncode == 5
    assert "SHA256:" in ran.stdout
    assert "--accept-new-host-keys" in ran.stdout
    assert "mend that first" not in ran.stdout
