"""Places where lines of confinement stand, and the tests that should notice that one is gone: data only."""

from typing import Final, NamedTuple


class Site(NamedTuple):
    """Lines of one kind in one file."""

    file: str
    names: tuple[str, ...]
    """The constants, functions and methods to look into, or "*"."""
    kind: str
    """What is taken away: a key of `taking.TAKES`."""
    tests: tuple[str, ...]


def _of(place: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{place}/test_{name}.py" for name in names)


_CONFINE: Final = "workers/confine"
_CONFINED: Final = _of(_CONFINE, "seccomp", "doors", "confined_files")
_FAILS: Final = _of(_CONFINE, "confined_files", "fails_closed", "doors", "death")
_SHELL: Final = (*_of("workers/shell/sandbox", "locks", "fails_closed"), *_of("workers/shell", "commands", "life"))
_PROXY: Final = (*_of("workers/shell/proxy", "proxy_locks", "proxy"), *_of("workers/shell", "limits"))
_WHERE: Final = _of(_CONFINE, "namespaces")
_RESTORE: Final = _of("workers/restore", "doors", "undo", "private_tree")
_SEARCH: Final = _of("workers/search", "doors")
_WEB: Final = _of("workers/web", "doors")
_MEDIA: Final = _of("workers/media", "doors")
_OTHERS: Final = (*_SEARCH, *_WEB, *_MEDIA, *_RESTORE[:1], *_SHELL[:1])
_BROKER: Final = _of("supervisor/broker", "broker", "dialog", "allowlist", "addresses", "network")
_SPAWNED: Final = (
    *_of("supervisor/pool", "worker_process"),
    *_of(_CONFINE, "confined_files", "death", "namespaces", "doors"),
)
_FORKED: Final = (*_of(_CONFINE, "template", "death"), *_of("supervisor/pool", "worker_template"))
_PATHS: Final = (
    *_of("workers/tree", "root", "parent_dir", "protected"),
    *_of("workers/files", "path_corpus", "read_file"),
)

SITES: Final = (
    # The filters.
    Site("workers/confine/confinements.py", ("*",), "conditions", (*_CONFINED, *_OTHERS, *_PROXY[:1])),
    Site("workers/confine/confinements.py", ("SEARCH", "WEB"), "flags", (*_WHERE, *_SEARCH, *_WEB)),
    Site("workers/confine/command_policy.py", ("*",), "rows", (*_of(_CONFINE, "denylist"), *_SHELL[:1])),
    Site("workers/confine/seccomp.py", ("*",), "steps", _CONFINED),
    Site("workers/confine/seccomp.py", ("*",), "refusals", (*_CONFINED, *_FAILS)),
    Site("workers/confine/seccomp.py", ("load", "install"), "acts", (*_CONFINED, *_FAILS)),
    Site("workers/confine/denylist.py", ("*",), "steps", (*_of(_CONFINE, "denylist", "seccomp"), *_SHELL[:1])),
    Site("workers/confine/denylist.py", ("*",), "refusals", _of(_CONFINE, "denylist", "seccomp")),
    # Landlock.
    Site("workers/confine/landlock.py", ("handled", "restrict"), "acts", (*_FAILS, *_PROXY[1:2])),
    Site("workers/confine/landlock.py", ("handled", "restrict"), "choices", (*_FAILS, *_SHELL[:1], *_PROXY)),
    Site("workers/confine/landlock.py", ("_FILES_BY_ABI", "PARTS"), "pairs", (*_FAILS, *_SHELL[:1])),
    Site("workers/confine/landlock.py", ("_ALL_TCP", "_ALL_SCOPES"), "bits", (*_FAILS, *_SHELL[:1])),
    Site("workers/confine/landlock.py", ("*",), "refusals", _FAILS),
    # The steps of every worker.
    Site("workers/confine/steps.py", ("STEPS",), "rows", (*_FAILS, *_OTHERS)),
    Site("workers/confine/steps.py", ("*",), "refusals", (*_FAILS, *_OTHERS)),
    Site("workers/confine/limits.py", ("limit",), "rows", (*_of(_CONFINE, "confined_files"), *_SHELL)),
    Site("workers/confine/limits.py", ("limit", "limit_memory_for_now"), "choices", (*_FAILS, *_SHELL)),
    Site("workers/confine/limits.py", ("*",), "refusals", (*_FAILS, *_SHELL)),
    Site("workers/confine/privileges.py", ("*",), "acts", (*_FAILS, *_OTHERS, *_SHELL[1:2], *_SHELL[3:])),
    Site("workers/confine/privileges.py", ("*",), "refusals", (*_FAILS, *_OTHERS, *_SHELL[1:2])),
    Site(
        "workers/__main__.py",
        ("run",),
        "acts",
        (*_of(_CONFINE, "death", "confined_files"), *_SHELL[1:2], *_of("workers", "loop")),
    ),
    # Namespaces and mounts.
    Site(
        "workers/confine/namespaces.py",
        ("*",),
        "acts",
        (*_WHERE, *_SHELL, *_PROXY[1:2], *_RESTORE[:1], *_of("workers/search", "life")),
    ),
    Site("workers/confine/namespaces.py", ("EVERYTHING",), "flags", _WHERE),
    Site(
        "workers/confine/namespaces.py",
        ("*",),
        "refusals",
        (*_WHERE, *_FAILS, *_SHELL[:2], *_of("workers/search", "life")),
    ),
    Site("workers/confine/mounts.py", ("*",), "acts", (*_WHERE, *_SHELL, *_RESTORE)),
    Site("workers/confine/mounts.py", ("keep_to_ourselves",), "flags", (*_WHERE, *_SHELL, *_RESTORE)),
    # A command and its proxy.
    Site("workers/shell/sandbox/lock_steps.py", ("WORKER", "COMMAND", "PROXY"), "rows", (*_SHELL, *_PROXY)),
    Site(
        "workers/shell/sandbox/lock_steps.py",
        ("_sandbox", "_descriptors", "_rlimits", "_all_capabilities"),
        "acts",
        (*_SHELL, *_PROXY),
    ),
    Site("workers/shell/sandbox/lock_steps.py", ("*",), "refusals", (*_SHELL, *_PROXY)),
    Site(
        "workers/shell/sandbox/private_root.py",
        ("build", "_show", "_mount_proc"),
        "acts",
        (*_SHELL, *_WHERE, *_PROXY[1:2]),
    ),
    Site("workers/shell/sandbox/private_root.py", ("build", "_show", "_mount_proc"), "flags", _SHELL),
    Site(
        "workers/shell/sandbox/command_mounts.py",
        ("arrange",),
        "acts",
        (*_SHELL, *_of("workers/shell", "command_proposal")),
    ),
    Site("workers/shell/sandbox/command_mounts.py", ("arrange", "rules", "_READ", "_USE"), "flags", _SHELL),
    Site("workers/shell/run/command.py", ("_lock_in",), "acts", (*_SHELL, *_of("workers/shell", "limits"))),
    Site("workers/shell/run/command.py", ("*",), "refusals", (*_SHELL, *_PROXY)),
    Site("workers/shell/proxy/proxy_process.py", ("*",), "refusals", _PROXY),
    # What undo may reach.
    Site("workers/restore/private_tree.py", ("_leave", "_bind"), "acts", (*_WHERE, *_RESTORE)),
    Site(
        "workers/restore/private_tree.py",
        ("_leave", "_bind", "_NAMESPACES", "_PLAIN"),
        "flags",
        (*_WHERE, *_RESTORE[:1]),
    ),
    Site("workers/restore/private_tree.py", ("_leave",), "choices", (*_WHERE, *_RESTORE)),
    Site("workers/restore/private_tree.py", ("*",), "refusals", (*_WHERE, *_RESTORE)),
    # Which file a path names.
    Site("workers/tree/root.py", ("open_beneath", "_ALWAYS"), "flags", _PATHS),
    Site("workers/tree/root.py", ("parts_of", "regular"), "refusals", _PATHS),
    # What the supervisor gives a worker to begin with, and its way to the network.
    Site("workers/confine/template.py", ("fork_workers",), "acts", _FORKED),
    Site("supervisor/pool/child_process.py", ("spawn",), "keywords", _SPAWNED),
    Site("supervisor/pool/child_process.py", ("end_with_this_process",), "acts", _SPAWNED),
    Site("supervisor/broker/broker.py", ("*",), "refusals", _BROKER),
    Site("supervisor/broker/dialog.py", ("*",), "refusals", _BROKER),
    Site("supervisor/broker/network.py", ("*",), "refusals", _BROKER),
    Site("supervisor/broker/network.py", ("connect",), "acts", _BROKER),
    Site("supervisor/broker/addresses.py", ("_WORDS",), "pairs", _BROKER),
)

NO_LOCKS: Final = (
    *("kernel.keep_heap()", "gc.freeze()", "gc.enable()", "shown.append(path)"),
    *("os.makedirs(_BASE + os.path.dirname", "os.O_PATH", "os.O_CLOEXEC"),
    *("parts.append(part)", "connection.setblocking", "connection.connect("),
    *("stack.callback(os.close, proc)", "__import__("),
)
"""What stands among them for speed, to make what follows possible, or to tidy up before a lock would."""
