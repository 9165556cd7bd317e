"""Calls in Python syntax with only literals as arguments, as some models write them in place of JSON."""

from __future__ import annotations

import ast
import json
import re
from typing import Any, cast

from toolwire.protocols.base import DEPTH_LIMIT, Refusal
from toolwire.protocols.reading.strict_json import check_depth

_PIECE = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|[()\[\]{}]|[^()\[\]{}\"']++|[\"']", re.DOTALL)
_TWO_STRINGS = re.compile(r"(?:\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')(\s*+[\"'])?+|[^\"']++|[\"']", re.DOTALL)
_UNCLEAR_CODE = re.compile(r"\\[^\\'\"abfnrtvxuUN0-7\n]|[0-9](?:and|else|for|if|in|is|not|or)\b")


def bracket_end(text: str, position: int) -> int | None:
    """Returns the position after the bracket that closes the one at `position`. None if it is not closed."""
    depth = 0
    for piece in _PIECE.finditer(text, position):
        if piece[0] in ("(", "[", "{"):
            depth += 1
        elif piece[0] in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return piece.end()
        elif piece[0] in ("'", '"'):
            return None
    return None


def python_calls(source: str) -> list[tuple[str, dict[str, Any]]] | None:
    """Returns names and keyword arguments of unambiguous calls with only literals. None for any other text."""
    if _UNCLEAR_CODE.search(source) or any(found[1] for found in _TWO_STRINGS.finditer(source)):
        return None
    try:
        check_depth(source.replace("(", "["), DEPTH_LIMIT)
        node = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError, Refusal):
        return None
    found = [_python_call(item) for item in (node.elts if isinstance(node, ast.List) else [node])]
    return None if None in found else [call for call in found if call is not None]


def _python_call(node: ast.expr) -> tuple[str, dict[str, Any]] | None:
    if not isinstance(node, ast.Call) or _has_twice(node):
        return None
    try:
        values = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
        if node.args and not values and len(node.args) == 1:
            values = ast.literal_eval(node.args[0])
        elif node.args:
            return None
        values = json.loads(json.dumps(values, allow_nan=False))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in cast("dict[Any, Any]", values)):
        return None
    return ast.unparse(node.func), cast("dict[str, Any]", values)


def _has_twice(call: ast.Call) -> bool:
    """True if a keyword or a key is given twice, or comes from `**`. Python's parser lets the last one win."""
    keywords = [keyword.arg for keyword in call.keywords]
    keys = [
        [ast.unparse(key) for key in node.keys if key is not None]
        for node in ast.walk(call)
        if isinstance(node, ast.Dict)
    ]
    return None in keywords or any(len({*names}) < len(names) for names in (keywords, *keys))
