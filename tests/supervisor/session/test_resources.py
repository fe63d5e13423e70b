"""What a resources gives the workers that it starts, as far as connections go, and who shares them."""

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from supervisor.categories.shell import ShellConfig
from supervisor.categories.web import WebConfig
from supervisor.config.config_keys import Config, DaemonConfig
from supervisor.config.narrowing import NAME
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError
from supervisor.pool.cgroup import WorkerCgroups
from supervisor.pool.spec import ChildSpec
from supervisor.pool.template_process import TemplateProcess, worker_command
from supervisor.session.child_specs import child_spec
from supervisor.session.resources import SessionResources
from supervisor.system.descendants import Orphans
from tests.supervisor.broker.harness import Worker
from workers.catalog import CATEGORIES


def profile(root: Path, name: str = "any") -> Profile:
    return Profile(name, str(root), ("fetch_url", "read_file"))


def spec(resources: SessionResources, profile: Profile, category: str) -> ChildSpec:
    made: Any = resources.pools(profile)._specs(category)
    assert isinstance(made, ChildSpec)
    return made


@pytest.mark.parametrize("category", CATEGORIES)
def test_only_a_category_that_asks_for_connections_has_a_broker(category: str, settings: Settings, root: Path) -> None:
    made = child_spec(settings, profile(root), category)
    assert (made.broker is not None) is CATEGORIES[category].brokered is (category == "web")


async def test_all_roots_have_one_broker(resources: SessionResources, root: Path, tmp_path: Path) -> None:
    here, there = (spec(resources, profile(folder), "web") for folder in (root, tmp_path))
    assert here.broker == there.broker


async def test_a_root_with_fewer_sites_has_a_broker_that_connects_to_no_others(
    resources: SessionResources, root: Path, nursery: trio.Nursery
) -> None:
    (root / NAME).write_text("web = ['hexdocs.pm', 'evil.example']\n")
    narrow = spec(resources, await resources.with_available_tools(profile(root)), "web")
    assert narrow.broker is not None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        nursery.start_soon(narrow.broker, ours, lambda: 1)
        worker = Worker(theirs)
        assert "Allowed: hexdocs.pm." in (await worker.refused("github.com")).message
        assert await worker.kind("evil.example") == "domain_not_allowed"


async def test_workers_are_limited_together_where_that_can_be_had(
    resources: SessionResources, root: Path, tmp_path: Path
) -> None:
    resources.groups = groups = WorkerCgroups(tmp_path, (), inside=False)
    files, shell = (spec(resources, profile(root), category) for category in ("files", "shell"))
    assert (files.groups, shell.groups) == (groups, groups)
    assert (files.soft_memory_mb, files.disk_mb, shell.disk_mb) == (256, 0, ShellConfig().disk_mb)


async def test_the_workers_of_all_roots_share_one_cap(
    resources: SessionResources, settings: Settings, root: Path, tmp_path: Path
) -> None:
    cap = spec(resources, profile(root), "files").cap
    assert spec(resources, profile(tmp_path), "web").cap is cap
    assert cap.most == DaemonConfig().workers
    resources.use_settings(replace(settings, config=Config(daemon=DaemonConfig(workers=3))))
    assert cap.most == 3


async def test_the_workers_of_all_roots_are_forked_by_one_template_which_may_run_already(
    resources: SessionResources, settings: Settings, root: Path, tmp_path: Path, nursery: trio.Nursery
) -> None:
    template = spec(resources, profile(root), "files").template
    assert template is not None
    assert spec(resources, profile(tmp_path), "web").template is template
    running = TemplateProcess(worker_command())
    others = SessionResources(settings, resources.writer.journal, nursery, Orphans(), template=running)
    theirs = spec(others, profile(root), "files").template
    assert theirs is not None
    assert theirs.process is running.process
    await others.close()
    assert running.process.returncode is not None


async def test_a_profile_that_lacks_a_tool_here_has_the_same_workers(resources: SessionResources, root: Path) -> None:
    less = profile(root).without({"fetch_url": "refused"})
    assert less.tools == ("read_file",)
    assert resources.pools(less) is resources.pools(profile(root))


async def test_open_sessions_keep_their_settings(resources: SessionResources, settings: Settings, root: Path) -> None:
    pools = resources.pools(profile(root))
    before = spec(resources, profile(root), "web").broker
    resources.use_settings(
        replace(settings, config=msgspec.structs.replace(settings.config, sections=(WebConfig(allow=()),)))
    )
    assert pools.pool("web").spec.broker == before
    assert resources.pools(profile(root)) is not pools


async def test_other_settings_are_another_broker(resources: SessionResources, settings: Settings, root: Path) -> None:
    before = spec(resources, profile(root), "web").broker
    config = msgspec.structs.replace(settings.config, sections=(WebConfig(allow=()),))
    resources.use_settings(replace(settings, config=config))
    assert spec(resources, profile(root), "web").broker != before


async def test_another_directory_under_the_same_path_has_workers_of_its_own(
    resources: SessionResources, root: Path
) -> None:
    before = resources.pools(profile(root))
    moved = root.rename(root.with_name("moved"))
    root.mkdir()
    after = resources.pools(profile(root))
    assert after is not before
    assert resources.pools(profile(root)) is after
    assert [each.pools for each in resources.opened] == [before, after]
    root.rmdir()
    moved.rename(root)
    assert resources.pools(profile(root)) is before


async def test_a_session_stays_in_its_directory_and_its_workers_end_without_those_of_the_next_one(
    resources: SessionResources, root: Path
) -> None:
    before = resources.pools(profile(root))
    root.rename(root.with_name("moved"))
    with pytest.raises(ConfigError, match="No such file"):
        resources.pools(profile(root))
    root.mkdir()
    assert resources.pools(profile(root), before) is before  # a session stays there, also with another profile
    assert resources.pools(profile(root, "other"), before).root.identity == before.root.identity
    after = resources.pools(profile(root))
    first = resources.opened[0]
    resources.withdraw_pools(first)
    await first.pools.close()
    assert resources.pools(profile(root)) is after


async def test_a_session_goes_where_a_profile_on_another_path_leads(
    resources: SessionResources, root: Path, tmp_path: Path
) -> None:
    before = resources.pools(profile(root))
    assert resources.pools(profile(tmp_path), before) is resources.pools(profile(tmp_path))
