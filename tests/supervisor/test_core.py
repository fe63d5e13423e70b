"""What a core gives the workers that it starts, as far as connections go, and who shares them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from supervisor.config import Settings, load
from supervisor.core import Core, child_spec
from supervisor.destinations import WebConfig
from supervisor.journal import open_journal
from supervisor.pool.cgroup import Groups
from supervisor.pool.orphans import Orphans
from supervisor.pool.spec import ChildSpec
from supervisor.profiles import Profile
from workers.catalog import CATEGORIES


@pytest.fixture
def settings(home: Path) -> Settings:
    home.mkdir(mode=0o700)
    return load({"STRONGROOM_HOME": str(home)})


@pytest.fixture
async def core(settings: Settings, nursery: trio.Nursery) -> AsyncIterator[Core]:
    with open_journal(settings.journal) as journal:
        core = Core(settings, journal, nursery, Orphans())
        yield core
        await core.close()


def profile(root: Path, name: str = "any") -> Profile:
    return Profile(name, str(root), ("fetch_url", "read_file"))


def spec(core: Core, profile: Profile, category: str) -> ChildSpec:
    made: Any = core.pools(profile)._specs(category)
    assert isinstance(made, ChildSpec)
    return made


@pytest.mark.parametrize("category", CATEGORIES)
def test_only_a_category_that_asks_for_connections_has_a_broker(category: str, settings: Settings, root: Path) -> None:
    made = child_spec(settings, profile(root), category)
    assert (made.broker is not None) is CATEGORIES[category].brokered is (category == "web")


async def test_all_roots_have_one_broker(core: Core, root: Path, tmp_path: Path) -> None:
    here, there = (spec(core, profile(folder), "web") for folder in (root, tmp_path))
    assert here.broker == there.broker


async def test_workers_are_limited_together_where_that_can_be_had(
    settings: Settings, nursery: trio.Nursery, root: Path, tmp_path: Path
) -> None:
    groups = Groups(tmp_path, (), inside=False)
    with open_journal(settings.journal) as journal:
        core = Core(settings, journal, nursery, Orphans(), groups=groups)
        files, shell = (spec(core, profile(root), category) for category in ("files", "shell"))
        await core.close()
    assert (files.groups, shell.groups) == (groups, groups)
    assert (files.soft_memory_mb, files.disk_mb, shell.disk_mb) == (256, 0, settings.config.shell.disk_mb)


async def test_a_profile_that_lacks_a_tool_here_has_the_same_workers(core: Core, root: Path) -> None:
    less = profile(root).without({"fetch_url": "refused"})
    assert less.tools == ("read_file",)
    assert core.pools(less) is core.pools(profile(root))


async def test_what_was_opened_before_keeps_its_settings(core: Core, settings: Settings, root: Path) -> None:
    pools = core.pools(profile(root))
    before = spec(core, profile(root), "web").broker
    core.renew(replace(settings, config=msgspec.structs.replace(settings.config, web=WebConfig(allow=()))))
    assert pools.pool("web").spec.broker == before
    assert core.pools(profile(root)) is not pools


async def test_other_settings_are_another_broker(core: Core, settings: Settings, root: Path) -> None:
    before = spec(core, profile(root), "web").broker
    config = msgspec.structs.replace(settings.config, web=WebConfig(allow=()))
    core.renew(replace(settings, config=config))
    assert spec(core, profile(root), "web").broker != before
