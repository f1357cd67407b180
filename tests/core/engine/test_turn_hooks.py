"""Hooks at the end of a turn, after a failed call, and those that refuse a prompt."""

from pathlib import Path

import pytest

from pegboard import Prompt, SessionView, ToolContext, ToolError, hookimpl, tool
from pegboard.errors import PromptRefusedError
from pegboard.providers import ModelRequest
from pegboard.schema.event import Event, SessionFailed
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from pegboard.schema.part import Failed
from pegboard.schema.session import Verdict
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of

MOST_CONTINUED = 8


class Continuing:
    """Has turns go on with these texts, and then for ever with the last one if `endless`."""

    def __init__(self, *texts: str, endless: bool = False) -> None:
        self._texts = list(texts)
        self._endless = endless
        self.answers: list[str] = []
        self.depths: list[bool] = []

    @hookimpl
    async def turn_end(self, session: SessionView, answer: Turn) -> str | None:
        self.answers.append(answer.text)
        self.depths.append(session.info.parent_id is not None)
        if self._endless:
            return self._texts[-1]
        return self._texts.pop(0) if self._texts else None


def _sent(request: ModelRequest) -> str:
    return str(request.messages)


@pytest.mark.fires("turn_end")
async def test_a_plugin_can_have_a_turn_go_on(tmp_path: Path) -> None:
    provider, continuing = Played(text("first"), text("second")), Continuing("now test it")

    async with opened(tmp_path, provider, continuing) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)

    assert answer.text == "second"
    assert continuing.answers == ["first", "second"]
    assert "now test it" in _sent(provider.requests[1])
    kinds = [type(turn.info) for turn in turns]
    assert kinds == [UserMessage, AssistantMessage, UserMessage, AssistantMessage]
    assert all(getattr(part, "synthetic", False) for part in turns[2].parts)


async def test_a_turn_goes_on_eight_times_in_a_row_at_most(tmp_path: Path) -> None:
    provider, continuing = Played(text("done")), Continuing("more", endless=True)

    async with opened(tmp_path, provider, continuing) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        first = len(provider.requests)
        await app.prompt(session.id, HI)

    assert first == 1 + MOST_CONTINUED
    assert len(provider.requests) == 2 * first


async def test_a_turn_that_failed_or_used_its_steps_has_no_end_to_go_on_from(
    tmp_path: Path,
) -> None:
    failed, spent = Continuing("more"), Continuing("more")
    cut = Played(text("cut", reason="length"))

    async with opened(tmp_path, cut, failed) as app:
        await app.prompt(await app.create_session(), HI)
    config = {"model": "played/m", "agent": {"build": {"steps": 1}}}
    async with opened(tmp_path, Played(text("done")), spent, config=config) as app:
        await app.prompt(await app.create_session(), HI)

    assert failed.answers == spent.answers == []


async def test_the_turn_of_a_subagent_has_an_end_of_its_own(tmp_path: Path) -> None:
    @tool
    async def delegate(context: ToolContext) -> str:
        """Have a subagent work."""
        result = await context.run_subagent("helper", "Help.", description="help")
        return str(result.text)

    provider = Played(calls(call("delegate", "{}")), text("helped"), text("done"))
    continuing = Continuing()

    async with opened(tmp_path, provider, ToolsPlugin(delegate), continuing) as app:
        await app.prompt(await app.create_session(), HI)

    assert continuing.answers == ["helped", "done"]
    assert continuing.depths == [True, False]


async def test_the_answer_after_a_turn_went_on_has_the_form_too(tmp_path: Path) -> None:
    provider = Played(text('{"n": 1}'), text('{"n": 2}'))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    async with opened(tmp_path, provider, Continuing("count again")) as app:
        answer = await app.prompt(await app.create_session(), Prompt(HI, output=schema))

    assert answer.output == {"n": 2}


@tool
async def fail() -> str:
    """Fail."""
    raise ToolError("no luck")


@tool
async def crash() -> str:
    """Crash."""
    raise ValueError("bad luck")


class Explaining:
    """Adds to the error of each call that has failed."""

    @hookimpl
    async def tool_execute_failed(self, error: str) -> str:
        return f"{error}\nTry another way."


@pytest.mark.fires("tool_execute_failed")
async def test_a_plugin_changes_the_text_of_a_failed_call(tmp_path: Path) -> None:
    provider = Played(
        calls(call("fail", "{}"), call("crash", "{}", call_id="call_1")), text("done")
    )

    async with opened(tmp_path, provider, ToolsPlugin(fail, crash), Explaining()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        parts = tools_of(await app.list_turns(session.id))

    errors = {part.tool: part.state.error for part in parts if isinstance(part.state, Failed)}
    assert errors == {
        "fail": "no luck\nTry another way.",
        "crash": "crash failed: ValueError: bad luck\nTry another way.",
    }


async def test_a_call_that_was_denied_has_not_failed(tmp_path: Path) -> None:
    class Denying:
        """Denies everything."""

        @hookimpl
        async def permission_ask(self) -> Verdict:
            return Verdict(action="deny", reason="no")

    provider = Played(calls(call("fail", "{}")), text("done"))

    async with opened(tmp_path, provider, ToolsPlugin(fail), Explaining(), Denying()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        parts = tools_of(await app.list_turns(session.id))

    (state,) = [part.state for part in parts]
    assert isinstance(state, Failed)
    assert "Try another way" not in state.error


class Refusing:
    """Refuses prompts that have a secret in them."""

    @hookimpl
    async def chat_message(self, message: Turn) -> None:
        if "secret" in message.text:
            raise PromptRefusedError("the prompt has a secret in it")


async def test_a_refused_prompt_reaches_no_model(tmp_path: Path) -> None:
    provider = Played(text("hello"))
    events: list[Event] = []

    async with opened(tmp_path, provider, Refusing()) as app:
        session = await app.create_session()
        async with app.subscribe() as subscription:
            with pytest.raises(PromptRefusedError, match="has a secret"):
                await app.prompt(session.id, "my secret")
            async for event in subscription:
                events.append(event)
                if isinstance(event.properties, SessionFailed):
                    break
        asked = len(provider.requests)
        answer = await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)

    assert asked == 0
    assert answer.text == "hello"
    assert "secret" not in _sent(provider.requests[0])
    assert "my secret" in turns[0].text


async def test_a_refused_prompt_stays_refused_when_the_session_is_opened_again(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, Played(text("hello")), Refusing()) as app:
        session = await app.create_session()
        with pytest.raises(PromptRefusedError):
            await app.prompt(session.id, "my secret")
    provider = Played(text("hello"))
    async with opened(tmp_path, provider) as app:
        await app.prompt(session.id, HI)

    assert len(provider.requests) == 1
    assert "secret" not in _sent(provider.requests[0])


async def test_a_prompt_that_is_refused_while_another_is_answered_leaves_that_alone(
    tmp_path: Path,
) -> None:
    @tool
    async def interrupt(context: ToolContext) -> str:
        """Send a prompt that is refused."""
        with pytest.raises(PromptRefusedError):
            await app.prompt(session.id, "my secret")
        return "sent"

    provider = Played(calls(call("interrupt", "{}")), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(interrupt), Refusing()) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, HI)

    assert answer.text == "done"
    assert "secret" not in _sent(provider.requests[-1])
