"""Tools from functions, methods, partials and callable objects."""

from __future__ import annotations

import collections.abc
import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, cast, get_args, get_origin

from toolwire.definition.arguments.typing_forms import text_metadata, with_none
from toolwire.definition.declared import EFFECT_OPTIONS, PUBLISHED_OPTIONS, check_effects, check_published_options
from toolwire.definition.docstring.docs import Docs, read_docstring
from toolwire.definition.naming import program_parameter
from toolwire.definition.shape import MISSING, Form, OutputShape, Parameter, ParameterKind
from toolwire.definition.signature import EMPTY, Argument, Signature, plain_function, read_signature, spread_for
from toolwire.definition.texts.annotation import annotation_text, is_object
from toolwire.definition.texts.odd_defaults import copy_schema
from toolwire.definition.texts.parameter_text import both, text_with_type
from toolwire.definition.tool import Permission, Tool
from toolwire.definition.unreadable_returns import unreadable_return
from toolwire.definition.words import nearest
from toolwire.vocabulary.effects import Effect, EffectsOf, Idempotency, Label, Reconcile
from toolwire.vocabulary.errors import DefinitionError, RegistrationError
from toolwire.vocabulary.results import ToolResult

OPTIONS = (
    *("parse_docstring", "examples", "name", "title", "description", "tags", "annotations"),
    *("output_schema", "permission"),
    *PUBLISHED_OPTIONS,
    *EFFECT_OPTIONS,
)
"""The options of `from_function`, and of everything that passes options on to it."""


def from_function(
    func: Callable[..., Any],
    *,
    parse_docstring: bool = True,
    examples: Iterable[Any] | None = None,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    tags: Iterable[str] | None = None,
    annotations: Mapping[str, Any] | None = None,
    output_schema: Mapping[str, Any] | None = None,
    permission: Permission = "auto",
    meta: Mapping[str, Any] | None = None,
    icons: Iterable[Any] | None = None,
    version: str | None = None,
    effects: Iterable[Effect] | None = None,
    idempotent: Idempotency = "no",
    labels: Iterable[Label] | None = None,
    reconcile: Reconcile | None = None,
    effects_of: EffectsOf | None = None,
    **unknown: Any,
) -> Tool:
    """Makes a tool that calls the function. Annotations give the schema, and the docstring gives the description.

    `func` is a function, bound method, functools.partial (its arguments are hidden), coroutine function or callable
    object. `effects` (read, write, send, exec, spend) declare the effects of a call, and `labels` (untrusted, private)
    describe its results. `effects_of(arguments, seen)` returns those of the declared effects that one call has.
    `idempotent` (no, key, natural) and `reconcile` decide how a call is handled if a crash hides its outcome. `title`,
    `version`, `icons` and `meta` are for exports, and no model reads them. With `parse_docstring=False` the docstring's
    first paragraph is the description, and parameters have none.

    A parameter whose type no model can give, such as a connection, is accepted, because it may be bound later. While it
    is visible, registering the tool, calling it or reading its schema is an error.

    Raises:
        DefinitionError: The value cannot become a tool, or an option is unknown.
    """
    refuse_unknown(unknown, getattr(func, "__name__", repr(func)))
    known_as = name_of(func) if name is None else name
    shape = FunctionShape(func, known_as, functools.partial(docs_of, func, parse=parse_docstring))
    tool = Tool(
        name=known_as,
        shape=shape,
        docs=shape.docs,
        function=func,
        signature=shape.signature,
        title=title,
        description=description,
        tags=tags or (),
        annotations=annotations,
        output_schema=output_schema,
        permission=permission,
        published=check_published_options(known_as, title=title, meta=meta, icons=icons, version=version),
        effects=check_effects(known_as, effects, idempotent, labels, reconcile, effects_of),
        examples=examples or (),
    )
    tool.unreadable = unreadable_return(shape.signature.returns)
    return tool


NEEDS_SCHEMA = "__toolwire_needs_schema__"
"""The attribute of a function whose parameters only a schema tells: the tool that it was made for."""


def tool_of(value: Any) -> Tool:
    """Returns the tool of a value: a `Tool`, an object with `__tool__()`, or a callable.

    Raises:
        DefinitionError: The value has another type, or the callable cannot become a tool.
    """
    if isinstance(value, Tool):
        return value
    if hasattr(cast("type[Any]", type(value)), "__tool__"):
        return value.__tool__()
    if callable(value):
        return from_function(value)
    raise DefinitionError(f"{value!r} is not a tool: give a function, a ToolSpec or a BaseTool")


class FunctionShape:
    """The parameters and the return value of a function."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        docs: Callable[[Collection[str]], Docs],
        *,
        leave_out: Collection[ParameterKind] = (),
    ) -> None:
        """`docs` reads the docstring, given the names of all parameters.

        `leave_out` are the kinds of parameters that no call gives.
        """
        if NEEDS_SCHEMA in getattr(function, "__dict__", {}):
            raise RegistrationError(
                f"{name!r} cannot be registered without its schema: make_subagent_tool gave both; "
                "write toolkit.register_tool_function(function, **register_kwargs)"
            )
        self._label = f"tool {name!r}"
        whole = read_signature(function, self._label)
        self.docs = functools.cache(functools.partial(docs, whole.names))
        self._takes_more = any(argument.kind == "var_keyword" for argument in whole.arguments)
        self.signature: Signature = replace(
            whole, arguments=tuple(argument for argument in whole.arguments if argument.kind not in leave_out)
        )
        self.spread = spread_for(self.signature.arguments, self.signature.context, function)
        self._module: str = getattr(plain_function(function), "__module__", None) or __name__
        self._misfits: dict[str, Callable[[Any], str | None]] = {}

    @property
    def kinds(self) -> Mapping[str, ParameterKind]:
        """Every parameter that can be given or bound."""
        return {argument.name: argument.kind for argument in self.signature.arguments}

    @property
    def never_visible(self) -> Mapping[str, str]:
        """The arguments of functools.partial, and the context parameter."""
        found = dict.fromkeys(self.signature.presets, "functools.partial gave it already")
        context = {} if self.signature.context is None else {self.signature.context: "each call gives its context"}
        return found | context

    def misfit(self, name: str, value: Any) -> str | None:
        """Checks the value by the parameter's annotation."""
        check = self._misfits.get(name)
        if check is None:
            argument = next((one for one in self.signature.arguments if one.name == name), None)
            if argument is None or argument.unresolved or argument.annotation is EMPTY:
                return None
            # Loaded here, as in `compile`.
            from toolwire.definition.arguments.function_form import misfit_of

            check = self._misfits[name] = misfit_of(with_none(argument.annotation, argument.default))
        return check(value)

    def takes(self, name: str) -> bool:
        """True if an argument can be given by that name."""
        return self._takes_more or self.kinds.get(name) in ("either", "keyword_only")

    def compile(self, hidden: frozenset[str]) -> Form:
        """Compiles the form without these parameters."""
        # Imported here: pydantic takes a tenth of a second, and code that only defines tools does not need it.
        from toolwire.definition.arguments.function_form import FunctionForm

        return FunctionForm(
            label=self._label,
            module=self._module,
            arguments=self.signature.arguments,
            hidden=hidden,
            never_given=frozenset(self.never_visible),
            descriptions=self._describe_parameters,
        )

    def parameters(self, form: Form) -> tuple[Parameter, ...]:
        """Returns all parameters in order."""
        schema = copy_schema(form.input_schema)
        return tuple(self._parameter(argument, schema) for argument in self.signature.arguments)

    def output(self) -> OutputShape:
        """Returns the output that the return annotation declares."""
        returns = _type_after_await(self.signature.returns)
        text = annotation_text(returns)
        if _promises_nothing(returns):
            return OutputShape(schema=None, is_wrapped=False, annotation=text)
        from toolwire.definition.arguments.function_form import output_schema

        schema = output_schema(returns)
        if schema is None or is_object(returns):
            return OutputShape(schema=schema, is_wrapped=False, annotation=text)
        return OutputShape(schema=_wrap_in_result(schema), is_wrapped=True, annotation=text)

    def _describe_parameters(self) -> Mapping[str, str]:
        """Returns the docstring's text of each parameter. It begins with the type that only the docstring gives."""
        docs = self.docs()
        return {
            argument.name: text_with_type(
                docs.types.get(argument.name, ""), docs.parameters.get(argument.name, ""), argument
            )
            for argument in self.signature.arguments
        }

    def _parameter(self, argument: Argument, schema: dict[str, Any]) -> Parameter:
        node: dict[str, Any] = schema["properties"].get(argument.name, {})
        written = both(text_metadata(argument.annotation), self._describe_parameters().get(argument.name, ""))
        return Parameter(
            name=argument.name,
            program_name=program_parameter(argument.name),
            kind=argument.kind,
            required=argument.name in schema.get("required", ()) if node else argument.default is EMPTY,
            default=_default(argument),
            schema=node,
            description=node.get("description", written),
            annotation=annotation_text(with_none(argument.annotation, argument.default)),
        )


def docs_of(function: Callable[..., Any], names: Collection[str] | None = None, *, parse: bool = True) -> Docs:
    """Returns the docstring of a function, or of the object behind a partial, wrapper or callable object.

    `names` are the function's parameters; the texts of other names stay in the description.
    """
    own = cast("Any", function.func) if isinstance(function, functools.partial) else function
    if inspect.isroutine(own) or hasattr(own, "__wrapped__"):
        return read_docstring(inspect.getdoc(own), parse=parse, names=names)
    call = plain_function(own)
    text = inspect.getdoc(call) if inspect.isfunction(call) else None
    return read_docstring(text or inspect.getdoc(own), parse=parse, names=names)


def name_of(function: Any) -> str:
    """Returns the name of a function, or of the function behind a partial.

    Raises:
        DefinitionError: The function has no name, or the object is not a function.
    """
    if isinstance(function, type):
        raise DefinitionError(
            f"{function.__name__!r} is a class: give one of its methods on an instance, or an instance that is callable"
        )
    if not callable(function):
        raise DefinitionError(f"{function!r} cannot be called: give a function")
    while isinstance(function, functools.partial):
        function = cast("Any", function.func)
    given = getattr(function, "__name__", None)
    name: str = given if given and isinstance(given, str) else type(function).__name__
    if name == "<lambda>":
        raise DefinitionError("a lambda has no name: give name='...', or write it with def")
    return name


def refuse_unknown(options: Mapping[str, Any], function: str) -> None:
    """Raises for the first unknown option.

    Raises:
        DefinitionError: An option is unknown. The message lists the known ones.
    """
    for option in options:
        if option not in OPTIONS:
            near = nearest(option, OPTIONS)
            hint = f" (did you mean {near!r}?)" if near else ""
            raise DefinitionError(
                f"function {function!r}: unknown option {option!r}{hint}: the options are {', '.join(OPTIONS)}"
            )


def _default(argument: Argument) -> Any:
    if argument.default is EMPTY:
        return MISSING
    field = argument.default
    if type(field).__module__ != "pydantic.fields":
        return field
    return MISSING if field.is_required() or field.default_factory is not None else field.default


_STREAMS = (
    *(collections.abc.Generator, collections.abc.AsyncGenerator, collections.abc.Iterator),
    *(collections.abc.AsyncIterator, collections.abc.AsyncIterable),
)


def _type_after_await(returns: Any) -> Any:
    if get_origin(returns) is collections.abc.Awaitable:
        return get_args(returns)[0]
    if get_origin(returns) is collections.abc.Coroutine:
        return get_args(returns)[2]
    if get_origin(returns) is Future:
        return get_args(returns)[0]
    return EMPTY if returns is Future else returns


def _promises_nothing(returns: Any) -> bool:
    if returns in (EMPTY, None, type(None), Any, object):
        return True
    kind = get_origin(returns) or returns
    if kind in _STREAMS:
        return True
    return isinstance(kind, type) and (issubclass(kind, ToolResult) or kind.__name__ == "ToolResponse")


def _wrap_in_result(schema: dict[str, Any]) -> dict[str, Any]:
    defs = schema.pop("$defs", None)
    whole: dict[str, Any] = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return {**whole, "$defs": defs} if defs else whole
