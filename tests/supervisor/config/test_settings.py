"""The configuration: every key, and every mistake with a sentence that helps."""

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.categories.media import MediaConfig
from supervisor.categories.registries import RegistriesConfig
from supervisor.categories.restore import UndoConfig
from supervisor.categories.row import CategoryLimits
from supervisor.categories.shell import ShellConfig
from supervisor.categories.web import WebConfig
from supervisor.config.config_keys import (
    BudgetConfig,
    BudgetsConfig,
    Config,
    ConsoleConfig,
    DaemonConfig,
    LibrarianConfig,
    ProfileConfig,
    ProviderConfig,
    WaitingConfig,
)
from supervisor.config.config_reader import CONFIG_FILE, rules_of
from supervisor.config.model_keys import LongPromptPrice, ModelConfig, Price
from supervisor.config.settings import Settings, load
from supervisor.errors import ConfigError
from supervisor.rules.rule import Rule
from supervisor.system.safe_files import own_directory, own_file, secure_home
from tests.each_row import each_row
from workers.shell.shell_inputs import CERTIFICATES

EVERYTHING: Final = """
model = "offline"
fallbacks = ["scripted:x"]
profile = "notes"
max_steps = 7
allow_degraded = ["landlock", "seccomp"]
[limits.files]
memory_mb = 256
cpu_s = 10
open_files = 32
file_mb = 1
processes = 3
call_s = 2.5
workers = 2
soft_memory_mb = 99
[profiles.notes]
root = "~/notes"
tools = ["read_file", "list_files"]
ask = ["read_file"]
writable = false
trusted = false
instructions = false
check = "make test"
view = "private"
[daemon]
drain_s = 0
idle_exit_s = inf
resume_within_h = 1.5
log_mb = 1
log_files = 2
workers = 3
[waiting]
patience_s = 5
fallback = "allow"
longest_s = 9
batch_longest_s = 99
[budgets]
turn = { tokens = 9, cost = 0.5, seconds = 60 }
session = { tokens = 90 }
batch = { cost = 2 }
day = { seconds = 3600 }
currency = "EUR"
[prices."offline-2.5"]
input = 1
output = 5.0
cache_read = 0.1
cache_write = 1.25
currency = "EUR"
long_prompt = { tokens = 100, input = 2, output = 10 }
[models."claude-x"]
window = 4096
max_tokens = 2048
effort = "xhigh"
temperature = 0.5
prices = { input = 2, output = 4 }
tools = "text"
images = true
documents = false
[web]
allow = ["example.org", "*.example.org"]
ports = [443, 80]
http = true
resolve = { "example.org:443" = "127.0.0.1:8443" }
unasked_bits = 100
unasked_addresses = 6
fetch_s = 5
ca_file = "ca.pem"
[shell]
programs = ["git", "make"]
timeout_s = 60
toolchains = ["/srv"]
disk_mb = 100
escalation = true
hidden = ["/srv/secrets"]
cache_mb = 7
copy_mb = 5
max_timeout_s = 90
env = { GREETING = "hi" }
[registries]
npm = "https://npm.example.org"
pypi = "http://10.0.0.1:8080/simple"
[providers.gateway]
base_url = "https://models.example.org/v1"
format = "messages"
key_env = "GATEWAY_KEY"
headers = { "X-Team" = "notes" }
ca_file = "ca.pem"
[undo]
each_mb = 1
call_mb = 2
total_mb = 0
days = 0.5
small_percent = 10
[media]
total_mb = 3
[librarian]
repos_path = "/srv/repos"
environment = "staging"
[console]
keys = "vi"
links = "never"
[[rules]]
decision = "allow"
programs = ["git"]
writes = ["build/**"]
deletes = ["tmp/"]
max_files = 50
network = true
reason = "build output is ours"
until = 2027-06-30
kinds = ["content", "link"]
max_bytes = 1000
git = ["add", "commit"]
registries = ["npm"]
ignored = true
[[rules]]
decision = "allow"
programs = ["make"]
starts = true
[[rules]]
decision = "deny"
"""


def configured(home: Path, text: str) -> Settings:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    return load({"STRONGROOM_HOME": str(home)})


def test_without_a_file_all_is_default_and_nothing_is_made(home: Path) -> None:
    assert load({"STRONGROOM_HOME": str(home)}).config == Config()
    assert not home.exists()


def test_every_key_is_taken(home: Path) -> None:
    home.mkdir()
    (home / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    settings = configured(home, EVERYTHING)
    assert settings.config == Config(
        model="offline",
        fallbacks=("scripted:x",),
        profile="notes",
        max_steps=7,
        allow_degraded=("landlock", "seccomp"),
        limits={"files": CategoryLimits(256, 10, 32, 1, 3, call_s=2.5, workers=2, soft_memory_mb=99)},
        profiles={
            "notes": ProfileConfig(
                "~/notes",
                ("read_file", "list_files"),
                ("read_file",),
                writable=False,
                trusted=False,
                view="private",
                instructions=False,
                check="make test",
            )
        },
        daemon=DaemonConfig(0, float("inf"), 1.5, 1, 2, 3),
        prices={"offline-2.5": Price(1, 5, 0.1, 1.25, "EUR", LongPromptPrice(100, 2, 10))},
        models={"claude-x": ModelConfig(4096, 2048, "xhigh", 0.5, "text", True, False, Price(2, 4))},
        waiting=WaitingConfig(5.0, "allow", 9.0, 99.0),
        budgets=BudgetsConfig(
            turn=BudgetConfig(9, 0.5, 60.0),
            session=BudgetConfig(90),
            batch=BudgetConfig(cost=2.0),
            day=BudgetConfig(seconds=3600.0),
            currency="EUR",
        ),
        sections=(
            WebConfig(
                *(("example.org", "*.example.org"), (443, 80), True, {"example.org:443": "127.0.0.1:8443"}, "ca.pem"),
                *(5, 100, 6),
            ),
            ShellConfig(
                *(("git", "make"), 60, ("/srv",), 100),
                escalation=True,
                hidden=("/srv/secrets",),
                cache_mb=7,
                copy_mb=5,
                max_timeout_s=90,
                env={"GREETING": "hi"},
            ),
            UndoConfig(1, 2, 0, 0.5, 10),
            MediaConfig(3),
        ),
        providers={
            "gateway": ProviderConfig(
                *("https://models.example.org/v1", "messages", "GATEWAY_KEY", {"X-Team": "notes"}, "ca.pem")
            )
        },
        registries=RegistriesConfig("https://npm.example.org", "http://10.0.0.1:8080/simple"),
        librarian=LibrarianConfig("/srv/repos", "staging"),
        console=ConsoleConfig("vi", "never"),
        rules=(
            Rule(
                *("allow", ("git",), ("build/**",), ("tmp/",), 50, True, "build output is ours", date(2027, 6, 30)),
                *(("content", "link"), 1000, ("add", "commit")),
                registries=("npm",),
                ignored=True,
            ),
            Rule("allow", ("make",), starts=True),
            Rule("deny"),
        ),
    )


def test_every_key_there_is_stands_in_that_test() -> None:
    sections = (
        DaemonConfig,
        Price,
        LongPromptPrice,
        ModelConfig,
        WaitingConfig,
        BudgetsConfig,
        BudgetConfig,
        ProviderConfig,
        WebConfig,
        LibrarianConfig,
        ConsoleConfig,
        ShellConfig,
        UndoConfig,
        MediaConfig,
        Rule,
    )
    for struct in (CONFIG_FILE, CategoryLimits, ProfileConfig, *sections):
        assert [key for key in struct.__struct_fields__ if key not in EVERYTHING] == []


LIMITS: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("files", "", {}),
    ("files", "[limits.files]\nmemory_mb = 400", {"memory_mb": 400}),
    ("files", "[limits.files]\nmemory_mb = 100", {"memory_mb": 100, "soft_memory_mb": 75}),
    ("search", "", {"processes": 64}),
    ("search", "[limits.search]\nmemory_mb = 400", {"processes": 64, "memory_mb": 400}),
]


@pytest.mark.parametrize(("category", "text", "changed"), LIMITS)
def test_a_category_keeps_its_own_usual_limits(home: Path, category: str, text: str, changed: dict[str, Any]) -> None:
    assert configured(home, text).limits(category) == CategoryLimits(**changed)


def test_an_undo_may_write_every_file_that_is_kept(home: Path) -> None:
    assert configured(home, "[undo]\neach_mb = 5000\n[limits.restore]\nfile_mb = 1").limits("restore").file_mb == 5000


_ASK: Final = "[[rules]]\ndecision = 'ask'\n"

MISTAKES: Final = [
    ("modle = 'x'", "unknown name 'modle'; did you mean 'model'?"),
    (
        "zzz = 1",
        "unknown name 'zzz'; known: model, profile, max_steps, allow_degraded, daemon, network, registries, limits,",
    ),
    *(
        (f"network = '{each}'", f"`network` is '{told}'; it must be a table with proxy, ca_file.")
        for each, told in (
            ("http://me:CANARY@h", "http://[removed]@h"),
            ("http://me:a@b/CANARY@h", "http://[removed]@h"),
            ("http://h/v1?a=b&key=CANARY", "http://h/v1?[removed]&[removed]"),
        )
    ),
    *(
        (
            f"[network]\nproxy = '{each}'",
            "`network`: write a proxy like 'http://host:port' or 'http://user:password@host",
        )
        for each in (
            "http://me:CANARY@h:0",
            "socks5://me:CANARY@h",
            "http://me:CANARY@h/path",
            "http://me:CANARY?@h",
            "http://me:a/CANARY@h",
            "http://me:CAN ARY@h",
            "",
        )
    ),
    *(
        (f"[registries]\npypi = '{url}'", words)
        for url, words in {
            "https://me:CANARY@h.example/simple": "the URL of `pypi` holds a name or a password, which every command",
            "ftp://h.example": "the URL of `pypi`: The URL 'ftp://h.example' has the scheme 'ftp'",
            "https://h.example/simple?key=1": "the URL of `pypi` has more than a host, a port and a path",
            "https://h.example/$x": "the URL of `pypi` has more than a host, a port and a path",
            "https://2130706433/simple": "is an address or a number",
            "https://h.example:0/": "The port '0' is not valid",
        }.items()
    ),
    ("[network]\nca_file = 'none.pem'", "`ca_file` in [network], 'none.pem', cannot be read: No such file"),
    *(
        (f"[providers.g]\nbase_url = 'http://h'\n{line}", words)
        for line, words in {
            "ca_file = 'none.pem'": "`ca_file` in [providers.g], 'none.pem', cannot be read: No such file",
            "headers = { X-Team = ['CANARY'] }": "`providers.g.headers.X-Team` is wrong (not repeated",
            "headers = 'X-Team: CANARY'": "`providers.g.headers` is wrong (not repeated",
            'headers = { X-Team = "CANARY\\n" }': "the header 'X-Team' is none",
            "headers = { Content-Length = '1' }": "the header 'Content-Length' is ours to send",
            "key_env = 'sk-CANARY'": "`providers.g.key_env` is wrong (not repeated",
        }.items()
    ),
    *(
        (f"[providers.g]\nbase_url = '{url}'", "`providers.g`: `base_url` must look like https://host/v1 or")
        for url in (
            "me:CANARY@h",
            "http://me:CANARY@h:99999",
            "http://me:CANARY@[::1",
            "http://me:CANARY @h",
            "http://",
        )
    ),
    ("[limit.files]", "unknown name 'limit'; did you mean 'limits'?"),
    ("[limits.file]", "`limits`: unknown name 'file'; did you mean 'files'?"),
    ("[limits.files]\nmemory = 1", "`limits.files`: unknown name 'memory'; did you mean 'memory_mb'?"),
    ("[profiles.x]\nwriteable = true", "`profiles.x`: unknown name 'writeable'; did you mean 'writable'?"),
    ("allow_degraded = ['landlok']", "`allow_degraded`: unknown protection 'landlok'; did you mean 'landlock'?"),
    ("model = 7", "`model` is 7; it must be a text."),
    ("max_steps = 0", "`max_steps` is 0; it must be a whole number from 1 to 1000."),
    ("max_steps = '9'", "`max_steps` is '9'; it must be a whole number from 1 to 1000."),
    ("allow_degraded = 'seccomp'", "`allow_degraded` is 'seccomp'; it must be a list."),
    ("allow_degraded = true", "`allow_degraded` is true; it must be a list."),
    ("limits = 3", "`limits` is 3; it must be a table with files, search, "),
    ("[limits]\nfiles = 3", "`limits.files` is 3; it must be a table with memory_mb, cpu_s, "),
    ("profiles = []", "`profiles` is []; it must be a table."),
    ("[limits.files]\nmemory_mb = 1", "`limits.files.memory_mb` is 1; it must be a whole number from 64 to 1048576."),
    ("[limits.files]\nmemory_mb = 63", "`limits.files.memory_mb` is 63; it must be a whole number from 64 to 1048576."),
    ("[limits.files]\nmemory_mb = 1048577", "is 1048577; it must be a whole number from 64 to 1048576."),
    ("[limits.files]\ncpu_s = 0", "`limits.files.cpu_s` is 0; it must be a whole number from 1 to "),
    ("[limits.files]\ncall_s = 0", "`limits.files.call_s` is 0; it must be a number above 0 and up to 3600."),
    ("[limits.files]\ncall_s = nan", "call_s"),
    ("[limits.files]\nworkers = 1000", "`limits.files.workers` is 1000; it must be a whole number from 1 to 64."),
    ("[profiles.x]\ntools = 'read_file'", "`profiles.x.tools` is 'read_file'; it must be a list."),
    ("[deamon]", "unknown name 'deamon'; did you mean 'daemon'?"),
    ("[daemon]\ndrain = 1", "`daemon`: unknown name 'drain'; did you mean 'drain_s'?"),
    (
        "daemon = 3",
        "`daemon` is 3; it must be a table with drain_s, idle_exit_s, resume_within_h, log_mb, log_files, workers.",
    ),
    ("[daemon]\ndrain_s = 601", "`daemon.drain_s` is 601; it must be a number from 0 to 600."),
    ("[daemon]\ndrain_s = -1", "`daemon.drain_s` is -1; it must be a number from 0 to 600."),
    ("[daemon]\ndrain_s = nan", "`daemon.drain_s` is nan; it must be a number from 0 to 600."),
    ("[daemon]\nidle_exit_s = 0", "`daemon.idle_exit_s` is 0; it must be a number above 0."),
    ("[daemon]\nresume_within_h = -0.1", "`daemon.resume_within_h` is -0.1; it must be a number, 0 or more."),
    ("[daemon]\nlog_mb = 0", "`daemon.log_mb` is 0; it must be a whole number from 1 to 1024."),
    ("[daemon]\nlog_files = 0", "`daemon.log_files` is 0; it must be a whole number from 1 to 100."),
    ("[prices.m]\ninputs = 1", "`prices.m`: unknown name 'inputs'; did you mean 'input'?"),
    ("[prices.m]\ninput = 1", "`prices.m`: `output` is missing; it must be a number from 0 to 1000000."),
    ("[prices.m]\ninput = -1\noutput = 1", "`prices.m.input` is -1; it must be a number from 0 to 1000000."),
    ("[prices.m]\ninput = inf\noutput = 1", "`prices.m.input` is inf; it must be a number from 0 to 1000000."),
    ("[prices.m]\ninput = 1\noutput = 1\ncurrency = ''", "`prices.m.currency` is ''; it must be a text of 1 to 8"),
    ("[models.m]\nwindow = 10", "`models.m.window` is 10; it must be a whole number, 1024 or more."),
    ("[models.m]\neffort = 'very'", "`models.m.effort` is 'very'; it must be one of"),
    ("[models.m]\ntools = 'xml'", "`models.m.tools` is 'xml'; it must be one of native, text."),
    ("[models.m]\nwindows = 4096", "`models.m`: unknown name 'windows'; did you mean 'window'?"),
    ("[models.m.prices]\ninput = 1", "`models.m.prices`: `output` is missing"),
    (
        "[prices]\nm = 1",
        "`prices.m` is 1; it must be a table with input, output, cache_read, cache_write, currency, long_prompt.",
    ),
    ("[web]\nallowed = []", "`web`: unknown name 'allowed'; did you mean 'allow'?"),
    ("[web]\nports = [0]", "number 1 of `web.ports` is 0; it must be a whole number from 1 to 65535."),
    ("[web]\nhttp = 'yes'", "`web.http` is 'yes'; it must be true or false."),
    ("[web]\nallow = ['a', 2]", "number 2 of `web.allow` is 2; it must be a text."),
    ("[web]\nallow = 'x.org'", "`web.allow` is 'x.org'; it must be a list."),
    ("[web]\nunasked_bits = -1", "`web.unasked_bits` is -1"),
    ("[web]\nunasked_addresses = 1.5", "`web.unasked_addresses` is 1.5"),
    ("[web]\nfetch_s = 0", "`web.fetch_s` is 0; it must be a number above 0 and up to 600."),
    ("[web]\nallow = ['https://x.org']", "'https://x.org': a host's name stands alone"),
    ("[web]\nallow = ['127.0.0.1']", "The host '127.0.0.1' is an address"),
    ("[web]\nresolve = {'x.org' = '127.0.0.1:1'}", "'x.org' is no host and port"),
    ("[web]\nresolve = {'x.org:443' = 'y.org:1'}", "'y.org:1' is no address and port"),
    ("[web]\nresolve = {'x.org:1' = '[::1]:1', 'X.org.:1' = '[::1]:2'}", "`web`: `resolve` says twice where x.org:1"),
    ("[web]\nca_file = 'missing.pem'", "`ca_file` in [web], 'missing.pem', cannot be read: No such file"),
    ("[web]\nca_file = '~nobody-at-all/x'", "`ca_file` in [web], '~nobody-at-all/x', cannot be read: "),
    ("[web]\nca_file = '.'", "`ca_file` in [web], '.', cannot be read: it is not a regular file"),
    ("[web]\nca_file = 'config.toml'", "`ca_file` in [web], 'config.toml', holds no certificate"),
    ("[librarian]\nrepos = 'x'", "`librarian`: unknown name 'repos'; did you mean 'repos_path'?"),
    ("rules = 3", "`rules` is 3; it must be a list of tables, each begun by a line [[...]]."),
    ("[rules]\ndecision = 'ask'", "it must be a list of tables, each begun by a line [[...]]."),
    ("rules = [3]", "number 1 of `rules` is 3; it must be a table with decision, programs, "),
    ("[[rules]]", "number 1 of `rules`: `decision` is missing; it must be one of allow, ask, deny."),
    (f"{_ASK}[[rules]]\ndecision = 'alow'", "`decision` of number 2 of `rules` is 'alow'; did you mean 'allow'?"),
    (f"{_ASK}{_ASK}writs = []", "number 2 of `rules`: unknown name 'writs'; did you mean 'writes'?"),
    (
        f"{_ASK}kinds = ['link', 'contents']",
        "number 2 of `kinds` of number 1 of `rules` is 'contents'; did you mean 'con",
    ),
    (f"{_ASK}writes = ['a', 7]", "number 2 of `writes` of number 1 of `rules` is 7; it must be a text of 1"),
    (f"{_ASK}[[rules]]\ndecision = 'up'", "of number 2 of `rules` is 'up'; it must be one of allow, ask, deny."),
    (f"{_ASK}max_files = -1", "`max_files` of number 1 of `rules` is -1; it must be a whole number, 0 or more."),
    (f"{_ASK}until = 2027-06-30T10:00:00", "`until` of number 1 of `rules` is 2027-06-30 10:00:00; it must be a date"),
    (f"{_ASK}writes = ['/etc/x']", "number 1 of `rules`: the pattern /etc/x of `writes` is absolute"),
    (
        f"{_ASK}deletes = ['a', '']",
        "number 2 of `deletes` of number 1 of `rules` is ''; it must be a text of 1 to 4096 characters.",
    ),
    (f"{_ASK}[[rules]]\ndecision = 'allow'", "number 2 of `rules`: it allows nothing: name the paths"),
    ("model = ", "is not valid TOML"),
    ("model = 'a'\nmodel = 'b'", "is not valid TOML"),
    ("max_steps = " + "9" * 5000, "cannot be read: "),
    ("max_steps = " + "[" * 100_000, "cannot be read: "),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES, ids=[text[:30].replace("\n", " ") for text, _ in MISTAKES])
def test_a_mistake_is_named_with_its_file(home: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(home, text)
    assert words in str(caught.value)
    assert "CANARY" not in str(caught.value)
    assert str(home / "config.toml") in str(caught.value)


UNREADABLE: Final[dict[str, Callable[[Path], Any]]] = {
    "a directory": Path.mkdir,
    "not UTF-8": lambda file: file.write_bytes(b"model = '\xff'"),
    "a comment that is not UTF-8": lambda file: file.write_bytes(b"# \xff\n"),
    "a control character in a comment": lambda file: file.write_bytes(b"#\n# \x00\n"),
    "a mark before a comment": lambda file: file.write_bytes(b"\xef\xbb\xbf# model\n"),
    "a fifo": os.mkfifo,
    "a link to a device": lambda file: file.symlink_to("/dev/zero"),
    "a link to itself": lambda file: file.symlink_to(file),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_file_that_cannot_be_read_is_named(home: Path, what: str) -> None:
    home.mkdir()
    UNREADABLE[what](home / "config.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load({"STRONGROOM_HOME": str(home)})


@pytest.mark.parametrize("what", ["a fifo", "a link to a device"])
def test_certificates_are_awaited_from_no_fifo_or_device(home: Path, what: str) -> None:
    home.mkdir()
    UNREADABLE[what](home / "ca.pem")
    with pytest.raises(ConfigError, match=r"`ca_file` in \[web\], 'ca.pem', cannot be read: it is not a regular file"):
        configured(home, "[web]\nca_file = 'ca.pem'")


def test_a_link_to_a_file_is_followed(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (tmp_path / "mine.toml").write_text("model = 'offline'")
    (home / "config.toml").symlink_to(tmp_path / "mine.toml")
    assert load({"STRONGROOM_HOME": str(home)}).config.model == "offline"


def test_rules_that_a_person_names_may_come_from_a_pipe() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"[[rules]]\ndecision = 'deny'\n")
    os.close(writer)
    try:
        assert rules_of(Path(f"/dev/fd/{reader}")) == (Rule("deny"),)
    finally:
        os.close(reader)


DATA: Final = "/h/.local/share/strongroom"
CONFIG: Final = "/h/.config/strongroom/config.toml"
PLACES: Final = {
    "own": ({"STRONGROOM_HOME": "/srv/x", "HOME": "/h", "XDG_DATA_HOME": "/d"}, "/srv/x", "/srv/x/config.toml"),
    "default": ({"HOME": "/h"}, DATA, CONFIG),
    "empty": ({"STRONGROOM_HOME": "", "HOME": "/h"}, DATA, CONFIG),
    "xdg": ({"XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c"}, "/d/strongroom", "/c/strongroom/config.toml"),
    "relative xdg": ({"HOME": "/h", "XDG_DATA_HOME": "relative", "XDG_CONFIG_HOME": ""}, DATA, CONFIG),
}


@each_row(("environ", "home", "file"), PLACES.values(), ids=PLACES)
def test_the_environment_says_where_things_are(environ: dict[str, str], home: str, file: str) -> None:
    settings = load(environ)
    assert (str(settings.home), str(settings.config_file)) == (home, file)
    assert settings.journal == settings.home / "journal.db"


SOCKET: Final = f"{DATA}/daemon.sock"
LOGS: Final = "/h/.local/state/strongroom/logs"
SOCKETS: Final = {
    "own": ({"STRONGROOM_HOME": "/x", "XDG_RUNTIME_DIR": "/r", "XDG_STATE_HOME": "/s"}, "/x/daemon.sock", "/x/logs"),
    "runtime": ({"XDG_RUNTIME_DIR": "/run/user/1"}, "/run/user/1/strongroom/daemon.sock", LOGS),
    "default": ({}, SOCKET, LOGS),
    "data": ({"XDG_RUNTIME_DIR": "relative", "XDG_DATA_HOME": "/d"}, "/d/strongroom/daemon.sock", LOGS),
    "state": ({"XDG_RUNTIME_DIR": "relative", "XDG_STATE_HOME": "/s"}, SOCKET, "/s/strongroom/logs"),
    "relative": ({"XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": "relative"}, SOCKET, LOGS),
}


@each_row(("environ", "socket", "logs"), SOCKETS.values(), ids=SOCKETS)
def test_the_environment_says_where_the_daemon_is(environ: dict[str, str], socket: str, logs: str) -> None:
    settings = load({"HOME": "/h", **environ})
    assert (str(settings.socket), str(settings.logs)) == (socket, logs)
    assert settings.lock == settings.home / "daemon.lock"


def test_settings_made_by_hand_keep_everything_at_home() -> None:
    settings = Settings(Config(), Path("/x/config.toml"), Path("/h"))
    assert (settings.socket, settings.logs) == (Path("/h/daemon.sock"), Path("/h/logs"))
    assert replace(settings, socket=Path("/s")).socket == Path("/s")


PLACED: Final = [
    ({"STRONGROOM_HOME": "/x", "XDG_DATA_HOME": "/d"}, {"STRONGROOM_HOME": "/x"}),
    ({"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_RUNTIME_DIR": "/r"}, {"XDG_DATA_HOME": "/d"}),
    ({"HOME": "/h", "XDG_CONFIG_HOME": "relative", "XDG_STATE_HOME": ""}, {}),
]


@pytest.mark.parametrize(("environ", "places"), PLACED)
def test_variables_that_say_where_things_are_can_be_repeated(environ: dict[str, str], places: dict[str, str]) -> None:
    settings = load(environ)
    assert dict(settings.home_variables) == places
    again = load({"HOME": "/h", "XDG_RUNTIME_DIR": environ.get("XDG_RUNTIME_DIR", ""), **places})
    assert again == settings


MINE: Final = str(os.getpid())
ASKED: Final = [
    ({}, None, None),
    ({"NOTIFY_SOCKET": "@x"}, "@x", None),
    ({"NOTIFY_SOCKET": "", "WATCHDOG_USEC": ""}, None, None),
    ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": MINE}, "/x", 30.0),
    ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1500000"}, "/x", 1.5),
    ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, "/x", None),
    ({"WATCHDOG_USEC": "0"}, None, None),
    ({"WATCHDOG_USEC": "-5"}, None, None),
    ({"WATCHDOG_USEC": "soon"}, None, None),
    ({"WATCHDOG_USEC": "²"}, None, None),
    ({"WATCHDOG_USEC": "9" * 5000}, None, None),
]


@each_row(("environ", "socket", "seconds"), ASKED, ids=[str(row[0])[:60] for row in ASKED])
def test_the_variables_of_systemd_are_taken(environ: dict[str, str], socket: str | None, seconds: float | None) -> None:
    settings = load({"HOME": "/h", **environ})
    assert (settings.notify_socket, settings.watchdog_s) == (socket, seconds)


def test_colours_are_not_wanted_where_no_color_is_set_to_anything(home: Path) -> None:
    wanted = [load({"STRONGROOM_HOME": str(home), "NO_COLOR": value}).no_color for value in ("", "0")]
    assert wanted == [False, True]


def test_a_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load({"STRONGROOM_HOME": "here"}).home == tmp_path / "here"


def test_the_key_and_the_server_come_from_the_environment(home: Path) -> None:
    environ = {"STRONGROOM_HOME": str(home), "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://x"}
    assert [load(environ).variable(name) for name in (*list(environ)[1:], "NOT_SET", "")] == ["k", "http://x", "", ""]
    assert "http://x" not in repr(load(environ))


# the home directory ------------------------------------------------------------------------------------------


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_home_and_the_directories_and_files_made_for_it_are_for_their_owner_alone(
    tmp_path: Path, umask_000: None
) -> None:
    secure_home(tmp_path / "a" / "b" / "home")
    assert [mode(tmp_path / each) for each in ("a", "a/b", "a/b/home")] == [0o700] * 3
    os.close(own_file(tmp_path / "file", os.O_RDWR))
    assert mode(tmp_path / "file") == 0o600


def test_a_home_that_others_can_read_is_closed_to_them_and_no_other_directory(home: Path) -> None:
    home.mkdir(mode=0o755)
    assert own_directory(home, "") == 0o755
    assert mode(home) == 0o755
    secure_home(home)
    assert mode(home) == 0o700


@pytest.mark.parametrize("bits", [0o720, 0o702, 0o777, 0o1777])
def test_a_home_that_others_can_write_is_refused(home: Path, bits: int) -> None:
    home.mkdir()
    home.chmod(bits)
    with pytest.raises(ConfigError, match=f"insecure permissions.*chmod 700 {home}"):
        secure_home(home)
    assert mode(home) == bits


def test_the_target_of_a_link_is_named_and_its_mode_is_nobodys_to_change(home: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    home.symlink_to(tmp_path / "shared")
    with pytest.raises(ConfigError, match=f"{home} is a link to {tmp_path}/shared, which can be written by") as caught:
        secure_home(home)
    assert "chmod" not in str(caught.value)


@pytest.mark.parametrize("below", ["", "below"])
def test_a_home_that_is_a_file_is_refused(home: Path, below: str) -> None:
    home.write_text("")
    with pytest.raises(ConfigError, match="cannot be used"):
        secure_home(home / below)


# files of the home ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_a_home_and_a_file_of_another_user_are_refused(home: Path, tmp_path: Path) -> None:
    home.mkdir(mode=0o700)
    os.chown(home, 12345, 12345)
    with pytest.raises(ConfigError, match="belongs to another user"):
        secure_home(home)
    (tmp_path / "file").write_text("theirs")
    os.chown(tmp_path / "file", 12345, 12345)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(ConfigError, match="not a regular file of this user"):
        own_file(tmp_path / "file", os.O_RDWR)
    assert os.listdir("/proc/self/fd") == before


def test_of_the_environment_a_client_tells_what_commands_need_and_no_more(home: Path) -> None:
    told = {
        "PATH": "/usr/bin",
        "TZ": "UTC",
        "JAVA_HOME": "/jdk",
        "GOROOT": "/go",
        "XDG_CONFIG_HOME": "/c",
    } | dict.fromkeys(CERTIFICATES, "/c")
    kept = {"PATHS": "/x", "XDG_DATA_HOME": "/d", "API_KEY": "x", "SSL_CERT_FILE_KEY": "x", "MY_PATH": "x", "LANG": ""}
    told |= {
        "PYENV_ROOT": "/p",
        "PYENV_VERSION": "3",
        "VIRTUAL_ENV": "/v",
        "ASDF_NODEJS_VERSION": "20",
        "NVM_DIR": "/n",
    }
    assert load({"STRONGROOM_HOME": str(home), **told, **kept}).person == told
