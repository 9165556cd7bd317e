"""The page on tracing: its examples run, one after the other, with the results in their comments."""

from __future__ import annotations

import re
from typing import Any

from tests.architecture.source import ROOT
from toolwire.observability import names

PAGE = (ROOT / "docs" / "tracing.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_examples_give_what_they_say() -> None:
    found: dict[str, Any] = {"__name__": "tracing_page"}
    seen: list[list[str]] = []
    for block in BLOCKS:
        exec(compile(block, "docs/tracing.md", "exec", dont_inherit=True), found)
        seen.append([span.name for span in found["spans"].get_finished_spans()])
    assert seen == [["execute_tool login"]] * 3
    assert found["arguments"] == '{"user": "ada", "password": "<redacted>"}'
    assert found["said"] == ["welcome, ada"]
    assert found["output"] == '[{"type": "text", "text": "welcome, ada"}]'


def test_the_page_has_every_attribute_of_ours() -> None:
    ours = {value for name, value in vars(names).items() if name.isupper() and str(value).startswith("toolwire.")}
    written = set(re.findall(r"`(toolwire\.[a-z_.]+)`", PAGE)) | {"toolwire.approval.verdict"}
    assert ours - written == {"toolwire.conventions"}
