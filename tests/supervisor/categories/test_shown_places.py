"""Places of which no command is shown any part, and prefixes that are none, whatever lies in them."""

from pathlib import Path

import pytest

from supervisor.categories.shown_places import HiddenPlaces, NotShown, parts_of, refuse
from tests.each_row import each_row

KEPT = HiddenPlaces("/home/me", ("/keep/own",), "/home/me/root")
REFUSED = (
    *("/", "/srv", "/home", "/home/me", "/home/other", "/keep", "/keep/own", "/keep/own/x", "/home/me/root/bin"),
    *("/etc/x", "/proc/self", "/var/lib/x", "/run/secrets/x", "/opt/x/.aws/bin"),
)
SHOWN = (
    "/opt",
    "/opt/x/bin",
    "/home/me/rooted",
    "/home/other/bin",
    "/keep/owned",
    "/var/lib/snapd/snap/bin",
    "/etcx/y",
)


@each_row("place", REFUSED)
def test_of_these_nothing_is_shown(place: str) -> None:
    with pytest.raises(NotShown):
        refuse(place, KEPT)


@each_row("place", SHOWN)
def test_of_these_something_may_be(place: str) -> None:
    refuse(place, KEPT)


def test_what_a_person_keeps_in_local_is_no_part_of_its_programs(tmp_path: Path) -> None:
    for each in ("bin", "lib", "share/notes"):
        (tmp_path / ".local" / each).mkdir(parents=True)
    found = parts_of(f"{tmp_path}/.local/bin", HiddenPlaces(str(tmp_path), ()))
    assert found == (f"{tmp_path}/.local/bin",)


def test_packages_among_which_a_home_lies_are_not_shown(tmp_path: Path) -> None:
    (home := tmp_path.resolve() / "node_modules/me").mkdir(parents=True)
    with pytest.raises(NotShown, match="a home"):
        parts_of(str(home / "x/bin"), HiddenPlaces(str(home), ()))
