"""`strongroom init`: what the first day needs, and nothing that is there touched."""

import subprocess

import pytest

from tests.supervisor.command import Strongroom


def test_it_makes_a_vault_and_a_configuration_that_work(strongroom: Strongroom) -> None:
    done = strongroom.run("init", "new")
    assert (done.code, done.err) == (0, "")
    vault = strongroom.folder / "new" / "vault"
    file = strongroom.home / "config.toml"
    for path in (vault, vault / "welcome.md", file):
        assert f"made    {path}  " in done.out
    assert done.out.endswith("\n  strongroom\n")
    assert (strongroom.home.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    answer = strongroom.run("call", "read_file", '{"path": "welcome.md"}')
    assert answer.json["content"].startswith("# Welcome\n")


def test_a_vault_and_a_configuration_that_exist_are_left_as_they_are(strongroom: Strongroom) -> None:
    (strongroom.folder / "vault").mkdir()
    strongroom.configure("profile = 'project'\n")
    done = strongroom.run("init")
    assert (done.code, "made" in done.out) == (0, False)
    for path in (strongroom.folder / "vault", strongroom.home / "config.toml"):
        assert f"exists  {path}  " in done.out
    assert f"strongroom console --root {strongroom.folder / 'vault'}" in done.out
    assert list((strongroom.folder / "vault").iterdir()) == []
    assert (strongroom.home / "config.toml").read_text() == "profile = 'project'\n"


@pytest.mark.parametrize("deed", ["touch vault", "ln -s nowhere vault"], ids=["a file", "a link"])
def test_a_vault_that_cannot_be_made_is_a_sentence(strongroom: Strongroom, deed: str) -> None:
    subprocess.run(["sh", "-c", deed], cwd=strongroom.folder, check=True)
    strongroom.run("init").assert_refused("is not a directory")
    assert not strongroom.home.exists()
