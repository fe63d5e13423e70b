"""Headers and authentication of the Anthropic SDK.

Rule: the only importer of `anthropic`, in a thread: the import takes a second. What the SDK does well is made once; its
own way of sending makes it anew for each request, for a third of a millisecond.
"""

from typing import TYPE_CHECKING

from supervisor.agent.models.model_http import RequestHead
from supervisor.agent.models.server import Server, below
from supervisor.errors import ModelError
from supervisor.system.garbage import importing

if TYPE_CHECKING:
    import httpx2


def request_head(http: "httpx2.AsyncClient", server: Server, api_key: str) -> RequestHead:
    """Return what requests to the Messages API begin with; `http` is not asked for anything.

    Args:
        http: of the server.
        server: anything with `/v1/messages` below its address.
        api_key: sent to that server and nowhere else.

    Raises:
        ModelError: the library cannot be imported.
    """
    try:
        with importing("anthropic"):
            import anthropic
    except Exception as error:
        hint = "reinstall it with pip install anthropic"
        raise ModelError("api_error", f"The anthropic library cannot be imported ({error}): {hint}.") from error
    client = anthropic.AsyncAnthropic(api_key=api_key, base_url=server.url, max_retries=0, http_client=http)
    vars(client)["_custom_headers"] = {}  # those of ANTHROPIC_CUSTOM_HEADERS
    headers = {name: value for name, value in client.default_headers.items() if isinstance(value, str)}
    headers |= {**client.auth_headers, "Content-Type": "application/json"}
    if server.authorization:
        headers |= {"Authorization": server.authorization, "X-Api-Key": api_key}
    return RequestHead(below(server.url, "v1/messages"), headers)
