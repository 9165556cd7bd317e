"""The `Tool` class: its name, its parameters and output, its bindings, and the way to call it."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from toolwire.definition.arguments.canonical import arguments_with_types, canonical
from toolwire.definition.arguments.proposals import add_proposals
from toolwire.definition.binding import Binding, Bindings, States
from toolwire.definition.declared import (
    NOTHING,
    Permission,
    Published,
    check_output_schema,
    check_permission,
    check_tags,
)
from toolwire.definition.docstring.docs import Docs
from toolwire.definition.naming import check_name
from toolwire.definition.shape import (
    MISSING,
    ArgumentProblem,
    Form,
    Invalid,
    OutputCheck,
    OutputShape,
    Parameter,
    ParameterKind,
    Shape,
    Spread,
    Validated,
)
from toolwire.definition.signature import Signature
from toolwire.definition.texts.odd_defaults import copy_schema, tell_odd_defaults
from toolwire.definition.texts.outside_texts import Original
from toolwire.definition.unreadable_returns import READABLE, UnreadableReturn
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.effects import UNDECLARED, Effects
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.lone_surrogates import encodable, encodable_text
from toolwire.vocabulary.values import digest

__all__ = [
    "MISSING",
    "ArgumentProblem",
    "Invalid",
    "Parameter",
    "ParameterKind",
    "Permission",
    "Tool",
    "Validated",
    "arguments_with_types",
    "canonical",
]

_LOG = logging.getLogger("toolwire.tools")

Check = Callable[[dict[str, Any]], str | None]
"""Checks arguments that fit the schema. Returns None, or the text of a refusal."""


_NO_TOOLS: Mapping[str, Tool] = {}


class Tool:
    """A live tool. Everything that offers it shares it, and only its `bindings` change.

    Docstring, schemas and validator are costly. They are made at first use, and again after a bind or unbind. Any
    thread may call a tool.
    """

    ends_turn = False
    """True for the tool by which a model ends its work: a session's `finish`."""
    withheld: Callable[[], ToolResult | None] = staticmethod(lambda: None)
    """Returns the refusal of all calls while an operator withholds the tool. No rule lifts it; models are not told."""
    inner_tools: Callable[[], Mapping[str, Tool]] = staticmethod(lambda: _NO_TOOLS)
    """Returns the present tools that its calls may call below it, such as those of a sub-agent. Rules may name them."""
    is_delegating = False
    """True if all that its calls do are calls below them, which are on record: a lost call begins again, and those that
    ended do not."""
    unreadable: UnreadableReturn | None = None
    """The part of the annotated return type that no model can read, or None."""
    original: Original | None = None
    """The definition as its outside author wrote it; None for a tool of this program."""
    asker = ""
    """The MCP server that may ask a person in a call; else empty. Its tool's function takes the context first."""

    def __init__(
        self,
        *,
        name: str,
        shape: Shape,
        docs: Callable[[], Docs],
        function: Callable[..., Any] | None,
        signature: Signature | None,
        title: str | None = None,
        description: str | Callable[[], str] | None = None,
        tags: Iterable[str] = (),
        annotations: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        permission: Permission = "auto",
        examples: Iterable[Any] = (),
        check: Check | None = None,
        effects: Effects = UNDECLARED,
        is_outside: bool = False,
        published: Published = NOTHING,
    ) -> None:
        check_name(name)
        self.name = name
        """The name that models and registries use."""
        self.title = title
        """A name for people; None if the author gave none."""
        self.function = function
        """The function to call; None for a tool defined by its schema alone."""
        self.is_async = signature is not None and signature.is_async
        """True if calling the function returns an awaitable or an async generator, which needs an event loop."""
        self.gives_future = signature is not None and signature.gives_future
        """True if the function is annotated to return a `concurrent.futures.Future`. It must not block then."""
        self.context_parameter = None if signature is None else signature.context
        """The parameter that receives the `CallContext`, or None."""
        self.tags = check_tags(name, tags)
        self.annotations: Mapping[str, Any] = dict(annotations or {})
        """Hints in the form of MCP's tool annotations."""
        self.permission: Permission = check_permission(name, permission)
        """The permission that applies if no rule decides."""
        self.examples = tuple(examples)
        """Example uses, as the author gave them."""
        self.effects = effects
        """The declared effects, whether a call may be repeated, and the labels of results."""
        self.is_outside = is_outside
        """True if the tool has an outside author. The worst is then assumed where its declarations are missing."""
        self.published = published
        """Version, icons and `_meta` for exports."""
        self.check = check
        """Runs after the schema check. A returned text makes the call invalid."""
        self.shape = shape
        """The parameters and the output, before any binding."""
        self._docs, self._description = docs, description
        self._output_schema = None if output_schema is None else check_output_schema(name, output_schema)
        self._spread: Spread | None = shape.spread
        self._docs_read: Docs | None = None
        self._output_read: OutputShape | None = None
        self._compiled: tuple[Form, Mapping[str, Binding]] | None = None
        self._value_cache: tuple[Form, str, dict[Any, Any]] | None = None
        self._digest: tuple[tuple[Form, str, str, str | None], str] | None = None
        self.bindings = Bindings(label=f"tool {name!r}", shape=shape)
        """The parameters that the host fills in, and the sources of their values."""

    def __tool__(self) -> Tool:
        return self

    def __repr__(self) -> str:
        return f"<Tool {self.name!r}>"

    @property
    def docs(self) -> Docs:
        """The parsed docstring."""
        if self._docs_read is None:
            self._docs_read = self._docs()
        return self._docs_read

    @property
    def description(self) -> str:
        """The tool's description; empty without one. A tool whose abilities change computes it each time."""
        given = self._description
        if given is None:
            return self.docs.description
        return encodable_text(given if isinstance(given, str) else given())

    @property
    def whole_description(self) -> str:
        """The description with all text of the docstring but that of parameters.

        It is for formats that have no place of their own for results, errors and examples.
        """
        return self.docs.text if self._description is None else self.description

    @property
    def raises(self) -> tuple[str, ...]:
        """Names of the exceptions in the docstring, as a program would catch them."""
        names = (name.rpartition(".")[2] for name, _ in self.docs.raises)
        return tuple(dict.fromkeys(name for name in names if name.isidentifier()))

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments that a model gives. The caller may change this copy.

        Raises:
            DefinitionError: A visible parameter cannot be described to a model.
        """
        return _encodable_copy(self._form().input_schema)

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON schema of the output, always of an object; None if nothing is declared.

        The caller may change this copy.
        """
        given = self._output.schema if self._output_schema is None else self._output_schema
        return None if given is None else _encodable_copy(given)

    @property
    def is_wrapped_output(self) -> bool:
        """True if the function's return value becomes `result` in the output schema's object."""
        return self._output_schema is None and self._output.is_wrapped

    @property
    def output_check(self) -> OutputCheck | None:
        """Checks the results of an outside tool against its output schema; None without one."""
        return self._output.check if self.is_outside else None

    @property
    def output_annotation(self) -> str:
        """The return type as Python text; empty without one."""
        return self._output.annotation

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters in order, including bound ones. The schema of a hidden one is empty."""
        return self.shape.parameters(self._form())

    @property
    def visible_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a model may give, in order."""
        form = self._form()
        return tuple(parameter for parameter in self.shape.parameters(form) if parameter.name not in form.hidden)

    @property
    def digest(self) -> str:
        """A digest of the description for models and people, starting with `sha256:`.

        A change invalidates earlier approvals. A tool without a title keeps the digest that older stores hold.
        """
        told = (self._form(), self.name, self.description, self.title)
        if self._digest is None or self._digest[0] != told:
            schemas = (told[0].input_schema, self.output_schema, dict(self.annotations))
            title = () if self.title is None else (self.title,)
            self._digest = (told, digest([self.name, self.description, *schemas, *title]))
        return self._digest[1]

    @property
    def revision(self) -> object:
        """An object that is replaced when the texts about this tool change, except a description that is computed."""
        return self._form()

    @property
    def value_cache(self) -> dict[Any, Any]:
        """The values that `definition.derived` made for the current parameters. A change begins with none."""
        form, derived = self._form(), self._value_cache
        if derived is None or derived[0] is not form or derived[1] != self.name:
            self._value_cache = derived = (form, self.name, dict[Any, Any]())
        return derived[2]

    def verify(self) -> None:
        """Checks that the tool, as bound now, can be described to a model. Registries call this.

        The log `toolwire.tools` gets a warning if the annotated results cannot be read.

        Raises:
            DefinitionError: A visible parameter cannot be described to a model.
        """
        _ = self._form().input_schema
        if self.unreadable is not None:
            _LOG.warning("tool %r returns %s, which no model can read: %s.", self.name, self.unreadable.name, READABLE)

    def validate(self, arguments: Mapping[str, Any], states: States = ()) -> Validated | Invalid:
        """Returns the arguments as real objects with the bound values, or all problems.

        Bound values are looked up in `states` before the tool's own state.
        """
        compiled = self._compiled
        if compiled is None or compiled[1] is not self.bindings.current:
            compiled = self._compile()
        form, bindings = compiled
        given = cast("dict[str, Any]", arguments) if type(arguments) is dict else dict(arguments)
        values = add_proposals(form.read(given), given, form.read)
        if bindings or self.check is not None:
            return self._bind_and_check(values, form, bindings, states)
        return values if isinstance(values, Invalid) else Validated(values, {}, form)

    def find_problems(self, arguments: Mapping[str, Any]) -> Invalid | None:
        """Returns the problems of the arguments by themselves; None without any.

        Neither bound values nor the tool's own check are asked, and no value is proposed.
        """
        found = self._form().read(dict(arguments))
        return found if isinstance(found, Invalid) else None

    def takes_json(self, name: str) -> bool:
        """True if the parameter's values stay the JSON types that a model writes."""
        return self._form().is_certain(name)

    def invoke(self, validated: Validated, context: CallContext | None = None) -> Any:
        """Calls the function with these arguments. If `is_async`, the result is an awaitable or an async generator.

        Raises:
            DefinitionError: The tool is defined by its schema alone.
            Exception: The function raised.
        """
        function = self.function
        if function is None:
            raise DefinitionError(
                f"tool {self.name!r} is known by its schema alone and cannot be called: give function=..."
            )
        values = {**validated.values, **validated.bound} if validated.bound else validated.values
        if self.asker:
            return function(context, **values)
        if self.context_parameter is not None:
            values = {**values, self.context_parameter: context}
        return function(**values) if self._spread is None else self._spread(function, values)

    def clear_cache(self) -> None:
        """Discards the results derived from docstring, annotations and bindings. Binding does this by itself."""
        self._compiled = self._docs_read = self._output_read = None

    def clone(self) -> Tool:
        """Returns an independent tool with the same function. Bindings and state share no container with this one."""
        cloned = copy.copy(self)
        cloned.annotations = copy.deepcopy(dict(self.annotations))
        cloned.bindings = Bindings(label=f"tool {self.name!r}", shape=self.shape)
        self.bindings.copy_to(cloned.bindings)
        return cloned

    def with_presets(self, presets: Mapping[str, Any]) -> Tool:
        """Returns this tool with fixed values for parameters. Models neither see these parameters nor can give them.

        The values may be any objects. Bound parameters stay bound, and are read from this tool's own state.

        Raises:
            BindingError: The function takes no such parameter.
        """
        preset = self.with_shape(self.shape)
        for name, value in presets.items():
            preset.bindings.preset(name, value, is_more=self.shape.takes(name))
        return preset

    def with_shape(self, shape: Shape) -> Tool:
        """Returns this tool with another shape. It has the current bindings of this one and reads its state."""
        bindings = Bindings(label=f"tool {self.name!r}", shape=shape, state_of=self.bindings)
        bindings.current = self.bindings.current
        view = copy.copy(self)
        vars(view).update(shape=shape, _spread=shape.spread, _compiled=None, bindings=bindings)
        if shape is not self.shape:
            # Its author wrote other parameters.
            view.original = None
        return view

    def with_description(self, description: str) -> Tool:
        """Returns this tool with another description."""
        view = self.with_shape(self.shape)
        vars(view).update(_description=description)
        if self.original is not None:
            view.original = replace(self.original, description=description)
        return view

    @property
    def _output(self) -> OutputShape:
        if self._output_read is None:
            self._output_read = self.shape.output()
        return self._output_read

    def _form(self) -> Form:
        compiled = self._compiled
        return self._compile()[0] if compiled is None or compiled[1] is not self.bindings.current else compiled[0]

    def _compile(self) -> tuple[Form, Mapping[str, Binding]]:
        # Kept together, so that a call never combines a form with the bindings of another moment.
        bindings = self.bindings.current
        self._compiled = compiled = (self.shape.compile(frozenset(bindings)), bindings)
        return compiled

    def _bind_and_check(
        self, values: dict[str, Any] | Invalid, form: Form, bindings: Mapping[str, Binding], states: States
    ) -> Validated | Invalid:
        bound, problems = self.bindings.resolve(bindings, states)
        if isinstance(values, Invalid):
            return replace(values, problems=values.problems + problems)
        if problems:
            return Invalid(problems=problems)
        complaint = self.check({**values, **bound}) if self.check is not None else None
        if complaint is not None:
            return Invalid(problems=(_problem_of_complaint(self.name, complaint),))
        return Validated(values, bound, form)


def _encodable_copy(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of the schema that JSON can hold."""
    copied = copy_schema(dict(schema))
    tell_odd_defaults(copied)
    return encodable(copied)


def _problem_of_complaint(name: str, complaint: object) -> ArgumentProblem:
    if not isinstance(complaint, str) or not complaint.strip():
        raise DefinitionError(
            f"tool {name!r}: validate_params returned {complaint!r:.80}: return None, or the text that the model reads"
        )
    return ArgumentProblem(path="", kind="refused", message=complaint)
