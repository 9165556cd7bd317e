"""Lines of a text are those that a list of all of them would have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.builtin.files import lines
from toolwire.builtin.files.lines import line_blocks, line_count, line_start

TEXTS = st.text(alphabet="a\r\n", max_size=40)


@pytest.fixture(params=[1, 3, 65_536], autouse=True, scope="module")
def block(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_BLOCK", request.param)
        yield


@given(TEXTS)
def test_blocks_have_each_line_once(text: str) -> None:
    assert [line for block in line_blocks(text) for line in block] == text.split("\n")


@given(TEXTS)
def test_a_line_begins_after_the_ends_of_those_before_it(text: str) -> None:
    ends = [f"{line}\n" for line in text.split("\n")[:-1]]
    assert line_count(text) == len(ends) + (not text.endswith("\n") and text != "")
    starts = [line_start(text, number) for number in range(1, len(ends) + 4)]
    assert starts == [sum(map(len, ends[:number])) for number in range(len(ends) + 1)] + [len(text)] * 2
