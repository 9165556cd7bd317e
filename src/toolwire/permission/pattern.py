"""Text patterns for rules: regular expressions, matched by the linear-time engine that pydantic-core ships.

A model writes the text, so a pattern must never take long. Backtracking makes other engines slow.
"""

from __future__ import annotations

from toolwire.definition.schema_patterns import searching

TEXT_LIMIT = 4_096
"""Maximum characters of a text. A condition on a longer text is undecided."""


class Pattern:
    """A regular expression for a whole text.

    `\\d` and `\\w` are ASCII, and `.` does not match a line end. The engine has no look-around and no
    back-references. `^` and `$` are allowed and change nothing.

    Raises:
        ValueError: The text is not such an expression, or is too large (`PATTERN_STATES_LIMIT`).
    """

    __slots__ = ("_exact", "_folded", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        # Compiled alone first: "a)|(b" is an error, but would be valid inside the group below.
        searching(text)
        self._exact = searching(f"^(?:{text})$")
        self._folded = searching(f"^(?:{text})$", ignore_case=True)

    def is_undecidable(self, text: str) -> bool:
        """True if the text is too long, or holds a lone surrogate, which the engine cannot read."""
        return len(text) > TEXT_LIMIT or any("\ud800" <= character <= "\udfff" for character in text)

    def matches(self, text: str, *, folded: bool = False) -> bool:
        """True if the whole text matches. `folded` ignores case."""
        return (self._folded if folded else self._exact)(text)
