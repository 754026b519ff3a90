"""The bar: on a terminal, after a second, and nowhere else."""

from __future__ import annotations

import sys

import pytest

from dspark_deploy.cli.meter import Meter
from dspark_deploy.flow.scan import Counted


class Terminal:
    """Shows a meter on something that says it is a terminal, at times that the test sets."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self._seconds = 0.0

    def shown(self, *times: float, quiet: bool = False) -> str:
        """What stands on standard error when the meter was told of work at these seconds."""
        self._monkeypatch.setattr(sys.stderr, "isatty", lambda: True)  # here: in a fixture it is another stream
        with Meter(quiet=quiet, now=lambda: self._seconds) as meter:
            for self._seconds in times:
                meter.show(Counted(files=12, bytes=3_400_000, tokens=850_000.0, share=0.25))
        said = self._capsys.readouterr()
        assert said.out == ""
        return said.err


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(capsys, monkeypatch)


def test_it_appears_after_a_second_with_what_was_counted(terminal: Terminal) -> None:
    text = terminal.shown(0.5, 1.5)
    assert "25%" in text
    assert "12 files, 3 MB, 850000 tokens" in text


def test_what_is_quick_or_quiet_shows_nothing(terminal: Terminal) -> None:
    assert terminal.shown(0.1, 0.9) == ""
    assert terminal.shown(5.0, quiet=True) == ""


def test_off_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = iter((0.0, 5.0, 6.0))
    with Meter(now=lambda: next(seconds)) as meter:
        meter.show(Counted(files=12))
    assert capsys.readouterr().err == ""
