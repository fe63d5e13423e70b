"""`strongroom init`: what the first day needs, and nothing that is there touched."""

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from supervisor.categories.shell import ShellConfig
from supervisor.categories.web import WebConfig
from supervisor.clients.init import CONFIGURATION
from supervisor.config.settings import (
    CategoryLimits,
    Config,
    DaemonConfig,
    LibrarianConfig,
    Price,
    ProfileConfig,
    UndoConfig,
    load,
)
from supervisor.rules.rule import Rule
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


def uncommented() -> str:
    return re.sub(r"(?m)^#(?! )", "", CONFIGURATION)


def test_the_configuration_is_all_comments() -> None:
    assert tomllib.loads(CONFIGURATION) == {}


def test_uncommented_it_is_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(uncommented())
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----")
    config = load({"STRONGROOM_HOME": str(tmp_path)}).config
    assert config.limits == {"files": CategoryLimits()}
    for name in set(Config.__struct_fields__) - {"model", "limits", "profiles", "prices", "rules", "web", "librarian"}:
        assert getattr(config, name) == getattr(Config(), name), name
    assert config.web == WebConfig(ca_file="ca.pem")
    assert config.librarian == LibrarianConfig(environment="")


def test_every_key_stands_in_it() -> None:
    table = tomllib.loads(uncommented())
    (limits,), (profile,), (price,) = (table[name].values() for name in ("limits", "profiles", "prices"))
    for given, known in (
        (table, Config),
        (limits, CategoryLimits),
        (profile, ProfileConfig),
        (price, Price),
        (table["daemon"], DaemonConfig),
        (table["rules"][0], Rule),
        (table["undo"], UndoConfig),
        (table["web"], WebConfig),
        (table["librarian"], LibrarianConfig),
        (table["shell"], ShellConfig),
    ):
        assert set(given) == {field.name for field in msgspec.structs.fields(known)}
