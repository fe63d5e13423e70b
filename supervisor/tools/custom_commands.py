"""Custom commands: Markdown files that a person sends by name, as a slash command, with what follows the name put in.

Rule: only a line that is sent runs one, and it is a prompt as any other: what its head says besides a description is
ignored, and its text widens nothing. Those of a project are read by a worker, where the profile reads files and the
root is no stranger's; the person's own, from beside the configuration, go before them: no project takes such a name.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from supervisor.config.profiles import Profile
from supervisor.display.escape import one_line
from supervisor.errors import ConfigError, WorkerError, reason
from supervisor.pool.pools import Pools
from supervisor.system.safe_files import read_bytes
from supervisor.tools.catalog import offers
from supervisor.tools.markdown_head import without_head
from supervisor.tools.named_files import READ
from supervisor.tools.named_files import read as read_named
from workers.wire import messages

DIRECTORIES: Final = (".agents/commands", ".claude/commands")
"""Of a project; the first one that has a name counts."""
FOLDER: Final = "commands"
"""The person's own, beside the configuration."""
TEXT_LIMIT: Final = 2**16
"""Bytes of one file."""
LISTED: Final = 100
"""Commands that are listed of one directory, by name; others can be sent all the same."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_ABOUT: Final = 100
"""Characters of a description, and of a hint."""
_PLACE: Final = re.compile(r"\$(ARGUMENTS|[1-9])(?![0-9A-Za-z_])")
_LIST: Final = "list_directory"
_UNUSABLE: Final = "The command /{name} cannot be used: {file}: {why}."


class CustomCommand(NamedTuple):
    """One command; `hint` says what may follow its name."""

    about: str
    hint: str
    uri: str
    """Of its file."""
    text: str
    """Without the head."""

    def filled_in(self, arguments: str = "") -> str:
        """Return the text with what followed the command's name in its places, or at the end where it has none."""
        words = arguments.split()

        def put_in(place: re.Match[str]) -> str:
            which = place[1]
            return arguments if which == "ARGUMENTS" else words[int(which) - 1] if int(which) <= len(words) else ""

        filled, places = _PLACE.subn(put_in, self.text)
        return filled if places or not arguments else f"{filled.rstrip()}\n\nARGUMENTS: {arguments}\n"


class CustomCommands(NamedTuple):
    """The commands of one session: the person's own, and those of its root."""

    own: Path
    """The directory of the person's."""
    profile: Profile
    pools: Pools

    async def listed(self) -> dict[str, CustomCommand]:
        """Return the commands by name; those that cannot be used are left out."""
        found: dict[str, CustomCommand] = {}
        for name in sorted({*_names(_files(self.own)), *await self._project_names()}):
            with suppress(ConfigError):
                if (command := await self.find(name)) is not None:
                    found[name] = command
        return found

    async def find(self, name: str) -> CustomCommand | None:
        """Return a command as its file is now; None where there is none.

        Raises:
            ConfigError: there is one that cannot be used.
        """
        if not _NAME.fullmatch(name):
            return None
        file = (self.own / f"{name}.md").absolute()
        try:
            return _command(read_bytes(file, TEXT_LIMIT).decode(), file)
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            raise ConfigError(_UNUSABLE.format(name=name, file=file, why=reason(error))) from error
        for directory in self._directories():
            read = await read_named(self.profile, self.pools, f"{directory}/{name}.md")
            if read is not None:
                file = Path(self.profile.root, read.path)
                why = f"it has more than {TEXT_LIMIT:,} bytes" if read.size > TEXT_LIMIT else read.problem
                if why or read.media_type:
                    raise ConfigError(_UNUSABLE.format(name=name, file=file, why=why or "it is not text"))
                return _command(read.text, file)
        return None

    async def _project_names(self) -> list[str]:
        found, category = list[str](), offers((_LIST,))[_LIST].category
        for path in self._directories():
            arguments = msgspec.json.encode({"path": path})
            with suppress(WorkerError):
                answer = await self.pools.pool(category).call(_LIST, arguments, effect=False)
                if isinstance(answer, messages.Done):
                    rows = msgspec.json.decode(answer.content, type=list[dict[str, str]])
                    found += _names(row["name"] for row in rows if row["kind"] == "file")
        return found

    def _directories(self) -> list[str]:
        """Return the directories of the project that are there; a worker looks at what they hold."""
        foreign = self.pools.root.is_foreign or not self.profile.trusted
        if foreign or READ not in self.profile.tools:
            return []
        return [each for each in DIRECTORIES if os.path.isdir(os.path.join(self.profile.root, each))]


def _files(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _names(files: Iterable[str]) -> list[str]:
    names = (name.removesuffix(".md") for name in files if name.endswith(".md"))
    return sorted(filter(_NAME.fullmatch, names))[:LISTED]


def _command(text: str, file: Path) -> CustomCommand:
    keys, text = without_head(text)
    first = next((line.strip("# \t") for line in text.splitlines() if line.strip("# \t")), "")
    about = one_line(keys.get("description") or first, _ABOUT)
    return CustomCommand(about, one_line(keys.get("argument-hint", ""), _ABOUT), file.as_uri(), text)
