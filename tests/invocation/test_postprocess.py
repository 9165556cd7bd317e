"""A result for the model can be encoded, and is not longer than a model can read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.invocation.world import World
from toolwire.invocation.scope import RESULT_LIMIT_BYTES
from toolwire.vocabulary.blocks import ContentBlock
from toolwire.vocabulary.results import ToolResult

LIMIT = RESULT_LIMIT_BYTES
PICTURE: ContentBlock = {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}}


def text_block(text: str) -> ContentBlock:
    return {"type": "text", "text": text}


def returned(world: World, value: Any) -> ToolResult:
    world.add(lambda: value, name="tool")
    return world.call("tool")


def test_the_limit_is_32_kib() -> None:
    assert LIMIT == 32 * 1024


@pytest.mark.parametrize(
    "data",
    ["x" * LIMIT, "多" * (LIMIT // 3), ["x" * (LIMIT - 4)], "", None, 1.5, True],
    ids=["ascii", "wide", "json", "empty", "none", "float", "true"],
)
def test_a_result_up_to_the_limit_is_whole(world: World, data: Any) -> None:
    result = returned(world, data)
    assert (result.data, result.blocks, dict(result.metadata)) == (data, (), {})
    assert len(result.text.encode()) <= LIMIT


CUT = [
    ("x" * (LIMIT + 1), "x" * LIMIT, LIMIT, LIMIT + 1),
    ("多" * LIMIT, "多" * (LIMIT // 3), LIMIT - 2, LIMIT * 3),
    ("a" + "\U0001f600" * LIMIT, "a" + "\U0001f600" * (LIMIT // 4 - 1), LIMIT - 3, LIMIT * 4 + 1),
    (["x" * LIMIT], '["' + "x" * (LIMIT - 2), LIMIT, LIMIT + 4),
]


@pytest.mark.parametrize(("data", "kept", "kept_bytes", "total"), CUT, ids=["ascii", "wide", "emoji", "json"])
def test_a_longer_one_is_cut_at_a_character_and_says_so_while_its_data_stay_whole(
    world: World, data: Any, kept: str, kept_bytes: int, total: int
) -> None:
    result = returned(world, data)
    assert result.text == f"{kept}\n[cut: the first {kept_bytes:,} of {total:,} bytes are shown]"
    assert (result.success, result.data, dict(result.metadata)) == (True, data, {"is_cut": True})
    assert result.content == [text_block(result.text)]


def test_a_tools_own_text_is_cut_and_its_pictures_are_kept(world: World) -> None:
    made = ToolResult(True, None, metadata={"pages": 2}, content=[text_block("x" * LIMIT), PICTURE])
    result = returned(world, made)
    assert result.content == [
        text_block(f"{'x' * LIMIT}\n[cut: the first {LIMIT:,} of {LIMIT + 8:,} bytes are shown]"),
        PICTURE,
    ]
    assert dict(result.metadata) == {"pages": 2, "is_cut": True}


@pytest.mark.parametrize("length", [LIMIT * 2, 10])
def test_an_error_is_never_cut_at_that_limit(world: World, length: int) -> None:
    world.result_limit_bytes = 100
    error = "x" * min(length, 16_384)
    assert returned(world, ToolResult(False, error=error)).error == error


def test_without_a_limit_nothing_is_cut(world: World) -> None:
    world.result_limit_bytes = None
    assert returned(world, "x" * LIMIT * 2).text == "x" * LIMIT * 2


def test_an_integer_too_long_for_json_is_refused_and_one_that_fits_is_not(world: World) -> None:
    world.add(lambda: 1 << 64, name="long")
    world.add(lambda: -(1 << 14000), name="too_long")
    assert world.call("long").text == "18446744073709551616"
    assert world.call("too_long").failure is not None
