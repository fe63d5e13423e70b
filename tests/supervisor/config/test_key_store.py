"""Keys that are kept: for their owner alone, whole, and in no text about them."""

import stat
from pathlib import Path
from typing import Final

import pytest

from supervisor.config.key_store import KeptKey, KeyStore, key_problem
from supervisor.errors import ConfigError

KEPT: Final = KeptKey("sk-CANARY-secret", "https://api.example.org")


def test_a_key_is_kept_for_its_owner_alone_and_forgotten_again(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys.json")
    assert (store.kept(), store.forget("gateway")) == ({}, False)
    store.keep("gateway", KeptKey("old", "http://h"))
    store.keep("other", KEPT)
    store.keep("gateway", KEPT)
    assert KeyStore(tmp_path / "keys.json").kept() == {"gateway": KEPT, "other": KEPT}
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    assert store.forget("gateway")
    assert store.kept() == {"other": KEPT}
    assert "CANARY" not in repr(KEPT)


DAMAGED: Final = ['{"a": {"key": "sk-CANARY"', '{"a": {"key": ["sk-CANARY"], "server": ""}}', "[" * 100_000, "\udcff"]


@pytest.mark.parametrize("text", DAMAGED, ids=["torn", "of another shape", "deep", "no Unicode"])
def test_what_is_no_file_of_keys_is_said_and_stays(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(before := text.encode("utf-8", "surrogateescape"))
    for deed in (KeyStore(file).kept, lambda: KeyStore(file).keep("a", KEPT), lambda: KeyStore(file).forget("a")):
        with pytest.raises(ConfigError, match="no key in it counts") as caught:
            deed()
        assert "CANARY" not in str(caught.value)
    assert file.read_bytes() == before


def test_a_file_that_others_write_or_that_is_a_link_holds_no_key(tmp_path: Path) -> None:
    KeyStore(tmp_path / "real.json").keep("a", KEPT)
    (tmp_path / "keys.json").symlink_to("real.json")
    (tmp_path / "real.json").chmod(0o666)
    for name in ("keys.json", "real.json"):
        with pytest.raises(ConfigError, match="cannot be used"):
            KeyStore(tmp_path / name).kept()


NO_KEYS: Final = ["", "a\nb", "a\rb", "a b", "a\tb", "a\x1bb", "a\x7fb", "schlüssel", "a" * 4097]


@pytest.mark.parametrize("text", NO_KEYS)
def test_what_no_header_can_hold_is_no_key(text: str) -> None:
    assert key_problem(text)
    assert not key_problem("sk-ant-api03_x.y/z+=")
