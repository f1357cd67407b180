"""The options of a session: the agent, the model and the model's reasoning effort."""

from collections.abc import Iterator

from pegboard import App
from pegboard.errors import ModelNotFoundError
from pegboard.schema.config import Agent
from pegboard.schema.model import Model
from pegboard.schema.session import Session
from pegboard_acp.jsonrpc import ErrorCode, RpcError
from pegboard_acp.updates import Modes, SelectOption, SelectValue, SessionMode
from pegboard_plugins.shared.frontend import newest_first

_DEFAULT = "default"
"""The variant of a model that nothing was chosen of."""


class SessionChoices:
    """The user's choices for the next prompts.

    If `model` is "", the model of the agent is used, or else that of the session.
    """

    def __init__(self, app: App, session: Session) -> None:
        self._app = app
        self.session = session
        self.agent = session.agent or app.default_agent().name
        self.model = ""
        self.variant = ""

    def choose_agent(self, name: str) -> None:
        """Choose the agent that answers the next prompts.

        :raises RpcError: when there is no such agent, or it is a subagent.
        """
        _require(name, [agent.name for agent in self._agents()], "mode")
        self.agent = name

    async def choose(self, option: str, value: object) -> None:
        """Choose the value of an option.

        :raises RpcError: when there is no such option, or no such value.
        """
        options = {each.id: each for each in await self.options()}
        _require(option, list(options), "option")
        _require(value, [each.value for each in options[option].options], option)
        assert isinstance(value, str)
        match option:
            case "mode":
                self.agent = value
            case "model":
                self.model, self.variant = value, ""
            case "thought_level":
                self.variant = "" if value == _DEFAULT else value

    def modes(self) -> Modes:
        """Return the agents that can talk to the user, as the modes of an ACP session."""
        found = (
            SessionMode(id=agent.name, name=agent.name.title(), description=agent.description)
            for agent in self._agents()
        )
        return Modes(current_mode_id=self.agent, available_modes=tuple(found))

    async def options(self) -> tuple[SelectOption, ...]:
        """Return all options; the model is an option only if there are models."""
        modes = self.modes().available_modes
        found = [
            SelectOption(
                id="mode",
                name="Agent",
                category="mode",
                current_value=self.agent,
                options=tuple(SelectValue(value=each.id, name=each.name) for each in modes),
            )
        ]
        models = {_name(model): model for model in await self._app.models()}
        current = await self._current(models)
        if current is None:
            return tuple(found)
        models.setdefault(_name(current), current)
        found.append(
            SelectOption(
                id="model",
                name="Model",
                category="model",
                current_value=_name(current),
                options=tuple(
                    SelectValue(value=name, name=models[name].name, description=name)
                    for name in sorted(models, key=newest_first)
                ),
            )
        )
        return (*found, *self._thinking(current))

    def _thinking(self, model: Model) -> Iterator[SelectOption]:
        if model.variants:
            names = (_DEFAULT, *model.variants)
            yield SelectOption(
                id="thought_level",
                name="Thinking",
                category="thought_level",
                current_value=self.variant or _DEFAULT,
                options=tuple(SelectValue(value=name, name=name.title()) for name in names),
            )

    async def _current(self, models: dict[str, Model]) -> Model | None:
        """Return the model of the next prompt, or None if no provider has this model."""
        agent, session = self._app.agents.get(self.agent), self.session
        name = self.model
        if not name and agent is not None and agent.model is not None:
            name = f"{agent.model.provider_id}/{agent.model.model_id}"
        if not name and session.model is not None:
            name = f"{session.model.provider_id}/{session.model.id}"
        name = name or self._app.config.model or ""
        if name in models:
            return models[name]
        try:
            return await self._app.resolve_model(name)
        except ModelNotFoundError:
            return None

    def _agents(self) -> list[Agent]:
        return [
            agent
            for agent in self._app.agents.values()
            if agent.mode != "subagent" and not agent.hidden
        ]


def _name(model: Model) -> str:
    return f"{model.provider_id}/{model.id}"


def _require(value: object, known: list[str], what: str) -> None:
    if value not in known:
        text = f"{what} {value!r} does not exist; choose one of {', '.join(known)}"
        raise RpcError(ErrorCode.INVALID_PARAMS, text)
