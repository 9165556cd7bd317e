"""What can be said of a program's text without running it: whether it is whole.

Only replies that need repair are looked at so; what a strict reply holds is passed on byte for byte.
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
    """How much program text one damaged reply may have looked at. Reading syntax costs 2 microseconds a character."""

    LIMIT = 12_288
    """Characters: programs that models write have a few thousand."""

    def __init__(self) -> None:
        self._left = self.LIMIT
        self._seen: dict[str, ast.Module | None] = {}

    def check(self, code: str) -> None:
        """Does nothing for a text that may still be looked at.

        Raises:
            Refusal: the budget would not last.
        """
        if len(code) > self._left:
            raise Refusal(f"The reply is damaged and holds more than {self.LIMIT} characters of code. Write it again.")

    def compiles(self, code: str) -> bool:
        """Whether the text is a Python program.

        Raises:
            Refusal: the budget is spent.
        """
        return self._tree(code) is not None

    def has_result(self, code: str) -> bool:
        """Whether it is a program that assigns `__result__`, so that it does what every program is asked to do."""
        tree = self._tree(code)
        return tree is not None and any(_is_result(node) and isinstance(node.ctx, ast.Store) for node in ast.walk(tree))

    def is_ended(self, code: str) -> bool:
        """Whether a program whose closing quotes are missing can be taken for whole.

        Text that stops after a whole line may still have been cut there. What is left to go by is the form every
        program is asked to have: `__result__` is worked out and assigned once, last. So the last line must end, must
        assign `__result__` a value that calls or names something (`__result__ = []` begins a program), and no other
        line may speak of it.
        """
        tree = self._tree(code) if code.endswith("\n") and not code.endswith("\n\n") else None
        result = _result(tree.body[-1]) if tree is not None and tree.body else None
        if tree is None or result is None:
            return False
        mentions = sum(_is_result(node) for node in ast.walk(tree))
        is_worked_out = any(isinstance(node, ast.Call | ast.Name) for node in ast.walk(result))
        return mentions == 1 and is_worked_out

    def _tree(self, code: str) -> ast.Module | None:
        if code not in self._seen:
            self.check(code)
            self._left -= len(code)
            self._seen[code] = _parsed(code)
        return self._seen[code]


def _parsed(code: str) -> ast.Module | None:
    try:
        return ast.parse(_NUMBER_AND_WORD.sub(r"\g<0> ", _ESCAPE.sub(_quiet, code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _result(statement: ast.stmt) -> ast.expr | None:
    """What the statement assigns to `__result__`; None when it is another statement."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    return statement.value if _is_result(statement.targets[0]) else None


def _is_result(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == _RESULT


def _quiet(escape: re.Match[str]) -> str:
    """An escape that Python does not know, doubled.

    Reading one would warn, as would `1if x`, and a warning is printed or is an error.
    """
    return escape.group() if escape[1] else f"\\\\{escape[2]}"
