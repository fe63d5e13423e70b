"""The module `strongroom`: the daemon's sessions from Python, with asyncio, trio or neither, and functions for a REPL.

strongroom -> blocking, repl, cell_magic -> async_client, async_session -> program_link <==acp==> daemon
                                                    |  event_reader, message_history
"""
