"""The tool itself: what it is called, what it takes and gives, what is bound, and how it is called."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, cast, get_args

from toolwire.definition.binding import Binding, Bindings, States
from toolwire.definition.canonical import canonical
from toolwire.definition.docstring import Docs
from toolwire.definition.naming import check_name
from toolwire.definition.shape import (
    MISSING,
    ArgumentProblem,
    Form,
    Invalid,
    Output,
    Parameter,
    ParameterKind,
    Shape,
    Spread,
    Validated,
)
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.effects import UNDECLARED, Effects
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.text import encodable, encodable_text
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
    "canonical",
]

Permission = Literal["auto", "confirm", "deny"]

Check = Callable[[dict[str, Any]], str | None]
"""Looks at arguments that fit the schema; gives None, or what is wrong with them."""


class Tool:
    """A tool: live, shared by everything that offers it, changed only through its `bindings`.

    What can be described only at a cost (docstring, schemas, validator) is worked out when first asked for, and again
    after a bind or unbind. Any thread may call it.
    """

    def __init__(
        self,
        *,
        name: str,
        shape: Shape,
        docs: Callable[[], Docs],
        function: Callable[..., Any] | None,
        is_async: bool = False,
        context_parameter: str | None = None,
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
    ) -> None:
        check_name(name)
        self.name = name
        """What models and registries call it."""
        self.title = title
        """A name for people; None when the author gave none."""
        self.function = function
        """What is called; None for a tool known by its schema alone."""
        self.is_async = is_async
        """Whether calling the function gives an awaitable or an async generator: it needs an event loop."""
        self.context_parameter = context_parameter
        """The parameter that receives the `CallContext`; None when there is none."""
        self.tags = _tags(name, tags)
        self.annotations: Mapping[str, Any] = dict(annotations or {})
        """Hints in the form of MCP's tool annotations."""
        self.permission: Permission = checked_permission(name, permission)
        """What applies when no rule says otherwise."""
        self.examples = tuple(examples)
        """Example uses, as the author gave them."""
        self.effects = effects
        """What it does, whether it may be done twice, what its results are."""
        self.is_outside = is_outside
        """Whether it comes from somewhere else: what it leaves unsaid of itself is then taken for the worst."""
        self.check = check
        """Run after the schema has been satisfied; its text makes the call invalid."""
        self._shape = shape
        self._docs = docs
        self._description = description
        self._output_schema = None if output_schema is None else _checked_output(name, output_schema)
        self._spread: Spread | None = shape.spread
        self._docs_read: Docs | None = None
        self._output_read: Output | None = None
        self._compiled: tuple[Form, Mapping[str, Binding]] | None = None
        self._digest: tuple[tuple[Form, str, str], str] | None = None
        self.bindings = Bindings(label=f"tool {name!r}", kinds=shape.kinds, never_visible=shape.never_visible)
        """Which parameters the host fills in, and from where."""

    def __tool__(self) -> Tool:
        return self

    def __repr__(self) -> str:
        return f"<Tool {self.name!r}>"

    @property
    def docs(self) -> Docs:
        """The docstring, read."""
        if self._docs_read is None:
            self._docs_read = self._docs()
        return self._docs_read

    @property
    def description(self) -> str:
        """What the tool does; empty when nobody said. A tool whose abilities change says it anew each time."""
        given = self._description
        if given is None:
            return self.docs.description
        return encodable_text(given if isinstance(given, str) else given())

    @property
    def raises(self) -> tuple[str, ...]:
        """Names of the exceptions that the docstring lists, as a program would catch them."""
        names = (name.rpartition(".")[2] for name, _ in self.docs.raises)
        return tuple(dict.fromkeys(name for name in names if name.isidentifier()))

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON schema of the arguments that a model gives; yours to change.

        Raises:
            DefinitionError: a visible parameter cannot be described to a model.
        """
        return encodable(copy.deepcopy(self._form().input_schema))

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """JSON schema of what the tool gives, always of an object; None when nothing is promised. Yours to change."""
        given = self._output.schema if self._output_schema is None else self._output_schema
        return encodable(copy.deepcopy(given))

    @property
    def is_wrapped_output(self) -> bool:
        """Whether what the function returns stands under `result` in the output schema's object."""
        return self._output_schema is None and self._output.is_wrapped

    @property
    def output_annotation(self) -> str:
        """What the function returns, as a reader of Python wants it; empty when nobody said."""
        return self._output.annotation

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters in order, bound ones included; the schema of a hidden one is empty."""
        return self._shape.parameters(self._form())

    @property
    def visible_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a model may give, in order."""
        form = self._form()
        return tuple(parameter for parameter in self._shape.parameters(form) if parameter.name not in form.hidden)

    @property
    def digest(self) -> str:
        """`sha256:` of what models and people are told of this tool: when it changes, no earlier approval counts."""
        told = (self._form(), self.name, self.description)
        if self._digest is None or self._digest[0] != told:
            schemas = [self._form().input_schema, self.output_schema, dict(self.annotations)]
            self._digest = (told, digest([self.name, self.description, *schemas]))
        return self._digest[1]

    @property
    def revision(self) -> object:
        """An object that is replaced when other things are told of this tool than before."""
        return self.bindings.current

    def verify(self) -> None:
        """Does nothing if a model can be told of this tool as it is bound now. Registries ask this.

        Raises:
            DefinitionError: a visible parameter cannot be described to a model.
        """
        _ = self._form().input_schema

    def validate(self, arguments: Mapping[str, Any], states: States = ()) -> Validated | Invalid:
        """The arguments as real objects together with the bound ones, or everything that is wrong with them.

        Bound values are looked up in `states` before the tool's own state.
        """
        compiled = self._compiled
        if compiled is None or compiled[1] is not self.bindings.current:
            compiled = self._compile()
        form, bindings = compiled
        values = form.read(cast("dict[str, Any]", arguments) if type(arguments) is dict else dict(arguments))
        if bindings or self.check is not None:
            return self._bind_and_check(values, form, bindings, states)
        return values if isinstance(values, Invalid) else Validated(values, {}, form)

    def invoke(self, validated: Validated, context: CallContext | None = None) -> Any:
        """What the function gives for these arguments: an awaitable or an async generator when `is_async`.

        Raises:
            DefinitionError: the tool is known by its schema alone.
            Exception: whatever the function raises.
        """
        function = self.function
        if function is None:
            raise DefinitionError(
                f"tool {self.name!r} is known by its schema alone and cannot be called: give function=..."
            )
        values = {**validated.values, **validated.bound} if validated.bound else validated.values
        if self.context_parameter is not None:
            values = {**values, self.context_parameter: context}
        if self._spread is None:
            return function(**values)
        return self._spread(function, values)

    def clear_cache(self) -> None:
        """Forgets what was worked out from docstring, annotations and bindings. Binding does it by itself."""
        self._compiled = self._docs_read = self._output_read = None

    def clone(self) -> Tool:
        """A tool of its own: the same function, and bindings and state that share no container with these."""
        cloned = copy.copy(self)
        cloned.annotations = copy.deepcopy(dict(self.annotations))
        cloned.bindings = Bindings(
            label=f"tool {self.name!r}", kinds=self._shape.kinds, never_visible=self._shape.never_visible
        )
        self.bindings.copy_to(cloned.bindings)
        return cloned

    def with_presets(self, presets: Mapping[str, Any]) -> Tool:
        """This tool with values given once and for all, any objects: no model sees these parameters or can give them.

        Bound parameters stay bound, and are read from this tool's own state.

        Raises:
            BindingError: the function takes no such parameter.
        """
        preset = self.reshaped(self._shape)
        for name, value in presets.items():
            preset.bindings.preset(name, value, is_more=self._shape.takes(name))
        return preset

    def reshaped(self, shape: Shape) -> Tool:
        """This tool with another idea of its arguments; it is bound as this one is now, and reads this one's state."""
        bindings = Bindings(
            label=f"tool {self.name!r}", kinds=shape.kinds, never_visible=shape.never_visible, state_of=self.bindings
        )
        bindings.current = self.bindings.current
        view = copy.copy(self)
        vars(view).update(_shape=shape, _spread=shape.spread, _compiled=None, bindings=bindings)
        return view

    def described_as(self, description: str) -> Tool:
        """This tool under another description."""
        view = self.reshaped(self._shape)
        vars(view).update(_description=description)
        return view

    @property
    def shape(self) -> Shape:
        """What it takes and gives, before anything is bound."""
        return self._shape

    @property
    def _output(self) -> Output:
        if self._output_read is None:
            self._output_read = self._shape.output()
        return self._output_read

    def _form(self) -> Form:
        compiled = self._compiled
        return self._compile()[0] if compiled is None or compiled[1] is not self.bindings.current else compiled[0]

    def _compile(self) -> tuple[Form, Mapping[str, Binding]]:
        # Kept together: a call never meets a form of one moment and the bindings of another.
        bindings = self.bindings.current
        self._compiled = compiled = (self._shape.compile(frozenset(bindings)), bindings)
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
            return Invalid(problems=(_refusal(self.name, complaint),))
        return Validated(values, bound, form)


def _refusal(name: str, complaint: object) -> ArgumentProblem:
    if not isinstance(complaint, str) or not complaint.strip():
        raise DefinitionError(
            f"tool {name!r}: validate_params returned {complaint!r:.80}: return None, or the text that the model reads"
        )
    return ArgumentProblem(path="", kind="refused", message=complaint)


def _tags(name: str, tags: Iterable[str]) -> frozenset[str]:
    if isinstance(tags, str):
        raise DefinitionError(f"tool {name!r}: tags={tags!r} is one text: write tags=[{tags!r}]")
    return frozenset(tags)


def checked_permission(name: str, permission: object) -> Permission:
    """The permission as a word, from the word or an enum member that has it for its value.

    Raises:
        DefinitionError: it is none of the three.
    """
    plain = getattr(permission, "value", permission)
    if plain not in get_args(Permission):
        raise DefinitionError(f"tool {name!r}: permission={plain!r} is unknown: write 'auto', 'confirm' or 'deny'")
    return cast("Permission", plain)


def _checked_output(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(cast("object", schema), Mapping):
        raise DefinitionError(f"tool {name!r}: output_schema must be a JSON schema as a dict, not {schema!r}")
    return copy.deepcopy(dict(schema))
