"""Replies with the mistakes of real models; the file beside each has the expected reading.

`calls`: the calls that run, arguments as JSON; `refused`: the reason; `failure`: the model gave up; `repaired`: the
repairs that are reported. None of them: the reply is an answer.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.protocols.recorded_tools import TOOLS
from toolwire.protocols import get

FOLDER = Path(__file__).parent / "recorded"
REPLIES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", REPLIES, ids=[path.stem for path in REPLIES])
def test_a_recorded_reply_is_made_of_what_its_file_says(path: Path) -> None:
    expected = tomllib.loads(path.with_suffix(".toml").read_text(encoding="utf-8"))
    text = path.read_bytes()
    protocol = get(expected["protocol"])
    reply = protocol.parse(text, TOOLS)
    assert {
        "calls": [(call.name, dict(call.arguments)) for call in reply.calls],
        "refused": next((problem.message for problem in reply.problems if not problem.repaired), None),
        "failure": reply.failure,
        "repaired": [problem.message for problem in reply.problems if problem.repaired],
    } == {
        "calls": [(call["name"], json.loads(call["arguments"])) for call in expected.get("calls", [])],
        "refused": expected.get("refused"),
        "failure": expected.get("failure"),
        "repaired": expected.get("repaired", []),
    }
    for call in reply.calls:
        assert [word for word in _words(dict(call.arguments)) if not _is_said(word, text.decode())] == []
    assert (protocol.refuse(reply) == "") is bool(reply.calls or not (reply.is_refused or reply.failure))


def test_there_are_enough_of_them_and_each_has_both_files() -> None:
    assert len(REPLIES) >= 40
    assert {path.stem for path in REPLIES} == {path.stem for path in FOLDER.glob("*.toml")}


def _words(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [word for item in value.values() for word in _words(item)]
    if isinstance(value, list):
        return [word for item in value for word in _words(item)]
    return [] if value is None else [json.dumps(value, ensure_ascii=False).strip('"')]


def _is_said(word: str, text: str) -> bool:
    """Whether the text says it, in whatever quotes and with or without backslashes."""
    return word.replace("\\n", "").replace("\\", "") in text.replace("\\n", "").replace("\n", "").replace("\\", "") or (
        word in ("true", "false") and word.capitalize() in text
    )
