"""Validation of Python arguments with pydantic. Import this module only when it is needed: pydantic is slow to import.

`generate_arguments_schema` is experimental and refuses some signatures, such as `def f(a, /, b=3, *rest)`. It therefore
gets a stand-in for the function, with only keyword-only parameters and resolved types. `*rest: T` becomes `rest:
tuple[T, ...] = ()`, and `**more: T` becomes `more: dict[str, T] = {}`.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast, get_origin

from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.experimental.arguments_schema import generate_arguments_schema
from pydantic_core import PydanticOmit, SchemaError, ValidationError

from toolwire.definition.arguments.conversions import with_refused_failures
from toolwire.definition.arguments.input_schema import ToolJsonSchema, finish_schema
from toolwire.definition.arguments.json_values import with_json_values
from toolwire.definition.arguments.problems import as_lazy_problem, complaint, hidden_problem, problems_of
from toolwire.definition.arguments.same import same
from toolwire.definition.arguments.typing_forms import readable_type, text_metadata, unpack_typed_dict, with_none
from toolwire.definition.arguments.validation import Validation
from toolwire.definition.hostile.core_tree import is_json
from toolwire.definition.hostile.recursive_types import TooManySteps
from toolwire.definition.shape import ArgumentProblem, Invalid
from toolwire.definition.signature import EMPTY, Argument
from toolwire.definition.texts.annotation import annotation_text
from toolwire.definition.words import path_text, resolve
from toolwire.vocabulary.errors import DefinitionError

_INDESCRIBABLE = (PydanticUserError, PydanticOmit, SchemaError, NameError, TypeError, ValueError, AttributeError)
"""Exceptions of pydantic for annotations that it cannot handle."""


class FunctionForm:
    """The arguments of a function, without its hidden parameters."""

    def __init__(
        self,
        *,
        label: str,
        module: str,
        arguments: Sequence[Argument],
        hidden: frozenset[str],
        never_given: frozenset[str],
        descriptions: Callable[[], Mapping[str, str]],
    ) -> None:
        self.hidden = hidden
        self._label = label
        self._module = module
        self._visible = [argument for argument in arguments if argument.name not in hidden]
        self._descriptions = descriptions
        self._not_given = hidden | never_given
        self._by_name = never_given | (hidden - {item.name for item in arguments})
        self._by_name |= {item.name for item in arguments if item.kind != "positional_only"}
        self._more = next((item.name for item in self._visible if item.kind == "var_keyword"), None)
        self._input_schema: dict[str, Any] | None = None
        self._core = self._generate_schema()
        try:
            self._validation = _validation(self._core)
        except _INDESCRIBABLE as error:
            raise self._error_of_parameters(error) from error
        self._validate = self._validation.validate

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the visible arguments."""
        if self._input_schema is None:
            try:
                schema = ToolJsonSchema().generate(self._core, mode="validation")
            except _INDESCRIBABLE as error:
                raise self._error_of_parameters(error) from error
            authored = {argument.name: text_metadata(argument.annotation) for argument in self._visible}
            self._input_schema = finish_schema(schema, authored, self._descriptions())
        return self._input_schema

    def read(self, arguments: dict[str, Any]) -> dict[str, Any] | Invalid:
        """Returns the arguments as real objects, or all problems."""
        try:
            values = self._validate(arguments)[1]
        except (ValidationError, TooManySteps) as error:
            wrong = self._validation.errors(error, arguments)
            found = problems_of(wrong.read, arguments, self.input_schema, self._not_given)
            return cast("Invalid", complaint(found, more=wrong.more, is_partial=wrong.is_partial))
        if self._more is None:
            return values
        doubled = complaint(
            as_lazy_problem(self._duplicate_problem(name)) for name in values[self._more] if name in self._by_name
        )
        return values if doubled is None else doubled

    def is_default(self, name: str, value: Any) -> bool:
        """True if the value equals the parameter's own default."""
        return any(argument.name == name and same(argument.default, value) for argument in self._visible)

    def is_certain(self, name: str) -> bool:
        """True if the parameter accepts only JSON types, and none of the author's code runs for it."""
        return name in self._certain

    @cached_property
    def _certain(self) -> frozenset[str]:
        core = self._core["schema"] if self._core["type"] == "definitions" else self._core
        return frozenset(item["name"] for item in core["arguments_schema"] if is_json(item["schema"]))

    def _duplicate_problem(self, name: str) -> ArgumentProblem:
        path = f"{self._more}.{name}"
        if name in self._not_given:
            return hidden_problem(path)
        message = f"{path!r} is a parameter of its own: give {name!r} beside {self._more!r}, not inside it."
        return ArgumentProblem(path=path, kind="unexpected", message=message)

    def _generate_schema(self) -> Any:
        for argument in self._visible:
            if argument.unresolved:
                raise self._error_of_unresolved(argument)
        try:
            core: Any = generate_arguments_schema(self._stand_in(self._visible), schema_type="arguments-v3")
        except _INDESCRIBABLE as error:
            raise self._error_of_parameters(error) from error
        for item in (core["schema"] if core["type"] == "definitions" else core)["arguments_schema"]:
            if "alias" in item:
                raise DefinitionError(
                    f"{self._label}: parameter {item['name']!r} has the alias {item['alias']!r}: a tool's parameters "
                    "go by their own names, rename it"
                )
        return core

    def _stand_in(self, arguments: Sequence[Argument]) -> Any:
        parameters = [_keyword_only(argument) for argument in arguments]
        stand_in: Any = types.FunctionType(_stand_in_body.__code__, globals(), self._label)
        stand_in.__signature__ = inspect.Signature(parameters)
        stand_in.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        stand_in.__module__ = self._module
        return stand_in

    def _error_of_parameters(self, error: Exception) -> DefinitionError:
        """Returns the error for the first parameter that pydantic cannot handle on its own."""
        for argument in self._visible:
            try:
                core = generate_arguments_schema(self._stand_in([argument]), schema_type="arguments-v3")
                ToolJsonSchema().generate(core, mode="validation")
                _validation(core)
            except _INDESCRIBABLE as own:
                return self._indescribable(argument, own)
        return DefinitionError(f"{self._label}: its parameters cannot be described together: {error}")

    def _indescribable(self, argument: Argument, error: Exception) -> DefinitionError:
        annotation = argument.annotation
        written = annotation.__name__ if isinstance(annotation, type) else annotation_text(annotation)
        part = "" if get_origin(annotation) is None else "part of "
        # The message about a schema that cannot be built goes from the outside in, so its last line is the cause.
        detail = str(error).split("\n")[-1 if isinstance(error, SchemaError) else 0].strip().rstrip(".")
        # For unknown classes pydantic's advice is about models. Our own advice comes first.
        detail = "" if "arbitrary_types_allowed" in detail else f" ({detail})"
        return DefinitionError(
            f"{self._label}: parameter {argument.name!r} is annotated {written}, {part}which no model can give. Use a "
            f"JSON type or a model of JSON types; or let the host give it: tool.bind({argument.name!r}, "
            f"default=...), or a parameter annotated with CallContext.{detail}"
        )

    def _error_of_unresolved(self, argument: Argument) -> DefinitionError:
        return DefinitionError(
            f"{self._label}: parameter {argument.name!r} is annotated with {argument.unresolved!r}, which is not "
            f"defined where the function is. Import it outside `if TYPE_CHECKING`, or let the host give the argument: "
            f"tool.bind({argument.name!r}, default=...)."
        )


def output_schema(annotation: Any) -> dict[str, Any] | None:
    """Returns the JSON schema of values of the type as they are sent. None if pydantic cannot describe the type."""
    try:
        schema = TypeAdapter(readable_type(annotation)).json_schema(
            mode="serialization", schema_generator=ToolJsonSchema
        )
    except _INDESCRIBABLE:
        return None
    # A recursive type is only a reference, but readers of the schema look for its `type`.
    return {**resolve(schema, schema), "$defs": schema["$defs"]} if "$ref" in schema else schema


def _validation(core: Any) -> Validation:
    schema, values_in_classes = with_json_values(core)
    schema, conversions_in_classes = with_refused_failures(schema)
    return Validation(schema, is_rebuilt=values_in_classes or conversions_in_classes)


def _stand_in_body(**_values: Any) -> None: ...


def _keyword_only(argument: Argument) -> inspect.Parameter:
    annotation, default = _as_one_value(argument)
    return inspect.Parameter(
        argument.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=readable_type(annotation)
    )


def _as_one_value(argument: Argument) -> tuple[Any, Any]:
    annotation = Any if argument.annotation is EMPTY else argument.annotation
    if argument.kind == "var_positional":
        return tuple[annotation, ...], ()
    if argument.kind == "var_keyword":
        fields = unpack_typed_dict(annotation)
        if fields is not None:
            return fields, EMPTY if fields.__required_keys__ else {}
        return dict[str, annotation], {}
    return with_none(annotation, argument.default), argument.default


Misfit = Callable[[Any], str | None]
"""Says why a value does not fit, or gives None. It never shows the value, which may be a secret."""

_SCALARS: frozenset[object] = frozenset({type(None), str, bytes, bool, int, float})
_CONTAINERS: frozenset[object] = frozenset({list, tuple, dict, set, frozenset})
_CONTAINER_ERRORS = frozenset(
    {"list_type", "tuple_type", "set_type", "frozen_set_type", "dict_type", "mapping_type", "iterable_type"}
)
_TEXT_ERRORS = frozenset({"string_type", "bytes_type"})
_NUMBER_ERRORS = frozenset({"int_type", "float_type", "bool_type"})
_OWN_ERRORS = frozenset({"value_error", "assertion_error"})
"""Errors whose texts come from a validator of the owner's, and may show the value."""


def misfit_of(annotation: Any) -> Misfit:
    """Returns the check for values of this type. It fits everything if pydantic cannot check the type.

    Values stay as they are, so nothing is converted: "5" does not fit `int`. An object of another class fits a class, a
    container or a model, because it may stand in for one. Plain data, such as a text or a dict, does not.
    """
    adapter = _adapter(annotation)
    if adapter is None:
        return lambda _: None
    text = annotation.__name__ if isinstance(annotation, type) else annotation_text(annotation)

    def misfit(value: Any) -> str | None:
        try:
            read = adapter.validate_python(value, strict=True)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False)
            if not all(_counts(one["type"], one["input"]) for one in found):
                return None
            first = found[0]
            place = path_text(first["loc"])
            said = "" if first["type"] in _OWN_ERRORS else f": {f'{place}: ' if place else ''}{first['msg']}"
            return f"is of type {type(value).__name__} and does not fit {text}{said}"
        except TypeError:
            # A protocol that cannot be checked at run time.
            return None
        if type(value) is dict and type(read) is not dict:
            return f"is of type dict and does not fit {text}"
        return None

    return misfit


def _adapter(annotation: Any) -> TypeAdapter[Any] | None:
    kind = readable_type(annotation)
    try:
        return TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:
        # A model, dataclass or TypedDict takes no configuration from outside.
        try:
            return TypeAdapter(kind)
        except _INDESCRIBABLE:
            return None
    except _INDESCRIBABLE:
        return None


def _counts(error: str, value: object) -> bool:
    """True if the value cannot be meant to stand in for another one."""
    kind = cast("object", type(value))
    if kind in _SCALARS:
        return True
    if kind in _CONTAINERS:
        return error not in _CONTAINER_ERRORS
    if error in _NUMBER_ERRORS:
        return not any(hasattr(value, name) for name in ("__index__", "__int__", "__float__"))
    return error in _TEXT_ERRORS
