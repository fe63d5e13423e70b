"""Skills: folders with instructions for a kind of work, and scripts; named to the model, and read when they are wanted.

Rule: they are instructions, and count where those do (`instruction_files`): the person's own from beside the
configuration, and a project's, read by a worker, but nothing of strangers. The person's own go first: no project takes
such a name. Their names and descriptions are told as a file of instructions is, so that a change is told as well.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from supervisor.display.escape import name as shown_name
from supervisor.display.escape import one_line
from supervisor.errors import WorkerError, reason
from supervisor.journal.facts import CallEnded, CallStarted, InstructionsFile, Source
from supervisor.pool.pools import Pools
from supervisor.system.safe_files import read_bytes
from supervisor.tools import outcomes
from supervisor.tools.catalog import offers
from supervisor.tools.change_attempt import raw_arguments
from supervisor.tools.instruction_files import InstructionFiles
from supervisor.tools.markdown_head import without_head
from workers.catalog import supervised_tools
from workers.errors import ToolError
from workers.wire import messages

READ_SKILL: Final = "read_skill"
FOLDER: Final = "skills"
"""The person's own, beside the configuration."""
DIRECTORIES: Final = (".agents/skills", ".claude/skills")
"""Of a project; the first one that has a name counts."""
LISTED: Final = 50
"""Skills of one directory that are named to the model, by name; others can be read all the same."""
_FILE: Final = "SKILL.md"
_LIMIT: Final = 2**15
"""Bytes of one file."""
_ABOUT: Final = 400
"""Characters of a description."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}", re.ASCII)
_TOLD: Final = "Skills, each for a kind of work; read_skill gives the text of one, before you do such work:\n\n"
_NOT_DESCRIBED: Final = "(it has no description)"
_LIST: Final = "list_directory"


def shown_to_commands(own: Path, tools: Sequence[str]) -> tuple[str, ...]:
    """Return what commands are shown of `own`, the directory beside the configuration, in a session with these tools.

    A link is not followed: what it leads to may be more than skills.
    """
    skills = own / FOLDER
    there = READ_SKILL in tools and skills.is_dir() and not skills.is_symlink()
    return (os.path.realpath(skills),) if there else ()


class _Skill(NamedTuple):
    """A file of a skill: its text, or why it cannot be read, a clause; and where the folder is."""

    text: str = ""
    problem: str = ""
    folder: str = ""


class Skills:
    """Those of one session: the person's own in `own`, a directory, and those of the root that `files` reads."""

    def __init__(self, own: Path | None, pools: Pools, files: InstructionFiles) -> None:
        self._own = None if own is None else own / FOLDER
        self._pools = pools
        self._files = files

    async def listings(self) -> list[InstructionsFile]:
        """Return what the model is told of the skills there are, by directory; nothing where there are none."""
        found: dict[str, list[str]] = {}
        taken: set[str] = set()
        for directory, names in (*self._own_names(), *await self._project_names()):
            for name in names[:LISTED]:
                skill = None if name in taken else await self._file(directory, name, _FILE)
                if skill is not None and skill.text:
                    taken.add(name)
                    said = one_line(without_head(skill.text).keys.get("description", ""), _ABOUT) or _NOT_DESCRIBED
                    found.setdefault(directory, []).append(f"- {name}: {said}\n")
        return [_listing(directory, "".join((_TOLD, *lines))) for directory, lines in found.items()]

    async def read(self, call: CallStarted) -> CallEnded:
        """Return the end of a call of read_skill."""
        try:
            args = supervised_tools()[READ_SKILL].decode(raw_arguments(call))
            skill = await self._find(args.name, args.file)
        except ToolError as declined:
            return outcomes.failed(call, declined.kind, declined.message, **declined.details)
        path = f"{skill.folder}/{args.file}"
        note = f"The skill's folder is {shown_name(skill.folder)}" + (f"; {skill.problem}" if skill.problem else "")
        digest = hashlib.sha256(skill.text.encode()).digest()
        ended = CallEnded(call.turn, call.call, call.tool, True, skill.text, note=note)
        source = Source("file", path, digest, len(skill.text))
        return outcomes.with_persons_part(call, msgspec.structs.replace(ended, sources=(source,)))

    async def _find(self, name: str, file: str) -> _Skill:
        """Return a file of a skill.

        Raises:
            ToolError: there is none, or it cannot be read.
        """
        known = [*self._own_names(), *await self._project_names()]
        parts = file.split("/")
        if file.startswith("/") or {"", ".", ".."} & set(parts):
            raise ToolError("path_escape", f"{file[:200]!r} is no file of the skill's folder: name one within it.")
        for directory, names in known:
            if name in names:
                skill = await self._file(directory, name, file)
                if skill is not None and skill.text:
                    return skill
                why = "it is not there" if skill is None else skill.problem or "it is empty"
                raise ToolError("not_found", f"{file[:200]!r} of the skill {name} cannot be read: {why}.")
        every = sorted({each for _, names in known for each in names})
        there = f"There are: {', '.join(every[:LISTED])}." if every else "There are none here."
        raise ToolError("not_found", f"There is no skill {name[:80]!r}. {there}")

    def _own_names(self) -> list[tuple[str, list[str]]]:
        if self._own is None or not self._files.has_own:
            return []
        found: list[str] = []
        with suppress(OSError):
            found += [each for each in os.listdir(self._own) if (self._own / each).is_dir()]
        return [(str(self._own), sorted(filter(_NAME.fullmatch, found)))]

    async def _project_names(self) -> list[tuple[str, list[str]]]:
        found: list[tuple[str, list[str]]] = []
        root = self._pools.root.path
        for path in [each for each in DIRECTORIES if self._files.reads and os.path.isdir(os.path.join(root, each))]:
            arguments = msgspec.json.encode({"path": path})
            with suppress(WorkerError):
                pool = self._pools.pool(offers((_LIST,))[_LIST].category)
                answer = await pool.call(_LIST, arguments, effect=False)
                if isinstance(answer, messages.Done):
                    rows = msgspec.json.decode(answer.content, type=list[dict[str, str]])
                    names = sorted(row["name"] for row in rows if row["kind"] == "dir" and _NAME.fullmatch(row["name"]))
                    found.append((path, names))
        return found

    async def _file(self, directory: str, name: str, file: str) -> _Skill | None:
        """Return a file of a skill in a directory; None where there is none."""
        folder = f"{directory}/{name}"
        if not os.path.isabs(directory):
            read = await self._files.read(f"{folder}/{file}")
            return None if read is None else _Skill(read.text, read.problem, folder)
        path = os.path.realpath(f"{folder}/{file}")
        if not path.startswith(f"{os.path.realpath(folder)}/"):
            return _Skill(problem="it is a link that leads out of the skill's folder", folder=folder)
        try:
            return _Skill(read_bytes(Path(path), _LIMIT).decode(), folder=folder)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            return _Skill(problem="it is not text" if isinstance(error, UnicodeError) else reason(error), folder=folder)


def _listing(directory: str, text: str) -> InstructionsFile:
    data = text.encode()
    return InstructionsFile(directory, hashlib.sha256(data).hexdigest(), len(data), text)
