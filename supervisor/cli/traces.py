"""`traces`: the journal as spans of OpenTelemetry."""

import click

from supervisor.cli.shared import optional_session_argument, put, settings, stopped_like_ctrl_c


@click.command()
@optional_session_argument
@click.option("--follow", is_flag=True, help="Go on as the journal grows, until Ctrl-C or SIGTERM.")
@click.option(
    "--endpoint",
    metavar="URL",
    help="Send them there, by OTLP over HTTP; default: OTEL_EXPORTER_OTLP_ENDPOINT, else lines of JSON on standard "
    "output, as `-` does.",
)
@click.option("--content", is_flag=True, help="Put in what was said, read and printed, and the arguments of calls.")
def traces(session: str | None, follow: bool, endpoint: str | None, content: bool) -> int:
    """Export the journal as spans of OpenTelemetry, by its conventions for generative AI.

    A turn is a trace: its requests to the model with their tokens, and its tool calls. To a server only what it has
    not got yet is sent, also after a crash of whoever has sent it; with SESSION, all of that one.

    \b
      strongroom traces a1b2c3
      strongroom traces --endpoint http://localhost:4318 --follow
    """
    import math

    from supervisor.clients import trace_export as program
    from supervisor.clients.otlp_server import OtlpServer, target_of

    here = settings()
    target = target_of(here, endpoint)
    cursor, send = None, lambda body: put(body.decode())
    if target is not None:
        cursor = None if session else program.ExportCursor(here.traces_file, target.server.url)
        patience_s = math.inf if follow else program.PATIENCE_S
        send = OtlpServer(target, patience_s, lambda said: click.echo(said, err=True)).send
    try:
        with stopped_like_ctrl_c():
            sent = program.export_traces(here, session, send, cursor, follow=follow, content=content)
    except KeyboardInterrupt:
        if follow:
            return 0
        raise
    if target is not None:
        put(f"{sent} spans were sent to {target.server.shown}.")
    return 0
