"""The check of an outside tool's results against the output schema that its author gave."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from toolwire.definition.arguments.problems import complaint
from toolwire.definition.shape import OutputCheck
from toolwire.vocabulary.errors import DefinitionError, Unrepresentable
from toolwire.vocabulary.values import plain


def output_check(schema: Mapping[str, Any], label: str) -> OutputCheck:
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
            written = plain(data)
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
