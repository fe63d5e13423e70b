"""Strongroom's promises, and the tests that hold it to each.

Rule: a promise stands here in its own words, with the tests under whose names it is kept; each of them is there.
"""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.each_row import each_row

TESTS: Final = Path(__file__).parents[1]

PROMISES: Final[Mapping[str, tuple[str, ...]]] = {
    "kill -9 of the daemon: nothing it ever caused is alive 500 ms later": (
        "faults/test_daemon.py::test_f186_killed_it_leaves_no_worker_whatever_that_does",
        "workers/confine/test_death.py::test_the_worker_dies_with_its_supervisor",
        "workers/shell/test_life.py::test_nothing_is_left",
        "supervisor/tools/unconfined/test_run.py::test_nothing_outlives_the_supervisor_that_is_killed",
    ),
    "every fault is answered exactly once, with a kind, in time; no other is delayed by it": (
        "faults/test_worker_faults.py::test_a_fault_ends_as_its_row_says",
        "faults/test_plan.py::test_a_fault_ends_as_its_row_says",
        "faults/test_clients.py::test_a_client_that_never_reads_is_dropped_and_delays_nobody",
    ),
    "no other category or client is held up by any fault": (
        "supervisor/pool/test_pools.py::test_calls_of_a_category_are_answered_while_those_of_others_are_not",
        "faults/test_clients.py::test_a_client_that_never_reads_is_dropped_and_delays_nobody",
    ),
    "an idle worker lives for ever: it dies with the main thread that spawned it, and no other": (
        "supervisor/pool/test_worker_process.py::test_workers_are_spawned_by_the_main_thread",
        "workers/confine/test_death.py::test_the_worker_dies_with_its_supervisor",
    ),
    "a late, duplicate or forged answer never satisfies another call": (
        "faults/test_worker_faults.py::test_a_fault_ends_as_its_row_says",
        "workers/web/test_bodies.py::test_a_late_connection_is_not_used_for_the_next_page",
    ),
    "the journal after a kill at every write, and with unsynced writes dropped, is a prefix of what was acknowledged": (
        "supervisor/journal/test_journal_crash.py::test_kill_9_before_every_write_loses_nothing",
        "supervisor/journal/test_journal_crash.py::test_a_loss_of_power_before_any_write_loses_nothing",
    ),
    "history is always valid for the Messages API": (
        "supervisor/agent/test_any_conversation.py::test_any_conversation_is_valid_and_nothing_runs_that_was_not_recorded",
        "supervisor/agent/test_any_conversation.py::test_a_conversation_that_was_killed_anywhere_goes_on_and_runs_no_call_again",
    ),
    "a worker that runs an attacker's Python reaches nothing outside": tuple(
        f"workers/{file}::test_a_door_is_shut_by_each_of_its_locks_and_by_no_other"
        for file in (
            *("confine/test_doors.py", "search/test_doors.py", "web/test_doors.py", "restore/test_doors.py"),
            "shell/sandbox/test_locks.py",
        )
    ),
    "no packet to an unvalidated address and no DNS query for an unlisted name": (
        "supervisor/broker/test_broker.py::test_an_unlisted_name_is_never_looked_up",
        "faults/test_urls.py::test_a_row_ends_as_it_says",
        "faults/test_hijacked_web.py::test_a_hijacked_worker_gets_what_the_broker_grants",
    ),
    "any body ends within its time and its memory": (
        "workers/web/test_bodies.py::test_a_bad_answer_ends_with_its_kind",
        "workers/web/test_bodies.py::test_a_slow_answer_is_a_timeout",
        "workers/web/test_text.py::test_the_rest_of_a_bomb_is_not_read",
    ),
    "30 s hard limit: a result with partial output, and no survivor": (
        "workers/shell/test_commands.py::test_a_command_that_takes_too_long_is_ended_and_what_it_printed_is_kept",
        "workers/shell/test_commands.py::test_a_command_has_no_more_time_than_a_call",
    ),
    "what ran is what the person approved, once; preview = commit": (
        "workers/shell/test_command_proposal.py::test_effects_shown_are_the_effects_committed",
        "supervisor/agent/test_any_conversation.py::test_a_conversation_that_was_killed_anywhere_goes_on_and_runs_no_call_again",
        "supervisor/agent/test_any_conversation.py::test_any_conversation_is_valid_and_nothing_runs_that_was_not_recorded",
    ),
    "a concurrent edit by a person is never lost": (
        "workers/commit/test_conflicts.py::test_a_change_in_between_is_a_conflict_and_nothing_is_applied",
        "workers/commit/test_conflicts.py::test_a_program_that_writes_during_commits_loses_nothing",
    ),
    "no byte of a model, file, page or command reaches the terminal unescaped": (
        "supervisor/display/test_escape.py::test_nothing_that_a_terminal_acts_on_is_left_of_any_character",
        "supervisor/cli/test_history_export_why_verify.py::test_no_report_hands_control_characters_to_a_terminal",
        "supervisor/pool/test_restarts.py::test_the_last_words_of_a_worker_are_logged_and_cannot_move_the_terminal",
    ),
    "hostile text in files, pages or output changes no decision": (
        "story/test_hostile_note.py::test_nothing_leaves_where_nobody_is_asked",
    ),
    "20 daemons started at once: one runs, 19 say so": (
        "faults/test_daemon.py::test_f183_of_twenty_that_start_at_once_one_runs_and_nineteen_say_so",
    ),
}


@each_row("promise", PROMISES)
def test_each_promise_is_kept_by_tests_that_are_there(promise: str) -> None:
    for test in PROMISES[promise]:
        file, _, name = test.partition("::")
        tree = ast.parse((TESTS / file).read_text())
        assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
