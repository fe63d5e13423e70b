"""Registries of packages: the presets that `network` of a profile may name, and the mirrors of `[registries]`.

Rule: data. A preset stands for hosts and ports and nothing else; a mirror takes its place, and what a package manager
must be told to use it is made from the mirror's URL. No URL here holds a password: every command would see it.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from workers.url import Url

PREFIX: Final = "registry:"
"""Of a preset's name in `network`."""

PRESETS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        # npm's and yarn's configuration of `registry` (docs.npmjs.com, classic.yarnpkg.com)
        "npm": ("registry.npmjs.org:443", "registry.yarnpkg.com:443"),
        # PEP 503's index, and the host that its links lead to (docs.pypi.org)
        "pypi": ("pypi.org:443", "files.pythonhosted.org:443"),
        # the sparse index, and `dl` of its config.json (The Cargo Book, "Registries")
        "crates": ("index.crates.io:443", "static.crates.io:443"),
        # defaults of GOPROXY and GOSUMDB (go.dev/ref/mod)
        "go": ("proxy.golang.org:443", "sum.golang.org:443"),
        # Bundler's `source`, and the host of its compact index (guides.rubygems.org)
        "rubygems": ("rubygems.org:443", "index.rubygems.org:443"),
        # Composer's repository, and where its packages' archives are (getcomposer.org/doc, "Repositories")
        "packagist": ("repo.packagist.org:443", "api.github.com:443", "codeload.github.com:443", "github.com:443"),
        # sources.list(5) as the distributions install it
        "deb": ("deb.debian.org:80", "deb.debian.org:443", "security.debian.org:80", "archive.ubuntu.com:80"),
    }
)
"""Name -> hosts with ports."""

EVERY_REGISTRY: Final = tuple(f"{PREFIX}{name}" for name in PRESETS)
"""What source trees may want."""

_BESIDES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"go": ("sum.golang.org:443",), "packagist": PRESETS["packagist"][1:]}
)
"""What is still reached where there is a mirror: Go asks that for checksums first, then their own server; one of
Composer's may leave archives where they are."""

_VARIABLES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "npm": {
            **dict.fromkeys(
                ("npm_config_registry", "pnpm_config_registry", "YARN_REGISTRY", "BUN_CONFIG_REGISTRY"), "{url}/"
            ),
            "YARN_NPM_REGISTRY_SERVER": "{url}",
        },
        "pypi": dict.fromkeys(
            (
                *("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIPENV_PYPI_MIRROR", "PDM_PYPI_URL"),
                "POETRY_PYPI_MIRROR_URL",  # of its plugin poetry-plugin-pypi-mirror
            ),
            "{url}",
        ),
        "go": {"GOPROXY": "{rooted}"},
    }
)
"""Variables by which package managers are told of a mirror."""

_PLAIN_VARIABLES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "npm": {"YARN_UNSAFE_HTTP_WHITELIST": "{host}"},
        "pypi": {"PIP_TRUSTED_HOST": "{place}", "UV_INSECURE_HOST": "{place}"},
    }
)
"""The same of one that the operator wrote with http://."""

_FILES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "crates": {
            ".cargo/config.toml": '[source.crates-io]\nreplace-with = "mirror"\n\n[source.mirror]\n'
            'registry = "sparse+{url}/"\n'
        },
        "rubygems": {
            ".bundle/config": '---\nBUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: "{url}/"\n',
            ".gemrc": '---\n:sources: ["{url}/"]\n',
        },
        "packagist": {
            ".composer/config.json": '{{"repositories": [{{"type": "composer", "url": "{url}"}}, '
            '{{"packagist.org": false}}], "config": {{"secure-http": {secure}}}}}\n'
        },
    }
)
"""Files of a command's HOME, for what knows no variable."""


class Registry(NamedTuple):
    """One that the commands of a profile may be allowed to reach."""

    name: str
    places: tuple[str, ...]
    """Each "host:port"."""
    url: str = ""
    """The mirror's, without a slash at its end; empty where there is none."""

    @property
    def named(self) -> tuple[str, ...]:
        """The place that the operator named, which may be at a private address."""
        return self.places[:1] if self.url else ()


def told(registries: Iterable[Registry]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables and the files of HOME by which package managers learn of mirrors."""
    variables: dict[str, str] = {}
    files: dict[str, str] = {}
    for name, places, url in registries:
        if url:
            host = places[0].rpartition(":")[0]
            plainly = url.startswith("http:")
            words = {"url": url, "place": places[0], "host": host, "rooted": url, "secure": str(not plainly).lower()}
            if host == "localhost" or host.startswith("127."):  # Go takes no proxy to these, as they are written
                words["rooted"] = url.replace(host, f"{host}.", 1)
            plain = _PLAIN_VARIABLES.get(name, {}) if plainly else {}
            for variable, text in (*_VARIABLES.get(name, {}).items(), *plain.items()):
                variables[variable] = text.format(**words)
            files |= {file: text.format(**words) for file, text in _FILES.get(name, {}).items()}
    return variables, files


class RegistriesConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Mirrors of package registries, which `registry:npm` and the like in a profile's `network` then stand for.

    One may be at a private address, because it is named here; plain http:// counts as it is written.
    """

    npm: Annotated[
        str | None, Meta(description="Of npm, pnpm, yarn and bun.", examples=["https://npm.example.org"])
    ] = None
    pypi: Annotated[
        str | None,
        Meta(description="Of pip, uv, pipenv and pdm: the simple index.", examples=["https://pypi.example.org/simple"]),
    ] = None
    crates: Annotated[
        str | None, Meta(description="Of cargo: a sparse index.", examples=["https://crates.example.org/index"])
    ] = None
    go: Annotated[str | None, Meta(description="Of go: GOPROXY.", examples=["https://go.example.org"])] = None
    rubygems: Annotated[str | None, Meta(description="Of bundle and gem.", examples=["https://gems.example.org"])] = (
        None
    )
    packagist: Annotated[
        str | None, Meta(description="Of composer: a Composer repository.", examples=["https://packagist.example.org"])
    ] = None
    pip: Annotated[
        str | None, Meta(description="The same as `pypi`.", examples=["https://pypi.example.org/simple"])
    ] = None
    cargo: Annotated[
        str | None, Meta(description="The same as `crates`.", examples=["https://crates.example.org/index"])
    ] = None
    deb: Annotated[str | None, Meta(description="Of apt.", examples=["http://deb.example.org/debian"])] = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if (given := getattr(self, name)) is not None:
                _parsed(name, given)
        for name, other in _OTHER_NAMES.items():
            if len({getattr(self, name), getattr(self, other)} - {None}) > 1:
                raise ValueError(f"`{name}` and `{other}` name the same registry: leave one out.")

    def registry(self, name: str) -> Registry:
        """Return the registry that a preset stands for: the mirror, where one is configured."""
        mirror = getattr(self, name) or getattr(self, _OTHER_NAMES.get(name, name))
        if mirror is None:
            return Registry(name, PRESETS[name])
        found = _parsed(name, mirror)
        return Registry(name, (f"{found.host}:{found.port}", *_BESIDES.get(name, ())), str(found).rstrip("/"))


_OTHER_NAMES: Final[Mapping[str, str]] = MappingProxyType({"pypi": "pip", "crates": "cargo"})


def registries_named(network: Iterable[str], mirrors: RegistriesConfig) -> tuple[Registry, ...]:
    """Return the registries that entries of a profile's `network` name.

    Raises:
        ValueError: there is no such preset.
    """
    names = list(dict.fromkeys(each.removeprefix(PREFIX) for each in network if each.startswith(PREFIX)))
    for name in names:
        if name not in PRESETS:
            raise ValueError(f"there is no {PREFIX}{name[:80]!a}. Choose from: {', '.join(EVERY_REGISTRY)}.")
    return tuple(map(mirrors.registry, names))


def _parsed(name: str, url: str) -> "Url":
    """Return where a mirror is, in normal form.

    Raises:
        ValueError: the URL is none, or one that no command may be told; it is not repeated, as it may hold a password.
    """
    from workers.url import UrlError, host_or_address, parse

    if "@" in url:
        raise ValueError(
            f"the URL of `{name}` holds a name or a password, which every command would see, and no command is given "
            "any. Name a mirror that lets this machine in without, such as a caching one on it that logs in by itself."
        )
    try:
        found = parse(url.removeprefix("sparse+"), host_or_address)
    except UrlError as error:
        raise ValueError(f"the URL of `{name}`: {error}") from None
    if "?" in url or "#" in url or any(each in url for each in "\"'$\\{}"):
        raise ValueError(f"the URL of `{name}` has more than a host, a port and a path: leave it out.")
    return found
