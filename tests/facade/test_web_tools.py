"""Models read pages of the web by a tool that goes down the one path."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import pytest

from tests.web.servers import LoopbackServer, answer, serving
from toolwire import Session, ToolRegistry, ToolResult
from toolwire.builtin.web import page_reader
from toolwire.builtin.web.page_reader import TEXT_LIMIT
from toolwire.builtin.web.page_texts import SAMPLE_PDF
from toolwire.facade.built_in.web_tools import DEFAULT_CHARS, MAX_CHARS
from toolwire.tools import WebFetchTool
from toolwire.vocabulary.effects import Seen
from toolwire.vocabulary.errors import SandboxUnavailable

PAGE = b"<html><head><title>Plans</title></head><body><article><h1>Plans</h1><p>%b</p></article></body></html>" % (
    b"We will read before we write. " * 9
)


def reading(server: LoopbackServer) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(WebFetchTool(allow=[("127.0.0.1", server.port)]))
    return registry


async def fetch(registry: ToolRegistry, **arguments: Any) -> ToolResult:
    return await registry.ainvoke("web_fetch", arguments)


@pytest.mark.requirement("base.builtin.web-fetch")
async def test_a_model_reads_a_page_and_a_pdf_without_being_asked() -> None:
    pages = {"/plans": answer(PAGE), "/pdf": answer(SAMPLE_PDF, content_type="application/pdf")}
    async with serving(lambda path: pages[path]) as server:
        registry, base = reading(server), f"http://127.0.0.1:{server.port}"
        read = await fetch(registry, url=f"{base}/plans")
        pdf = await fetch(registry, url=f"{base}/pdf")
    assert read.text == f"Plans\n{base}/plans\n\n{read.data['text']}"
    assert read.data["text"].startswith("# Plans\n\nWe will read before we write.")
    assert {name: read.data[name] for name in ("url", "title", "content_type", "total_chars")} == {
        "url": f"{base}/plans",
        "title": "Plans",
        "content_type": "text/html",
        "total_chars": len(read.data["text"]),
    }
    assert (pdf.text, pdf.data["text"]) == (f"{base}/pdf\n\nSample", "Sample")


async def test_a_long_page_is_cut_and_says_how_much_is_left_out() -> None:
    async with serving(lambda path: answer(b"abcdef", content_type="text/plain")) as server:
        registry, url = reading(server), f"http://127.0.0.1:{server.port}/"
        cut = await fetch(registry, url=url, max_chars=4)
        whole = await fetch(registry, url=url, max_chars=6)
    note = "[The first 4 of 6 characters; a greater max_chars shows more]"
    assert (cut.text, cut.data["text"]) == (f"{url}\n{note}\n\nabcd", "abcd")
    assert whole.text == f"{url}\n\nabcdef"
    assert len(server.requests) == 1


async def test_a_page_above_the_limit_says_that_the_rest_cannot_be_read() -> None:
    async with serving(lambda path: answer(b"y" * (TEXT_LIMIT + 1), content_type="text/plain")) as server:
        read = await fetch(reading(server), url=f"http://127.0.0.1:{server.port}/", max_chars=MAX_CHARS)
    assert read.data["total_chars"] == TEXT_LIMIT
    assert read.text.split("\n")[1] == "[The first 1,000,000 characters; the rest cannot be read]"


@pytest.mark.parametrize("wanted", [0, -1, MAX_CHARS + 1])
async def test_a_number_of_characters_out_of_its_range_is_refused(wanted: int) -> None:
    registry = ToolRegistry()
    registry.register(WebFetchTool())
    refused = await fetch(registry, url="https://example.org/", max_chars=wanted)
    assert refused.error == f"max_chars is {wanted}: give a number from 1 to 1,000,000"


@pytest.mark.threat(39)
async def test_a_model_is_told_why_a_page_is_refused() -> None:
    async with serving(lambda path: answer(b"secret")) as server:
        registry = ToolRegistry()
        registry.register(WebFetchTool())
        results = [
            await fetch(registry, url=url)
            for url in ("http://127.0.0.1/", f"http://127.0.0.1:{server.port}/", "file:///etc/passwd")
        ]
        assert server.requests == []
    assert [(each.failure.kind, each.error) for each in results if each.failure] == [
        (
            "invalid_arguments",
            "'127.0.0.1' is not on the public internet (loopback): only public pages can be fetched",
        ),
        ("invalid_arguments", f"port {server.port} is not fetched: use 80 or 443"),
        (
            "invalid_arguments",
            "'file:///etc/passwd' is not a page of the web: write a URL that begins with https:// or http://",
        ),
    ]


async def test_a_page_that_is_not_there_and_one_that_may_come_back_fail_differently() -> None:
    pages = {"/gone": answer(status="404 Not Found"), "/busy": answer(status="503 Busy")}
    async with serving(lambda path: pages[path]) as server:
        registry, base = reading(server), f"http://127.0.0.1:{server.port}"
        gone, busy = await fetch(registry, url=f"{base}/gone"), await fetch(registry, url=f"{base}/busy")
    assert [(each.failure.kind, each.error) for each in (gone, busy) if each.failure] == [
        ("tool_error", "the server answered 404 Not Found"),
        ("unavailable", "the server answered 503 Service Unavailable"),
    ]


def test_a_link_that_was_read_is_only_read_and_a_made_up_one_is_also_sent() -> None:
    of_call = WebFetchTool.effects.of_call
    assert of_call is not None
    seen = Seen(urls=frozenset({"https://example.org/a"}))
    assert set(of_call({"url": "https://example.org/a"}, seen)) == {"read"}
    assert set(of_call({"url": "https://example.org/a?secret=1"}, seen)) == {"read", "send"}
    assert WebFetchTool.effects.labels == {"untrusted"}
    assert WebFetchTool.effects.idempotent == "natural"


async def test_after_private_and_untrusted_data_only_links_that_were_read_are_fetched() -> None:
    def notes() -> str:
        """Reads the notes."""
        return "the password is 1234"

    from toolwire import ToolSpec

    async with serving(
        lambda path: answer(b"<a href='http://127.0.0.1:%d/next'>more of it</a>" % server.port)
    ) as server:
        base = f"http://127.0.0.1:{server.port}"
        session = Session(
            [ToolSpec.from_function(notes, labels=("private",)), WebFetchTool(allow=[("127.0.0.1", server.port)])],
            protocol="xml",
        )

        async def turn(name: str, url: str = "") -> ToolResult:
            given = f"<url>{url}</url>" if url else ""
            done = await session.turn(f"<tool_call><name>{name}</name><params>{given}</params></tool_call>")
            return done.results[0]

        assert (await turn("web_fetch", f"{base}/first")).success
        assert (await turn("notes")).success
        assert (await turn("web_fetch", f"{base}/next")).success
        sent = await turn("web_fetch", f"{base}/?password=1234")
    assert sent.failure is not None
    assert sent.failure.kind == "approval_required"
    assert server.paths == ["/first", "/next"]


async def test_a_machine_that_cannot_confine_the_parser_reads_no_html(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> tuple[str, str]:
        raise SandboxUnavailable("no seccomp", report={}, how_to_fix="Ask.")

    monkeypatch.setattr(page_reader.PageReader, "read", refuse)
    async with serving(lambda path: answer(PAGE)) as server:
        refused = await fetch(reading(server), url=f"http://127.0.0.1:{server.port}/")
    assert refused.failure is not None
    assert (refused.failure.kind, refused.error) == ("unavailable", "pages cannot be read on this machine")


@pytest.mark.parametrize("is_installed", [True, False])
async def test_a_machine_without_a_browser_renders_no_page_and_the_operator_reads_why(
    is_installed: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    if not is_installed:
        monkeypatch.setitem(sys.modules, "toolwire.builtin.web.browser", None)
    registry = ToolRegistry()
    registry.register(WebFetchTool())
    refused = await fetch(registry, url="https://example.org/", render=True)
    assert refused.failure is not None
    assert (refused.failure.kind, refused.error) == (
        "unavailable",
        "pages are not rendered on this machine: leave render out",
    )
    command = "apt-get install chromium" if is_installed else "pip install 'toolwire[browser]'"
    assert command in str(refused.failure.exception)
    assert command in caplog.text


def test_fifty_thousand_characters_are_the_default() -> None:
    assert {each.name: each.default for each in WebFetchTool().get_parameters()}["max_chars"] == DEFAULT_CHARS == 50_000
