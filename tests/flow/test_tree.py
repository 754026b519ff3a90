"""What .gitignore files leave of a tree: the same as git itself would list."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from dspark_deploy.flow.tree import Walk

NAMES = ("a", "b", "ab", "a.c", "b.log", ".env", "x1")
BEGINNINGS = ("", "", "/", "*", "**/", "a/", "?", "[ab]", "b/*")
ENDINGS = ("", "", "/", "*", "/**", "/*")


def pattern(chance: random.Random) -> str:
    negated = "!" if chance.random() < 0.3 else ""
    return f"{negated}{chance.choice(BEGINNINGS)}{chance.choice(NAMES)}{chance.choice(ENDINGS)}"


def plant(root: Path, chance: random.Random) -> None:
    """Folders within folders, files in each, and a .gitignore in some."""
    folders = [root]
    for _ in range(8):
        folder = chance.choice(folders) / chance.choice(NAMES)
        if not folder.exists():
            folder.mkdir()
            folders.append(folder)
    for folder in folders:
        for name in chance.sample(NAMES, 4):
            if not (folder / name).exists():
                (folder / name).write_text("x")
        if folder == root or chance.random() < 0.4:
            lines = [pattern(chance) for _ in range(chance.randint(1, 4))]
            (folder / ".gitignore").write_text("\n".join(lines))


def by_git(root: Path) -> set[str]:
    """What git would add."""
    listing: list[str | Path] = ["git", "-C", root, "ls-files", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(listing, capture_output=True, text=True, check=True)
    return set(listed.stdout.split("\0")) - {""}


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git, which is not installed")
@pytest.mark.parametrize("seed", range(40))
def test_the_files_that_are_met_are_those_that_git_lists(tmp_path: Path, seed: int) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    plant(tmp_path, random.Random(seed))  # noqa: S311  a tree, not a key
    met = {os.path.relpath(path, tmp_path) for path, _ in Walk().files(str(tmp_path), 1.0)}
    assert met == by_git(tmp_path)


def test_the_shares_of_a_tree_are_the_whole() -> None:
    """Also of one that no folder may be entered in."""
    walk = Walk()
    here = str(Path(__file__).parent)
    handed_on = sum(share for _, share in walk.files(here, 0.5))
    assert handed_on + walk.share == pytest.approx(0.5)
