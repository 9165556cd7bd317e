"""Tools defined by a JSON schema, with or without a function."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Unpack, cast

from toolwire.definition.arguments.problems import (
    LazyProblem,
    as_lazy_problem,
    complaint,
    hidden_problem,
    unknown_problem,
)
from toolwire.definition.declared import PublishedOptions, check_effects, check_published_options
from toolwire.definition.docstring.docs import Docs
from toolwire.definition.hostile.schema_limits import check_limits
from toolwire.definition.json_schema.current_draft import read_outside_forms
from toolwire.definition.json_schema.required_defaults import RequiredDefaults
from toolwire.definition.naming import program_parameter, program_parameters
from toolwire.definition.root_fields import with_root_fields
from toolwire.definition.schema_function import (
    context_first,
    refuse_hidden_name,
    refuse_untakable,
    signature_of,
    takable_by,
)
from toolwire.definition.shape import MISSING, ArgumentProblem, Form, Invalid, OutputShape, Parameter, ParameterKind
from toolwire.definition.signature import Signature
from toolwire.definition.texts.annotation import schema_text
from toolwire.definition.texts.outside_texts import clean_schema, clean_text, original_of
from toolwire.definition.tool import Check, Permission, Tool
from toolwire.definition.words import describe_one_value, limit_references, short_repr
from toolwire.vocabulary.effects import Effect, EffectsOf, Idempotency, Label, Reconcile
from toolwire.vocabulary.errors import DefinitionError, Unrepresentable
from toolwire.vocabulary.texts.lone_surrogates import encodable_text
from toolwire.vocabulary.values import plain_value

if TYPE_CHECKING:
    from toolwire.definition.json_schema.validator import Validator

_LOG = logging.getLogger("toolwire.arguments")


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
    effects_of: EffectsOf | None = None,
    examples: Iterable[Any] | None = None,
    check: Check | None = None,
    is_outside: bool = False,
    given: Collection[str] = (),
    **extras: Unpack[PublishedOptions],
) -> Tool:
    """Makes a tool whose arguments are checked by a JSON schema and passed to `function` as keywords.

    The schema is Draft 2020-12 unless its `$schema` names another draft. Defaults of its properties are filled in;
    formats are not checked. A function without `**more` also refuses unknown arguments by name. A tool without one
    cannot be called. A callable `description` is called each time. Only the host gives the parameters in `given`.

    Raises:
        DefinitionError: The schema or the function does not fit; the message says where and how.
    """
    label = f"tool {name!r}"
    signature = None if function is None else signature_of(function, label)
    _check_sizes(label, input_schema, output_schema)
    exact = told = _object_schema(input_schema, label)
    original = original_of(label, title, description, exact, output_schema) if is_outside else None
    if is_outside:
        told = clean_schema(exact, label)
        title, description = _clean_if_text(title) or None, _clean_if_text(description)
    shape = SchemaShape(label, exact, output_schema, signature, given, told=told, is_outside=is_outside)
    tool = Tool(
        name=name,
        shape=shape,
        docs=Docs,
        function=function,
        signature=signature,
        title=title,
        description=description,
        tags=tags or (),
        annotations=annotations,
        output_schema=shape.told_output,
        permission=permission,
        published=check_published_options(name, title=title, **extras),
        effects=check_effects(name, effects, idempotent, labels, reconcile, effects_of),
        examples=examples or (),
        check=check,
        is_outside=is_outside,
    )
    tool.original = original
    return tool


def _check_sizes(label: str, input_schema: object, output_schema: object) -> None:
    for place, schema in (("schema", input_schema), ("output schema", output_schema)):
        if isinstance(schema, Mapping):
            check_limits(cast("Mapping[str, Any]", schema), label, place=place)


class SchemaShape:
    """The parameters and the output of a tool according to its schemas."""

    def __init__(
        self,
        label: str,
        schema: dict[str, Any],
        output_schema: Mapping[str, Any] | None,
        signature: Signature | None,
        given: Collection[str] = (),
        *,
        told: dict[str, Any] | None = None,
        is_outside: bool = False,
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
        self._fields = with_root_fields(told)
        self.told_output, self._output_check = output_schema, None
        """The output schema as models read it."""
        if is_outside and output_schema is not None:
            self.told_output, self._output_check = (
                clean_schema(output_schema, label),
                output_check(output_schema, label),
            )
        self._signature = signature
        # A stranger's names are numbered, because its user cannot rename them.
        if not is_outside:
            _refuse_look_alikes(self._properties, label)
        self._program_names = program_parameters(self._fields.get("properties", {}))
        self.spread = context_first(signature)
        if signature is not None:
            refuse_hidden_name(self._fields.get("properties", {}), signature, label)
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
            written = {name: plain_value(value)}
        except Unrepresentable:
            return None
        from toolwire.definition.json_schema.validator import Validator

        kept = {key: node for key, node in self._exact.items() if key in ("$schema", "$defs", "definitions")}
        schema = {**kept, "type": "object", "properties": {name: properties[name]}}
        if next(iter(Validator(schema, self._patterns, self._label).problems(written)), None) is None:
            return None
        wanted = describe_one_value(properties[name], schema)
        return f"is of type {type(value).__name__} and does not fit: it must be {wanted}"

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
            _without(self._schema, hidden),
            exact,
            hidden,
            never_given,
            takable_by(self._signature),
            validator,
            label=self._label,
        )

    @limit_references
    def parameters(self, form: Form) -> tuple[Parameter, ...]:
        """Returns the parameters, required ones first so that they form a Python signature.

        Otherwise the schema's order.
        """
        is_required = cast("SchemaForm", form).is_required
        required = [name for name in cast("list[str]", self._fields.get("required", [])) if is_required(name)]
        ordered = sorted(self._fields.get("properties", {}), key=lambda name: name not in required)
        return tuple(self._parameter(name, name in required, form) for name in ordered)

    def output(self) -> OutputShape:
        """Returns the output that the output schema declares."""
        promised = self.told_output
        text = "" if promised is None else schema_text(promised, promised)
        return OutputShape(schema=None, is_wrapped=False, annotation=text, check=self._output_check)

    def _parameter(self, name: str, required: bool, form: Form) -> Parameter:
        own = self._fields["properties"][name]
        node = cast("dict[str, Any]", own) if isinstance(own, dict) else {}
        # Only defaults of the root's own properties are filled in.
        filled = self._properties.get(name)
        default = filled.get("default", MISSING) if isinstance(filled, dict) else MISSING
        return Parameter(
            name=name,
            program_name=self._program_names[name],
            kind="either",
            required=required,
            default=copy.deepcopy(default),
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
        *,
        label: str,
    ) -> None:
        self._label = label
        self.input_schema = schema
        self.hidden = hidden
        self._never_given = never_given
        self._takable = takable
        self._properties = cast("dict[str, Any]", with_root_fields(schema).get("properties", {}))
        self._defaults = {
            name: cast("dict[str, Any]", node)["default"]
            for name, node in cast("dict[str, Any]", exact.get("properties", {})).items()
            if isinstance(node, dict) and "default" in node
        }
        self._validator = validator
        self._required_defaults = RequiredDefaults(exact, validator.fits)

    def read(self, arguments: dict[str, Any]) -> dict[str, Any] | Invalid:
        """Returns the arguments as JSON types with defaults filled in, or all problems."""
        problems = [as_lazy_problem(hidden_problem(name)) for name in arguments if name in self._never_given]
        values: dict[str, Any] = {}
        for name, value in arguments.items():
            if name in self._never_given:
                continue
            if self._takable is not None and name not in self._takable:
                problems.append(
                    LazyProblem(str(name), partial(unknown_problem, str(name), str(name), self._properties))
                )
                continue
            try:
                values[name] = plain_value(value)
            except Unrepresentable as error:
                problems.append(as_lazy_problem(_unrepresentable(name, value, error)))
        filled = self._required_defaults.fill_in(values)
        with closing(self._validator.problems(values)) as found:
            wrong = complaint(chain(problems, found))
        if wrong is not None:
            return wrong
        for path in filled:
            _LOG.info("%s: %s: it is required and was not given: its default is filled in", self._label, path)
        missing = {name: copy.deepcopy(default) for name, default in self._defaults.items() if name not in values}
        return {**values, **missing}

    def is_required(self, name: str) -> bool:
        """False for a property whose default is filled in although the schema requires it."""
        return name not in self._required_defaults.of_root()

    def is_default(self, name: str, value: Any) -> bool:  # noqa: ARG002  # a function's form needs them
        """Always False, because defaults in a schema are JSON."""
        return False

    def is_certain(self, name: str) -> bool:  # noqa: ARG002  # a function's form needs the name
        """Always True, because the values are already JSON."""
        return True


def output_check(schema: Mapping[str, Any], label: str) -> Callable[[Any], str | None]:
    """Returns the check of a tool's results.

    It has the limits of the arguments' check, so no schema holds its thread up.

    Raises:
        DefinitionError: The output schema cannot be used; the message says why.
    """
    # Imported here: only tools defined by a schema need jsonschema.
    from toolwire.definition.json_schema.validator import Validator, check_schema, warn_of_unchecked

    kept, label = copy.deepcopy(dict(schema)), f"{label}, output"
    patterns = check_schema(kept, label)
    warn_of_unchecked(kept, patterns, label)
    validator = Validator(kept, patterns, label, whole="result")

    def misfit(data: Any) -> str | None:
        try:
            written = plain_value(data)
        except Unrepresentable:
            # The last step before the result is returned says so.
            return None
        try:
            with closing(validator.problems(written)) as found:
                wrong = complaint(found)
        except DefinitionError as error:
            return f"{error}."
        return None if wrong is None else " ".join(problem.message for problem in wrong.problems)

    return misfit


def _clean_if_text(text: Any) -> Any:
    """Cleans an outside author's text. A callable description is the host's own and stays as it is."""
    return clean_text(text) if isinstance(text, str) else text


def _object_schema(schema: Mapping[str, Any] | None, label: str) -> dict[str, Any]:
    if schema is None:
        return {"type": "object", "properties": {}}
    if not isinstance(cast("object", schema), Mapping):
        raise DefinitionError(f"{label}: input_schema must be a JSON schema as a dict, not {short_repr(schema)}")
    copied = read_outside_forms(copy.deepcopy(dict(schema)))
    if copied.setdefault("type", "object") != "object":
        raise DefinitionError(f'{label}: input_schema must have "type": "object", not {short_repr(copied["type"])}')
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
    message = f"{name!r} must be JSON, not {short_repr(value)}: {error}."
    return ArgumentProblem(path=name, kind="invalid", message=message)
