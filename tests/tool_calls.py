"""Tools that are called in this process: no worker, no confinement, the same code."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from workers.errors import ToolError
from workers.tool import Proposal, ResultWithNote, Tool, ToolContext


def told(tool: Tool, context: ToolContext, **arguments: Any) -> tuple[Any, str]:
    """Return what a tool says in the end, and its note; what it proposes is committed."""
    result = tool.run(tool.args(**arguments), context)
    result = result.commit() if isinstance(result, Proposal) else result
    return result[:2] if isinstance(result, ResultWithNote) else (result, "")


def refusal(call: Callable[..., object], *arguments: Any, **more: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        call(*arguments, **more)
    return caught.value


@contextmanager
def refused(kind: str, *words: str) -> Iterator[None]:
    """Expect the body to end with a `ToolError` of this kind, whose message has all these words."""
    with pytest.raises(ToolError) as caught:
        yield
    assert caught.value.kind == kind
    for each in words:
        assert each in caught.value.message
