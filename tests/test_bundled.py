"""Where data files are found, and which of two with one name holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy import bundled
from dspark_deploy.bundled import SearchPath, config_home, data_folder, search_path
from dspark_deploy.errors import ConfigError


def write(path: Path, text: str = "name: x\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_checkout_has_its_data_beside_the_package() -> None:
    assert data_folder("profiles") == Path(bundled.__file__).parents[1] / "profiles"
    assert (data_folder("profiles") / "agent-1m.yaml").is_file()


def test_an_installed_package_has_its_data_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "dspark_deploy" / "_data" / "profiles"
    inside.mkdir(parents=True)
    monkeypatch.setattr(bundled, "__file__", str(tmp_path / "dspark_deploy" / "bundled.py"))
    assert data_folder.__wrapped__("profiles") == inside


def test_the_folder_at_hand_beats_the_users_own_and_that_the_bundled_one(tmp_path: Path) -> None:
    here = write(tmp_path / "work" / "profiles" / "mine.yaml")
    own = write(tmp_path / "config" / "dspark" / "profiles" / "mine.yaml")
    hidden = write(tmp_path / "config" / "dspark" / "profiles" / "agent-1m.yaml")
    search = search_path(tmp_path / "work", tmp_path / "config")
    assert search.find("profile", "mine") == here
    assert search.find("profile", "agent-1m") == hidden
    here.unlink()
    assert search.find("profile", "mine") == own


@pytest.mark.parametrize(("kind", "folder"), [("model", "models"), ("family", "families")])
def test_models_and_families_lie_in_folders_of_their_own(tmp_path: Path, kind: bundled.Kind, folder: str) -> None:
    path = write(tmp_path / "profiles" / folder / "mine.yaml")
    assert search_path(tmp_path, tmp_path / "none").find(kind, "mine") == path


def test_in_a_checkout_the_bundled_folder_is_looked_at_once() -> None:
    root = data_folder("profiles").parent
    assert len(search_path(root, root / "none").folders) == 2


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    search = SearchPath((tmp_path,))
    assert search.find("profile", "some/where.yaml") == Path("some/where.yaml")
    assert search.find("profile", "where.yaml") == Path("where.yaml")


def test_an_unknown_name_says_the_nearest_and_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no family is called `anemal`") as caught:
        search_path(tmp_path, tmp_path).find("family", "anemal")
    assert caught.value.remedy == "did you mean `anemll`? known: anemll, stage-c"


def test_a_file_calls_itself_by_its_files_name(tmp_path: Path) -> None:
    write(tmp_path / "mine.yaml", "title: x\nname: yours\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml line 2: `name` is yours, in a file called mine\.yaml"):
        SearchPath((tmp_path,)).read("profile", "mine")


def test_other_data_beside_the_profiles_is_no_profile(tmp_path: Path) -> None:
    write(tmp_path / "signatures.yaml")
    write(tmp_path / "mine.yaml")
    assert list(SearchPath((tmp_path,)).files("profile")) == ["mine"]


def test_the_config_folder_is_xdgs(tmp_path: Path) -> None:
    assert config_home({}, tmp_path) == tmp_path / ".config"
    assert config_home({"XDG_CONFIG_HOME": "relative"}, tmp_path) == tmp_path / ".config"
    assert config_home({"XDG_CONFIG_HOME": "/etc/xdg"}, tmp_path) == Path("/etc/xdg")
