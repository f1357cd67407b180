"""A server of the SDK, over standard streams or over HTTP on a port of this machine."""

import sys
from typing import Annotated, Any

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequests,
    InputRequiredResult,
)
from pydantic import BaseModel, Field

server = MCPServer("sdk", instructions="Be kind.")


@server.tool()
async def grow(context: Context[Any, Any]) -> str:
    """Have one more tool from here on."""

    def grown() -> str:
        """Be new."""
        return "new"

    server.add_tool(grown)
    await context.notify_tools_changed()
    await context.session.send_tool_list_changed()
    return "grown"


class Who(BaseModel):
    name: str
    age: int = 1


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def long(size: int) -> str:
    """Return a long text."""
    return "x" * size


@server.tool()
def shard(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Return the region that a router sees in the headers."""
    return region


async def ask_who() -> Elicit[Who]:
    return Elicit("Who are you?", Who)


@server.tool()
async def greet(answer: Annotated[ElicitationResult[Who], Resolve(ask_who)]) -> str:
    """Greet the user by name."""
    if not isinstance(answer, AcceptedElicitation):
        return answer.action
    return f"Hello, {answer.data.name} ({answer.data.age})!"


PAGE = "https://example.com/pay"


@server.tool()
async def pay(context: Context[Any, Any]) -> str | InputRequiredResult:
    """Have the user pay in a browser."""
    if context.protocol_version != "2026-07-28":
        return (await context.elicit_url("Pay 5 euros.", PAGE, "payment-1")).action
    if not (answers := context.input_responses):
        params = ElicitRequestURLParams(message="Pay 5 euros.", url=PAGE, elicitation_id="1")
        asked: InputRequests = {"payment": ElicitRequest(params=params)}
        return InputRequiredResult(input_requests=asked, request_state="paying")
    answer = answers["payment"]
    return answer.action if isinstance(answer, ElicitResult) else "odd"


@server.tool()
async def pester() -> InputRequiredResult:
    """Want the call again for ever."""
    return InputRequiredResult(request_state="again")


@server.tool()
async def quiz() -> InputRequiredResult:
    """Ask 500 questions at once."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    form = ElicitRequestFormParams(message="Why?", requested_schema=schema)
    return InputRequiredResult(
        input_requests={str(at): ElicitRequest(params=form) for at in range(500)}
    )


@server.prompt()
def explain(topic: str, tone: str = "dry") -> str:
    """Explain a topic."""
    return f"Explain {topic} in a {tone} tone."


@server.resource("note://today")
def today() -> str:
    """List the plans of today."""
    return "Water the plants."


@server.resource("note://{day}")
def note(day: str) -> str:
    """List the plans of a day."""
    return f"Nothing on {day}."


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        import uvicorn

        app = (
            server.sse_app()
            if "sse" in sys.argv
            else server.streamable_http_app(stateless_http="stateless" in sys.argv)
        )
        sockets = uvicorn.Config(app, port=0, log_level="error").bind_socket()
        sys.stdout.write(f"{sockets.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[sockets])
