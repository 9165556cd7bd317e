"""A tool that takes the fields of a pydantic model beside its own arguments, and builds the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from toolwire.definition.arguments.input_schema import ToolJsonSchema
from toolwire.definition.arguments.problems import (
    GivenError,
    LazyProblem,
    as_lazy_problem,
    complaint,
    problems_of,
    unknown_problem,
)
from toolwire.definition.arguments.same import same
from toolwire.definition.arguments.validation import Validation
from toolwire.definition.hostile.recursive_types import TooManySteps
from toolwire.definition.naming import program_parameter
from toolwire.definition.shape import (
    MISSING,
    ArgumentProblem,
    Form,
    Invalid,
    OutputShape,
    Parameter,
    ParameterKind,
    Shape,
    StructuredValues,
)
from toolwire.definition.texts.annotation import schema_text
from toolwire.definition.texts.odd_defaults import copy_schema
from toolwire.definition.tool import Tool
from toolwire.definition.words import resolve
from toolwire.vocabulary.errors import DefinitionError


def extend_tool(tool: Tool, model: type[BaseModel] | None) -> Tool:
    """Returns the tool with the model's fields among its arguments. With None, it returns the original tool.

    Raises:
        DefinitionError: The model is not a pydantic model with fields, or a field is bound or preset.
    """
    shape = tool.shape
    own = shape.own if isinstance(shape, ExtendedShape) else shape
    view = tool.with_shape(own if model is None else ExtendedShape(f"tool {tool.name!r}", own, model))
    view.verify()
    return view


def model_of(tool: Tool) -> type[BaseModel] | None:
    """Returns the model by which the tool was extended, or None."""
    return tool.shape.model if isinstance(tool.shape, ExtendedShape) else None


class ExtendedShape:
    """A shape with the fields of a model. A parameter with the same name as a field is that field."""

    def __init__(self, label: str, own: Shape, model: type[BaseModel]) -> None:
        self._label = label
        self.own = own
        self.model = model
        self.schema = _model_schema(label, model)
        by_alias = {field.validation_alias: name for name, field in model.model_fields.items()}
        by_alias |= {field.alias: name for name, field in model.model_fields.items()}
        self.fields: dict[str, str] = {
            name: str(by_alias.get(name, name)) for name in cast("dict[str, Any]", self.schema["properties"])
        }
        """The field name of each property."""
        self._covered = frozenset({*self.fields, *self.fields.values()})
        """Parameters of the tool itself that are now fields."""

    @property
    def kinds(self) -> Mapping[str, ParameterKind]:
        """The parameters of the tool and of the model."""
        return {**self.own.kinds, **dict.fromkeys(self.fields, "keyword_only")}

    @property
    def never_visible(self) -> Mapping[str, str]:
        """The hidden parameters of the tool itself."""
        return self.own.never_visible

    def misfit(self, name: str, value: Any) -> str | None:
        """Checks the value as the tool itself does."""
        return self.own.misfit(name, value)

    def takes(self, name: str) -> bool:
        """True if the function itself takes this name."""
        return self.own.takes(name)

    def compile(self, hidden: frozenset[str]) -> Form:
        """Compiles the form of the tool and the model."""
        taken = [name for name in self.fields if name in hidden or name in self.never_visible]
        if taken:
            raise DefinitionError(
                f"{self._label}: the field {taken[0]!r} of {self.model.__name__} is a parameter that the host gives: "
                "rename the field, or leave it to the model"
            )
        return ExtendedForm(self, self.own.compile(hidden | self._covered), hidden)

    def parameters(self, form: Form) -> tuple[Parameter, ...]:
        """Returns the tool's own parameters, then the fields."""
        whole = form.input_schema
        own = [item for item in self.own.parameters(cast("ExtendedForm", form).own) if item.name not in self._covered]
        return (*own, *(self._parameter(name, whole) for name in self.fields))

    def output(self) -> OutputShape:
        """Returns the output of the tool itself."""
        return self.own.output()

    def spread(self, function: Callable[..., Any], values: dict[str, Any]) -> Any:
        """Calls the function with the fields that it takes, under their names in the model."""
        own = {name: value for name, value in values.items() if name not in self.fields}
        own |= {field: values[name] for name, field in self.fields.items() if self.own.takes(field)}
        spread = self.own.spread
        return function(**own) if spread is None else spread(function, own)

    def _parameter(self, name: str, whole: dict[str, Any]) -> Parameter:
        node = cast("dict[str, Any]", whole["properties"][name])
        return Parameter(
            name=name,
            program_name=program_parameter(name),
            kind="keyword_only",
            required=name in whole.get("required", ()),
            default=copy_schema(node.get("default", MISSING)),
            schema=copy_schema(node),
            description=str(node.get("description", "")),
            annotation=schema_text(node, whole),
        )


class ExtendedForm:
    """The arguments of a tool and of a model together."""

    def __init__(self, shape: ExtendedShape, own: Form, hidden: frozenset[str]) -> None:
        self.own = own
        self.hidden = hidden
        self._shape = shape
        self.input_schema = _combine_schemas(own.input_schema, shape.schema, shape.model.__name__)
        self._validation = Validation(shape.model.__pydantic_core_schema__)

    def read(self, arguments: dict[str, Any]) -> dict[str, Any] | Invalid:
        """Returns the arguments as real objects with the model built from some of them, or all problems."""
        fields = self._shape.fields
        values = self.own.read({name: value for name, value in arguments.items() if name not in fields})
        given = {name: value for name, value in arguments.items() if name in fields}
        try:
            model = self._validation.validate(given)
        except (ValidationError, TooManySteps) as error:
            wrong = self._validation.errors(error, given)
            found = chain(self._own_problems(values, arguments), self._problems(wrong.read, given))
            own_more, is_partial = (values.more, values.is_partial) if isinstance(values, Invalid) else (0, False)
            return cast(
                "Invalid", complaint(found, more=own_more + wrong.more, is_partial=is_partial or wrong.is_partial)
            )
        if isinstance(values, Invalid):
            own = self._own_problems(values, arguments)
            return cast("Invalid", complaint(own, more=values.more, is_partial=values.is_partial))
        return StructuredValues({**values, **{name: getattr(model, fields[name]) for name in fields}}, model)

    def _own_problems(self, values: dict[str, Any] | Invalid, arguments: Mapping[str, Any]) -> Iterator[LazyProblem]:
        """Yields the problems of the tool's own arguments. An unknown name may be a misspelt field."""
        found = values.problems if isinstance(values, Invalid) else ()
        names = self.input_schema["properties"]
        for problem in found:
            is_name = problem.kind == "unexpected" and problem.path in arguments
            yield as_lazy_problem(unknown_problem(problem.path, problem.path, names) if is_name else problem)

    def _problems(self, errors: list[GivenError], given: dict[str, Any]) -> Iterator[LazyProblem]:
        whole = [error["msg"].removeprefix("Value error, ") for error in errors if not error["loc"]]
        placed = [error for error in errors if error["loc"]]
        yield from problems_of(placed, given, self.input_schema, self.hidden)
        for text in whole:
            yield as_lazy_problem(ArgumentProblem(path="", kind="invalid", message=f"{text.rstrip('.')}."))

    def is_default(self, name: str, value: Any) -> bool:
        """True if the value equals the default of the parameter or field."""
        field = self._shape.fields.get(name)
        if field is None:
            return self.own.is_default(name, value)
        return same(self._shape.model.model_fields[field].default, value)

    def is_certain(self, name: str) -> bool:  # noqa: ARG002  # a function's form needs the name
        """Always False, because a model's validators see all arguments together."""
        return False


class _ModelSchema(ToolJsonSchema):
    """The schema of a tool, but with bytes as the model itself reads them."""

    bytes_schema = GenerateJsonSchema.bytes_schema


def _model_schema(label: str, model: Any) -> dict[str, Any]:
    """Returns the model's schema with an object with properties as its root.

    Raises:
        DefinitionError: The value is not a pydantic model with fields.
    """
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        raise DefinitionError(f"{label}: structured_model={model!r}: give a subclass of pydantic.BaseModel")
    schema = model.model_json_schema(schema_generator=_ModelSchema)
    root = resolve(schema, schema)
    if not root.get("properties"):
        raise DefinitionError(f"{label}: {model.__name__} has no fields that a model could fill in: give it some")
    defs = schema.get("$defs")
    return {**root, "$defs": defs} if defs else dict(root)


def _combine_schemas(own: dict[str, Any], model: dict[str, Any], model_name: str) -> dict[str, Any]:
    defs = cast("dict[str, Any]", own.get("$defs", {}))
    added = cast("dict[str, Any]", model.get("$defs", {}))
    renamed = {name: f"{model_name}_{name}" for name, node in added.items() if defs.get(name, node) != node}
    added = {renamed.get(name, name): _update_references(node, renamed) for name, node in added.items()}
    whole: dict[str, Any] = {
        "type": "object",
        "properties": {**own["properties"], **_update_references(model["properties"], renamed)},
    }
    required = [*own.get("required", ()), *model.get("required", ())]
    if required:
        whole["required"] = required
    whole["additionalProperties"] = False
    if defs or added:
        whole["$defs"] = {**defs, **added}
    return whole


def _update_references(node: Any, renamed: Mapping[str, str]) -> Any:
    """Returns the schema with references to renamed definitions updated."""
    if isinstance(node, dict):
        return {
            key: _reference(value, renamed) if key == "$ref" else _update_references(value, renamed)
            for key, value in cast("dict[str, Any]", node).items()
        }
    return [_update_references(item, renamed) for item in cast("list[Any]", node)] if isinstance(node, list) else node


def _reference(value: Any, renamed: Mapping[str, str]) -> Any:
    name = str(value).removeprefix("#/$defs/")
    return f"#/$defs/{renamed[name]}" if name in renamed else value
