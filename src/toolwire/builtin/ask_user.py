"""`ask_user`: a model asks the person a question, and the call waits for the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool
from toolwire.vocabulary.calls import ASK_USER
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.questions import QUESTION_LIMIT_CHARACTERS, TEXT, InputRequired, Question, QuestionDeclined
from toolwire.vocabulary.results import ToolResult

OPTIONS_LIMIT = 50
"""Options of one question: a person reads no longer list."""
OPTION_LIMIT_CHARACTERS = 500
"""Characters of one option: a sentence or two."""

DESCRIPTION = (
    "Ask the user a question and wait for the answer. Ask only if you cannot find the answer yourself. Returns the "
    "answer: a text, one of the options, or a value that fits the schema. The user may decline to answer."
)


def ask_user_tool() -> Tool:
    """Returns the tool as models see it."""

    def ask_user(
        question: str,
        context: CallContext,
        options: Sequence[str] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Any:
        # The tool returns its question, so that no thread and no event loop waits for the person.
        if context.answers:
            answer = context.answers["answer"]
            if isinstance(answer, QuestionDeclined):
                raise answer
            return answer
        if options is not None and schema is not None:
            return _wrong("give options or a schema, not both")
        if not question.strip():
            return _wrong("the question is empty")
        wanted = TEXT if schema is None else schema
        if options is not None:
            wanted = {"type": "string", "enum": list(options)}
        problem = _problem(wanted)
        return InputRequired({"answer": Question(question, wanted)}) if problem is None else _wrong(problem)

    return from_schema(
        name=ASK_USER,
        description=DESCRIPTION,
        input_schema={
            "type": "object",
            "properties": {
                "question": {
                    "type": "string",
                    "description": "The question, with all that the user needs to know",
                    "minLength": 1,
                    "maxLength": QUESTION_LIMIT_CHARACTERS,
                },
                "options": {
                    "type": "array",
                    "description": "The possible answers; leave it out for any text",
                    "items": {"type": "string", "minLength": 1, "maxLength": OPTION_LIMIT_CHARACTERS},
                    "minItems": 2,
                    "maxItems": OPTIONS_LIMIT,
                    "uniqueItems": True,
                },
                "schema": {
                    "type": "object",
                    "description": "A JSON schema of the answer, for several values at once; instead of options",
                },
            },
            "required": ["question"],
            "additionalProperties": False,
        },
        function=ask_user,
        effects=["read"],
        idempotent="natural",
    )


def _problem(schema: Mapping[str, Any]) -> str | None:
    # Imported here: the JSON schema validator takes a tenth of a second.
    from toolwire.definition.hostile.schema_limits import check_limits
    from toolwire.definition.json_schema.validator import check_schema

    try:
        check_limits(schema, "schema")
        check_schema(schema, "schema")
    except DefinitionError as error:
        return str(error)
    return None


def _wrong(why: str) -> ToolResult:
    return ToolResult.failed("invalid_arguments", f"{ASK_USER!r} asked nothing: {why}.")
