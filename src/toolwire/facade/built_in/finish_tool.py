"""The tool by which a model ends its work: made from a name or from a pydantic model."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, cast

from toolwire.catalogue.entry import Entry
from toolwire.definition.from_function import from_function
from toolwire.definition.shape import StructuredValues
from toolwire.definition.tool import Tool, Validated
from toolwire.vocabulary.errors import ConfigurationError, DefinitionError
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import plain_value

if TYPE_CHECKING:
    from pydantic import BaseModel

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\W_]+")
_WITH_ANSWER = "Ends your work with the answer for the user. Call it once, last."
_WITH_MODEL = "Ends your work with this result. Call it once, last."


def finish_entry(finish: object) -> Entry:
    """Returns the tool. A name gives a tool with the parameter `answer`, and a model one with the model's fields.

    Raises:
        ConfigurationError: The value is neither, the name cannot be a tool's, or the model has no fields to fill in.
    """
    if isinstance(finish, str):
        tool = _with_answer(finish)
    elif isinstance(finish, type) and hasattr(finish, "model_json_schema"):
        tool = _with_fields(cast("type[BaseModel]", finish))
    else:
        raise ConfigurationError(
            f"finish={finish!r:.80}: write the name of a tool, such as finish='answer', or a pydantic model as a class"
        )
    tool.ends_turn = True
    return Entry(name=tool.name, tool=tool, handle=tool)


def final_of(validated: Validated) -> Any:
    """Returns the value with which the model ended: its answer in JSON types, or the model's instance.

    Raises:
        Unrepresentable: A program gave an answer that JSON cannot hold.
    """
    values = validated.values
    return values.structured if isinstance(values, StructuredValues) else plain_value(values["answer"])


def _with_answer(name: str) -> Tool:
    # The annotation of the result would stand in the stub that a model reads.
    def end(answer: Any):  # noqa: ARG001 - the session takes the answer before it comes here
        """Ends the work.

        Args:
            answer: The answer, as the user shall read it.
        """
        return _refusal_for(name)

    try:
        return from_function(end, name=name, description=_WITH_ANSWER, effects=["read"], idempotent="natural")
    except DefinitionError as error:
        raise ConfigurationError(f"finish={name!r:.80}: {error}") from error


def _with_fields(model: type[BaseModel]) -> Tool:
    # Imported here: pydantic takes a tenth of a second, and sessions without such a model do not need it.
    from pydantic.errors import PydanticUserError

    from toolwire.definition.extended import extend_tool

    name = snake_case(model.__name__)

    def end():
        return _refusal_for(name)

    own = inspect.cleandoc(model.__dict__.get("__doc__") or "")
    description = f"{_WITH_MODEL}\n\n{own}" if own else _WITH_MODEL
    try:
        tool = from_function(end, name=name, description=description, effects=["read"], idempotent="natural")
        return extend_tool(tool, model)
    except (DefinitionError, PydanticUserError) as error:
        raise ConfigurationError(f"finish={model.__name__}: {error}") from error


def snake_case(name: str) -> str:
    """Returns the words of a class's name in lower case, joined by underscores: `weather_report`."""
    return "_".join(word for word in _WORDS.split(name) if word).lower()


def _refusal_for(name: str) -> ToolResult:
    """Returns the result of a call that cannot end the turn: in the background, or made by a tool of the host."""
    return ToolResult.failed(
        "unavailable",
        f"{name!r} ends the work of the model, so that only the model calls it, or its program.",
        hint="Call it directly.",
        data={"is_started": False},
    )
