"""`strongroom init`: what the first day needs, and nothing that is there touched."""

from pathlib import Path

import pytest

from tests.supervisor.command import Strongroom


def test_it_makes_a_vault_and_a_configuration_that_work(strongroom: Strongroom) -> None:
    done = strongroom.run("init", "new")
    assert (done.code, done.err) == (0, "")
    vault = strongroom.folder / "new" / "vault"
    file = strongroom.home / "config.toml"
    for path in (vault, vault / "welcome.md", file):
        assert f"made    {path}  " in done.out
    assert f"strongroom console --root {vault}" in done.out
    assert (strongroom.home.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    answer = strongroom.run("call", "read_file", '{"path": "welcome.md"}', "--root", str(vault))
    assert answer.json["content"].startswith("# Welcome\n")


def test_what_exists_is_left_as_it_is(strongroom: Strongroom) -> None:
    (strongroom.folder / "vault").mkdir()
    strongroom.home.mkdir(mode=0o700)
    (strongroom.home / "config.toml").write_text("profile = 'project'\n")
    done = strongroom.run("init")
    assert done.code == 0
    assert f"exists  {strongroom.folder / 'vault'}  " in done.out
    assert f"exists  {strongroom.home / 'config.toml'}  " in done.out
    assert "made" not in done.out
    assert list((strongroom.folder / "vault").iterdir()) == []
    assert (strongroom.home / "config.toml").read_text() == "profile = 'project'\n"


def a_file(folder: Path) -> None:
    (folder / "vault").write_text("")


def a_link_to_nothing(folder: Path) -> None:
    (folder / "vault").symlink_to("nowhere")


@pytest.mark.parametrize("make", [a_file, a_link_to_nothing], ids=["a file", "a link"])
def test_a_vault_that_cannot_be_made_is_a_sentence(strongroom: Strongroom, make: object) -> None:
    assert callable(make)
    make(strongroom.folder)
    done = strongroom.run("init")
    assert (done.code, done.out) == (2, "")
    assert "is not a directory" in done.err
    assert not strongroom.home.exists()
