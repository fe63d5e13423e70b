"""The tools offered to a model come from code, in the shape that the Messages API takes."""

import json
from typing import Any, Final

import msgspec
import pytest

from supervisor.tools.catalog import category_tools, offers
from tests.messages_server import fault_in
from workers.catalog import CATEGORIES, offered_tools, supervised_tools

OFFERS: Final = offers(tuple(offered_tools()))


def test_tools_are_offered_in_the_order_asked_for_and_no_others() -> None:
    assert list(offers(["write_file", "read_file"])) == ["write_file", "read_file"]
    assert "undo" in category_tools("restore")
    assert "undo" not in offered_tools()
    for name in ("drop_table", "undo"):  # the latter only a person can ask for
        with pytest.raises(KeyError):
            offers([name])


def test_a_worker_greets_with_what_its_category_has() -> None:
    names = {name for category in CATEGORIES for name in category_tools(category)}
    called_by_us = {"undo", "rewind", "settle", "convert_media", "rank_files", "changed_since"}
    assert names - called_by_us == set(offered_tools()) - set(supervised_tools())


def test_a_tool_that_changes_something_is_marked() -> None:
    assert {name for name, offer in OFFERS.items() if offer.effect} == {
        "write_file",
        "edit_file",
        "exec_shell",
        "run_cmd",
    }


def test_a_schema_is_one_closed_object_with_every_argument_described() -> None:
    assert list(OFFERS) == list(offered_tools())
    for offer in OFFERS.values():
        schema = offer.input_schema
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) <= set(schema["properties"])
        assert "$ref" not in json.dumps(schema)
        assert offer.description
        properties = schema["properties"]
        assert [key for key, value in properties.items() if "description" not in json.dumps(value)] == []


def test_the_api_takes_all_of_them() -> None:
    body: dict[str, Any] = {
        "model": "m",
        "max_tokens": 1,
        "stream": True,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [offer.as_api() for offer in OFFERS.values()],
    }
    assert fault_in(json.loads(msgspec.json.encode(body))) is None


def test_every_category_and_tool_has_a_name_of_its_own() -> None:
    assert [category.name for category in CATEGORIES.values()] == list(CATEGORIES)
    names = [*CATEGORIES, *(tool.name for category in CATEGORIES.values() for tool in category.tools)]
    assert len(names) == len(set(names))
