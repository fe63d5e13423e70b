"""Caches of packages: what a stage takes and moves in, what a killed process leaves, what goes when it is full."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from supervisor.system.package_caches import CacheStage, PackageCaches
from workers.wire import messages

CONTENT = "npm/content-v2/sha512/ab/cd/ef"
INDEX = "npm-index/index-v5/ab/cd/ef"


@pytest.fixture
def caches(tmp_path: Path) -> PackageCaches:
    found = PackageCaches(tmp_path / "caches", 2**20)
    found.prepare(places(found))
    return found


def places(caches: PackageCaches) -> tuple[tuple[str, str], ...]:
    return caches.places([("npm", ""), ("pypi", ""), ("deb", ""), ("crates", "")])


def fill(stage: CacheStage, path: str, text: str) -> None:
    stage.take(messages.Original(1, path, kept=True))
    stage.take(messages.Piece(1, text.encode()))


def install(caches: PackageCaches, **files: str) -> None:
    with caches.begin(places(caches)) as stage:
        for path, text in files.items():
            fill(stage, path, text)
        stage.move_in()


def kept(caches: PackageCaches, path: str) -> str:
    name, _, rest = path.partition("/")
    file = Path(dict(places(caches))[name], rest)
    return file.read_text() if file.exists() else ""


def test_a_package_that_is_unpacked_comes_and_goes_as_one(tmp_path: Path) -> None:
    caches = PackageCaches(tmp_path / "caches", 60_000)
    caches.prepare(places(caches))
    install(caches, **{"bun/a@1@@@1/x.js": "first", "bun/a@1@@@1/lib/y.js": "first", "bun/ab.npm": "first"})
    install(caches, **{"bun/a@1@@@1/x.js": "another", "bun/a@1@@@1/z.js": "another", "bun/ab.npm": "another"})
    (there,) = Path(dict(places(caches))["bun"]).glob("*@*")
    assert {str(each.relative_to(there)): each.read_text() for each in there.rglob("*.js")} == {
        "x.js": "first",
        "lib/y.js": "first",
    }
    assert kept(caches, "bun/ab.npm") == "another"
    for each in there.rglob("*.js"):
        os.utime(each, (1, 1))
    install(caches, **{CONTENT: "x" * 60_000})
    assert not there.exists()


def index(*digests: str) -> str:
    rows = (json.dumps({"name": "tiny", "vers": f"1.0.{at}", "cksum": each}) for at, each in enumerate(digests))
    return "\x03\2\0\0\0etag\0" + "".join(f"1.0.{at}\0{row}\0" for at, row in enumerate(rows))


def test_a_crate_is_kept_for_as_long_as_the_index_has_its_digest(caches: PackageCaches) -> None:
    first, other, at = "crates/cache/here/Tiny-1.0.0.crate", "crates/cache/here/Tiny-1.0.1.crate", "crates/index/here"
    listed = hashlib.sha256(b"x").hexdigest()
    install(caches, **{first: "x"})
    assert kept(caches, first) == "", "no index has it"
    install(caches, **{first: "x", other: "evil", f"{at}/.cache/ti/ny/tiny": index(listed, listed)})
    assert (kept(caches, first), kept(caches, other)) == ("x", "")
    install(caches, **{f"{at}/.cache/ti/ny/tiny": index("0" * 64)})
    assert kept(caches, first) == "", "a new index has another"


def test_no_crate_comes_before_the_index_by_which_it_counts(caches: PackageCaches) -> None:
    crate, at = "crates/cache/here/tiny-1.0.0.crate", "crates/index/here/.cache/ti/ny/tiny"
    Path(dict(places(caches))["crates"], "cache").write_text("where a directory belongs")
    with pytest.raises(OSError, match="cache"):
        install(caches, **{crate: "x", at: index(hashlib.sha256(b"x").hexdigest())})
    assert kept(caches, at)


def test_what_is_there_stays_but_for_the_index(caches: PackageCaches) -> None:
    install(caches, **{CONTENT: "first", INDEX: "first"})
    install(caches, **{CONTENT: "another", INDEX: "another"})
    assert (kept(caches, CONTENT), kept(caches, INDEX)) == ("first", "another")


@pytest.mark.parametrize(
    "path",
    [
        "npm/tmp/x",
        "npm/content-v2/../../x",
        "npm/../npm/x",
        "npm/_npx/x.js",
        "npm/index-v5/ab/cd/ef",
        "deb/x",
        "gems/cache/a.gem",
        "/etc/x",
        "",
    ],
)
def test_a_stage_takes_nothing_else(caches: PackageCaches, path: str) -> None:
    with caches.begin(places(caches)) as stage, pytest.raises(ValueError, match="does not keep"):
        fill(stage, path, "x")


def test_a_stage_takes_no_more_than_there_is_room_for(tmp_path: Path) -> None:
    caches = PackageCaches(tmp_path / "caches", 10)
    caches.prepare(places(caches))
    with caches.begin(places(caches)) as stage:
        fill(stage, INDEX, "x" * 6)
        with pytest.raises(ValueError, match="room"):
            fill(stage, CONTENT, "x" * 6)


def test_an_install_fills_the_caches_of_its_own_registries_alone(caches: PackageCaches) -> None:
    with caches.begin(caches.places([("npm", "")])) as stage:
        fill(stage, "pypi/links/a-1-py3-none-any.whl", "x")
        fill(stage, CONTENT, "x")
        assert stage.move_in() == 1
    assert (kept(caches, CONTENT), kept(caches, "pypi/links/a-1-py3-none-any.whl")) == ("x", "")


def test_nothing_is_moved_in_before_it_is_said(caches: PackageCaches, tmp_path: Path) -> None:
    with caches.begin(places(caches)) as stage:
        fill(stage, CONTENT, "x")
    assert kept(caches, CONTENT) == ""
    assert [each for each in os.listdir(tmp_path / "caches") if each.startswith(".")] == []


def test_what_a_killed_process_had_staged_goes_with_the_next_and_what_a_live_one_has_stays(
    caches: PackageCaches, tmp_path: Path
) -> None:
    left = tmp_path / "caches" / ".stage-dead"
    left.mkdir()
    (left / "0").write_text("x")
    with caches.begin(places(caches)) as live:
        fill(live, CONTENT, "x")
        install(caches, **{INDEX: "y"})
        assert live.move_in() == 1
    assert not left.exists()
    assert kept(caches, CONTENT) == "x"


def test_the_oldest_go_where_there_are_too_many(tmp_path: Path) -> None:
    caches = PackageCaches(tmp_path / "caches", 40_000)
    caches.prepare(places(caches))
    for number in range(8):
        install(caches, **{f"{CONTENT}{number}": "x" * 8000})
        file = Path(dict(places(caches))["npm"], f"{CONTENT}{number}".partition("/")[2])
        if file.exists():
            os.utime(file, (number, number))
    there = [number for number in range(8) if kept(caches, f"{CONTENT}{number}")]
    assert there == list(range(8 - len(there), 8))
    assert 0 < len(there) < 6


def test_each_address_of_a_registry_has_a_cache_of_its_own(caches: PackageCaches) -> None:
    assert dict(caches.places([("npm", "")])) != dict(caches.places([("npm", "https://a.example")]))
    assert PackageCaches(Path("/x"), 0).places([("npm", "")]) == ()
