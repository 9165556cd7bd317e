"""Lone surrogates are handled at named doors: where values come in, and where they leave."""

from __future__ import annotations

import re
from pathlib import Path

import toolwire

_SOURCE = Path(toolwire.__file__).parent

_DOORS = {
    "a provider's request": {
        "protocols/outgoing.py",
        "protocols/native/protocol.py",
        "protocols/text/text_protocol.py",
        "session/session_tools.py",
    },
    "a result's text, which hosts and programs read": {"vocabulary/results.py", "vocabulary/response.py"},
    "an MCP client": {
        "gateway/asking/elicitation.py",
        "gateway/sdk_server.py",
        "gateway/served_calls.py",
        "mcp/values/call_results.py",
    },
    "a notebook": {"vocabulary/html_display.py"},
    "telemetry": {"observability/content.py", "observability/tracing.py", "gateway/served_metrics.py"},
    "a portable form": {"session/runs/portable_json.py"},
    "a definition that comes in": {
        "definition/docstring/docs.py",
        "definition/from_schema.py",
        "definition/tool.py",
    },
    "an answer of an MCP server that comes in": {"mcp/values/unread_messages.py"},
    "a model's reply that comes in": {"protocols/reading/strict_json.py"},
    "a value that a rule reads": {"permission/condition.py"},
}
"""Modules that replace, refuse or escape lone surrogates, by what passes them."""

_BYTES = {
    "sandbox/wire.py",  # decodes in pieces, so that other threads run
    "sandbox/child/wire.py",  # runs in the program's process, which imports nothing of toolwire
    "vocabulary/texts/lone_surrogates.py",
}
"""Modules that name the codec. All others take `utf8_bytes` and `utf8_text`."""

_NAMES = {
    "vocabulary/texts/invisible.py",  # leaves them out, with all that people do not see
    "protocols/grammar/characters.py",  # a grammar's class of characters leaves them out
    "vocabulary/texts/lone_surrogates.py",
    "session/runs/portable_json.py",
}
"""Modules that name their range."""

_DOOR = re.compile(
    r"^from toolwire\.vocabulary\.texts\.lone_surrogates import [^\n]*\b(encodable|encodable_text|find_lone|LONE)\b",
    re.MULTILINE,
)


def _modules_with(pattern: re.Pattern[str]) -> set[str]:
    return {
        str(path.relative_to(_SOURCE))
        for path in _SOURCE.rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    }


def test_lone_surrogates_are_handled_at_these_doors_alone() -> None:
    assert _modules_with(_DOOR) == set[str]().union(*_DOORS.values())


def test_one_module_names_the_codec_that_keeps_them() -> None:
    assert _modules_with(re.compile(r"surrogatepass|surrogateescape")) == _BYTES


def test_no_other_module_names_their_range() -> None:
    assert _modules_with(re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}(?![\"`])")) <= _NAMES
