"""Make docs/captures: what a terminal of 80 and of 120 columns shows, as text and as SVG.

Each capture is a command against the embedded pair, run in a terminal of its own; what it has on its screen at one
moment is kept. `python tools/captures.py` makes all of them, `python tools/captures.py NAME...` those. What differs
from run to run besides seconds (paths, process numbers, ports, dates) is put to fixed values, so that a capture changes
when what is shown does.
"""

from __future__ import annotations

import fcntl
import inspect
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "captures"
DSPARK = Path(sys.executable).with_name("dspark")
WIDTHS = (80, 120)
HEIGHT = 50
LIMIT_S = 120.0
SETTLE_S = 0.3  # after the moment: what belongs to it is drawn by then


@dataclass(frozen=True, slots=True)
class Capture:
    """One picture. `setup` are command lines that come before, unseen."""

    name: str
    words: tuple[str, ...]
    setup: tuple[tuple[str, ...], ...] = ()
    when: str | None = None  # what stands on the screen at the moment; None: when the command has ended


SLOW = ("--time-scale", "15")
CAPTURES = (
    Capture("up", ("rehearse", "up"), (("rehearse", *SLOW, "status", "-q"),), when=r"loading weights [3-6]\d %"),
    Capture("up-served", ("rehearse", "up"), (("rehearse", "status", "-q"),)),
    Capture(
        "failed-boot",
        ("rehearse", "up"),
        (("rehearse", "--scenario", "worker-dies-loading", "status", "-q"),),
    ),
    Capture("status-watch", ("rehearse", "status", "--watch"), (("rehearse", "up", "-q"),), when=r"tokens/s|generated"),
)

# What is the machine's or the moment's, and what stands for it.
FIXED = (
    (re.compile(r"(?:/[\w.-]+)+/dspark-captures-\w+"), "~"),
    (re.compile(r"process \d+"), "process 4242"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:40001"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?=:\d\d|Z)"), "2026-09-01T10:00"),
    (re.compile(r"(?<=T10:00):\d\d"), ":00"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "0123456789ab"),
    (re.compile(r"\d{8}T\d{6}-[0-9a-f]{6}"), "20260901T100000-0a1b2c"),
)


def main() -> None:
    """Make those that are named, or all."""
    wanted = set(sys.argv[1:]) or {each.name for each in CAPTURES}
    if unknown := wanted - {each.name for each in CAPTURES}:
        sys.exit(
            f"no such capture: {', '.join(sorted(unknown))}; there are {', '.join(each.name for each in CAPTURES)}"
        )
    FOLDER.mkdir(exist_ok=True)
    for capture in CAPTURES:
        if capture.name in wanted:
            for width in WIDTHS:
                _keep(capture, width, taken(capture, width))


def taken(capture: Capture, width: int) -> list[str]:
    """The lines on the screen, with their colours. The pair is begun and ended for it."""
    with tempfile.TemporaryDirectory(prefix="dspark-captures-", dir="/tmp") as home:  # a socket's path is short
        dropped = ("DSPARK_", "XDG_", "NO_COLOR", "COLUMNS", "LINES")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        environment = {**kept, "HOME": home, "XDG_STATE_HOME": f"{home}/.local/state", "LANG": "C.UTF-8"}
        environment["TERM"] = "xterm-256color"
        try:
            for words in capture.setup:
                subprocess.run([DSPARK, *words], env=environment, cwd=home, check=False, capture_output=True)
            return [fixed(line) for line in _shown(capture, width, environment, home)]
        finally:
            subprocess.run(
                [DSPARK, "rehearse", "stop", "-q"], env=environment, cwd=home, check=False, capture_output=True
            )


def fixed(line: str) -> str:
    """The line without what is only this machine's."""
    for pattern, instead in FIXED:
        line = pattern.sub(instead, line)
    return line


def _shown(capture: Capture, width: int, environment: Mapping[str, str], home: str) -> list[str]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, width, 0, 0))
    process = subprocess.Popen(
        [DSPARK, *capture.words], env=dict(environment), cwd=home, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    screen = Screen(f"$ dspark {' '.join(capture.words)}")
    deadline = time.monotonic() + LIMIT_S
    try:
        for data in _read(ours, deadline):
            screen.feed(data)
            if capture.when and screen.shows(capture.when):
                deadline = min(deadline, time.monotonic() + SETTLE_S)
                for more in _read(ours, deadline):
                    screen.feed(more)
                break
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(ours)
    return screen.lines


def _read(descriptor: int, deadline: float) -> Iterator[str]:
    """What comes, until the other side ends or the time is up."""
    while (left_s := deadline - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], left_s)[0]:
            return
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # the terminal's last user has ended
            return
        if not data:
            return
        yield data.decode(errors="replace")


class Screen:
    """As much of a terminal as is used here: lines that grow, a cursor that goes up, lines that are erased."""

    _TOKENS = re.compile(r"\x1b\[(?P<number>[?0-9;]*)(?P<final>[A-Za-z])|(?P<control>[\r\n])|(?P<text>[^\x1b\r\n]+)")

    def __init__(self, prompt: str) -> None:
        self.lines = [prompt, ""]
        self._row = 1
        self._rest = ""

    def feed(self, data: str) -> None:
        """Take what was written."""
        data = self._rest + data
        cut = data.rfind("\x1b")
        whole = cut < 0 or self._TOKENS.match(data, cut) is not None
        data, self._rest = (data, "") if whole else (data[:cut], data[cut:])
        for token in self._TOKENS.finditer(data):
            self._take(token)

    def shows(self, pattern: str) -> bool:
        """Whether it stands on the screen."""
        return any(re.search(pattern, Text.from_ansi(line).plain) for line in self.lines)

    def _take(self, token: re.Match[str]) -> None:
        match token["final"], token["control"], token["text"]:
            case "m", _, _:
                self.lines[self._row] += token[0]
            case "A", _, _:
                self._row = max(0, self._row - int(token["number"] or 1))
            case (("K" | "J"), _, _):
                self.lines[self._row] = ""
            case "H", _, _:
                self.lines, self._row = [self.lines[0], *[""] * HEIGHT], 1
            case _, "\n", _:
                self._row += 1
                self.lines += [""] * (self._row + 1 - len(self.lines))
            case _, _, str(text):
                self.lines[self._row] += text


def _keep(capture: Capture, width: int, lines: list[str]) -> None:
    """Write both files."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    while lines and not Text.from_ansi(lines[-1]).plain.strip():
        lines.pop()
    for line in lines:
        text = Text.from_ansi(line)
        for part in text.divide(range(width, len(text.plain), width)) if text.plain else [text]:  # as a terminal does
            console.print(part, soft_wrap=True)
    name = f"{capture.name}-{width}"
    plain = "\n".join(line.rstrip() for line in console.export_text(clear=False).splitlines())
    (FOLDER / f"{name}.txt").write_text(f"{plain}\n", encoding="utf-8")
    svg = console.export_svg(title="dspark", code_format=_svg_format(), unique_id=f"dspark-{name}")
    (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")
    sys.stdout.write(f"{FOLDER / name}.txt, .svg\n")


def _svg_format() -> str:
    """Rich's own, without the fonts that it would have fetched from elsewhere."""
    whole = str(inspect.signature(Console.export_svg).parameters["code_format"].default)
    foreign = re.compile(r"@font-face \{\{.*?\}\}\s*|<!--.*?-->\s*", re.DOTALL)
    return foreign.sub("", whole).replace("Fira Code", "monospace")


if __name__ == "__main__":
    main()
