"""Beginning of requests to servers with OpenAI's way of authentication: URL and headers.

Source: https://platform.openai.com/docs/api-reference/authentication
"""

from supervisor.agent.models.model_http import RequestHead
from supervisor.agent.models.server import NO_KEY, Server, below
from supervisor.version import VERSION


def openai_head(server: Server, api_key: str, path: str) -> RequestHead:
    """Return the URL and the headers of requests to a path below the server's address.

    A name and a password in the address take the place of the key, as both go into one header.
    """
    key = "" if api_key == NO_KEY else f"Bearer {api_key}"
    headers = {"Content-Type": "application/json", "User-Agent": f"strongroom/{VERSION}"}
    if authorization := server.authorization or key:
        headers["Authorization"] = authorization
    return RequestHead(below(server.url, path), headers)
