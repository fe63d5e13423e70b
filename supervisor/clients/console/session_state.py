"""State of the console's session: updates in, items to show out. Pure.

Rule: nothing is shown twice. When an answer is interrupted (a retry of the model, another daemon), the pieces on the
screen stay, and only the text after them is shown.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.acp.prompt_parts import folded
from supervisor.clients.connection.requests import said_besides, unwrapped
from supervisor.clients.console.call_updates import fill
from supervisor.clients.console.carried_text import CarriedText
from supervisor.clients.console.shown import (
    AnswerEnds,
    Entry,
    Item,
    Note,
    ShownAnswer,
    ShownCall,
    ShownPrompt,
    ShownThought,
    Tone,
    entry_keys,
)

IDLE: Final = "Input"
QUIET: Final = (IDLE, "Done")
"""States in which no turn runs."""
SUSPENDED: Final = "Suspended"
RUNNING: Final = "Executing"
_DIGITS: Final = 6
_THOUGHT: Final = 400
"""Characters of what the model thinks that the progress line is made of."""
_STEPS: Final = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class SessionState:
    """One session, as far as this client has heard of it."""

    def __init__(self, facts: extensions.SessionFacts | None = None) -> None:
        self.facts = facts or extensions.SessionFacts(session_id="", profile="", model="", root="", tools=())
        self.turn_state = IDLE
        self.retry = ""
        self.suspended: extensions.Suspension | None = self.facts.suspended
        """Why the turn goes no further for now."""
        self.other_model = ""
        """The model that the turn asks in place of the session's own."""
        self.thought = ""
        """The end of what the model is thinking."""
        self.tools_note = ""
        """What was last said of tools that are gone, or back."""
        self.entries: list[Entry] = []
        self.calls: list[ShownCall] = []
        self.used = 0
        self.size = 0
        self.cost: schema.Cost | None = None
        self.budgets: list[extensions.BudgetUse] = []
        self.spent = schema.TokenUsage(total_tokens=0, input_tokens=0, output_tokens=0)
        """Tokens of the turns that ended here."""
        self.commands: list[schema.AvailableCommand] = []
        self.options: list[schema.ConfigOption] = []
        self._answer: ShownAnswer | None = None
        self._thought: ShownThought | None = None
        """What is being thought; an entry when that ends."""
        self._carried = CarriedText()
        self._by_id: dict[str, ShownCall] = {}
        self._failed = False

    @property
    def waits(self) -> bool:
        """Whether the turn goes on by itself, at a time."""
        return self.turn_state == SUSPENDED and self.suspended is not None and self.suspended.until is not None

    @property
    def running(self) -> list[ShownCall]:
        return [call for call in self.calls if call.status == "in_progress"]

    def output_of(self, call: str) -> str:
        """Return what a call has printed so far."""
        found = self._by_id.get(call)
        return found.output if found is not None else ""

    def numbered(self, number: str) -> ShownCall | None:
        """Return the call of a number that a person has typed."""
        wanted = int(number) if number.isdecimal() and len(number) <= _DIGITS else 0
        return next((call for call in self.calls if call.number == wanted), None)

    @property
    def last_thought(self) -> ShownThought | None:
        """What the model thinks, or thought last."""
        thoughts = (entry for entry in reversed(self.entries) if isinstance(entry, ShownThought))
        return self._thought or next(thoughts, None)

    @property
    def newest(self) -> ShownCall | ShownThought | None:
        """What the model thinks, or else what it called or thought last."""
        entries = (entry for entry in reversed(self.entries) if isinstance(entry, ShownCall | ShownThought))
        return self._thought or next(entries, None)

    @property
    def prompt_count(self) -> int:
        """How many lines of the person's there are."""
        return sum(isinstance(entry, ShownPrompt) for entry in self.entries)

    def option(self, name: str) -> schema.ConfigOption | None:
        return next((option for option in self.options if option.id == name), None)

    def chosen(self, options: Sequence[schema.Option]) -> None:
        """Take note of the options, and of what they say about the session."""
        self.options = [option for option in options if isinstance(option, schema.ConfigOption)]
        named = {each.id: each.current_value for each in self.options if each.id in ("model", "mode", "profile")}
        self.facts = msgspec.structs.replace(self.facts, **named)

    def sent(self, text: str) -> ShownPrompt:
        """Take note of a line that the person sends; the daemon does not repeat it to whoever sent it."""
        self._failed = False
        self.turn_state, self.retry, self.suspended = "Thinking", "", None
        asked = ShownPrompt(text)
        self.entries.append(asked)
        return asked

    def entered(self, state: extensions.TurnState) -> list[Item]:
        self.turn_state, self.retry, self.suspended = state.state, state.retry, state.suspended
        self.other_model = state.other_model
        if state.state not in ("Thinking", "Finalizing"):
            self.thought = ""
        return [Note(state.retry, "notice")] if state.retry else []

    def finished(self, summary: extensions.TurnSummary | None, usage: schema.TokenUsage | None = None) -> list[Item]:
        """Take note of a turn's end; `summary` is None where none ran."""
        items = self._end_said()
        self.turn_state, self.retry, self.thought, self.other_model = IDLE, "", "", ""
        self.suspended = self.suspended if summary is not None and summary.status == "suspended" else None
        for call in self.calls:
            call.status = "failed" if call.status in ("pending", "in_progress") else call.status
        if usage is not None:
            self.spent = schema.TokenUsage(
                total_tokens=self.spent.total_tokens + usage.total_tokens,
                input_tokens=self.spent.input_tokens + usage.input_tokens,
                output_tokens=self.spent.output_tokens + usage.output_tokens,
            )
        match summary:
            case extensions.TurnSummary(status="error") if not self._failed:
                items.append(self._failure(f"{summary.kind}: {summary.message}" if summary.kind else summary.message))
            case extensions.TurnSummary(status="cancelled"):
                items.append(Note("cancelled"))
        self._failed = False
        return items

    # --- updates --------------------------------------------------------------------------------------------------

    def take(self, update: schema.Update) -> list[Item]:
        """Return what an update gives to show."""
        match update:
            case schema.AgentMessageChunk():
                return self._take_answer(update.content.text, update.message_id or "")
            case schema.AgentThoughtChunk():
                return self._take_thought(update.content.text, update.message_id or "")
            case schema.UserMessageChunk():
                return self._take_prompt(update.content.text, update.message_id or "")
            case schema.ToolCall() | schema.ToolCallUpdate():
                return self._take_call(update)
            case schema.Plan():
                steps = [f"{_STEPS[each.status]} {each.content}" for each in update.entries]
                return [*self._end_said(), self._noted("\n".join(("Plan:", *steps)), "info")]
            case _:
                self._take_settings(update)
                return []

    def _take_settings(self, update: schema.Update) -> None:
        match update:
            case schema.UsageUpdate():
                self.used, self.size, self.cost = update.used, update.size, update.cost or self.cost
                meta = update.meta or {}
                self.budgets = msgspec.convert(meta.get(extensions.BUDGETS, []), list[extensions.BudgetUse])
            case schema.AvailableCommands():
                self.commands = update.available_commands
            case schema.ConfigOptions():
                self.chosen(update.config_options)
            case schema.CurrentMode():
                self.facts = msgspec.structs.replace(self.facts, mode=update.current_mode_id)

    def _take_prompt(self, text: str, message: str) -> list[Item]:
        items = self._end_said()
        self._failed = False
        asked = ShownPrompt(folded(text), message)
        self.entries.append(asked)
        return [*items, asked]

    def _take_thought(self, text: str, message: str) -> list[Item]:
        match said_besides(message):
            case "end":
                return [*self._end_said(), self._failure(unwrapped(text))]
            case "notice" | "receipt" as said:
                return [*self._end_said(), self._noted(unwrapped(text), "info" if said == "receipt" else said)]
            case "tools":
                self.tools_note = unwrapped(text)
                return [*self._end_said(), self._noted(self.tools_note, "notice")]
        self.thought = (self.thought + text)[-_THOUGHT:]
        items: list[Item] = []
        if self._thought is None or self._thought.id != message:
            items = self._end_thought() + (self._end_answer() if self._answer is not None else [])
            self._thought = ShownThought(message)
        self._thought.text += text
        return items

    def _end_thought(self) -> list[Item]:
        thought, self._thought = self._thought, None
        if thought is None or not thought.text.strip():
            return []
        self.entries.append(thought)
        return [thought]

    def _failure(self, text: str) -> Note:
        self._failed = True
        return self._noted(text, "error")

    def _noted(self, text: str, tone: Tone) -> Note:
        note = Note(text, tone)
        self.entries.append(note)
        return note

    def _take_answer(self, text: str, message: str) -> list[Item]:
        self.thought = ""
        items = self._end_thought()
        answer = self._answer
        if answer is not None and message and answer.id and message != answer.id and not self._carried.text:
            items, answer = items + self._end_answer(), None
        if answer is None:
            answer = self._answer = ShownAnswer(message)
            self.entries.append(answer)
        answer.text += text
        return items + self._carried.unseen(answer, text)

    def _end_said(self) -> list[Item]:
        """End what is being thought or said."""
        return self._end_answer() + self._end_thought()

    def _end_answer(self) -> list[Item]:
        was, self._answer = self._answer or self._carried.text, None
        self._carried.text = ""
        return [AnswerEnds()] if was else []

    def _take_call(self, update: schema.ToolCall | schema.ToolCallUpdate) -> list[Item]:
        items = self._end_said()
        call = self._by_id.get(update.tool_call_id)
        if call is None:
            call = ShownCall(update.tool_call_id, len(self.calls) + 1, update.title or update.tool_call_id)
            self._by_id[call.id] = call
            self.calls.append(call)
            self.entries.append(call)
        fill(call, update)
        if update.status in ("completed", "failed") and not call.ended:
            call.ended = True
            items.append(call)
        return items

    # --- interruptions ----------------------------------------------------------------------------------------------

    def rewind_answer(self, shown: int) -> None:
        """Let the reply be told again from its start; the first `shown` characters of its text are on the screen."""
        self._thought = None
        if self._answer is None:
            return
        self._carried.text = self._answer.text[:shown]
        self.entries = [entry for entry in self.entries if entry is not self._answer]
        self._answer = None

    def since(self, old: "SessionState") -> list[Item]:
        """Return what of a history that was just loaded is new to a screen that has shown `old`.

        `old` was rewound (`rewind_answer`); the text it carries on the screen is carried on here.
        """
        self._answer = None
        self._carried.text = old._carried.text  # noqa: SLF001 - of the same class
        known = entry_keys(old.entries)
        ended = {call.id for call in old.calls if call.ended}
        items: list[Item] = []
        for entry, key in zip(self.entries, entry_keys(self.entries), strict=True):
            match entry:
                case ShownCall():
                    items += [entry] if entry.ended and entry.id not in ended else []
                case ShownAnswer() if key not in known:
                    items += self._carried.unseen(entry, entry.text)
                    if entry is self.entries[-1]:
                        self._answer = entry  # it may still be growing
                    else:
                        self._carried.text = ""
                        items.append(AnswerEnds())
                case ShownPrompt() | ShownThought() | Note() if key not in known:
                    items.append(entry)
        return items
