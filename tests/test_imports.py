"""Who may import whom, read from the source and seen in real interpreters.

`workers/` stands on the standard library and msgspec, and each category on its own library, which is imported where
it is prepared and not with its tools. Of the workers the supervisor sees a few leaf modules: `wire` (what is said),
`catalog` (what there is), `kernel` (prctl and malloc by ctypes), `url` (what a URL is: whoever judges one and whoever
opens it must read it alike), `NAME_inputs` (what a category's workers are given), `effects` (what a command would
change), `drafts` (how what is being written is called), `obeyed_names` (what other programs obey), `faults.kinds` (what
can be made to fail) and `shell.output` (what is kept of what it prints); two copies would be worse. Within the
supervisor, a module imports from its own layer or one below.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parent.parent
STANDARD: Final = sys.stdlib_module_names | {"_sha2", "_sha256"}  # one of them, by the version

FROM_WORKERS: Final = {
    "workers",
    "workers.wire.messages",
    "workers.wire.frames",
    "workers.wire.pack_format",
    "workers.catalog",
    "workers.treediff.package_addresses",
    "workers.kernel",
    "workers.url",
    "workers.tree.drafts",
    "workers.tree.glob",
    "workers.tree.obeyed_names",
    "workers.changes.diff",
    "workers.changes.effects",
    "workers.faults.kinds",
    "workers.shell.run.output",
    "workers.shell.command_line",
    "workers.shell.no_input",
    "workers.errors",
    "workers.wire.media_types",
    "workers.restore.restore_inputs",
    "workers.search.search_inputs",
    "workers.shell.cache_table",
    "workers.shell.shell_inputs",
    "workers.shell.shell_line",
    "workers.web.web_inputs",
}
"""The package itself holds nothing: who imports it wants to know where it lies."""

LAYERS: Final = (
    {"supervisor.errors", "supervisor.version", "supervisor.acp"},
    {"supervisor.display", "supervisor.system"},
    {"supervisor.rules"},
    {"supervisor.categories"},
    {"supervisor.config"},
    {"supervisor.journal"},
    {"supervisor.undo", "supervisor.broker", "supervisor.pool"},
    {"supervisor.tools"},
    {"supervisor.agent"},
    {"supervisor.session", "supervisor.reports"},
    {"supervisor.daemon"},
    {"supervisor.clients", "supervisor.doctor", "supervisor.replay"},
    {"supervisor.cli"},
    {"supervisor.__main__"},
)
"""From the ground up; a package stands for its modules."""

LIBRARIES: Final[dict[str, set[str]]] = {
    "supervisor.cli": {"click"},
    "supervisor.agent.answer_schema": {"jsonschema", "msgspec", "referencing"},
    "supervisor.agent.models.anthropic_sdk": {"anthropic", "httpx2"},
    "supervisor.agent.models.model_http": {"httpx2", "trio"},
    "supervisor.agent.models.remote_model": {"httpx2", "msgspec", "trio"},
    "supervisor.agent.models.wire_format": {"httpx2"},
    "supervisor.agent.models.messages_api": {"httpx2"},
    "supervisor.agent.models.gemini_api": {"httpx2"},
    "supervisor.agent.models.ollama_api": {"httpx2"},
    "supervisor.agent.models.server": {"certifi"},
    "supervisor.config.config_editor": {"tomlkit"},
    "supervisor.display.code_tones": {"pygments"},
    "supervisor.reports.markdown_html": {"markdown_it"},
    "supervisor.system.installation_key": {"cryptography"},
    "supervisor.clients.console": {"msgspec", "prompt_toolkit", "rich"},
    "supervisor.clients.python.waits": {"trio"},
    "supervisor.clients.tui.start_tui": set(),
    "supervisor.clients.tui": {"rich", "textual"},
    "supervisor.clients": {"msgspec"},
    "supervisor.acp": {"msgspec"},
    "supervisor": {"msgspec", "outcome", "trio"},
    "workers.web": {"certifi", "httpcore", "markdownify", "bs4", "msgspec"},
    "workers.media": {"PIL", "pypdf", "msgspec"},
    "workers": {"msgspec"},
    "strongroom": set(),
}
"""What besides the standard library a module may use: the first row that is it, or a package it is in."""

PREPARED: Final = {
    "workers.media.converter",
    "workers.media.documents",
    "workers.media.images",
    "workers.shell.package_index",
    "workers.shell.pip_entry",
    "workers.web.http_client",
    "workers.web.transport",
    "workers.web.content",
    "workers.web.fetcher",
    "workers.web.html_to_markdown",
}
"""Modules that stand on a category's library: its `prepare` imports them, in its workers, and nobody else does."""

ENVIRONMENT: Final = {"environ", "environb", "getenv", "getenvb"}

HELP: Final = (
    "import sys; from supervisor.cli.main import main\n"
    "try:\n    main(['--help'])\nexcept SystemExit:\n    print('\\n'.join(sys.modules), file=sys.stderr)"
)

RUN: Final = """
import os, sys
os.environ["STRONGROOM_HOME"] = os.path.join(os.getcwd(), "home")
from supervisor.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    print("\\n".join(sys.modules), file=sys.stderr)
"""

SHORT: Final = {
    "status": (46, ["status"]),
    "call": (49, ["call", "read_file", '{"path": "a.md"}', "--root", "root"]),
    "completion": (8, ["completion", "bash"]),
}
"""Commands that end at once, with how many modules of ours each may import."""

HEAVY: Final = {
    *("trio", "anthropic", "sqlite3", "ctypes", "prompt_toolkit", "rich", "difflib", "supervisor.config.config_reader"),
    *("supervisor.categories.rows", "supervisor.agent", "workers.catalog", "workers.tool", "workers.confine"),
}
"""What none of them needs, where the configuration has no key."""

WATCH: Final = """
import importlib, json, sys
deeds = []
def audit(event, arguments):
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & 3
    if writes or event in {"os.mkdir", "os.putenv", "os.rename", "os.remove", "os.chmod", "subprocess.Popen",
                           "os.fork", "socket.connect", "socket.bind", "sqlite3.connect", "os.kill"}:
        deeds.append(f"{event} {arguments}")
for library in ("click", "msgspec", "outcome", "trio"):
    importlib.import_module(library)
sys.addaudithook(audit)
import threading
for name in sys.argv[1:]:
    importlib.import_module(name)
json.dump({"deeds": deeds, "threads": threading.active_count(), "modules": list(sys.modules)}, sys.stderr)
"""


def modules(package: str) -> Iterator[str]:
    for file in sorted((ROOT / package).rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SUPERVISOR: Final = list(modules("supervisor"))
WORKERS: Final = list(modules("workers"))
EVERY: Final = [*SUPERVISOR, *WORKERS, "strongroom"]
KNOWN: Final = frozenset(EVERY)


class Named(NamedTuple):
    """What a module's source names."""

    modules: set[str]
    """All that it imports, also inside functions and for types alone."""
    attributes: set[str]


@cache
def named(module: str) -> Named:
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = Named(set(), set())
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Attribute):
            found.attributes.add(node.attr)
        elif isinstance(node, ast.alias):
            found.attributes.add(node.name)
        elif isinstance(node, ast.Import):
            found.modules.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} uses a relative import"
            assert node.module is not None
            names = [f"{node.module}.{name.name}" for name in node.names]
            found.modules.update(name if name in KNOWN else node.module for name in names)
    return found


def imported(module: str) -> set[str]:
    return named(module).modules


def layer(module: str) -> int:
    found = [number for number, names in enumerate(LAYERS) for name in names if f"{module}.".startswith(f"{name}.")]
    assert found, f"{module} needs a layer"
    return found[0]


def libraries(module: str) -> set[str]:
    return next(names for package, names in LIBRARIES.items() if f"{module}.".startswith(f"{package}."))


def interpreter(code: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.dont_write_bytecode = True\n"
    command = [sys.executable, "-c", path + code, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=True)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened when one interpreter imported everything."""
    folder = tmp_path_factory.mktemp("import")
    names = [name for name in EVERY if not name.endswith("__main__")]
    done = interpreter(WATCH, *names, cwd=folder)
    return {**json.loads(done.stderr), "output": done.stdout, "files": list(folder.iterdir())}


def test_a_module_uses_its_libraries_and_no_others() -> None:
    known = STANDARD | {"supervisor", "workers"}
    foreign = {each: {name.split(".")[0] for name in imported(each)} - known - libraries(each) for each in EVERY}
    assert {each: names for each, names in foreign.items() if names} == {}


def test_the_workers_know_nothing_of_the_supervisor() -> None:
    known = {each: {name for name in imported(each) if name.split(".")[0] == "supervisor"} for each in WORKERS}
    assert {each: names for each, names in known.items() if names} == {}


def test_the_supervisor_sees_a_few_modules_of_the_workers() -> None:
    seen = {each: {name for name in imported(each) if name.split(".")[0] == "workers"} for each in SUPERVISOR}
    assert {each: names - FROM_WORKERS for each, names in seen.items() if names - FROM_WORKERS} == {}


def test_a_module_imports_downwards() -> None:
    upward = [
        (module, name)
        for module in SUPERVISOR
        if module != "supervisor"
        for name in imported(module)
        if name.split(".")[0] == "supervisor" and name.split(".")[:2] != module.split(".")[:2]
        if layer(name) >= layer(module)
    ]
    assert upward == []


def test_no_modules_import_each_other() -> None:
    """A circle is one even where its imports stand in functions, or are for types alone."""
    left = {each: {name for name in imported(each) if name in KNOWN and name != each} for each in EVERY}
    while free := [each for each in left if not left[each] & left.keys()]:
        for each in free:
            del left[each]
    while free := [each for each in left if not any(each in names for names in left.values())]:
        for each in free:
            del left[each]
    assert {each: names & left.keys() for each, names in left.items()} == {}


def test_the_packages_themselves_import_nothing() -> None:
    assert [imported(name) for name in ("supervisor", "supervisor.agent", "supervisor.tools", "workers")] == [set()] * 4


def test_only_the_configuration_reads_the_environment() -> None:
    reading = [
        (module, names)
        for module in EVERY
        if module not in ("supervisor.config.settings", "supervisor.system.isolated")  # which only takes away
        if (names := named(module).attributes & ENVIRONMENT)
    ]
    assert reading == []


def loaded(code: str, cwd: Path) -> set[str]:
    """Return the modules that an interpreter has after running `code`."""
    return set(interpreter(f"{code}\nprint('\\n'.join(sys.modules))", cwd=cwd).stdout.split())


def importing(names: list[str]) -> str:
    return f"import importlib\nfor name in {names!r}: importlib.import_module(name)"


def test_help_loads_nothing_of_weight(tmp_path: Path) -> None:
    done = interpreter(HELP, cwd=tmp_path)
    assert "Usage: " in done.stdout
    heavy = {"trio", "anthropic", "msgspec", "sqlite3", "supervisor.config.settings"}
    assert heavy & set(done.stderr.split()) == set()


@pytest.mark.parametrize("name", SHORT)
def test_a_short_command_imports_no_more_than_it_needs(name: str, tmp_path: Path) -> None:
    most, arguments = SHORT[name]
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.md").write_text("A note.\n", "utf-8")
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "config.toml").write_text('# model = "offline"\n', "utf-8")
    found = set(interpreter(RUN, *arguments, cwd=tmp_path).stderr.split())
    ours = [each for each in found if each.split(".")[0] in {"supervisor", "workers"}]
    assert HEAVY & found == set()
    assert 3 < len(ours) <= most, sorted(ours)


def test_a_worker_loads_nothing_of_the_supervisor(tmp_path: Path) -> None:
    found = {
        name.split(".")[0] for name in loaded(importing([name for name in WORKERS if name not in PREPARED]), tmp_path)
    }
    others = {"supervisor", "trio", "anthropic", "click", "sqlite3", "httpx", "outcome"}
    assert found & {"msgspec", *others} == {"msgspec"}


@pytest.mark.parametrize("category", ["files", "search", "web", "shell", "restore", "media"])
def test_a_worker_loads_the_tools_of_its_own_category_alone(category: str, tmp_path: Path) -> None:
    known = {f"workers.{each}" for each in ("files", "search", "web", "shell", "restore", "media")}
    code = f"from workers.__main__ import CATEGORIES\nCATEGORIES[{category!r}]"
    assert loaded(code, tmp_path) & known == {f"workers.{category}"}


def test_the_journal_is_read_without_what_writes_it(tmp_path: Path) -> None:
    found = loaded(importing([name for name in SUPERVISOR if name.startswith("supervisor.reports")]), tmp_path)
    assert "supervisor.reports.history" in found
    assert found & {"trio", "anthropic", "supervisor.pool.pools"} == set()


def test_the_clients_load_neither_trio_nor_anthropic(tmp_path: Path) -> None:
    found = loaded(importing([name for name in SUPERVISOR if name.startswith("supervisor.clients")]), tmp_path)
    assert "supervisor.clients.console" in found
    assert found & {"trio", "anthropic", "supervisor.daemon.service", "supervisor.pool"} == set()


def test_the_module_for_programs_is_light(tmp_path: Path) -> None:
    found = loaded("import strongroom", tmp_path)
    heavy = ("trio", "asyncio", "anyio", "IPython", "anthropic", "httpx2", "prompt_toolkit", "rich", "sqlite3")
    assert found.isdisjoint(heavy)
    ours = [each for each in found if each.split(".")[0] in {"supervisor", "workers"}]
    assert 10 < len(ours) <= 90, sorted(ours)


def test_nothing_loads_the_anthropic_library_by_being_imported(watched: dict[str, Any]) -> None:
    assert "supervisor.agent.models.messages_api" in watched["modules"]
    assert "anthropic" not in watched["modules"]


def test_importing_everything_does_nothing(watched: dict[str, Any]) -> None:
    seen = {name: watched[name] for name in ("output", "files", "deeds", "threads")}
    assert seen == {"output": "", "files": [], "deeds": [], "threads": 1}
