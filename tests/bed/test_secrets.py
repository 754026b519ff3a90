"""An API key on two real hosts: searched for in all that they show, under the real engine and the real compose."""

from __future__ import annotations

from .bed import Bed
from .host import Host
from .tool import dspark, nothing_is_left, result

CANARY = "sk-canary-77e0d2"
HELD = ".local/share/dspark/spark-pair/secrets.env"
KEPT = "/home /root /etc /tmp /run /var/log /var/lib/docker/containers /var/lib/docker/image"


def give(bed: Bed) -> None:
    path = bed.client / "api.key"
    path.write_text(f"{CANARY}\n")
    path.chmod(0o600)


def shown(node: Host, release: str) -> str:
    """Everything that a node says of its rank, and every file and process on it that holds the key."""
    (container,) = node.containers()
    compose = f"{node.home}/.local/share/dspark/spark-pair/releases/{release}/compose.yaml"
    said = [
        node.docker("inspect", container.id).check().stdout,
        node.docker("image", "inspect", container.image).check().stdout,
        node.as_user(["docker", "compose", "-f", compose, "config"]).check().stdout,
        node.logs(container.id),
        node.exec(["sh", "-c", "cat /proc/[0-9]*/cmdline"]).stdout,
    ]
    # The pattern comes on standard input: an argument would be found in the list of processes.
    found = node.exec(["sh", "-c", f"grep -rlsF -f - {KEPT}"], stdin=f"{CANARY}\n").stdout
    return "\n".join(line for text in (*said, found) for line in text.splitlines() if CANARY in line or text is found)


def test_a_key_is_in_its_own_file_on_the_head_and_in_nothing_that_either_node_shows(bed: Bed) -> None:
    give(bed)
    up = dspark(bed, "up", "-v", "--output", "json", api__key_file="api.key").check()
    release = result(up)["release"]
    assert shown(bed.head, release) == f"{bed.head.home}/{HELD}"
    assert shown(bed.worker, release) == ""
    assert bed.head.path(f"{bed.head.home}/{HELD}").stat().st_mode & 0o777 == 0o600
    told = dspark(bed, "status", "--output", "json", api__key_file="api.key").check()
    assert result(told)["state"] == "serving"
    without = dspark(bed, "smoke")
    assert (without.returncode, "none is given" in without.stderr) == (2, True)
    down = dspark(bed, "down", api__key_file="api.key").check()
    nothing_is_left(bed)
    assert not [ran for ran in (up, told, without, down) if CANARY in ran.stdout + ran.stderr]
    written = [path for path in bed.client.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]
    assert [path.name for path in written] == ["api.key"]
