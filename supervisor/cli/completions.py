"""Completions of what is typed in a shell.

Rule: one that fails offers nothing: a shell is no place for errors.
"""

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import click
from click.shell_completion import CompletionItem

from supervisor.config.settings import load
from supervisor.errors import StrongroomError

Words = Mapping[str, str | None]
"""What may be typed, each with a word about it or none."""


def offered(name: str, context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Return what a row of `_COMPLETIONS` finds that begins as what is typed."""
    try:
        found = _COMPLETIONS[name](context)
    except StrongroomError:
        return []
    return [CompletionItem(word, help=about) for word, about in found.items() if word.startswith(incomplete)]


def _profiles(_context: click.Context) -> Words:
    from supervisor.config.profiles import profiles

    return {name: ", ".join(each.tools) for name, each in profiles(load()).items()}


def _tools(context: click.Context) -> Words:
    from supervisor.config.profiles import profiles

    here = load()
    profile = profiles(here).get(context.params.get("profile") or here.config.profile or "vault")
    return dict.fromkeys(profile.tools if profile is not None else ())


def _models(_context: click.Context) -> Words:
    from supervisor.agent.models.providers import rows
    from supervisor.config.config_keys import DEFAULT_MODEL

    known = [row.prefix for row in rows() if row.is_file or not row.rest]
    return dict.fromkeys((load().config.model or DEFAULT_MODEL, DEFAULT_MODEL, *known))


def _config_keys(_context: click.Context) -> Words:
    from supervisor.clients.config_view import held_values

    return {each.key: each.source for each in held_values(load())}


def _key_takers(_context: click.Context) -> Words:
    from supervisor.clients.login import key_lines, keys_of

    return dict(key_lines(keys_of(load())))


def _sessions(_context: click.Context) -> Words:
    from supervisor.reports.session_lines import sessions

    return {each.session: f"{each.profile}, {each.title}" for each in reversed(sessions(load()))}


def _questions(_context: click.Context) -> Words:
    from supervisor.clients.waiting_questions import listed, opened

    with opened(load(), quiet=True) as inbox:
        return {each.id: listed(each).partition("\n")[0] for each in inbox.waiting()}


def _undoable(_context: click.Context) -> Words:
    from supervisor.clients.undo import undoable

    return {step.call: step.title for step in undoable(load(), os.path.realpath(os.curdir))}


def _rules(_context: click.Context) -> Words:
    from supervisor.rules.rule_sentence import sentence
    from supervisor.rules.store import RuleStore

    return {each.id: sentence(each.rule) for each in RuleStore(load().rules_file).listing()}


def _groups(_context: click.Context) -> Words:
    from supervisor.config.profiles import repositories

    return dict.fromkeys(repositories(load()).groups())


def _technologies(context: click.Context) -> Words:
    from supervisor.config.profiles import repositories

    group = context.params.get("group")
    return dict.fromkeys(() if group is None else repositories(load()).technologies(group))


_COMPLETIONS: Final[Mapping[str, Callable[[click.Context], Words]]] = MappingProxyType(
    {
        "profiles": _profiles,
        "tools": _tools,
        "models": _models,
        "config keys": _config_keys,
        "key takers": _key_takers,
        "sessions": _sessions,
        "questions": _questions,
        "undoable": _undoable,
        "rules": _rules,
        "groups": _groups,
        "technologies": _technologies,
    }
)
