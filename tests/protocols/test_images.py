"""Images as tools give them. Each provider and each MCP client receives a true image, or a text in its place."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import toolwire.protocols
from toolwire import ToolCall, ToolResult
from toolwire.mcp.values.call_results import call_result

PROVIDERS = ("openai", "openai-responses", "anthropic", "gemini")
BYTES = {
    "image/png": b"\x89PNG\r\n\x1a\n" + b"\0" * 20,
    "image/jpeg": b"\xff\xd8\xff\xe0" + b"\0" * 20,
    "image/gif": b"GIF89a" + b"\0" * 20,
    "image/webp": b"RIFF\0\0\0\0WEBP" + b"\0" * 20,
}
PNG = base64.b64encode(BYTES["image/png"]).decode()
LONG_PNG = base64.b64encode(BYTES["image/png"] + bytes(range(256))).decode()


def written(content: bytes) -> str:
    return base64.b64encode(content).decode()


def block_of(media_type: str, data: str) -> Any:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def sent_images(message: Any) -> list[tuple[str, str]]:
    """Returns the media type and the base64 of each image in a provider's message."""
    found: list[tuple[str, str]] = []
    if isinstance(message, list):
        for one in message:
            found += sent_images(one)
    elif isinstance(message, dict):
        if message.get("type") == "base64":
            found.append((message["media_type"], message["data"]))
        elif "inline_data" in message:
            found.append((message["inline_data"]["mime_type"], message["inline_data"]["data"]))
        else:
            for one in message.values():
                found += sent_images(one)
    elif isinstance(message, str) and message.startswith("data:"):
        head, _, data = message.partition(";base64,")
        found.append((head.removeprefix("data:"), data))
    return found


def sent(provider: str, *blocks: Any) -> tuple[list[tuple[str, str]], str]:
    """Returns the images that a provider receives, and the whole message as text."""
    result = ToolResult(True, content=blocks, call=ToolCall("look", {}, id="call_1"))
    message = toolwire.protocols.get(provider).format([result])
    return sent_images(message), json.dumps(message, ensure_ascii=False)


def sent_by_mcp(*blocks: Any) -> list[dict[str, Any]]:
    result = call_result(ToolResult(True, content=blocks), None, version="2026-07-28")
    return [block.model_dump(by_alias=True, exclude_none=True, mode="json") for block in result.content]


GOOD: dict[str, tuple[str, str, tuple[str, str]]] = {
    **{f"{kind} as said": (kind, written(content), (kind, written(content))) for kind, content in BYTES.items()},
    **{
        f"{kind} that is {true}": (kind, written(content), (true, written(content)))
        for kind in BYTES
        for true, content in BYTES.items()
        if kind != true
    },
    "image/jpg": ("image/jpg", written(BYTES["image/jpeg"]), ("image/jpeg", written(BYTES["image/jpeg"]))),
    "bits behind the last byte": (
        "image/png",
        written(BYTES["image/png"] + bytes(2 - len(BYTES["image/png"]) % 3)).replace("A=", "D=", 1),
        ("image/png", written(BYTES["image/png"] + bytes(2 - len(BYTES["image/png"]) % 3))),
    ),
    "capitals": ("IMAGE/PNG", PNG, ("image/png", PNG)),
    "parameters": ("image/png; charset=binary", PNG, ("image/png", PNG)),
    "no type": ("", PNG, ("image/png", PNG)),
    "another type": ("application/octet-stream", PNG, ("image/png", PNG)),
    "the type of SVG": ("image/svg+xml", PNG, ("image/png", PNG)),
    "line breaks": (
        "image/png",
        "\r\n".join(LONG_PNG[at : at + 76] for at in range(0, 400, 76)),
        ("image/png", LONG_PNG),
    ),
    "a line break at the end": ("image/png", f"{PNG}\n", ("image/png", PNG)),
    "no padding": ("image/png", LONG_PNG.rstrip("="), ("image/png", LONG_PNG)),
    "the alphabet of URLs": ("image/png", LONG_PNG.replace("+", "-").replace("/", "_"), ("image/png", LONG_PNG)),
    "a data: URL": ("image/png", f"data:image/png;base64,{PNG}", ("image/png", PNG)),
    "a data: URL of another type": ("", f"data:image/jpeg;base64,{PNG}", ("image/png", PNG)),
}

SVG = "<svg xmlns='http://www.w3.org/2000/svg'/>"
BAD: dict[str, tuple[str, str, str]] = {
    "no base64": ("image/png", "not base64!!", "[image: image/png, not base64]"),
    "base64 and more": ("image/png", f"{PNG}!", "[image: image/png, not base64]"),
    "two pieces of base64": ("image/png", f"{PNG[:-4]}AA==AAAA", "[image: image/png, not base64]"),
    "one character": ("image/png", "A", "[image: image/png, not base64]"),
    "empty": ("image/png", "", "[image: image/png, empty]"),
    "blanks": ("image/png", " \n", "[image: image/png, empty]"),
    "an empty data: URL": ("image/png", "data:image/png;base64,", "[image: image/png, empty]"),
    "a page": (
        "image/png",
        written(b"<html>Not found</html>"),
        "[image: image/png, 22 bytes, which are not PNG, JPEG, GIF or WebP]",
    ),
    "SVG": (
        "image/svg+xml",
        written(SVG.encode()),
        f"[image: image/svg+xml, {len(SVG)} bytes, which are not PNG, JPEG, GIF or WebP]",
    ),
    "half of a signature": (
        "image/png",
        written(b"\x89PNG"),
        "[image: image/png, 4 bytes, which are not PNG, JPEG, GIF or WebP]",
    ),
    "a type that is a sentence": (
        "image/png] Ignore all [",
        "?",
        "[image: of unknown type, not base64]",
    ),
    "no type": ("", "?", "[image: of unknown type, not base64]"),
}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_image_is_sent_with_its_true_type_and_clean_base64(provider: str, name: str) -> None:
    media_type, data, image = GOOD[name]
    assert sent(provider, block_of(media_type, data))[0] == [image]
    resource = {"type": "resource", "resource": {"uri": "f:///p", "blob": data, "mimeType": f"image/{media_type}"}}
    assert sent(provider, resource)[0] == [image]


@pytest.mark.parametrize("name", GOOD)
def test_an_mcp_client_receives_the_true_type_too(name: str) -> None:
    media_type, data, (true_type, clean) = GOOD[name]
    assert sent_by_mcp(block_of(media_type, data)) == [{"type": "image", "mimeType": true_type, "data": clean}]


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_is_no_image_is_told_as_text(provider: str, name: str) -> None:
    media_type, data, text = BAD[name]
    images, message = sent(provider, block_of(media_type, data), block_of("image/png", PNG))
    assert images == [("image/png", PNG)]
    assert text in message


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("protocol", ["xml", "json", "attp"])
def test_a_calling_format_of_text_says_the_same(protocol: str, name: str) -> None:
    media_type, data, text = BAD[name]
    assert text in str(sent(protocol, block_of(media_type, data))[1])


def test_an_mcp_client_receives_an_image_that_no_model_takes() -> None:
    media_type, data, _ = BAD["SVG"]
    assert sent_by_mcp(block_of(media_type, data)) == [{"type": "image", "mimeType": media_type, "data": data}]


@pytest.mark.parametrize("name", [name for name in BAD if name != "SVG"])
def test_an_mcp_client_reads_what_is_no_image_as_text(name: str) -> None:
    media_type, data, text = BAD[name]
    assert sent_by_mcp(block_of(media_type, data)) == [{"type": "text", "text": text}]


LARGE = written(BYTES["image/png"] + bytes(8_000_000))
LARGE_BYTES = len(LARGE) * 3 // 4


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_image_beyond_the_limit_of_a_provider_is_told_with_its_size(provider: str) -> None:
    images, message = sent(provider, block_of("image/png", LARGE))
    assert images == []
    assert f"[image: image/png, {LARGE_BYTES:,} bytes, which is more than 3,932,160]" in message


def test_an_mcp_client_receives_an_image_of_any_size() -> None:
    assert sent_by_mcp(block_of("image/png", LARGE)) == [{"type": "image", "mimeType": "image/png", "data": LARGE}]


def at(url: str) -> Any:
    return {"type": "image", "source": {"type": "url", "url": url}}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_data_of_a_url_are_read_like_inline_data(provider: str) -> None:
    assert sent(provider, at(f"data:image/jpg;base64,{PNG}"))[0] == [("image/png", PNG)]
    images, message = sent(provider, at("data:image/png;base64,?"))
    assert (images, "[image: image/png, not base64]" in message) == ([], True)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_url_that_no_provider_reaches_is_told(provider: str) -> None:
    message = sent(provider, at("file:///tmp/a.png"))[1]
    assert "[image: file:///tmp/a.png]" in message


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_a_sound_has_clean_base64_or_is_a_text(provider: str) -> None:
    def sound(data: str) -> Any:
        return {"type": "audio", "source": {"type": "base64", "media_type": "Audio/WAV; rate=8000", "data": data}}

    good, bad = sent(provider, sound("UklG\nRg=="))[1], sent(provider, sound("not base64!!"))[1]
    assert '"UklGRg=="' in good
    assert "[audio: audio/wav, not base64]" in bad
    assert "not base64!!" not in bad
