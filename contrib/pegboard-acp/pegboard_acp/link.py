"""The connection to the editor for sessions: capabilities, updates and requests."""

from typing import TypeVar

from pegboard.app import IdSource
from pegboard_acp.jsonrpc import Peer
from pegboard_acp.protocol import ClientCapabilities, TextBlock
from pegboard_acp.updates import AgentChunk, Notice, Update

_T = TypeVar("_T")


class Link:
    """The connection to an editor; `client` has the editor's capabilities after `initialize`."""

    def __init__(self) -> None:
        self.client = ClientCapabilities()
        self.peer: Peer | None = None
        self._ids = IdSource()

    def send(self, session_id: str, update: Update) -> None:
        """Write an update into the output buffer; `drain` waits until the buffer is sent."""
        assert self.peer is not None
        self.peer.notify("session/update", {"sessionId": session_id, "update": update})

    async def drain(self) -> None:
        """Wait until the output buffer has space."""
        assert self.peer is not None
        await self.peer.drain()

    async def request(self, method: str, params: object, result_type: type[_T]) -> _T:
        """Send a request, and return the editor's answer; raises the errors of `Peer.request`."""
        assert self.peer is not None
        return await self.peer.request(method, params, result_type)

    async def say(self, session_id: str, text: str) -> None:
        """Send a text to the editor as a message of its own."""
        chunk = AgentChunk(content=TextBlock(text=text), message_id=self._ids.new("message"))
        self.send(session_id, chunk)
        await self.drain()

    async def warn(self, session_id: str, text: str) -> None:
        """Send a warning as a notice, or as a message if the client shows no notices."""
        if self.client.shows_notices:
            self.send(session_id, Notice(severity="warning", title=text))
        else:
            await self.say(session_id, f"Warning: {text}\n\n")
