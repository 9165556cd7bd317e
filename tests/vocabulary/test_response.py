"""A chunk, and the content that chunks are made of."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.patience import PATIENCE_S
from toolwire.vocabulary.blocks import AudioBlock, Content, ContentBlock, ImageBlock, TextBlock, new_blocks
from toolwire.vocabulary.response import ToolResponse

PICTURE: ImageBlock = {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}}
SOUND: AudioBlock = {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "eA=="}}


def text(words: str) -> TextBlock:
    return {"type": "text", "text": words}


@pytest.mark.requirement(
    "toolkit.response.content",
    "toolkit.response.metadata",
    "toolkit.response.stream",
    "toolkit.response.is-last",
    "toolkit.response.is-interrupted",
)
def test_a_response_is_made_of_its_content_and_the_rest_has_defaults() -> None:
    response = ToolResponse([text("one")])
    assert (response.content, response.metadata, response.stream) == ([text("one")], None, False)
    assert (response.is_last, response.is_interrupted, response.is_cumulative) == (True, False, True)


@pytest.mark.requirement("toolkit.response.content")
def test_its_fields_are_taken_by_position_in_the_order_of_their_document() -> None:
    response = ToolResponse([PICTURE, SOUND], {"n": 1}, True, False, True, "id-1")
    assert response.content == [PICTURE, SOUND]
    assert response == ToolResponse(
        content=[PICTURE, SOUND],
        metadata={"n": 1},
        stream=True,
        is_last=False,
        is_interrupted=True,
        id="id-1",
        is_cumulative=True,
    )


def test_its_text_has_each_block_on_lines_of_its_own() -> None:
    assert ToolResponse([text("one"), PICTURE, text("two")]).text == "one\n[image]\ntwo"
    assert ToolResponse([]).text == ""


def test_its_text_can_be_encoded() -> None:
    assert ToolResponse([text("a\ud800")]).text == "a\ufffd"


@pytest.mark.requirement("toolkit.response.id", "toolkit.response.timestamp-id")
def test_ids_are_texts_that_sort_by_the_time_they_were_made_and_none_is_given_twice() -> None:
    made = [ToolResponse([]).id for _ in range(10_000)]
    assert sorted(made) == made
    assert len(set(made)) == len(made)


# Python 3.12 and later warn of a fork while there are threads, which the runner of tests has.
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_ids_of_threads_and_of_a_forked_child_are_all_different() -> None:
    found: list[str] = []

    def make() -> None:
        found.extend([ToolResponse([]).id for _ in range(1_000)])

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(set(found)) == 4_000
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, ToolResponse([]).id.encode())
        os._exit(0)
    os.wait()
    child, ours = os.read(reader, 100).decode(), ToolResponse([]).id
    os.close(reader)
    os.close(writer)
    assert child.rpartition("-")[2] != ours.rpartition("-")[2]


# -- content --------------------------------------------------------------------------------------------------------


def content(*pieces: str | ContentBlock) -> Content:
    made = Content()
    made.extend(pieces)
    return made


def test_texts_join_and_blocks_stand_for_themselves() -> None:
    assert content("a", "b", PICTURE, "c", text("d"), "e").blocks() == [
        *(text("ab"), PICTURE),
        *(text("c"), text("d"), text("e")),
    ]
    assert (content().blocks(), bool(content()), bool(content(""))) == ([], False, True)


def test_a_returned_value_does_not_change_later() -> None:
    made = content("a", PICTURE)
    before = made.blocks()
    made.extend(["b"])
    assert (before, made.blocks()) == ([text("a"), PICTURE], [text("a"), PICTURE, text("b")])
    made.replace([text("new")])
    assert (before, made.blocks()) == ([text("a"), PICTURE], [text("new")])


def test_blocks_that_are_given_out_are_the_readers_own() -> None:
    made = content(PICTURE)
    taken: Any = made.blocks()[0]
    taken["source"]["url"] = "changed"
    assert made.blocks() == [PICTURE]


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ([], [], []),
        ([], [text("a")], [text("a")]),
        ([text("a")], [text("a")], []),
        ([text("a")], [text("ab"), PICTURE], [text("b"), PICTURE]),
        ([text("a"), PICTURE], [text("a"), PICTURE, text("b")], [text("b")]),
        ([text("a"), PICTURE], [text("ab"), PICTURE], None),
        ([text("ab")], [text("a")], None),
        ([text("a")], [], None),
        ([text("a")], [PICTURE], None),
        ([PICTURE], [SOUND], None),
    ],
)
def test_new_blocks_are_found_when_the_beginning_has_not_changed(
    before: list[ContentBlock], after: list[ContentBlock], new: list[ContentBlock] | None
) -> None:
    assert new_blocks(before, after) == new


PIECES = st.lists(st.one_of(st.text(max_size=3), st.builds(text, st.text(max_size=2)), st.just(PICTURE)), max_size=8)


@given(PIECES)
def test_every_content_begins_as_the_one_before_it(pieces: list[Any]) -> None:
    made, before = Content(), list[ContentBlock]()
    for piece in pieces:
        made.extend([piece])
        after = made.blocks()
        assert new_blocks(before, after) is not None
        before = after
    assert before == content(*pieces).blocks()


def test_text_that_was_joined_once_is_not_joined_anew_for_each_chunk() -> None:
    made = Content()
    for _ in range(100):
        made.extend(["x"])
        made.blocks()
        assert len(made._pieces) == 1
    assert made.blocks() == [text("x" * 100)]
