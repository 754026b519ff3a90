"""The two nodes as a pair: reached, two machines, one time, one kind of system."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, fine, unknown
from dspark_deploy.facts.node import NodeFacts

MOST_SKEW_S = 5.0  # more, and times of two logs can't be compared by eye
TLS_SKEW_S = 300.0  # registries' certificates are minutes old at times


def _reached(case: Case) -> Iterator[Verdict]:
    for node, error in case.unreachable.items():
        why = error.why.splitlines()
        yield bad(f"{error.message}{f' ({why[0]})' if why else ''}", error.remedy, node)
    for node, known in case.facts.items():
        yield fine(f"{node}: {known.user} is logged in to {known.hostname}", node)


def _two_machines(case: Case) -> Iterator[Verdict]:
    """Two names of one machine would put both ranks on one GPU."""
    head, worker = case.facts.get("head"), case.facts.get("worker")
    if head is None or worker is None:
        return
    lacking = next((each for each in (head, worker) if each.boot_id is None), None)
    if lacking is not None:
        yield unknown(f"{lacking.node}: {lacking.missing.get('boot_id', 'no boot id')}", lacking.node)
    elif head.boot_id == worker.boot_id and head.hostname == worker.hostname:
        yield bad(f"head and worker are one machine ({head.hostname})", "give the worker's own host in the inventory")
    else:
        yield fine(f"two machines: {head.hostname} and {worker.hostname}")


def _clock(case: Case) -> Iterator[Verdict]:
    for node, known in case.facts.items():
        skew_s = known.skew_s
        if skew_s is None:
            yield unknown(f"{node}: its clock was not compared with this machine's", node)
        elif abs(skew_s) > MOST_SKEW_S:
            off = f"{abs(skew_s):.0f} s {'ahead of' if skew_s > 0 else 'behind'} this machine's"
            more = ", so that certificates look invalid and every pull fails" if abs(skew_s) > TLS_SKEW_S else ""
            yield bad(f"{node}: the clock is {off}{more}", f"on {node}: sudo timedatectl set-ntp true", node)
        else:
            yield fine(f"{node}: the clock is right", node)


def _equal(what: str, read: Callable[[NodeFacts], str | None], remedy: str) -> Callable[[Case], Iterator[Verdict]]:
    """A judge: what `read` reads off the nodes is the same on both."""

    def judge(case: Case) -> Iterator[Verdict]:
        found = {node: read(known) for node, known in case.facts.items()}
        listed = ", ".join(f"{node} {value}" for node, value in found.items())
        if len(found) < 2 or None in found.values():  # noqa: PLR2004  a pair; another check says what could not be read
            return
        if len(set(found.values())) == 1:
            yield fine(f"both nodes have {what} {next(iter(found.values()))}")
        else:
            yield bad(f"the nodes differ in {what}: {listed}", remedy)

    return judge


def _driver(known: NodeFacts) -> str | None:
    return known.gpus[0].driver if known.gpus else None


def _firmware(known: NodeFacts) -> str | None:
    found = {port.firmware for port in known.hca_ports if port.firmware}
    return " and ".join(sorted(found)) or None


def _system(known: NodeFacts) -> str | None:
    build = f" (DGX OS {known.system.build})" if known.system.build else ""
    return f"{known.system.os}{build}" if known.system.os else None


_UPDATE = "update both nodes to the same release"

CHECKS = (
    Check("ssh-login", "nodes", "fail", ("F87",), _reached),
    Check("two-machines", "nodes", "fail", ("F41",), _two_machines),
    Check("clock-skew", "nodes", "warn", ("F88",), _clock),
    Check("same-system", "nodes", "warn", (), _equal("the system", _system, _UPDATE)),
    Check("same-kernel", "nodes", "warn", ("F33",), _equal("the kernel", lambda known: known.system.kernel, _UPDATE)),
    Check("same-driver", "nodes", "warn", (), _equal("the NVIDIA driver", _driver, _UPDATE)),
    Check(
        "same-firmware",
        "nodes",
        "warn",
        ("F57",),
        _equal("the ConnectX firmware", _firmware, "update the firmware of both nodes: fwupdmgr, or NVIDIA's mlxup"),
    ),
)
