"""Which commands there are, in the order in which `--help` shows them. A new command is one entry here."""

from __future__ import annotations

from dspark_deploy.cli.advise import advise
from dspark_deploy.cli.bench import bench
from dspark_deploy.cli.budget import budget
from dspark_deploy.cli.compare import compare
from dspark_deploy.cli.doctor import doctor
from dspark_deploy.cli.down import down
from dspark_deploy.cli.explain import explain
from dspark_deploy.cli.families import families
from dspark_deploy.cli.group import register
from dspark_deploy.cli.history import history
from dspark_deploy.cli.init import init
from dspark_deploy.cli.logs import logs
from dspark_deploy.cli.parity import parity
from dspark_deploy.cli.plan import plan
from dspark_deploy.cli.profiles import profiles
from dspark_deploy.cli.pull import pull
from dspark_deploy.cli.rehearse import rehearse
from dspark_deploy.cli.render import render
from dspark_deploy.cli.report import report
from dspark_deploy.cli.rollback import rollback
from dspark_deploy.cli.smoke import smoke
from dspark_deploy.cli.status import status
from dspark_deploy.cli.supervise import supervise
from dspark_deploy.cli.switch import switch
from dspark_deploy.cli.unlock import unlock
from dspark_deploy.cli.up import up
from dspark_deploy.cli.verify_cache import verify_cache
from dspark_deploy.cli.watch import watch


def register_all() -> None:
    """Add every command to the group."""
    register(
        init,
        plan,
        up,
        watch,
        status,
        logs,
        explain,
        down,
        supervise,
        switch,
        rollback,
        history,
        unlock,
        doctor,
        pull,
        render,
        profiles,
        families,
        verify_cache,
        parity,
        smoke,
        bench,
        compare,
        report,
        budget,
        advise,
        rehearse,
    )
