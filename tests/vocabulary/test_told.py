"""Data as text for a model, and the output of a program."""

from __future__ import annotations

import base64
import json

import pytest
from mcp_types import BlobResourceContents, EmbeddedResource, ImageContent

from tests.processor import LINEAR, growth
from toolwire.vocabulary.model_text import LONG_BASE64, model_output, model_value, show

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}


def test_the_two_forms_describe_the_same() -> None:
    value = {"a": [IMAGE, (IMAGE, "text")], "b": "data:image/png;base64,iVBORw=="}
    assert json.loads(show(value)) == model_value(value)
    assert model_value(value) == {
        "a": ["[image: image/png, 4 bytes]", ["[image: image/png, 4 bytes]", "text"]],
        "b": "data:image/png;base64,[4 bytes]",
    }


@pytest.mark.parametrize("text", ["data:image/png;base64,iVBORw==", json.dumps(IMAGE), ""])
def test_a_text_is_told_as_it_is(text: str) -> None:
    assert (model_value(text), show(text)) == (text, text)


def test_content_of_mcp_inside_other_data_is_described() -> None:
    data = base64.b64encode(b"1234").decode()
    contents = BlobResourceContents(uri="file:///log.gz", mime_type="application/gzip", blob=data)
    assert json.loads(show([ImageContent(type="image", data=data, mime_type="image/png"), 1])) == [
        "[image: image/png, 4 bytes]",
        1,
    ]
    value = {
        "file": EmbeddedResource(type="resource", resource=contents),
        "row": {"uri": "u", "blob": "not of MCP", "mime_type": None, "owner": "ann"},
    }
    assert json.loads(show(value)) == {
        "file": {
            "type": "resource",
            "resource": "[resource] file:///log.gz, application/gzip, 4 bytes",
            "annotations": None,
            "meta": None,
        },
        "row": value["row"],
    }


@pytest.mark.parametrize(
    ("field", "is_described"),
    [
        ("a" * (LONG_BASE64 - 1), False),
        ("a" * LONG_BASE64, True),
        ("a b" * LONG_BASE64, False),
    ],
)
def test_a_printed_field_without_a_media_type_is_described_if_it_is_long(field: str, is_described: bool) -> None:
    text = f"{{'data': '{field}'}}"
    assert model_output(text) == (f"{{'data': '[{len(field) * 3 // 4} bytes]'}}" if is_described else text)


@pytest.mark.parametrize(("apart", "is_described"), [(190, True), (201, False)])
def test_a_media_type_counts_if_it_stands_near(apart: int, is_described: bool) -> None:
    text = "base64" + " " * apart + "'data': 'iVBORw=='"
    assert ("[4 bytes]" in model_output(text)) is is_described


@pytest.mark.parametrize(
    "piece",
    [
        "\\",
        "'data': ",
        "'data': '",
        '"',
        "data:",
        "data:image/png;base64,",
        "a",
        "base64 'data': 'aaaa', ",
        "'data':  ",
    ],
)
@pytest.mark.parametrize("start", ["", "'data': '", "data:image/png;base64,"])
def test_the_cost_grows_with_the_output_alone(start: str, piece: str) -> None:
    small, large = (f"blob {start}{piece * (size // len(piece))}" for size in (65_536, 262_144))
    assert growth(model_output, small, large) <= LINEAR
