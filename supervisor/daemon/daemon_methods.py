"""Methods about the daemon and its journal: its state, a call's history, a search, and whether a session would open."""

from functools import partial

from supervisor.acp import extensions, schema
from supervisor.daemon import status
from supervisor.daemon.method import MethodContext, method
from supervisor.daemon.protocol.connection import ClientRequest
from supervisor.daemon.responses import checked_options
from supervisor.daemon.sessions.opened_at import from_options
from supervisor.reports.call_record import Why
from supervisor.reports.search_report import search
from supervisor.reports.why import explain
from supervisor.system.off_loop import in_thread


@method("authenticate", schema.AuthenticateParams, schema.Object)
async def _authenticate(
    _context: MethodContext, _request: ClientRequest, _params: schema.AuthenticateParams
) -> schema.Object:
    """Add nothing: the kernel has said who is at the other end."""
    return schema.Object()


@method(extensions.STATUS_METHOD, schema.Object, extensions.Status)
async def _status(context: MethodContext, _request: ClientRequest, _params: schema.Object) -> extensions.Status:
    return status.report(context.about, context.registry, len(context.clients))


@method(extensions.RELOAD_METHOD, schema.Object, extensions.ReloadResult)
async def _reload(context: MethodContext, _request: ClientRequest, _params: schema.Object) -> extensions.ReloadResult:
    problem = context.configuration.reload()
    return extensions.ReloadResult(file=str(context.registry.settings.config_file), problem=problem)


@method(extensions.WHY_METHOD, extensions.WhyParams, Why)
async def _why(context: MethodContext, _request: ClientRequest, params: extensions.WhyParams) -> Why:
    call, session_id, has_pack = params.tool_call_id, params.session_id, context.registry.resources.packs.holds
    return await context.registry.reader.run(lambda journal: explain(journal, call, session_id, has_pack))


@method(extensions.SEARCH_METHOD, extensions.SearchParams, extensions.SearchResult)
async def _search(
    context: MethodContext, _request: ClientRequest, params: extensions.SearchParams
) -> extensions.SearchResult:
    found = await in_thread(partial(search, context.registry.settings.journal, params))
    return extensions.SearchResult(found=found)


@method(extensions.CHECK_METHOD, extensions.SessionOptions, extensions.SessionCheck)
async def _check(
    context: MethodContext, request: ClientRequest, params: extensions.SessionOptions
) -> extensions.SessionCheck:
    """Say what a session would be; nothing is recorded."""
    options, registry = checked_options(params), context.registry
    context.configuration.look()  # whoever opens the session is told what is wrong with it
    profile = from_options("/", options).profile(registry.settings, options.profile)
    name = registry.model_name(options.model)
    if not options.modelless:
        name = registry.resources.models.open(name, request.client.keys).name
    return extensions.SessionCheck(profile=profile.name, root=profile.root, model=name)
