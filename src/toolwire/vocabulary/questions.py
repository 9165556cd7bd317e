"""Questions that a tool asks a person while its call runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

from toolwire.vocabulary.errors import ConfigurationError, ToolwireError

QUESTION_LIMIT_CHARACTERS = 16_384
"""Maximum characters of a question's text: about six printed pages, more than a person reads before an answer."""

QUESTIONS_LIMIT = 100
"""Maximum number of questions of one call, those of its inner calls included. More is a tool that asks in a loop."""

TEXT: Mapping[str, Any] = MappingProxyType({"type": "string"})
"""The schema of an answer if the tool gives none: any text."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a person.

    Attributes:
        message: The text that the person reads.
        schema: JSON schema of the answer. The default is any text.

    Raises:
        ConfigurationError: The message is not a text of 1 to 16,384 characters, or the schema is not a mapping.
    """

    message: str
    schema: Mapping[str, Any] = field(default_factory=lambda: TEXT)

    def __post_init__(self) -> None:
        message = cast("object", self.message)
        if not isinstance(message, str) or not message.strip():
            raise ConfigurationError(f"a question is {message!r:.80}: write the text that the person reads")
        if len(message) > QUESTION_LIMIT_CHARACTERS:
            raise ConfigurationError(
                f"a question has {len(message):,} characters: write at most {QUESTION_LIMIT_CHARACTERS:,}"
            )
        if not isinstance(cast("object", self.schema), Mapping):
            raise ConfigurationError(
                f"the schema of the answer is {self.schema!r:.80}: write a JSON schema, {{'type': 'boolean'}}"
            )


@dataclass(frozen=True, slots=True)
class InputRequired:
    """Returned by a tool that needs answers. toolwire asks, then calls the tool again with the same arguments.

    The second call finds the answers in `CallContext.answers`, and `state` in `CallContext.state`.

    Attributes:
        questions: The questions by a name of the tool's choice.
        state: Data that the tool needs when it is called again. It must have a JSON form.

    Raises:
        ConfigurationError: The questions are not a mapping of names to `Question`, or there are none.
    """

    questions: Mapping[str, Question]
    state: Any = None

    def __post_init__(self) -> None:
        questions = cast("object", self.questions)
        if not isinstance(questions, Mapping) or not questions:
            raise ConfigurationError(f"InputRequired({questions!r:.80}): write {{'name': Question('...')}}")
        for name, question in cast("Mapping[object, object]", questions).items():
            if not isinstance(name, str) or not isinstance(question, Question):
                raise ConfigurationError(
                    f"InputRequired: {name!r:.80}: {question!r:.80}: write 'name': Question('...')"
                )


A_PERSON = "the person"
"""What a declined question says of a person, whose name the model does not read."""


class QuestionDeclined(ToolwireError):
    """A question was declined. A tool may catch it; otherwise the call fails and the model reads it.

    Attributes:
        question: The text of the question.
        reason: The reason; empty without one.
        by: By what it was declined, as the model reads it: a person, unless another text is given.
    """

    def __init__(self, question: str, reason: str = "", *, by: str = A_PERSON) -> None:
        super().__init__(f"{by} declined to answer {question!r:.200}" + (f": {reason}" if reason else ""))
        self.question = question
        self.reason = reason
        self.by = by
