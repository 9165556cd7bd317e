"""Static checks on the text of a program: whether it is complete.

Only damaged replies are checked. The code of a strict reply is passed on unchanged.
"""

from __future__ import annotations

import ast
import re
from typing import TypeGuard

from toolwire.protocols.base import Refusal

_ESCAPE = re.compile(r"\\(?:(['\"\n\\])|(.?))", re.DOTALL)
_NUMBER_AND_WORD = re.compile(r"\b[0-9][0-9._]*+(?=and|else|for|if|in|is|not|or)")
_RESULT = "__result__"


class CompileBudget:
    """The amount of program text that may be parsed for one damaged reply. Parsing costs 2 microseconds a character."""

    LIMIT = 12_288
    """Maximum number of characters. Programs that models write have a few thousand."""

    def __init__(self) -> None:
        self._left = self.LIMIT
        self._seen: dict[str, ast.Module | None] = {}

    def check(self, code: str) -> None:
        """Checks that the budget suffices for a text.

        Raises:
            Refusal: The text is longer than the rest of the budget.
        """
        if len(code) > self._left:
            raise Refusal(
                f"The reply is damaged and holds more than {self.LIMIT} characters of code. Write a shorter program."
            )

    def compiles(self, code: str) -> bool:
        """True if the text is a valid Python program.

        Raises:
            Refusal: The budget is spent.
        """
        return self.tree(code) is not None

    def has_result(self, code: str) -> bool:
        """True if the text is a program that assigns `__result__`, as every program must.

        Raises:
            Refusal: The budget is spent.
        """
        tree = self.tree(code)
        return tree is not None and any(_is_result(node) and isinstance(node.ctx, ast.Store) for node in ast.walk(tree))

    def is_ended(self, code: str) -> bool:
        """True if a program without closing quotes can be taken as complete.

        A cut may fall exactly at the end of a line. The remaining evidence is the required form of a program: it
        assigns `__result__` once, in its last line. That line must end with a newline. Its value must contain a call or
        a name, because `__result__ = []` may begin a program. No other line may mention `__result__`.

        Raises:
            Refusal: The budget is spent.
        """
        tree = self.tree(code) if code.endswith("\n") and not code.endswith("\n\n") else None
        result = _result(tree.body[-1]) if tree is not None and tree.body else None
        if tree is None or result is None:
            return False
        mentions = sum(_is_result(node) for node in ast.walk(tree))
        is_worked_out = any(isinstance(node, ast.Call | ast.Name) for node in ast.walk(result))
        return mentions == 1 and is_worked_out

    def tree(self, code: str) -> ast.Module | None:
        if code not in self._seen:
            self.check(code)
            self._left -= len(code)
            self._seen[code] = _parse_code(code)
        return self._seen[code]


def _parse_code(code: str) -> ast.Module | None:
    try:
        return ast.parse(_NUMBER_AND_WORD.sub(r"\g<0> ", _ESCAPE.sub(_quiet, code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _result(statement: ast.stmt) -> ast.expr | None:
    """Returns the value that the statement assigns to `__result__`. None for any other statement."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    return statement.value if _is_result(statement.targets[0]) else None


def _is_result(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == _RESULT


def _quiet(escape: re.Match[str]) -> str:
    """Doubles the backslash of an escape that Python does not know.

    Parsing such an escape, or `1if x`, would emit a warning, and a warning may be turned into an error.
    """
    return escape.group() if escape[1] else f"\\\\{escape[2]}"
