"""The row of a model provider: the names of its models, what they need, and how they are opened.

Rule: imports light, and not trio: clients and doctor read the rows.
"""

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import msgspec

from supervisor.agent.models.model import Model
from supervisor.config.config_keys import Format
from supervisor.config.settings import ProviderIdentity, Settings


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """The names of one provider's models, what they need, and how they are opened."""

    prefix: str
    """The beginning of its models' names; what follows is what the provider calls them."""
    alias: str = ""
    """Another beginning, of names that the provider knows as they are."""
    rest: str = ""
    """What follows the prefix, as people are told it: "FILE", "..."; empty where the prefix is the whole name."""
    open: Callable[[str, Settings], Model] | None = None
    """Raises ConfigError where the model cannot be used, and says what to set; None: its server's `format` opens it."""
    key: str = ""
    """The environment variable that holds the API key; the key is kept out of logs."""
    other_key: str = ""
    """A second variable, which counts where the first is not set."""
    server: str = ""
    """The environment variable that names a server of one's own."""
    any_name: bool = False
    """Such a server may call its models anything: every name that no other row answers to is one of theirs."""
    speaks: str = ""
    """The protocol of such a server."""
    format: Format | None = None
    """In which its server is asked; None where there is no server."""
    format_elsewhere: Format | None = None
    """The format of servers of one's own, where that is another."""
    base_url: str = ""
    """The address of that server, unless the environment names another."""
    read_address: Callable[[str], str] = str
    """Returns the URL of what the environment names."""
    headers: Mapping[str, str] = {}
    """What requests to it carry besides."""
    ca_file: str | None = None
    """Certificates that are trusted for it besides; None for those of all."""
    key_page: str = ""
    """Where its keys are made, for people."""
    needs_key: bool = True
    """It cannot be used without, unless the environment names a server of one's own."""
    is_file: bool = False
    """What follows the prefix, and its colon, is the path of a file; the model is opened again when that changes."""

    def answers_to(self, name: str) -> bool:
        """Say whether a model of this name is one of this provider's, whatever the environment says."""
        beginning = next((each for each in (self.prefix, self.alias) if each and name.startswith(each)), None)
        if beginning is None:
            return False
        rest = name.removeprefix(beginning)
        return bool(rest) == bool(self.rest) and "\n" not in rest

    def key_in(self, settings: Settings) -> str:
        """Return the key that counts; "" for none."""
        chosen = settings.keys.get(self.identity)
        return (settings.variable(self.key) or settings.variable(self.other_key)) if chosen is None else chosen

    def address(self, settings: Settings) -> str:
        """Return the address of its server.

        Raises:
            ConfigError: what the environment names is none.
        """
        named = settings.variable(self.server)
        return self.read_address(named) if named else self.base_url

    def format_at(self, address: str) -> Format:
        """Return the format of the server at an address."""
        assert self.format is not None
        try:
            at_vendor = urlsplit(address).hostname == urlsplit(self.base_url).hostname
        except ValueError:
            at_vendor = False
        return self.format if at_vendor else self.format_elsewhere or self.format

    @property
    def key_advice(self) -> str:
        """What to do where it has no key, a clause."""
        server = f" (or {self.server} for a server of your own)" if self.server else ""
        return f"`strongroom login {self.label}` keeps one, or set {self.key}{server}"

    def is_available(self, settings: Settings) -> bool:
        """Say whether what it needs is set."""
        has_key = self.format is None or not self.needs_key or bool(self.key_in(settings))
        return has_key or bool(self.server and settings.variable(self.server))

    @property
    def identity(self) -> ProviderIdentity:
        """What tells it from others of its name."""
        return self.label, self.base_url

    @property
    def label(self) -> str:
        """Its name alone."""
        return self.prefix.rstrip("/:")

    @property
    def names(self) -> str:
        """What its models' names look like, for people."""
        return (self.alias or self.prefix) + self.rest
