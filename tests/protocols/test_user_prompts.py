"""Prompts of a user: each provider takes them as they are written, and no block is lost without a word."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.protocols.outgoing_histories import STARTS, TEXTS, TYPES, check_types
from toolwire import ConfigurationError, protocols

TEXT_PROTOCOLS = ("attp", "xml", "json")
NATIVE = ("openai", "openai-responses", "anthropic", "gemini")
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()
WAV = base64.b64encode(b"RIFF\0\0\0\0WAVE").decode()
IMAGE: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
LINK: Any = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
SOUND: Any = {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": WAV}}
RESOURCE: Any = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}}
PDF: Any = {"type": "resource", "resource": {"uri": "a.pdf", "blob": "JVBERi0=", "mimeType": "application/pdf"}}
PDF_LINE = "[resource] a.pdf, application/pdf, 5 bytes"
BROKEN: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "no!"}}
DATA_URL = f"data:image/png;base64,{PNG}"

MIXED: dict[str, Any] = {
    "openai": {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": DATA_URL}},
            {"type": "text", "text": "[resource] file:///a.txt\ninside"},
        ],
    },
    "openai-responses": {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": DATA_URL, "detail": "auto"},
            {"type": "input_text", "text": "[resource] file:///a.txt\ninside"},
        ],
    },
    "anthropic": {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            {"type": "text", "text": "[resource] file:///a.txt\ninside"},
        ],
    },
    "gemini": {
        "role": "user",
        "parts": [
            {"text": "What is this?"},
            {"inline_data": {"mime_type": "image/png", "data": PNG}},
            {"text": "[resource] file:///a.txt\ninside"},
        ],
    },
}


def refusal(protocol: str, content: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        protocols.get(protocol).prompt(content)
    return str(caught.value)


@pytest.mark.parametrize("protocol", NATIVE)
def test_texts_and_images_are_one_message_of_the_user_in_the_form_of_the_api(protocol: str) -> None:
    messages = protocols.get(protocol).prompt(["What is this?", IMAGE, RESOURCE])
    assert messages == [MIXED[protocol]]
    check_types(protocol, messages)


@pytest.mark.parametrize("protocol", protocols.names())
def test_a_text_is_a_message_of_the_user_as_it_is(protocol: str) -> None:
    own = {"parts": [{"text": " Hi\n"}]} if protocol == "gemini" else {"content": " Hi\n"}
    assert protocols.get(protocol).prompt(" Hi\n") == [{"role": "user", **own}]


@pytest.mark.parametrize("protocol", TEXT_PROTOCOLS)
def test_a_text_protocol_joins_texts_by_line_breaks(protocol: str) -> None:
    content = "Read this.\n[resource] file:///a.txt\ninside"
    assert protocols.get(protocol).prompt(["Read this.", RESOURCE]) == [{"role": "user", "content": content}]


@pytest.mark.parametrize("protocol", NATIVE)
def test_random_prompts_are_taken_by_the_types_of_each_api(protocol: str) -> None:
    taken = 0
    for text in TEXTS:
        for at, (start, kind) in enumerate((start, kind) for start in STARTS for kind in TYPES):
            block = {"type": ["image", "audio"][at % 2], "source": {"type": "base64", "media_type": kind}}
            block["source"] = {**block["source"], "data": base64.b64encode(start + b"\0" * 9).decode()}  # type: ignore[dict-item]
            try:
                messages = protocols.get(protocol).prompt(["Look:", block, text])  # type: ignore[list-item]
            except ConfigurationError:
                continue
            json.dumps(messages, ensure_ascii=False).encode()
            check_types(protocol, messages)
            taken += 1
    assert taken > 50


REFUSED = [
    ("anthropic", SOUND, "prompt[1]: the protocol 'anthropic' cannot take this audio block"),
    ("openai-responses", SOUND, "prompt[1]: the protocol 'openai-responses' cannot take this audio block"),
    ("gemini", LINK, "prompt[1]: the protocol 'gemini' cannot take this image block"),
    *((name, IMAGE, f"prompt[1]: the protocol '{name}' cannot take this image block") for name in TEXT_PROTOCOLS),
    *(
        (
            name,
            BROKEN,
            f"prompt[1]: the protocol '{name}' cannot take this image block: [image: image/png, not base64]",
        )
        for name in protocols.names()
    ),
    *(
        (
            name,
            PDF,
            f"prompt[1]: the protocol '{name}' cannot take this resource block: {PDF_LINE}",
        )
        for name in protocols.names()
    ),
]


@pytest.mark.parametrize(("protocol", "block", "message"), REFUSED)
def test_a_block_that_a_protocol_cannot_take_is_named(protocol: str, block: Any, message: str) -> None:
    assert refusal(protocol, ["Look:", block]) == f"{message}; give a text in its place"


@pytest.mark.parametrize("protocol", protocols.names())
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "prompt[0] is a blank text, which providers refuse: leave it out"),
        (["a", " \n"], "prompt[1] is a blank text, which providers refuse: leave it out"),
        ([], "a prompt is a text or a list of texts and content blocks with at least one, not []"),
        (None, "a prompt is a text or a list of texts and content blocks with at least one, not None"),
        ([b"a"], "prompt[0] is b'a': give a text, or a content block such as an ImageBlock"),
        ([{"type": "image"}], "prompt[0] is {'type': 'image'}: give a text, or a content block such as an ImageBlock"),
    ],
    ids=["empty", "blank", "no part", "None", "bytes", "no block"],
)
def test_a_prompt_without_content_is_refused(protocol: str, content: Any, message: str) -> None:
    assert refusal(protocol, content) == message


def test_sounds_and_links_are_written_where_the_api_takes_them() -> None:
    chat = protocols.get("openai").prompt([SOUND])
    assert chat[0]["content"] == [{"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}}]
    linked = protocols.get("anthropic").prompt([LINK])
    assert linked[0]["content"] == [{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}]
    for name, messages in (("openai", chat), ("anthropic", linked)):
        check_types(name, messages)


@pytest.mark.parametrize("protocol", protocols.names())
def test_lone_surrogates_are_replaced(protocol: str) -> None:
    for content in ("a\ud83d", ["a\ud83d"]):
        assert "a�" in json.dumps(protocols.get(protocol).prompt(content), ensure_ascii=False).encode().decode()
