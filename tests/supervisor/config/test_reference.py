"""The reference of the configuration: every key, with its default, and nothing that is not so."""

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from scripts import manual_tables
from supervisor.categories.row import CategoryLimits
from supervisor.categories.rows import ROWS
from supervisor.categories.web import WebConfig
from supervisor.config.config_keys import Config, DaemonConfig, LibrarianConfig, ProfileConfig, ProviderConfig
from supervisor.config.config_reader import CONFIG_FILE, SECTIONS
from supervisor.config.model_keys import ModelConfig, Price
from supervisor.config.reference import as_toml
from supervisor.config.settings import load
from supervisor.rules.rule import Rule


def uncommented() -> str:
    return re.sub(r"(?m)^#(?! )", "", as_toml())


def test_the_configuration_is_all_comments() -> None:
    assert tomllib.loads(as_toml()) == {}


def test_uncommented_it_is_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(uncommented())
    for name in ("ca.pem", "company.pem"):
        (tmp_path / name).write_text("-----BEGIN CERTIFICATE-----")
    config = load({"STRONGROOM_HOME": str(tmp_path)}).config
    assert config.limits == {name: row.limits for name, row in ROWS.items() if name in config.limits}
    assert [type(each) for each in config.sections] == [kind for _, kind in SECTIONS]
    for section in config.sections:
        assert section == (WebConfig(ca_file="ca.pem") if isinstance(section, WebConfig) else type(section)())
    assert config.librarian == LibrarianConfig(environment="staging")
    for name in ("max_steps", "allow_degraded", "daemon"):
        assert getattr(config, name) == getattr(Config(), name), name


def test_every_key_stands_in_it() -> None:
    table = tomllib.loads(uncommented())
    tables = ("profiles", "prices", "providers", "models")
    (profile,), (price,), (provider,), (model,) = (table[name].values() for name in tables)
    rows: list[tuple[dict[str, Any], type[msgspec.Struct]]] = [
        (table, CONFIG_FILE),
        (table["limits"]["files"], CategoryLimits),
        (profile, ProfileConfig),
        (price, Price),
        (model, ModelConfig),
        (provider, ProviderConfig),
        (table["daemon"], DaemonConfig),
        (table["rules"][0], Rule),
        (table["librarian"], LibrarianConfig),
        *((table[name], kind) for name, kind in SECTIONS),
    ]
    for given, known in rows:
        assert set(given) == {field.name for field in msgspec.structs.fields(known)}


def test_a_manual_that_differs_gets_its_tables_back() -> None:
    manual = manual_tables.MANUAL.read_text("utf-8")
    assert manual_tables.with_tables(manual) == manual
    differs = manual.replace("`max_steps` | `50`", "`max_steps` | `60`")
    assert differs != manual
    assert manual_tables.with_tables(differs) == manual
