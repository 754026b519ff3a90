"""`parity` on two real hosts; tests/rehearsal/test_parity.py has the same on the embedded pair."""

from __future__ import annotations

from tests.parity import (
    PREPARE,
    SEQUENCES,
    SERVE,
    VARIABLE,
    change_the_package,
    container,
    differences,
    release,
    start_by_hand,
)

from .bed import Bed
from .images import ANEMLL
from .test_contract import BedPair
from .tool import dspark


def test_each_thing_that_is_changed_under_one_rank_is_found_and_nothing_else(bed: Bed) -> None:
    side = BedPair(bed)
    dspark(bed, "up", "-p", "agent-1m").check()
    assert differences(side) == set()
    # As an editor writes it: a new file takes the place, and the container keeps the old one.
    side.login("worker", f"cd {release(side)} && cp serve.sh new && echo '# mine' >> new && mv new serve.sh").check()
    assert differences(side) == set()
    assert "serve.sh of release" in side.dspark("parity").stdout
    change_the_package(side, "worker")
    assert differences(side) == {"vllm package envs.py"}
    # Another image under the tag on one node: it has what was changed, and so other layers.
    side.login("worker", f"docker commit --pause=false {container(side, 'worker')} {ANEMLL}").check()
    side.login("head", f"echo '# mine' >> {release(side)}/prepare.py").check()
    assert differences(side) == {"vllm package envs.py", f"file {PREPARE}"}
    start_by_hand(side, VARIABLE, SEQUENCES)
    assert {each for each in differences(side) if not each.startswith("vllm package")} == {
        "image",
        "environment VLLM_USE_B12X_MOE",
        "--max-num-seqs",
        f"file {PREPARE}",
        f"file {SERVE}",
    }


def test_a_node_that_is_out_of_reach_or_whose_docker_is_down_is_no_verdict(bed: Bed) -> None:
    dspark(bed, "up", "-p", "agent-1m").check()
    bed.worker.kill_dockerd()
    ran = dspark(bed, "parity")
    assert ran.returncode == 5, ran
    assert "worker" in ran.stderr
    bed.worker.stop_sshd()
    assert dspark(bed, "parity").returncode == 5
