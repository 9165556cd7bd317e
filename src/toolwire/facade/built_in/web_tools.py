"""The tools by which a model reads the web."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from toolwire.definition.parameters import ToolParameter
from toolwire.facade.tools.base_tool import BaseTool
from toolwire.runtime.extras import PAGE_PACKAGES, install_command, packages_of, require_packages
from toolwire.vocabulary.effects import Effect, Effects, Seen
from toolwire.vocabulary.errors import SandboxUnavailable
from toolwire.vocabulary.machine import system
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from toolwire.builtin.web.page_cache import Render, WebPage

DEFAULT_CHARS = 50_000
"""Characters of a page that a call returns by default: about 12,000 tokens, a long article."""
MAX_CHARS = 1_000_000
"""Maximum characters of a page that a call can ask for; no more of a page is kept."""


_LOG = logging.getLogger("toolwire.tools")
_UNREADABLE = "pages cannot be read on this machine"


def effects_of_fetch(arguments: Mapping[str, Any], seen: Seen) -> tuple[Effect, ...]:
    """Returns `read` for a URL that the conversation has read. Another one can carry data out, and is sent too."""
    return ("read",) if arguments.get("url") in seen.urls else ("read", "send")


class WebFetchTool(BaseTool):
    """The tool `web_fetch`: reads one page of the public web as text. Permission `auto`.

    Needs Linux and `pip install 'toolwire[web]'`. Pages are kept for 15 minutes, up to 64 MiB. Calls with `render` also
    need `pip install 'toolwire[browser]'` and Chromium; without them the model reads that pages are not rendered here.
    """

    effects = Effects(
        kinds=frozenset({"read", "send"}),
        idempotent="natural",
        labels=frozenset({"untrusted"}),
        of_call=effects_of_fetch,
    )
    described = ("web_fetch", "Read a page of the web as text: HTML as Markdown, PDF, JSON and plain text.")
    parameters = (
        ToolParameter("url", "string", "The whole URL, with https:// or http://"),
        ToolParameter("max_chars", "integer", "How many characters at most, 1 to 1,000,000", False, DEFAULT_CHARS),
        ToolParameter(
            "render", "boolean", "Run the page's JavaScript first; slow, for pages without text", False, False
        ),
    )

    def __init__(self, *, allow: Iterable[tuple[str, int]] = ()) -> None:
        """Takes addresses with ports that may be reached though they are not public, such as `("10.0.0.5", 8080)`.

        Raises:
            ConfigurationError: The extra `web` is not installed.
        """
        super().__init__(*self.described)
        with packages_of("web", "web_fetch"):
            from toolwire.builtin.web.page_cache import Pages
        require_packages("web", "web_fetch", PAGE_PACKAGES)
        self._pages = Pages(allow)
        if not system.IS_LINUX:
            _LOG.warning(
                "web_fetch reads HTML and PDF in a process that Linux confines, and this is %s: it reads only text and "
                "JSON",
                system.PLATFORM,
            )

    def get_parameters(self) -> list[ToolParameter]:
        """Returns the parameters, in order."""
        return list(self.parameters)

    def validate_params(self, params: dict[str, Any]) -> str | None:
        """Returns the error in the arguments, or None."""
        wanted = params.get("max_chars", DEFAULT_CHARS)
        if not 1 <= wanted <= MAX_CHARS:
            return f"max_chars is {wanted}: give a number from 1 to {MAX_CHARS:,}"
        return super().validate_params(params)

    async def execute(self, url: str, max_chars: int = DEFAULT_CHARS, render: bool = False) -> ToolResult:
        """Fetches the page, or takes it from those that are kept."""
        from toolwire.builtin.web.refusals import Blocked, FetchFailed, PageLimit

        try:
            page = await self._pages.get(url, _renderer() if render else None)
        except Blocked as error:
            return ToolResult.failed("invalid_arguments", str(error), exception=error)
        except PageLimit as error:
            return ToolResult.failed("limit", str(error), exception=error)
        except FetchFailed as error:
            return ToolResult.failed("unavailable" if error.may_repeat else "tool_error", str(error), exception=error)
        except SandboxUnavailable as error:
            _LOG.warning("A page was not read: %s", error)
            why = "pages are not rendered on this machine: leave render out" if render else _UNREADABLE
            return ToolResult.failed("unavailable", why, exception=error)
        data = {
            "url": page.url,
            "title": page.title,
            "content_type": page.content_type,
            "text": page.text[:max_chars],
            "total_chars": len(page.text),
        }
        return ToolResult(True, data, content=[{"type": "text", "text": _page_text(page, max_chars)}])


def _renderer() -> Render:
    """Returns the function that renders pages.

    Raises:
        SandboxUnavailable: The extra `browser` is not installed.
    """
    try:
        from toolwire.builtin.web.browser import render
    except ImportError as error:
        raise SandboxUnavailable(
            "web_fetch renders pages by a package that is not here",
            report={},
            how_to_fix=f"Run: {install_command('browser')}",
        ) from error
    return render


def _page_text(page: WebPage, max_chars: int) -> str:
    """Returns the text for the model. A note on what is left out stands first: a long result is cut at its end."""
    lines = [page.title] if page.title else []
    lines.append(page.url)
    if len(page.text) > max_chars:
        lines.append(f"[The first {max_chars:,} of {len(page.text):,} characters; a greater max_chars shows more]")
    elif not page.is_whole:
        lines.append(f"[The first {MAX_CHARS:,} characters; the rest cannot be read]")
    return "\n".join([*lines, "", page.text[:max_chars]])
