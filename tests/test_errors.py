"""Every error class carries an exit code and a name for scripts."""

from __future__ import annotations

from dspark_deploy import errors
from dspark_deploy.errors import DsparkError, ExitCode


def every_error() -> list[type[DsparkError]]:
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, DsparkError)]


def test_every_error_class_carries_an_exit_code_and_an_id_of_its_own() -> None:
    concrete = [each for each in every_error() if each is not DsparkError]
    assert all(isinstance(each.code, ExitCode) for each in concrete)
    assert len({each.id for each in concrete}) == len(concrete)


def test_the_exit_codes_are_those_that_are_documented() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "OK": 0,
        "BUG": 1,
        "USAGE": 2,
        "REFUSED": 3,
        "LAUNCH_FAILED": 4,
        "UNREACHABLE": 5,
        "LOCKED": 6,
        "DISAGREES": 7,
        "NOT_AS_WANTED": 8,
        "INTERRUPTED": 130,
    }
