"""Tools: what the model can call, made from a function or from a raw JSON Schema."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import WRAPPER_ASSIGNMENTS, cached_property
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, get_args, overload

from pegboard.arguments.binding import Arguments, FunctionArguments, RawArguments, own_names
from pegboard.contract.results import Block, ToolResult
from pegboard.errors import InvalidInputError, SignatureError, ToolError
from pegboard.kit.threads import run_in_thread
from pegboard.schema.config import Agent, AgentWork, Effect, Exposure

if TYPE_CHECKING:
    from pegboard.contract.context import PermissionContext, ToolContext
    from pegboard.schema.part import ToolPart

_Serving = TypeVar("_Serving", bound="Tool | Agent")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

Service = Literal["shell", "subagents", "refused_calls"]
"""What the engine has a tool for; it gives the arguments that are named here.

`shell`: it runs a line of the user's own (`command`, `description`). `subagents`: it stands for
work that the user gives to one (`description`, `prompt`, `subagent_type`, `command`).
`refused_calls`: it answers a call that cannot be made (`tool`, `error`), and is never offered. It
also gets the `setting` that would turn the tool on, or `needs_user` for a tool that waits for the
user, where that is why the tool is absent.
"""
_ALLOWED = {
    "effect": get_args(Effect),
    "serves": (*get_args(Service), None),
    "exposure": (*get_args(Exposure), None),
}


class ToolFacts(TypedDict, total=False):
    """The keyword arguments of `Tool`; the docstring of `Tool` describes them."""

    timeout_s: float | None
    requires: Callable[..., Awaitable[object]] | Literal[False] | None
    aliases: Mapping[str, str]
    effect: Effect
    exposure: Exposure | None
    source: str
    on_cut: str
    lasting: bool
    needs_user: bool
    serves: Service | None
    imports: tuple[str, ...]
    draw: "Callable[[ToolPart], Block | None] | None"


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """A function that a model can call; made by `@tool` or by `Tool.raw`.

    - `timeout_s`: the time limit of a call, without the time in which the user is asked; None for
      the configured one.
    - `requires`: makes the permission requests of a call; the engine awaits it before the function.
      None requests `permission` for the pattern `*`, False requests nothing.
    - `effect`: what a call may do to files. If a tool changes files that its `effect` does not
      allow, the changes are noticed late and are not reverted with the step.
    - `exposure`: whether the tool is in each request, has to be searched for, or is hidden, unless
      the user decides otherwise. None defers the tool if all schemas are too long for the model.
    - `source`: where its plugin has it from, such as the name of a server; "" is the plugin itself.
      Tools of one source are deferred together.
    - `on_cut`: a sentence that tells the model what this tool can do with the file that holds an
      output which was too long; "" for nothing.
    - `lasting`: the output stays in the model's view when old outputs are cleared.
    - `needs_user`: the tool waits for a decision of the user. Subagents, and agents that the
      configuration adds, cannot call it unless their rules name it.
    - `serves`: what the engine may use the tool for; the newest tool with the same value is used.
    - `imports`: modules that the tool's code imports in the first call. They are loaded beforehand,
      while the model thinks.
    - `draw`: returns what people see of a call, by the rules of the hook `render_tool`, whose
      plugins come first.
    - `has_own_id`: the author chose the id, and the tool keeps it whatever its file is called.

    A tool made from a function can be called from Python like the function: `await hello("Ada")`.

    :raises InvalidInputError: for an unknown `effect`, `exposure` or `serves`, or an unusable
      `requires`.
    """

    id: str
    arguments: Arguments = field(repr=False)
    own_description: str | None = field(default=None, repr=False)
    own_permission: str | None = field(default=None, repr=False)
    timeout_s: float | None = None
    requires: Callable[..., Awaitable[object]] | Literal[False] | None = field(
        default=None, repr=False
    )
    aliases: Mapping[str, str] = field(default_factory=dict, repr=False)
    effect: Effect = "runs"
    exposure: Exposure | None = None
    source: str = ""
    on_cut: str = field(default="", repr=False)
    lasting: bool = False
    needs_user: bool = False
    serves: Service | None = None
    imports: tuple[str, ...] = field(default=(), repr=False)
    draw: "Callable[[ToolPart], Block | None] | None" = field(default=None, repr=False)
    has_own_id: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        for fact, allowed in _ALLOWED.items():
            if (value := getattr(self, fact)) not in allowed:
                known = ", ".join(map(repr, allowed))
                text = f"the tool {self.id} has the {fact} {value!r}; it must be one of {known}"
                raise InvalidInputError(text)
        requires: object = self.requires
        if not (requires is None or requires is False or callable(requires)):
            text = f"the tool {self.id} has the requires {requires!r}; it must be an async function"
            raise InvalidInputError(f"{text}, False or None")
        for name in WRAPPER_ASSIGNMENTS:
            object.__setattr__(self, name, getattr(self.arguments.function, name, None))
        object.__setattr__(self, "__wrapped__", self.arguments.function)

    @classmethod
    def raw(
        cls,
        id: str,  # noqa: A002 - the field's name
        description: str,
        parameters: Mapping[str, Any],
        function: Callable[["ToolContext", Mapping[str, Any]], Any],
        *,
        permission: str | None = None,
        **facts: Unpack[ToolFacts],
    ) -> "Tool":
        """Make a tool with a JSON Schema of its own, such as a tool of an MCP server.

        `function` receives the context and the arguments as the model wrote them, once they fit the
        schema. A plain function runs in a worker thread. `requires` takes the context and those of
        the arguments that it names.

        A schema may have at most 262,144 letters, 20,000 values and 64 levels; a tool with a larger
        one is left out. Some parts of a schema are not checked: a `format`, an `unevaluated...`
        keyword, a reference to another document, an expression that Python cannot read, and what
        takes more than 0.3 s. The function has to check such arguments itself.

        :raises InvalidInputError: for an id that providers refuse, and for an unknown `effect` or
          `serves`.
        """
        return cls(
            id=checked_id(id),
            arguments=RawArguments(
                function=function, tool=id, parameters=parameters, description=description
            ),
            own_permission=permission,
            **facts,
            has_own_id=True,
        )

    @property
    def description(self) -> str:
        """The description of the tool for the model."""
        return self.arguments.description if self.own_description is None else self.own_description

    @property
    def permission(self) -> str:
        """The permission that the tool requires: the tool's id unless its author names another."""
        return self.own_permission or self.id

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments, which has the type `object`.

        It is made at first access.

        :raises SignatureError: when an annotation has a name that was never defined.
        """
        return self.arguments.schema

    @property
    def call_imports(self) -> tuple[str, ...]:
        """The modules that a call imports, but that are not needed to describe the tool."""
        return (*self.arguments.imports, *self.imports)

    def with_id(self, id: str) -> "Tool":  # noqa: A002 - the field's name
        """Return the same tool under another id.

        :raises InvalidInputError: for an id that providers refuse.
        """
        return replace(self, id=checked_id(id), has_own_id=True)

    def own_names(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """Replace argument names that models know from other agents by the tool's own names.

        A name counts as the tool's if `aliases` says so, or if it differs only in case and
        underscores (`file_path` for `filePath`). If an argument is also given by its own name, that
        one is used.
        """
        return own_names(args, self.parameters.get("properties", {}), self.aliases)

    def quick(self, args: Mapping[str, Any]) -> bool:
        """Return whether `validate` is quick for these arguments and needs no thread."""
        return self.arguments.quick(args)

    def validate(self, args: Mapping[str, Any]) -> Mapping[str, object]:
        """Convert the arguments to the values that `call` takes, defaults included.

        Run it in a thread unless it is `quick`: the first check imports pydantic or jsonschema and
        takes up to 0.2 s, and a check against a JSON Schema of `Tool.raw` takes up to 0.3 s.

        :raises ToolError: when the arguments do not fit; its text tells the model what is wrong.
        :raises SignatureError: when an annotation names an object that was never defined.
        """
        return self.arguments.validate(args, tool=self.id)

    def warm(self) -> None:
        """Prepare `validate` now, so that its first call is quick; this blocks for up to 0.2 s."""
        self.arguments.warm()

    async def call(self, context: "ToolContext", args: Mapping[str, object]) -> ToolResult:
        """Call the tool with the values that `validate` returned.

        A plain function runs in a worker thread, which cannot be stopped: it has to look at
        `context.cancelled` itself. Errors of the function are raised unchanged.

        A result that is a dictionary, list, dataclass, msgspec struct or pydantic model becomes
        JSON text.

        :raises ToolError: when the result is none of these, no text and no `ToolResult`.
        """
        bound = self.arguments.bind(context, args)
        try:
            work = bound() if self._is_async else run_in_thread(bound, name="pegboard-tool")
            answer = await work
            if not self._is_async and inspect.isawaitable(answer):
                answer = await answer
        except SystemExit as error:
            raise ToolError(f"the tool {self.id} tried to end the process") from error
        if isinstance(answer, str):
            return ToolResult(output=answer)
        if isinstance(answer, ToolResult):
            return answer
        from pegboard.kit.jsonvalue import json_text  # most tools answer with text

        try:
            return ToolResult(output=json_text(answer))
        except TypeError as error:
            text = "return str, ToolResult, or a value that JSON has"
            raise ToolError(f"the tool {self.id} answered with {error}; {text}") from error

    async def require(self, context: "PermissionContext", args: Mapping[str, object]) -> object:
        """Make the permission requests of a call, and return the value for `ToolContext.granted`.

        The engine awaits it before `call`. An error of `requires` is raised unchanged.

        :raises ToolError: when `requires` returns an awaitable or tries to end the process.
        """
        if self.requires is None and self.serves != "refused_calls":
            await context.require(self.permission, ("*",), always=("*",))
        if not self.requires or self.serves == "refused_calls":
            return None
        given = {name: args[name] for name in args if self._judged is None or name in self._judged}
        try:
            answer = await self.requires(context, **given)
        except SystemExit as error:
            raise ToolError(f"the tool {self.id} tried to end the process") from error
        if inspect.isawaitable(answer):
            raise ToolError(f"`requires` of the tool {self.id} answers with what it has to await")
        return answer

    @cached_property
    def _judged(self) -> frozenset[str] | None:
        """The argument names that the function `requires` takes, or None if it takes any name."""
        wanted = inspect.signature(self.requires).parameters if self.requires else {}
        takes_all = any(each.kind is each.VAR_KEYWORD for each in wanted.values())
        return None if takes_all else frozenset(wanted)

    @cached_property
    def _is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.arguments.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the function's types
        """Call the Python function that the tool was made from."""
        return self.arguments.function(*args, **kwargs)


@overload
def tool(
    function: Callable[..., Any],
    *,
    id: str | None = ...,
    description: str | None = ...,
    permission: str | None = ...,
    **facts: Unpack[ToolFacts],
) -> Tool: ...
@overload
def tool(
    *,
    id: str | None = ...,
    description: str | None = ...,
    permission: str | None = ...,
    **facts: Unpack[ToolFacts],
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    id: str | None = None,  # noqa: A002 - the field's name
    description: str | None = None,
    permission: str | None = None,
    **facts: Unpack[ToolFacts],
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool from a function, as `@tool` or as `@tool(timeout_s=5)`.

    The signature becomes the JSON Schema of the arguments. The docstring becomes the description,
    and its entries for parameters, for example below `Args:`, describe the parameters. The engine
    fills a parameter that is annotated `ToolContext`. `permission` and `id` are the function's name
    by default. `requires` is called with the context, and with those arguments of the call that its
    signature names. `aliases` are other names for a parameter, such as those that models know from
    other agents. `Tool` describes the other facts.

    :raises SignatureError: for a parameter that cannot be described to a model.
    :raises InvalidInputError: for an `id` that providers refuse, and for an unknown `effect` or
      `serves`.
    """

    def make(function: Callable[..., Any]) -> Tool:
        name = checked_id(id) if id else _name(function)
        arguments = FunctionArguments(function=function, tool=name)
        arguments.check()
        return Tool(
            id=name,
            arguments=arguments,
            own_description=description,
            own_permission=permission,
            **facts,
            has_own_id=bool(id),
        )

    return make if function is None else make(function)


def serving(found: Iterable[_Serving], work: Service | AgentWork) -> _Serving | None:
    """Return the newest tool or agent in `found` that serves this purpose, or None."""
    return next((each for each in reversed([*found]) if each.serves == work), None)


def checked_id(id: str) -> str:  # noqa: A002 - the field's name
    """Return the id of a tool if it is valid: 1 to 64 ASCII letters, digits, `_` and `-`.

    :raises InvalidInputError: for any other id, because providers refuse the whole request.
    """
    if _ID.fullmatch(id):
        return id
    text = f"{id!r} cannot be the id of a tool: it takes 1 to 64 of A-Z, a-z, 0-9, _ and -"
    raise InvalidInputError(text)


def _name(function: object) -> str:
    name = getattr(function, "__name__", "<lambda>")
    if isinstance(name, str) and name != "<lambda>":
        return name
    reason = 'it has no name of its own; write @tool(id="...")'
    raise SignatureError(type(function).__module__, reason, tool=repr(function))
