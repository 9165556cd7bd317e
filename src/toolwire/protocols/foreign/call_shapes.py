"""Detection of the shape of an unread call in a text. A reply with such a shape is refused and is never an answer.

A shape is the name of a registered tool in a tag or under a JSON key. It is also such a name after a token or label of
another model's format, or before brackets at the start of a line. A name in prose, in a code span, in a quoted line, in
thinking or in a result is not a shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.incoming import THINKING
from toolwire.protocols.reading.strict_json import load_json
from toolwire.protocols.tool_names import KnownTools

NAME = r"[^\W\d][\w.\-/:]{0,255}+"
"""A tool's name as calling formats write it."""

_RESULTS = "tool_responses?|tool_results?|tool_output|function_results?|function_response|observation"
_QUOTING = "code|pre|example|blockquote|fail"
_QUOTED = re.compile(
    rf"""
      <(?P<region>{THINKING}|{_RESULTS}|{_QUOTING})\b[^<>\n]*+>.*?(?:</(?P=region)\s*+>|\Z)
    | <!--.*?(?:-->|\Z)
    | (?<!`)(?P<ticks>`{{1,2}})(?!`)[^`\n]*+(?P=ticks)(?!`)
    | ^[ \t]*+>[^\n]*+
    | ^[ \t]*+Observation[ \t]*+:.*?(?=^[ \t]*+(?:Thought|Action|Final[ ]Answer)[ \t]*+:|\Z)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_QUOTED_TAG = re.compile(r"(?<=[\"'“‘「])<(\w[\w:.\-]{0,63}+)[^<>\n]*+>")
_CLOSING_QUOTES = {'"': '"', "'": "'", "“": '”"', "‘": "’'", "「": "」"}
_THOUGHT_OUT = re.compile(rf"</(?:{THINKING})>", re.IGNORECASE)
_OWN_RESULT = re.compile(
    rf"(?<![`\"'“‘「])<(?:{_RESULTS})\b[^<>\n]*+>|^[ \t]*+Observation[ \t]*+:", re.MULTILINE | re.IGNORECASE
)
_BLANKS = re.compile(r"\s*+")
_LINE = re.compile(r"[^\n]++")
_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[ \t]*+([^\n`]*+)$", re.MULTILINE)
_CALL_LANGUAGES = frozenset(
    {"", "json", "jsonc", "json5", "xml", "html", "text", "plaintext"}
    | {"tool", "tool_call", "tool_calls", "tool_code", "function_call", "action"}
)

_WRAPPER = r"(?:\w{1,16}:)?(?:tool_calls?|function_calls?|tool_use|tool_code|toolcall|invoke|call|action|function|tool)"
_TOKEN = (
    r"(?:<\|[/\w ]{1,48}+\|>|<｜[^｜\n]{1,48}+｜>|\[TOOL_CALLS\]|functools\[|✿\w{1,16}+✿[ \t]*+[:：]?"
    rf"|<{_WRAPPER}>)"
)
_MARKS = (
    *("<|", "<｜", "[TOOL_CALLS]", "functools[", "tool_call", "function_call", "<invoke", ":invoke", "✿", "to="),
    *("<parameter", ":parameter", "</function>", "<arg_", "|>", "[ARGS]", "<call", "result_of"),
)
_Q = "[\"'“”]"
_SHAPES = re.compile(
    rf"""
      ^(?=[^\w\n]{{0,8}}+(?P<line>\w{{0,16}}Action[^\n]*+|[^\s=]{{1,64}}+))
    | {_Q}(?:name|tool|tool_?name|function|function_?name|action|action_name|recipient_name|method|command|call)
      {_Q}\s*+[:：]\s*+{_Q}?[{{\[(]?(?P<value>{NAME})
    | {_Q}(?P<key>{NAME}){_Q}\s*+[:：]\s*+\{{(?=\s*+(?:\}}|{_Q}?(?P<first_key>\w++){_Q}?\s*+[:：]))
    | {_TOKEN}(?=(?:\s|\b(?:function|assistant|commentary|analysis|json|code|to)\b|[=:"'])*+(?P<behind>{NAME}))
    | \bto=(?P<recipient>{NAME})
    | <\w[\w:.\-]{{0,63}}+(?:=|\s(?:[^<>]*?\s)?(?:name|tool|function|tool_name)\s*+=)\s*+["']?(?P<attribute>{NAME})
    | <(?:name|tool|tool_?name|function|function_?name|action|recipient)>\s*+(?P<element>{NAME})\s*+</
    | </?(?P<tag>{NAME})(?=[\s/>])
    | ^[ \t*]*+(?:Action|Tool|Function|Call|(?:Tool|Function)[ _](?:call|name))[ \t*]*+[:：][ \t*`"']*+
      (?P<label>{NAME})(?P<behind_label>[ \t*`"']*+(?:$(?P<below>\s*+(?:\w++[ ]?\w*+)?+[ ]?:?[ ]?\{{)?+|[(\[{{]))
    | ^[ \t]*+(?:(?:\[|print\(|await[ ]|return[ ]|\w++[ \t]*+=)[ \t]*+)*+(?P<called>{NAME})
      [=:,"'\[]{{0,2}}+\([`\s:,=(\[]*+(?:\w++\s*+(?:=(?!=)|["'])|["'\[{{0-9\-]|\*\*[{{\w]
      |\)[ \t]*+(?:$|[\])]|(?:and|or|if)\b[^\n]*\)[ \t]*+$))
    | {_Q}(?P<quoted>{NAME}){_Q}
    | \A[\s*`]*+(?P<whole>{NAME})[\s*`:]*+\{{(?=\s*+(?:\}}|{_Q}))
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_KEY = re.compile(rf"(?:{_Q}|\b)(\w[\w.\-]{{0,255}}){_Q}?\s*+[:：]")
_ARGUMENT_KEYS = frozenset(
    {"arguments", "argument", "parameters", "params", "args", "kwargs", "input", "inputs", "action_input"}
    | {"tool_input", "tool_args", "tool_arguments", "tool_parameters"}
)
_QUOTED_KEY = re.compile(rf"{_Q}(?:{'|'.join(sorted(_ARGUMENT_KEYS))}){_Q}", re.IGNORECASE)
_INPUT_LINE = re.compile(
    r"^[ \t*]*+(?:Action[ ]Input|Input|Arguments|Parameters|Args)[ \t*]*+[:：]", re.MULTILINE | re.IGNORECASE
)
_BRACKET = re.compile(r"[^\W\d][\w.]{0,255}+(?=[ \t]*+[(\[{])")
_ENVELOPES = frozenset(
    {"calls", "toolcalls", "tooluses", "functioncalls", "functions", "tools", "actions", "toolcall", "call", "tooluse"}
    | {"functioncall", "function", "func", "action", "tool", "invoke", "parameters", "arguments"}
)
"""Keys around calls, in lower case and without underscores."""


def has_mark(text: str) -> bool:
    """True if the text contains a mark of a calling format or of a result. The check is cheap and settles most."""
    return any(mark in text for mark in _MARKS)


def blank_quotations(text: str) -> str:
    """Returns the text with all quoted parts blanked: thinking, results, code spans, quoted lines, examples.

    Length and line breaks stay the same, so positions are valid in both texts. Fences are kept.
    """
    text = _without_quotations(_QUOTED.sub(lambda found: _blank_out(found[0]), text))
    ends = [found.end() for found in _THOUGHT_OUT.finditer(text)]
    return _blank_out(text[: ends[-1]]) + text[ends[-1] :] if ends else text


def without_quoting_fences(text: str) -> str:
    """Returns the text with fences blanked whose language never holds calls. A fence that is the whole text is kept."""
    quoting = [(start, end) for start, end, language in fences(text) if not _may_hold_calls(language)]
    return _blank_out_parts(text, [(start, end) for start, end in quoting if not is_all(text, start, end)])


def without_closed_fences(text: str) -> str:
    """Returns the text with all fences blanked that are closed."""
    found = [(start, end, text[start:end].rpartition("\n")[2]) for start, end, _ in fences(text)]
    return _blank_out_parts(text, [(start, end) for start, end, last in found if is_fence_line(last)])


def is_fence_line(line: str) -> bool:
    """True if the line begins as the mark of a fence."""
    return line.lstrip().startswith(("`", "~"))


def _blank_out_parts(text: str, parts: Sequence[tuple[int, int]]) -> str:
    pieces, position = list[str](), 0
    for start, end in parts:
        pieces += [text[position:start], _blank_out(text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])


def _may_hold_calls(language: str) -> bool:
    is_word = language[:1].isalpha()
    return not is_word or language.startswith(("tool_", "json")) or language.rstrip(".,:;") in _CALL_LANGUAGES


def is_all(text: str, start: int, end: int) -> bool:
    """True if only blanks are outside of this part of the text."""
    return _BLANKS.fullmatch(text, 0, start) is not None and _BLANKS.fullmatch(text, end) is not None


def fences(text: str) -> list[tuple[int, int, str]]:
    """Returns the start, end and lower-case language of each fence."""
    found = list[tuple[int, int, str]]()
    opening: re.Match[str] | None = None
    for mark in _FENCE.finditer(text):
        if opening is None:
            opening = mark
        elif mark[1].startswith(opening[1]) and not mark[2].strip():
            found.append((opening.start(), mark.end(), _language(opening)))
            opening = None
    if opening is not None:
        found.append((opening.start(), len(text), _language(opening)))
    return found


def find_call_shape(text: str, known: KnownTools) -> int | None:
    """Returns the position of the shape of a call of a known tool in unquoted text. None if it has none."""
    if not known.is_named_in(text):
        return None
    found = without_quoting_fences(text)
    keys: frozenset[str] | None = None
    has_quoted_key: bool | None = None
    # One pass for all labels; a search after each label would take quadratic time.
    last_input = max((line.start() for line in _INPUT_LINE.finditer(found)), default=-1)
    for shape in _SHAPES.finditer(found):
        if shape["quoted"] is not None:
            has_quoted_key = _QUOTED_KEY.search(found) is not None if has_quoted_key is None else has_quoted_key
            if has_quoted_key and known.find_name(shape["quoted"]):
                return shape.start()
            continue
        if shape["value"] is None and shape["key"] is None:
            if _is_shape(shape, last_input, known):
                return shape.start()
            continue
        keys = frozenset(key.lower() for key in _KEY.findall(found)) if keys is None else keys
        if _is_json_shape(shape, keys, known):
            return shape.start()
    return None


def find_bracket(text: str, known: KnownTools) -> int | None:
    """Returns the position of a known tool's name before a bracket in unquoted text. None without one."""
    places = (found.start() for found in _BRACKET.finditer(text) if known.find_name(found[0]))
    return next(places, None)


def is_call_like(value: Any, known: KnownTools, depth: int = 4) -> bool:
    """True if a JSON value is a call of a known tool in some format, or an envelope or list of such calls."""
    if depth <= 0:
        return False
    if isinstance(value, list):
        return any(is_call_like(item, known, depth - 1) for item in cast("list[Any]", value))
    if not isinstance(value, dict):
        return False
    node = cast("dict[str, Any]", value)
    for key, item in node.items():
        if isinstance(item, str) and (tool := known.find_name(item)):
            others = {str(other).lower() for other in node if other != key}
            if others & (_ARGUMENT_KEYS | _parameters(tool, known)) or _is_beside_arguments(node, tool, known):
                return True
        if isinstance(item, dict) and (tool := known.find_name(key)):
            inner = cast("dict[str, Any]", item)
            if not inner or {str(name).lower() for name in inner} & (_parameters(tool, known) | _ARGUMENT_KEYS):
                return True
    inner = [item for key, item in node.items() if key.lower().replace("_", "") in _ENVELOPES]
    return any(is_call_like(_decode_json(item), known, depth - 1) for item in inner)


def _decode_json(value: Any) -> Any:
    """Returns the value of a JSON text, which some APIs have in place of an object; any other value unchanged."""
    try:
        return load_json(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value
    except (ValueError, Refusal):
        return value


def find_own_result(text: str, start: int, end: int) -> int | None:
    """Returns the position of a result between two calls, which the model wrote itself. None without one."""
    found = _OWN_RESULT.search(text, start, end)
    return None if found is None else found.start()


def _is_beside_arguments(node: Mapping[str, Any], tool: str, known: KnownTools) -> bool:
    """True if one other key, whatever its name, holds nothing but parameters of the tool."""
    inner = [cast("dict[str, Any]", item) for item in node.values() if isinstance(item, dict)]
    return len(node) == 2 and len(inner) == 1 and bool(inner[0]) and not inner[0].keys() - _parameters(tool, known)


def _without_quotations(text: str) -> str:
    """Returns the text with each quoted tag blanked, up to its closing tag and with all between them.

    A quotation of several lines counts only without another mark of its kind inside.
    """
    quoted, position = list[tuple[int, int]](), 0
    ends = dict[str, int]()  # The last place of each closing tag, so that no text is searched twice.
    newline = -1
    for found in _QUOTED_TAG.finditer(text):
        start, closing = found.start(), f"</{found[1]}>"
        if start < position:
            continue
        if ends.get(closing, start) <= start:
            place = text.find(closing, found.end())
            ends[closing] = len(text) + 1 if place < 0 else place + len(closing)
        end, mark = ends[closing], text[start - 1]
        following = text[end : end + 1]
        if not following or following not in _CLOSING_QUOTES[mark]:
            continue
        if newline < start:
            place = text.find("\n", start)
            newline = len(text) if place < 0 else place
        if newline < end and mark in text[start:end]:
            continue
        quoted.append((start, end))
        position = end
    return _blank_out_parts(text, quoted)


def _is_json_shape(shape: re.Match[str], keys: frozenset[str], known: KnownTools) -> bool:
    if shape["value"] is not None:
        tool = known.find_name(shape["value"])
        return bool(tool) and bool(keys & _ARGUMENT_KEYS or keys & _parameters(tool, known))
    tool, first = known.find_name(shape["key"]), shape["first_key"]
    if not tool:
        return False
    return first is None or first.lower() in _parameters(tool, known) | _ARGUMENT_KEYS


def _is_shape(shape: re.Match[str], last_input: int, known: KnownTools) -> bool:
    """True if the shape names a known tool. `last_input` is the start of the text's last line of arguments."""
    if shape["label"] is not None:
        behind = shape["behind_label"].strip("*`\"' \t\n")
        has_input = bool(behind) or last_input >= shape.end()
        return bool(known.find_name(shape["label"])) and has_input
    if shape["line"] is not None:
        return _is_broken_call(shape, known)
    if shape["whole"] is not None:
        return bool(known.find_name(shape["whole"])) and shape.string.rstrip().endswith(("}", "`"))
    groups = ("behind", "recipient", "attribute", "element", "tag", "called")
    return any(known.find_name((shape[group] or "").rstrip("/")) for group in groups)


def _is_broken_call(shape: re.Match[str], known: KnownTools) -> bool:
    """True if a line begins with a tool's name, and has a bracket and a parameter of it, in whatever order."""
    end = shape.string.find("\n", shape.start())
    text = shape.string[shape.start() : end if end >= 0 else len(shape.string)]
    if "=" not in text or ("(" not in text and ")" not in text):
        return False
    tools = [tool for tool in known.schemas if tool in shape["line"]]
    return any(name in text.lower() for tool in tools for name in _parameters(tool, known))


def _parameters(tool: str, known: KnownTools) -> frozenset[str]:
    return frozenset(name.lower() for name in known.properties(tool))


def _language(opening: re.Match[str]) -> str:
    return opening[2].strip().lower().partition(" ")[0]


def _blank_out(text: str) -> str:
    return _LINE.sub(lambda line: " " * len(line[0]), text)
