"""A headless Chromium: installed from the distribution's packages where that can be done, else named as missing."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)
LIMIT_S = 60
NARROWEST = 500  # pixels of a window


@dataclass(frozen=True)
class Opened:
    """A page that was opened at one width."""

    title: str
    scroll_width: int  # pixels that the page is wide
    pictures: int  # images that loaded, with a size
    broken: int  # images that did not
    smallest_text: float  # pixels
    cut: list[str]  # what sticks out of the page: tag and text


def find_chromium() -> tuple[str, str]:
    """Its program, or empty and the reason why there is none."""
    if found := _installed():
        return found, ""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "", "there is no Chromium: apt-get install chromium (this is no root on Debian or Ubuntu)"
    with (Path(tempfile.gettempdir()) / "dspark-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker of these tests may be at it
        why = "" if _installed() else _install()
    return (found, "") if (found := _installed()) else ("", why or "the package chromium brought no such program")


def _installed() -> str:
    return next(filter(None, map(shutil.which, NAMES)), None) or ""


def _install() -> str:
    """Why it could not be done, else empty."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update",), ("install", "-y", "--no-install-recommends", "chromium")):
        command = ("apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", *words)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"Chromium can't be installed: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}"
    return ""


# Opened in a frame of the wanted width, since a window is never narrower than 500 pixels: reads the page, and writes
# what it found into the title of the page around it.
_AROUND = """<!DOCTYPE html><meta charset="utf-8"><title>opening</title><style>body{margin:0}iframe{border:0}</style>
<iframe id="page" width="WIDTH" height="HEIGHT" srcdoc="SOURCE"></iframe>
<script>
addEventListener("load", () => {
  const page = document.getElementById("page").contentDocument, wide = page.documentElement;
  const images = [...page.images], texts = [...page.querySelectorAll("p,li,td,th,h1,h2,h3,figcaption,summary")];
  const inside = element => element.closest(".wide");
  const cut = [...page.querySelectorAll("body *")].filter(
    element => !inside(element) && element.getBoundingClientRect().right > WIDTH + 1);
  document.title = JSON.stringify({
    title: page.title,
    scroll_width: wide.scrollWidth,
    pictures: images.filter(image => image.complete && image.naturalWidth && image.clientWidth).length,
    broken: images.filter(image => !image.naturalWidth).length,
    smallest_text: Math.min(...texts.map(element => parseFloat(getComputedStyle(element).fontSize))),
    cut: cut.map(element => element.tagName + " " + element.textContent.slice(0, 40)),
  });
});
</script>"""


def look_at(chromium: str, html: Path, width: int, height: int, folder: Path) -> tuple[Opened, list[str]]:
    """Open the page that wide and look at it; with what the console complains of."""
    around = _around(html, width, height, folder, _AROUND)
    done = _run(chromium, around, width, height, "--dump-dom", "--enable-logging=stderr")
    title = unescape(done.stdout.partition("<title>")[2].partition("</title>")[0])
    return Opened(**json.loads(title)), _complaints(done)


def screenshot(chromium: str, html: Path, width: int, height: int, folder: Path) -> tuple[bytes, list[str]]:
    """What is seen of it that wide; with what the console complains of. A wide page is opened by itself, from disk."""
    narrow = width < NARROWEST
    page = _around(html, width, height, folder, _AROUND.partition("<script>")[0]) if narrow else html
    png = folder / "page.png"
    done = _run(chromium, page, width, height, f"--screenshot={png}", "--enable-logging=stderr")
    return png.read_bytes(), _complaints(done)


def _complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def _around(html: Path, width: int, height: int, folder: Path, around: str) -> Path:
    path = folder / "around.html"
    outer = around.replace("WIDTH", str(width)).replace("HEIGHT", str(height))
    path.write_text(outer.replace("SOURCE", escape(html.read_text(encoding="utf-8"))), encoding="utf-8")
    return path


def _run(chromium: str, page: Path, width: int, height: int, *more: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as profile:
        words = (
            chromium,
            *FLAGS,
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            *more,
            page.as_uri(),
        )
        return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=True)
