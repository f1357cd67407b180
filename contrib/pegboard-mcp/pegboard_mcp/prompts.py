"""The prompts of MCP servers as slash commands."""

import shlex
from typing import TYPE_CHECKING

import msgspec

from pegboard import ToolError
from pegboard.schema.config import Command
from pegboard.schema.part import Part, TextPart
from pegboard_mcp.configuration import ServerConfig
from pegboard_mcp.listing import ServerPrompt
from pegboard_mcp.names import command_name

if TYPE_CHECKING:
    from pegboard_mcp.connection import ServerConnection
    from pegboard_mcp.servers import Servers


def prompt_command(config: ServerConfig, prompt: ServerPrompt) -> Command:
    """Return a slash command for an MCP prompt; the server provides its text at each run."""
    words = [each if each in prompt.required else f"[{each}]" for each in prompt.arguments]
    return Command(
        name=command_name(config.name, prompt.name),
        template="$ARGUMENTS",
        hints=("$ARGUMENTS",) if words else (),
        description=" ".join((*words, prompt.description)).strip() or prompt.name,
        source="mcp",
    )


async def prompt_parts(
    servers: "Servers", command: Command, parts: tuple[Part, ...]
) -> tuple[Part, ...] | None:
    """Return the message parts for an MCP prompt's command; None for other commands."""
    found = servers.prompt_of(command.name)
    if found is None:
        return None
    server, prompt = found
    texts = [each for each in parts if isinstance(each, TextPart)]
    arguments = prompt_arguments(prompt, texts[0].text if texts else "")

    async def send(connection: "ServerConnection") -> str:
        from pegboard_mcp.content import prompt_text  # the SDK is there once a server runs

        return prompt_text(await connection.prompt(prompt.name, arguments))

    try:
        text = await server.request(send)
    except ToolError as error:
        text = f"The prompt /{command.name} cannot be had: {error}"
    return tuple(
        msgspec.structs.replace(each, text=text) if texts and each is texts[0] else each
        for each in parts
    )


def prompt_arguments(prompt: ServerPrompt, line: str) -> dict[str, str]:
    """Parse the arguments of a command line, by position or as `NAME=VALUE`.

    The last argument takes the rest of the line.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    named: dict[str, str] = {}
    plain: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in prompt.arguments:
            named[name] = value
        else:
            plain.append(word)
    left = [each for each in prompt.arguments if each not in named]
    if len(plain) > len(left) > 0:
        plain = [*plain[: len(left) - 1], " ".join(plain[len(left) - 1 :])]
    return {**dict(zip(left, plain, strict=False)), **named}
