"""The process of `pegboard acp`, from the first message until all tasks have ended."""

import asyncio
import logging
import signal
import sys
from pathlib import Path

from pegboard import AppOptions
from pegboard.unstable import named_output
from pegboard_acp.agent import EditorAgent
from pegboard_acp.jsonrpc import Peer
from pegboard_acp.link import Link
from pegboard_acp.openapps import OpenApps
from pegboard_acp.streams import take_standard_streams
from pegboard_plugins.shared.terminal import end_within

END_WITHIN_S = 10.0
"""The longest end, with plugins and threads that hang."""
_log = logging.getLogger("pegboard.acp")


async def serve(directory: Path, options: AppOptions) -> None:
    """Serve the editor until it closes a standard stream, or a signal arrives.

    :raises InvalidInputError: when standard input and output are not pipes or sockets.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    reader, writer = await take_standard_streams()
    link = Link()
    with named_output():
        agent = EditorAgent(OpenApps(options), link, directory)
        link.peer = Peer(reader, writer, agent.handle)
        serving = asyncio.create_task(link.peer.serve(), name="serve")
        loop = asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(each) is not signal.SIG_IGN:  # which `nohup` asks for
                loop.add_signal_handler(each, reader.feed_eof)
        try:
            await serving
        finally:
            end_within(END_WITHIN_S, _log)
            await agent.aclose()
