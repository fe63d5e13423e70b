"""Methods about files that a person names: found by a few letters, and read for a prompt.

Rule: they are as free as typing is: no turn is disturbed, and nothing is recorded.
"""

from pathlib import Path

from supervisor.acp import extensions
from supervisor.daemon.method import MethodContext, method
from supervisor.daemon.protocol.connection import ClientRequest
from supervisor.tools import named_files


@method(extensions.FIND_METHOD, extensions.FindParams, extensions.FindResult)
async def _find(
    context: MethodContext, _request: ClientRequest, params: extensions.FindParams
) -> extensions.FindResult:
    session = context.session(params.session_id)
    paths, note = await named_files.rank(session.profile, session.session.pools, params.typed, params.most)
    return extensions.FindResult(session.id, tuple(paths), note)


@method(extensions.ATTACH_METHOD, extensions.AttachParams, extensions.AttachResult)
async def _attach(
    context: MethodContext, _request: ClientRequest, params: extensions.AttachParams
) -> extensions.AttachResult:
    session, files = context.session(params.session_id), []
    left = named_files.TOGETHER
    for path in dict.fromkeys(params.paths):
        found = await named_files.read(session.profile, session.session.pools, path)
        if found is not None:
            left -= found.size if found.text else 0
            if found.text and left < 0:
                found = found._replace(text="", problem=named_files.TOO_MUCH)
            uri = Path(session.profile.root, found.path).as_uri()
            files.append(extensions.AttachedFile(uri=uri, **found._asdict()))
    return extensions.AttachResult(session.id, tuple(files))
