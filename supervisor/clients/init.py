"""`strongroom init`: a vault to begin with, and a configuration that says what can be configured.

Rule: nothing that exists is changed or added to. Every key of the configuration stands in `CONFIGURATION` with its
default, commented out: prose is "# text", a key is "#key = value".
"""

import os
from pathlib import Path
from typing import Final, NamedTuple

from supervisor.config.settings import Settings
from supervisor.errors import ConfigError
from supervisor.system.own_files import own_directory, secure_home

VAULT: Final = "vault"
"""The directory that the default profile works on."""

_NOTE: Final = "welcome.md"
_NOTE_TEXT: Final = """\
# Welcome

This directory is your vault: the agent of the profile `vault` can read and write here, and nowhere else. It has no
shell, and reads pages of a few sites only ([web] allow in the configuration).

Put notes here, or point Strongroom at notes that you have: `strongroom console --root DIR`.

Things to ask for:

- What notes are there?
- Read welcome.md and tell me what I can do here.
- Write a list of three garden jobs for April into garden/april.md.
- Which notes mention tomatoes?

Without a key for a language model the offline model answers. It understands plain commands only, such as
`list **/*.md`, `search tomatoes`, `read welcome.md`, `write ideas/first.md: text` and `digest **/*.md into summary.md`.
"""

CONFIGURATION: Final = """\
# Strongroom's configuration. Every key is optional; what is commented out is the default.
# A daemon that runs reads this file again on SIGHUP; sessions that are open keep what they were opened with.

# The model where none is named: offline, scripted:FILE or claude-... With ANTHROPIC_BASE_URL, a server of your own that
# speaks the Messages API, it may have any name. The key is taken from ANTHROPIC_API_KEY alone, never from a file.
#model = "claude-haiku-5-5"

# The profile where none is named; `strongroom tools --profile NAME` shows what it has.
#profile = "vault"

# Requests to the model that one turn may take.
#max_steps = 50

# Protections to do without, by name, as `strongroom doctor` shows them. Empty: a worker that lacks one does not start.
#allow_degraded = []

# How long the daemon lives, and how much it logs.
#[daemon]
# Seconds that running turns have to end when it is told to stop.
#drain_s = 10.0
# Seconds without a client or a turn after which it ends; inf is never.
#idle_exit_s = 900.0
# Hours after which a turn that was cut off is no longer gone on with.
#resume_within_h = 24.0
# Size of a log file, and how many full ones are kept.
#log_mb = 5
#log_files = 5

# What one worker of a category may use, and how many there are. Categories: files, search, web, shell.
#[limits.files]
#memory_mb = 512
# One that holds more between two calls is replaced in peace; three quarters of memory_mb at most.
#soft_memory_mb = 256
# Processor time over the worker's life.
#cpu_s = 3600
#open_files = 64
#processes = 0
# The largest file that it may write.
#file_mb = 64
# Seconds that one call may take.
#call_s = 30.0
# Workers at once; one more is kept as a warm spare.
#workers = 4

# The repositories of the profile `librarian`, as repos_path/GROUP/TECHNOLOGY; it reads the one that --group and
# --technology name, and nothing else. A relative path is beneath this file's directory.
#[librarian]
#repos_path = "~/repos"
# What the agent is told of where it is, such as "staging"; --environment goes before it.
#environment = ""

# Where `fetch_url` may go. `*.example.org` is every name below example.org, and not that itself.
#[web]
#allow = ["github.com", "raw.githubusercontent.com", "hexdocs.pm", "elixirforum.com"]
#ports = [443]
# Whether http:// is allowed besides https://; its port, 80, must be among the ports.
#http = false
# Hosts that are somewhere else, "host:port" = "address:port", as curl's --resolve; the only way to a private address.
#resolve = {}
# Certificates (PEM) that are trusted in addition; a relative path is beneath this file's directory.
#ca_file = "ca.pem"
# Seconds that one fetch may take in all.
#fetch_s = 20.0

# What `exec_shell` may run, by exact name. Whatever that starts itself is held by the sandbox, not by this list.
#[shell]
#programs = [
#"git", "cargo", "npm", "yarn", "pnpm", "node", "bun",
#"ls", "find", "grep", "mkdir", "rm", "mv", "cp", "touch",
#]
# Seconds that a command has; then it is killed with everything that it started. Memory, processes and file sizes of a
# command with all that it starts are [limits.shell].
#timeout_s = 30.0
# Directories with programs that lie outside of the system's, shown to be read and run; "known" stands for those of
# Rust, Node, Bun and Deno that are there.
#toolchains = ["known"]
# What one command may write outside of the root, in its own HOME and /tmp, which go with it.
#disk_mb = 1024
# Whether a person who is asked about a command may also let it run unconfined, this once: as themselves, with all that
# they may do, and with no undo.
#escalation = false

# How much is kept of what calls replace, so that `strongroom undo` can restore it: of one file, of one call, and of all
# together (the oldest goes first; with 0 nothing is kept), and for how many days.
#[undo]
#each_mb = 64
#call_mb = 512
#total_mb = 2048
#days = 30.0

# What commands may change without being asked, judged by what a rehearsal has found: the first rule that covers it
# decides, and without any you are asked. `strongroom rules test FILE` tries rules on the commands of the past.
#[[rules]]
# Any program of the profile, where none is named.
#programs = ["git", "npm"]
# Paths relative to the root: * ? [...] and ** for any number of directories.
#writes = ["build/**", "node_modules/**"]
#deletes = ["build/**"]
# Names that may change at once, directories included.
#max_files = 500
# true: also where it tried the network, which it does not have.
#network = false
# "allow", "ask" or "deny"; the latter two count where anything of it is touched.
#decision = "allow"
#reason = "what builds leave"
#until = 2099-12-31

# A profile of your own needs root and tools; one that is built in is overridden key by key.
#[profiles.journal]
#root = "~/journal"
#tools = ["read_file", "list_files", "write_file"]
# Tools that a person must approve, each time.
#ask = ["write_file"]
# false: no tool that changes anything, and the kernel refuses every change.
#writable = true
# What a person may let one command reach, by host and port; without their yes it has no network.
#network = ["registry.example.org:443"]

# What a million tokens of a model cost, to show what a session has cost. There are no prices by default; for example:
#[prices."claude-haiku-5-5"]
#input = 1.0
#output = 5.0
#cache_read = 0.1
#cache_write = 1.25
#currency = "USD"
"""


class Made(NamedTuple):
    """One thing that `init` is about, and whether it was made just now."""

    path: Path
    what: str
    new: bool


def set_up(settings: Settings, directory: str) -> list[Made]:
    """Make a vault in `directory` and the configuration, where they are not there yet; return what there is now.

    Raises:
        ConfigError: something cannot be made.
    """
    try:
        vault = Path(directory).expanduser().absolute() / VAULT
        made = _vault(vault)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(f"The vault in {directory!r} cannot be made: {_why(error)}.") from error
    return [*made, _configuration(settings)]


def _vault(vault: Path) -> list[Made]:
    if os.path.lexists(vault):
        if not vault.is_dir():
            raise ConfigError(f"{vault} exists and is not a directory. Move it away, or choose another place.")
        return [Made(vault, "the vault", False)]
    vault.mkdir(parents=True)
    _write(vault / _NOTE, _NOTE_TEXT, 0o666)
    return [Made(vault, "the vault", True), Made(vault / _NOTE, "a welcome note", True)]


def _configuration(settings: Settings) -> Made:
    file = settings.config_file
    secure_home(settings.home)
    try:
        if file.parent != settings.home:
            own_directory(file.parent, "Set XDG_CONFIG_HOME to a directory of your own.")
        _write(file, CONFIGURATION, 0o600)
    except FileExistsError:
        return Made(file, "the configuration", False)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {_why(error)}.") from error
    return Made(file, "the configuration", True)


def _write(file: Path, text: str, mode: int) -> None:
    """Write a file that does not exist yet; one that cannot be written whole is taken away again.

    Raises:
        OSError: it exists, or the disk does not take it.
    """
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError:
        file.unlink(missing_ok=True)
        raise


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
