"""Text that no browser shows by itself does not reach the model, whatever markup is around it."""

from __future__ import annotations

import random
import re

import pytest

from toolwire.builtin.web import browser, page_texts
from toolwire.builtin.web.page_texts import text_of

ELEMENTS = (
    "template div p b a ul li table tr td dialog script style noscript iframe noembed noframes datalist canvas svg"
)
PARTS = (
    *(f"<{name}>" for name in ELEMENTS.split()),
    *(f"</{name}>" for name in ELEMENTS.split()),
    *("<template>", "<template>", "</template>", "</div>", "</td>", "</ul>"),
    *(
        "<p hidden>",
        "<div hidden=''>",
        "<!--",
        "-->",
        "--!>",
        "<!-->",
        "<?",
        "<p title='",
        "'>",
        "</",
        "<body>",
        "<head>",
    ),
)
SHOWN = """pages => Promise.all(pages.map(page => new Promise(done => {
    const frame = document.createElement('iframe');
    frame.srcdoc = page;
    frame.onload = () => done(frame.contentDocument.documentElement.innerText);
    document.body.append(frame);
})))"""
"""Loads pages as frames, with scripts, and returns the text that each of them shows."""


def soup(number: int) -> str:
    """Returns a page of random parts. Each has a word of its own before it."""
    chance = random.Random(number)
    parts = (f" w{place} {chance.choice(PARTS)}" for place in range(chance.randint(4, 40)))
    return f"<!DOCTYPE html>{''.join(parts)} wend"


def words(text: str) -> set[str]:
    return set(re.findall(r"w\w+", text))


def read(page: str) -> str:
    return text_of("html", page.encode(), "https://example.org/", "utf-8")[1]


def read_without_protection(page: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_texts, "_visible_part", lambda source: ("", source))
        return read(page)


@pytest.mark.threat(48)
async def test_random_pages_have_the_words_that_chromium_shows(whole: bool) -> None:
    pages = [soup(number) for number in range(400 if whole else 30)]
    async with browser._open_browser([]) as tab:
        shown: list[str] = await tab.evaluate(SHOWN, pages)
    exposed = 0
    for page, text in zip(pages, shown, strict=True):
        visible = words(text)
        assert words(page_texts._whole(page_texts._visible_part(page)[1])) == visible, page
        assert words(read(page)) <= visible, page
        exposed += not words(read_without_protection(page)) <= visible
    assert exposed > len(pages) / 2


@pytest.mark.threat(48)
@pytest.mark.parametrize(
    "page",
    [
        "<div><template></div>hidden</template>shown</div>",
        "<div><section><template></section></div>hidden<template></div>hidden</template>hidden</template>shown",
        "<table><tr><td>shown<template></td></tr></table>hidden</template></td></tr></table>",
        "<table><template><tr></table>hidden</template><tr><td>shown</table>",
        "<ul><li>shown<template></li></ul>hidden</template></ul>",
        "<select><option>shown<template></option></select>hidden</template></select>",
        "<script><!--<script></script>hidden</script>shown",
        "<noscript><p title='</noscript><template>'></p></noscript>hidden</template>shown",
        "<head><noscript><p>hidden</p></noscript></head>shown",
        "<p hidden>hidden<b>hidden</p></b><p hidden=until-found>shown",
        "<dialog>hidden</dialog><p popover>hidden</p><dialog open>shown</dialog>",
        "<iframe></div>hidden</iframe><canvas>hidden</canvas><svg><style><template></style>hidden</svg>shown",
        "<!--><p>shown</p><!-- --!><!-- hidden <!-- --><!hidden><?hidden -- ?></ hidden>",
    ],
)
def test_each_way_to_hide_a_text_hides_it(page: str) -> None:
    assert "hidden" not in read(page)
    assert "shown" in read(page)


@pytest.mark.parametrize("start", ["<html hidden><body>", "<html popover><body>", "<body hidden>"])
def test_a_page_that_is_hidden_as_a_whole_has_its_title_alone(start: str) -> None:
    page = f"<!DOCTYPE html>{start}<title>A name</title><p>hidden".encode()
    assert text_of("html", page, "https://example.org/", "") == ("A name", "")
