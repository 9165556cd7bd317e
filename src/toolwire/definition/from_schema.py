"""Tools defined by a JSON schema, with or without a function."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Unpack, cast

from toolwire.definition.arguments.problems import Found, complaint, told, unexpected
from toolwire.definition.arguments.problems import hidden as hidden_problem
from toolwire.definition.declared import PublishedOptions, declared, published
from toolwire.definition.docstring import Docs
from toolwire.definition.json_schema.schema_limits import check_limits
from toolwire.definition.naming import program_parameter
from toolwire.definition.shape import MISSING, ArgumentProblem, Form, Invalid, OutputShape, Parameter, ParameterKind
from toolwire.definition.signature import Signature
from toolwire.definition.texts.annotation import schema_text
from toolwire.definition.texts.outside_texts import told_schema, told_text
from toolwire.definition.tool import Check, Permission, Tool
from toolwire.definition.words import bounded, expected_one, shown
from toolwire.vocabulary.effects import Effect, Idempotency, Label, Reconcile
from toolwire.vocabulary.errors import DefinitionError, Unrepresentable
from toolwire.vocabulary.text import encodable_text
from toolwire.vocabulary.values import plain

if TYPE_CHECKING:
    from toolwire.definition.json_schema.validator import Validator
import inspect

from toolwire.definition.signature import EMPTY, read_signature
from toolwire.definition.words import nearest_hint


def from_schema(
    name: str,
    description: str | Callable[[], str] = "",
    input_schema: Mapping[str, Any] | None = None,
    output_schema: Mapping[str, Any] | None = None,
    function: Callable[..., Any] | None = None,
    *,
    title: str | None = None,
    tags: Iterable[str] | None = None,
    annotations: Mapping[str, Any] | None = None,
    permission: Permission = "auto",
    effects: Iterable[Effect] | None = None,
    idempotent: Idempotency = "no",
    labels: Iterable[Label] | None = None,
    reconcile: Reconcile | None = None,
    examples: Iterable[Any] | None = None,
    check: Check | None = None,
    is_outside: bool = False,
    given: Collection[str] = (),
    **extras: Unpack[PublishedOptions],
) -> Tool:
    """Makes a tool whose arguments are checked by a JSON schema and passed to `function` as keywords.

    The schema is Draft 2020-12 unless its `$schema` names another draft. Defaults of its properties are filled in;
    formats are not checked. A function without `**more` also refuses unknown arguments by name. Without a function the
    tool can be described but not called. A callable `description` is called each time. `given` are parameters of the
    function that the host will give, which the schema need not have.

    Raises:
        DefinitionError: The schema does not describe an object, or refers to another document. Or two properties would
            have one name in a program, or the function lacks a property.
    """
    label = f"tool {name!r}"
    signature = None if function is None else signature_of(function, label)
    for place, given_schema in (("schema", input_schema), ("output schema", output_schema)):
        if isinstance(cast("object", given_schema), Mapping):
            check_limits(given_schema, label, place=place)
    exact = told = _object_schema(input_schema, label)
    if is_outside:
        told, title, description = told_schema(exact, label), _told(title) or None, _told(description)
        output_schema = None if output_schema is None else told_schema(output_schema, label)
    return Tool(
        name=name,
        shape=SchemaShape(label, exact, output_schema, signature, given, told=told),
        docs=Docs,
        function=function,
        is_async=signature is not None and signature.is_async,
        context_parameter=None if signature is None else signature.context,
        title=title,
        description=description,
        tags=tags or (),
        annotations=annotations,
        output_schema=output_schema,
        permission=permission,
        published=published(name, title=title, **extras),
        effects=declared(name, effects, idempotent, labels, reconcile),
        examples=examples or (),
        check=check,
        is_outside=is_outside,
    )


class SchemaShape:
    """The parameters and the output of a tool according to its schemas."""

    spread = None

    def __init__(
        self,
        label: str,
        schema: dict[str, Any],
        output_schema: Mapping[str, Any] | None,
        signature: Signature | None,
        given: Collection[str] = (),
        *,
        told: dict[str, Any] | None = None,
    ) -> None:
        """`schema` checks the arguments. Models read `told`, or `schema` if it is None."""
        # Imported here: only tools defined by a schema need jsonschema.
        from toolwire.definition.json_schema.validator import check_schema, warn_of_unchecked

        self._patterns = check_schema(schema, label)
        warn_of_unchecked(schema, self._patterns, label)
        self._label = label
        self._exact = schema
        self._schema = told = schema if told is None else told
        self._properties = cast("dict[str, dict[str, Any] | bool]", told.get("properties", {}))
        self._output_schema = output_schema
        self._signature = signature
        _refuse_look_alikes(self._properties, label)
        if signature is not None:
            refuse_untakable(self._properties, signature, label, given)

    @property
    def kinds(self) -> Mapping[str, ParameterKind]:
        """The properties."""
        return dict.fromkeys(self._properties, "either")

    @property
    def never_visible(self) -> Mapping[str, str]:
        """The function's context parameter."""
        context = None if self._signature is None else self._signature.context
        return {} if context is None else {context: "each call gives its context"}

    def misfit(self, name: str, value: Any) -> str | None:
        """Checks the value by the property's schema. An object without a JSON form fits."""
        properties = cast("dict[str, Any]", self._exact.get("properties", {}))
        if name not in properties:
            return None
        try:
            written = {name: plain(value)}
        except Unrepresentable:
            return None
        from toolwire.definition.json_schema.validator import Validator

        kept = {key: node for key, node in self._exact.items() if key in ("$schema", "$defs", "definitions")}
        schema = {**kept, "type": "object", "properties": {name: properties[name]}}
        if next(iter(Validator(schema, self._patterns, self._label).problems(written)), None) is None:
            return None
        return (
            f"is of type {type(value).__name__} and does not fit: it must be {expected_one(properties[name], schema)}"
        )

    def takes(self, name: str) -> bool:
        """True if the function takes this name."""
        takable = takable_by(self._signature)
        return takable is None or name in takable

    def compile(self, hidden: frozenset[str]) -> Form:
        """Compiles the form without these properties."""
        from toolwire.definition.json_schema.validator import Validator

        never_given = hidden | self.never_visible.keys()
        exact = _without(self._exact, hidden)
        validator = Validator(exact, self._patterns, self._label)
        return SchemaForm(
            _without(self._schema, hidden), exact, hidden, never_given, takable_by(self._signature), validator
        )

    @bounded
    def parameters(self, form: Form) -> tuple[Parameter, ...]:
        """Returns the parameters, required ones first so that they form a Python signature.

        Otherwise the schema's order.
        """
        required = self._schema.get("required", [])
        ordered = sorted(self._properties, key=lambda name: name not in required)
        return tuple(self._parameter(name, name in required, form) for name in ordered)

    def output(self) -> OutputShape:
        """Returns the output that the output schema declares."""
        promised = self._output_schema
        text = "" if promised is None else schema_text(promised, promised)
        return OutputShape(schema=None, is_wrapped=False, annotation=text)

    def _parameter(self, name: str, required: bool, form: Form) -> Parameter:
        own = self._properties[name]
        node = own if isinstance(own, dict) else {}
        return Parameter(
            name=name,
            kind="either",
            required=required,
            default=copy.deepcopy(node.get("default", MISSING)),
            schema={} if name in form.hidden else copy.deepcopy(node),
            description=encodable_text(str(node.get("description", ""))),
            annotation=schema_text(node, self._schema),
        )


class SchemaForm:
    """The arguments of a schema, without its hidden properties."""

    def __init__(
        self,
        schema: dict[str, Any],
        exact: dict[str, Any],
        hidden: frozenset[str],
        never_given: frozenset[str],
        takable: frozenset[str] | None,
        validator: Validator,
    ) -> None:
        self.input_schema = schema
        self.hidden = hidden
        self._never_given = never_given
        self._takable = takable
        self._properties = cast("dict[str, Any]", schema.get("properties", {}))
        self._defaults = {
            name: cast("dict[str, Any]", node)["default"]
            for name, node in cast("dict[str, Any]", exact.get("properties", {})).items()
            if isinstance(node, dict) and "default" in node
        }
        self._validator = validator

    def read(self, arguments: dict[str, Any]) -> dict[str, Any] | Invalid:
        """Returns the arguments as JSON types with defaults filled in, or all problems."""
        problems = [told(hidden_problem(name)) for name in arguments if name in self._never_given]
        values: dict[str, Any] = {}
        for name, value in arguments.items():
            if name in self._never_given:
                continue
            if self._takable is not None and name not in self._takable:
                problems.append(Found(str(name), partial(unexpected, str(name), str(name), self._properties)))
                continue
            try:
                values[name] = plain(value)
            except Unrepresentable as error:
                problems.append(told(_unrepresentable(name, value, error)))
        with closing(self._validator.problems(values)) as found:
            wrong = complaint(chain(problems, found))
        if wrong is not None:
            return wrong
        missing = {name: copy.deepcopy(default) for name, default in self._defaults.items() if name not in values}
        return {**values, **missing}

    def is_default(self, name: str, value: Any) -> bool:  # noqa: ARG002  # a function's form needs them
        """Always False, because defaults in a schema are JSON."""
        return False

    def is_certain(self, name: str) -> bool:  # noqa: ARG002  # a function's form needs the name
        """Always True, because the values are already JSON."""
        return True


def _told(text: Any) -> Any:
    """Cleans an outside author's text. A callable description is the host's own and stays as it is."""
    return told_text(text) if isinstance(text, str) else text


def _object_schema(schema: Mapping[str, Any] | None, label: str) -> dict[str, Any]:
    if schema is None:
        return {"type": "object", "properties": {}}
    if not isinstance(cast("object", schema), Mapping):
        raise DefinitionError(f"{label}: input_schema must be a JSON schema as a dict, not {shown(schema)}")
    copied = copy.deepcopy(dict(schema))
    if copied.setdefault("type", "object") != "object":
        raise DefinitionError(f'{label}: input_schema must have "type": "object", not {shown(copied["type"])}')
    return copied


def _refuse_look_alikes(properties: Mapping[str, Any], label: str) -> None:
    written: dict[str, str] = {}
    for name in properties:
        other = written.setdefault(program_parameter(name), name)
        if other != name:
            raise DefinitionError(
                f"{label}: a program writes {program_parameter(name)!r} for both {other!r} and {name!r}: rename one"
            )


def _without(schema: dict[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    if not hidden:
        return schema
    left = dict(schema)
    left["properties"] = {name: node for name, node in schema.get("properties", {}).items() if name not in hidden}
    if "required" in schema:
        left["required"] = [name for name in schema["required"] if name not in hidden]
    return left


def _unrepresentable(name: str, value: Any, error: Unrepresentable) -> ArgumentProblem:
    message = f"{name!r} must be JSON, not {shown(value)}: {error}."
    return ArgumentProblem(path=name, kind="invalid", message=message)


def signature_of(function: Callable[..., Any], label: str) -> Signature | None:
    if not callable(cast("object", function)):
        raise DefinitionError(f"{label}: function={function!r} cannot be called")
    try:
        inspect.signature(function)
    except (ValueError, TypeError):
        return None
    return read_signature(function, label)


def takable_by(signature: Signature | None) -> frozenset[str] | None:
    """Returns the names that the function takes by keyword. None if it takes any name."""
    if signature is None or any(argument.kind == "var_keyword" for argument in signature.arguments):
        return None
    return frozenset(item.name for item in signature.arguments if item.kind in ("either", "keyword_only"))


def refuse_untakable(properties: Mapping[str, Any], signature: Signature, label: str, given: Collection[str]) -> None:
    takable = takable_by(signature)
    for name in properties:
        if takable is not None and name not in takable:
            raise DefinitionError(
                f"{label}: the function has no parameter for the property {name!r} ({nearest_hint(name, takable)}): "
                "add it, or **more"
            )
    for argument in signature.arguments:
        needed = argument.default is EMPTY and argument.kind in ("positional_only", "either", "keyword_only")
        if needed and argument.name not in properties and argument.name not in given:
            raise DefinitionError(
                f"{label}: the function needs {argument.name!r}, which the schema lacks: add it to 'properties', or "
                "give it a default"
            )
