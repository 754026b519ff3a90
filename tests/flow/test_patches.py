"""Folders of patches as they are read: whole, without what is no part of them, or refused with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.errors import ConfigError, ExitCode
from dspark_deploy.flow import patches
from dspark_deploy.flow.intention import Intention, load_intention
from dspark_deploy.flow.wish import Wish
from tests.flow.stand import INVENTORY
from tests.samples import IMAGE

ENTRY = "patches:\n  - folder: recipe\n    family: anemll\n    image: {image}\n    {used}\n"


def intend(folder: Path, used: str = "programs: [a.sh]", *, family: str | None = None) -> Intention:
    """An inventory whose patches lie in `recipe` beside it."""
    (folder / "inventory.yaml").write_text(INVENTORY + ENTRY.format(image=IMAGE, used=used))
    return load_intention(Wish(directory=folder, home=folder, inventory=Path("inventory.yaml"), family=family))


def refused(folder: Path, used: str = "programs: [a.sh]") -> ConfigError:
    with pytest.raises(ConfigError) as raised:
        intend(folder, used)
    assert raised.value.code is ExitCode.USAGE
    assert raised.value.remedy
    return raised.value


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    folder = tmp_path / "recipe"
    (folder / "lib/__pycache__").mkdir(parents=True)
    (folder / ".git").mkdir()
    for name in ("a.sh", "lib/b.py", "lib/__pycache__/b.pyc", ".git/config", ".env"):
        (folder / name).write_bytes(b"\xff" if name == "lib/b.py" else b"text")
    (folder / "a.sh").chmod(0o755)
    return folder


def test_all_of_a_folder_travels_but_hidden_files_and_pythons_caches(tmp_path: Path, recipe: Path) -> None:
    (carried,) = intend(tmp_path).patches
    assert {name: (file.data, file.executable) for name, file in carried.content.items()} == {
        "a.sh": (b"text", True),
        "lib/b.py": (b"\xff", False),
    }
    assert carried.patch.folder == str(recipe)


def test_of_a_folder_with_files_to_mount_those_travel_alone(tmp_path: Path, recipe: Path) -> None:
    assert recipe.is_dir()
    (carried,) = intend(tmp_path, "files: {a.sh: /opt/a.sh}").patches
    assert list(carried.content) == ["a.sh"]


def test_those_of_another_family_are_not_even_looked_at(tmp_path: Path) -> None:
    assert intend(tmp_path, family="stage-c").patches == ()


def test_a_folder_that_is_missing_is_told_with_file_line_and_key(tmp_path: Path) -> None:
    error = refused(tmp_path)
    expected = f"{tmp_path}/inventory.yaml line 6: `patches[0]`: `folder`: {tmp_path}/recipe is not there"
    assert error.message == expected


def test_a_file_that_is_missing_is_told_with_its_key(tmp_path: Path, recipe: Path) -> None:
    assert recipe.is_dir()
    assert "line 6: `patches[0]`: `programs[1].file`" in refused(tmp_path, "programs: [a.sh, c.py]").message
    assert f"`files.c.py`: {tmp_path}/recipe has no file c.py" in refused(tmp_path, "files: {c.py: /opt/c.py}").message


def test_a_link_that_leads_out_is_refused(tmp_path: Path, recipe: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (recipe / "link").symlink_to(tmp_path / "secret")
    assert "link that leads out of" in refused(tmp_path).message


@pytest.mark.parametrize(("limit", "said"), [("MOST_FILES", "more than 1 files"), ("MOST_BYTES", "more than 0 MiB")])
def test_a_folder_that_is_too_much_is_refused(
    tmp_path: Path, recipe: Path, monkeypatch: pytest.MonkeyPatch, limit: str, said: str
) -> None:
    assert recipe.is_dir()
    monkeypatch.setattr(patches, limit, 1)
    assert said in refused(tmp_path).message


def test_a_profile_and_a_family_name_theirs_from_their_own_folders(tmp_path: Path) -> None:
    own = tmp_path / "profiles"
    for folder, name in ((own / "p", "of-profile.sh"), (own / "families/f", "of-family.sh")):
        folder.mkdir(parents=True)
        (folder / name).write_text("")
    entry = ENTRY.replace("folder: recipe", "folder: {folder}")
    profile = "extends: agent-1m\n" + entry.format(image=IMAGE, used="programs: [of-profile.sh]", folder="p")
    (own / "mine.yaml").write_text(profile)
    bundled = (Path(__file__).parents[2] / "profiles/families/anemll.yaml").read_text()
    family = bundled + entry.format(image=IMAGE, used="programs: [of-family.sh]", folder="f")
    (own / "families/anemll.yaml").write_text(family)
    (tmp_path / "inventory.yaml").write_text(INVENTORY.replace("agent-1m", "mine"))
    found = load_intention(Wish(directory=tmp_path, home=tmp_path, inventory=Path("inventory.yaml"))).patches
    assert [each.name for each in found] == ["1-f", "2-p"]
    assert f"{own}/families/anemll.yaml line" in found[0].where
    assert f"{own}/mine.yaml line 3" in found[1].where
