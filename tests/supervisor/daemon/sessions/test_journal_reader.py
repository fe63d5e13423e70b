"""The chain of the journal is compared in the background, part by part."""

from pathlib import Path

import pytest

from supervisor.daemon.sessions import journal_reader
from supervisor.daemon.sessions.journal_reader import JournalReader
from supervisor.journal.journal import open_journal
from tests.supervisor.journal.harness import append, execute


async def test_the_chain_is_compared_part_by_part_and_what_comes_later_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_reader, "_CHECKED", 3)
    with open_journal(tmp_path / "journal.db") as journal:
        append(journal, *range(1, 8))
        reader = JournalReader(journal)
        found = []
        for _ in range(4):
            await reader.check_on()
            found.append((reader.checked.rows, reader.checked_at > 0))
        assert found == [(0, False), (0, False), (0, False), (7, True)]
        append(journal, 8)
        execute(journal.path, "DROP TRIGGER facts_stay", "UPDATE facts SET at = 1 WHERE seq IN (2, 8)")
        await reader.check_on()
        assert (reader.checked.rows, reader.checked.problem) == (7, "row 8 is not what was written")
        monkeypatch.setattr(journal_reader, "_CHECKED_AGAIN_S", -1.0)
        await reader.check_on()
        assert (reader.checked.rows, reader.checked.problem) == (1, "row 2 is not what was written")
