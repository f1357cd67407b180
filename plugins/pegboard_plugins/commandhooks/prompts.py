"""The hooks of prompts: at the start of a session, before a prompt, and at the end of a turn."""

from pegboard import SessionView
from pegboard.errors import PromptRefusedError
from pegboard.schema.config import Command
from pegboard.schema.message import Turn, UserMessage
from pegboard.schema.part import CompactionPart, Part, TextPart
from pegboard_plugins.commandhooks.outcome import HookOutcome
from pegboard_plugins.commandhooks.runner import HookRunner
from pegboard_plugins.commandhooks.watching import listen


async def before_prompt(runner: HookRunner, session: SessionView, message: Turn) -> Turn | None:
    """Run SessionStart or SubagentStart, then UserPromptSubmit hooks; add the hooks' texts.

    :raises PromptRefusedError: when a hook rejects the prompt.
    """
    is_child = session.info.parent_id is not None
    runner.skills.add(session, ())  # its parent's
    texts = runner.take_later(session.id)
    texts += await (_started_child if is_child else _started)(runner, session)
    runner.sessions[session.id] = session
    runner.continuing.discard(session.id)
    await runner.watch(session, listen)
    typed = "".join(message.own_texts)
    if typed and not is_child:
        found = await runner.run("UserPromptSubmit", session, body={"prompt": typed})
        if found.decision == "deny" or found.stops:
            runner.later[session.id] = texts  # for the next prompt
            raise _refused(found)
        await runner.name(session.id, found.title)
        texts += found.context
    if not texts or not message.parts:
        return None
    return Turn(info=message.info, parts=(*message.parts, _reminder(message.parts[-1], texts)))


async def _started(runner: HookRunner, session: SessionView) -> list[str]:
    """Run SessionStart for a session's first prompt in this process or after a summary.

    Return the hooks' texts for the model.
    """
    if session.id in runner.compacted:
        source = "compact"
    elif session.id in runner.sessions:
        return []
    else:
        source = "resume" if session.info.model is not None else "startup"
        await runner.warn(session)
    runner.compacted.discard(session.id)
    body = {"source": source, "model": session.model.id}
    found = await runner.run("SessionStart", session, body=body, names=(source,))
    await runner.name(session.id, found.title)
    return list(found.context)


async def _started_child(runner: HookRunner, session: SessionView) -> list[str]:
    if session.id in runner.sessions:
        return []
    found = await runner.run("SubagentStart", session, body={}, names=(session.agent.name,))
    return list(found.context)


async def before_command(
    runner: HookRunner, session: SessionView, command: Command, parts: tuple[Part, ...]
) -> tuple[Part, ...] | None:
    """Run UserPromptExpansion hooks; return the parts with the hooks' text, or None without a text.

    :raises PromptRefusedError: when a hook rejects the command.
    """
    body = {
        "expansion_type": "mcp_prompt" if command.source == "mcp" else "slash_command",
        "command_name": command.name,
        "command_args": "",
        "prompt": "".join(
            part.text for part in parts if isinstance(part, TextPart) and not part.synthetic
        ),
    }
    found = await runner.run("UserPromptExpansion", session, body=body, names=(command.name,))
    if found.decision == "deny" or found.stops:
        raise _refused(found)
    if not found.context or not parts:
        return None
    return (*parts, _reminder(parts[-1], list(found.context)))


async def at_end(runner: HookRunner, session: SessionView, answer: Turn) -> str | None:
    """Run Stop or SubagentStop; return the text with which the turn continues, or None."""
    body = {
        "stop_hook_active": session.id in runner.continuing,
        "last_assistant_message": answer.text,
    }
    names: tuple[str, ...] = ()
    if session.info.parent_id is not None:
        event, names = "SubagentStop", (session.agent.name,)
        body["agent_transcript_path"] = str(runner.transcript(session.id))
    else:
        event = "Stop"
        users = (turn for turn in reversed(session.turns) if isinstance(turn.info, UserMessage))
        prompt = next(("".join(turn.own_texts) for turn in users), "")
        body |= {"prompt": prompt, "prompt_response": answer.text}
    found = await runner.run(event, session, body=body, names=names)
    await runner.tell(session, found.stops)
    if found.stops or not found.texts:
        runner.continuing.discard(session.id)
        return None
    runner.continuing.add(session.id)
    return "\n\n".join(found.texts)


async def before_summary(runner: HookRunner, session: SessionView, prompt: str) -> str | None:
    """Run PreCompact; return the prompt for the summary with added instructions, or None."""
    stored = reversed(await runner.turns(session.id))  # a view has no requests for summaries
    parts = (part for turn in stored for part in turn.parts)
    asked = next((part for part in parts if isinstance(part, CompactionPart)), None)
    trigger = "manual" if asked is not None and not asked.auto else "auto"
    runner.compacted.add(session.id)
    runner.triggers[session.id] = trigger
    body = {"trigger": trigger, "custom_instructions": ""}
    found = await runner.run("PreCompact", session, body=body, names=(trigger,))
    return "\n\n".join((prompt, *found.context)) if found.context else None


def _refused(found: HookOutcome) -> PromptRefusedError:
    return PromptRefusedError(
        f"a hook refuses the prompt: {found.stops or found.reason or 'no reason'}"
    )


def _reminder(last: Part, texts: list[str]) -> TextPart:
    """Return a part with text for the model, to follow the message's last part."""
    text = "\n".join(texts)
    return TextPart(
        id=f"{last.id}0",
        session_id=last.session_id,
        message_id=last.message_id,
        text=f'<system-reminder session="{last.session_id}">\n{text}\n</system-reminder>',
        synthetic=True,
    )
