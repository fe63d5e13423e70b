"""The keys of `config.toml`.

Rule: this is the one source of what can be configured, and every key is optional. A key's default, limits and
description stand here, or in the row of the category whose section it is in; reading, `strongroom init` and the manual
take them from here. Clients import this, so it imports light: no category.
"""

import re
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from supervisor.categories.registries import RegistriesConfig
from supervisor.categories.row import CategoryLimits
from supervisor.config.model_keys import ModelConfig, Price
from supervisor.rules.rule import Rule

_Section = TypeVar("_Section", bound=msgspec.Struct)

DEFAULT_MODEL: Final = "claude-haiku-5-5"
VAULT: Final = "vault"
"""The profile that scripts get, and the directory that it is on."""


View = Literal["private", "machine"]


class ProfileConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A profile of your own, which needs `root` and `tools`, or changes to a built-in one, key by key."""

    root: Annotated[str | None, Meta(description="The directory that it works on.", examples=["~/journal"])] = None
    tools: Annotated[
        tuple[str, ...] | None,
        Meta(description="All that it has.", examples=[["read_file", "list_files", "write_file"]]),
    ] = None
    ask: Annotated[
        tuple[str, ...] | None,
        Meta(description="Tools that a person must approve, each time.", examples=[["write_file"]]),
    ] = None
    writable: Annotated[
        bool | None,
        Meta(description="false: no tool that changes anything, and the kernel refuses every change.", examples=[True]),
    ] = None
    view: Annotated[
        View | None,
        Meta(
            description='What commands see besides the root: "private", the system\'s programs; "machine", the machine '
            "as it is, to look at (not with `network`).",
            examples=["private"],
        ),
    ] = None
    network: Annotated[
        tuple[str, ...] | None,
        Meta(
            description="Hosts and ports that a person may let one command reach; without their yes it has no network. "
            "`registry:npm`, `registry:pypi`, `registry:crates`, `registry:go`, `registry:rubygems`, "
            "`registry:packagist` and `registry:deb` stand for those of a registry, or of its mirror in [registries]; "
            "`code` and `project` name all of them.",
            examples=[["registry:npm", "git.example.org:443"]],
        ),
    ] = None
    check: Annotated[
        str | None,
        Meta(
            description="A command that must pass before a turn that has changed something ends well; `--check` says "
            "another one.",
            examples=["scripts/test"],
        ),
    ] = None
    trusted: Annotated[
        bool | None,
        Meta(
            description="false: its files are a stranger's, as in a repository that you only look at: after they were "
            "read, what pages may not lead to is asked about.",
            examples=[False],
        ),
    ] = None
    instructions: Annotated[
        bool | None,
        Meta(description="false: no AGENTS.md or CLAUDE.md is read, neither the root's nor your own.", examples=[True]),
    ] = None


class ConsoleConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the console takes keys, and what it shows."""

    keys: Annotated[
        Literal["emacs", "vi"], Meta(description='How a line is edited: "emacs" or "vi"; questions take keys as ever.')
    ] = "emacs"
    links: Annotated[
        Literal["auto", "always", "never"],
        Meta(description='Links in answers and differences: "auto" where the terminal is known to take them.'),
    ] = "auto"


class LibrarianConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The repositories of the profile `librarian`, which reads the one that --group and --technology name."""

    repos_path: Annotated[
        str,
        Meta(
            description="Their directory, as repos_path/GROUP/TECHNOLOGY; a relative path is beneath the "
            "configuration's directory."
        ),
    ] = "~/repos"
    environment: Annotated[
        str | None,
        Meta(
            description="What the agent is told of where it is; --environment takes precedence.", examples=["staging"]
        ),
    ] = None


class DaemonConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the daemon lives, how many workers it keeps, and how much it logs."""

    drain_s: Annotated[
        float, Meta(ge=0, le=600, description="Seconds that running turns have to end when it is told to stop.")
    ] = 10.0
    idle_exit_s: Annotated[
        float, Meta(gt=0, description="Seconds without a client or a turn after which it ends; inf is never.")
    ] = 900.0
    resume_within_h: Annotated[
        float, Meta(ge=0, description="Hours after which an interrupted turn is no longer resumed.")
    ] = 24.0
    log_mb: Annotated[int, Meta(ge=1, le=1024, description="Megabytes of a full log file.")] = 5
    log_files: Annotated[
        int, Meta(ge=1, le=100, description="Full log files that are kept beside the current one.")
    ] = 5
    workers: Annotated[
        int,
        Meta(
            ge=1,
            description="Workers that it keeps for all roots together. Beyond that many, those with nothing to do are "
            "ended, the one used longest ago first, and started anew when they are needed; a call has its worker in "
            "any case.",
        ),
    ] = 24


_PROXY: Final = re.compile(r"http://(?:[!\"$-.0->A-~]*@)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[1-9][0-9]{0,4})?/?")


class NetworkConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The way to a model's server. No variable of the environment changes it; pages and commands do not go this way."""

    proxy: Annotated[
        str | None,
        Meta(
            description="An HTTP proxy for the requests to the model, with a name and a password if it wants them.",
            examples=["http://user:password@proxy.example.org:3128"],
        ),
    ] = None
    ca_file: Annotated[
        str | None,
        Meta(
            description="Certificates (PEM) of authorities to trust there in addition; a relative path is beneath the "
            "configuration's directory.",
            examples=["company.pem"],
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.proxy is not None and not _PROXY.fullmatch(self.proxy):  # not repeated: it may hold a password
            raise ValueError("write a proxy like 'http://host:port' or 'http://user:password@host:port'.")

    def __repr__(self) -> str:
        return "NetworkConfig(...)"


Format = Literal["messages", "chat", "responses", "gemini", "ollama"]
_ENVIRONMENT_NAME: Final = "^[A-Za-z_][A-Za-z0-9_]*$"
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FRAMING: Final = frozenset(
    {"connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that say where a request ends and who gets it (RFC 9110, 9112)."""


def _is_address(url: str) -> bool:
    from urllib.parse import urlsplit  # only for those who have such a server: clients read this as well

    try:
        parts = urlsplit(url)
        found = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return found and parts.scheme in ("http", "https") and url.isprintable() and " " not in url


class ProviderConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server of models, called NAME/MODEL: a gateway, a company's own, or one on this machine."""

    base_url: Annotated[
        str,
        Meta(
            description="Where it is, with what stands before the format's own paths; a name and a password in it are "
            "sent as a header and never shown.",
            examples=["http://127.0.0.1:8000/v1"],
        ),
    ]
    format: Annotated[
        Format,
        Meta(
            description='What it speaks: "chat" (Chat Completions, as most servers do), "responses", "messages", '
            '"gemini" or "ollama".'
        ),
    ] = "chat"
    key_env: Annotated[
        str,
        Meta(
            pattern=f"{_ENVIRONMENT_NAME}|^$",
            description="The environment variable that holds its key, where `strongroom login NAME` keeps none.",
            examples=["GATEWAY_KEY"],
        ),
    ] = ""
    headers: Annotated[
        dict[str, str], Meta(description="What requests carry besides.", examples=[{"X-Team": "notes"}])
    ] = {}
    ca_file: Annotated[
        str | None, Meta(description="As in [network], for this server alone.", examples=["company.pem"])
    ] = None

    def __post_init__(self) -> None:
        for name, value in self.headers.items():  # values are not repeated: they may be secret
            if not _HEADER_NAME.fullmatch(name) or not value.isascii() or not value.isprintable():
                raise ValueError(f"the header {name!r} is none: a name, and a value of printable ASCII.")
            if name.lower() in _FRAMING:
                raise ValueError(f"the header {name!r} is ours to send.")
        if not _is_address(self.base_url):
            raise ValueError("`base_url` must look like https://host/v1 or http://host:port/v1.")

    def __repr__(self) -> str:
        return "ProviderConfig(...)"


class BudgetConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be used; what is not named is not limited."""

    tokens: Annotated[int, Meta(ge=0)] | None = None
    """All that are billed: input, read from the cache or not, and output."""
    cost: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    """In the currency of `[budgets]`."""
    seconds: Annotated[float, Meta(ge=0)] | None = None
    """In which the model was asked and calls ran; while a person decides, or the turn is suspended, it stands still."""


class BudgetsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be used before a turn is suspended: tokens, cost and seconds. Once it is raised, the turn goes on."""

    turn: Annotated[BudgetConfig | None, Meta(description="One turn.", examples=[{"tokens": 500000}])] = None
    session: Annotated[BudgetConfig | None, Meta(description="All turns of a session.", examples=[{"cost": 5.0}])] = (
        None
    )
    batch: Annotated[
        BudgetConfig | None,
        Meta(description="All items of a batch, unless its options say otherwise.", examples=[{"cost": 20.0}]),
    ] = None
    day: Annotated[
        BudgetConfig | None,
        Meta(description="All that this home's daemon asks from midnight to midnight.", examples=[{"cost": 10.0}]),
    ] = None
    currency: Annotated[
        str,
        Meta(
            min_length=1, max_length=8, description="Of `cost`; a model whose price is in another has no known price."
        ),
    ] = "USD"


class WaitingConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the limits of a model's server are waited for. A wait survives the daemon."""

    patience_s: Annotated[
        float, Meta(ge=0, description="Seconds that a limit is waited for before another of `fallbacks` is asked.")
    ] = 30.0
    fallback: Annotated[
        Literal["ask", "allow"],
        Meta(description='"ask": a person is asked, once a session, before another model is; "allow": it just is.'),
    ] = "ask"
    longest_s: Annotated[
        float, Meta(ge=0, description="Seconds for one reply in all, after which the turn waits for a person's word.")
    ] = 86_400.0
    batch_longest_s: Annotated[float, Meta(ge=0, description="The same in a batch, whose item is then suspended.")] = (
        43_200.0
    )


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of `config.toml`."""

    model: Annotated[
        str | None,
        Meta(
            description="The model where none is named. Keys do not stand here: `strongroom login` keeps them.",
            examples=[DEFAULT_MODEL],
        ),
    ] = None
    profile: Annotated[
        str | None,
        Meta(
            description="The profile where none is named; `strongroom tools --profile NAME` shows what it has. Without "
            "this key, in a console or an editor: `code` in a source tree, and `vault` elsewhere; `vault` for scripts.",
            examples=["vault"],
        ),
    ] = None
    max_steps: Annotated[int, Meta(ge=1, le=1000, description="Requests to the model that one turn may take.")] = 50
    allow_degraded: Annotated[
        tuple[str, ...],
        Meta(
            description="Protections to do without, by name, as `strongroom doctor` shows them. Empty: a worker that "
            "lacks one does not start."
        ),
    ] = ()
    daemon: DaemonConfig = DaemonConfig()
    network: NetworkConfig = NetworkConfig()
    registries: RegistriesConfig = RegistriesConfig()
    limits: dict[str, CategoryLimits] = {}
    """Of the categories that the operator limits, by name."""
    sections: tuple[msgspec.Struct, ...] = ()
    """Of the categories that the operator configures."""
    librarian: LibrarianConfig = LibrarianConfig()
    console: ConsoleConfig = ConsoleConfig()
    rules: tuple[Rule, ...] = ()
    profiles: Annotated[dict[str, ProfileConfig], Meta(examples=["journal"])] = {}
    providers: Annotated[
        dict[Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9_.-]*$")], ProviderConfig], Meta(examples=["gateway"])
    ] = {}
    fallbacks: Annotated[
        tuple[str, ...],
        Meta(
            description="Models that are asked, one after the other, where `model` is down or over its limit. "
            "`model = [FIRST, OTHER]` says the same.",
            examples=[["ollama/qwen3"]],
        ),
    ] = ()
    models: Annotated[dict[str, ModelConfig], Meta(examples=[DEFAULT_MODEL])] = {}
    waiting: WaitingConfig = WaitingConfig()
    budgets: BudgetsConfig = BudgetsConfig()
    prices: Annotated[dict[str, Price], Meta(examples=[DEFAULT_MODEL])] = {}

    def section(self, kind: type[_Section]) -> _Section:
        return next((each for each in self.sections if isinstance(each, kind)), None) or kind()
