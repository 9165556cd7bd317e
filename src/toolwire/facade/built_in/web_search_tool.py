"""The tool by which a model searches the web."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from toolwire.definition.parameters import ToolParameter
from toolwire.facade.tools.base_tool import BaseTool
from toolwire.runtime.extras import packages_of, require_packages
from toolwire.vocabulary.effects import Effects
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from toolwire.builtin.web.searching import Provider, SearchResult

COUNT_LIMIT = 50
"""Maximum results of one search: the limit of Bocha's API."""
DEFAULT_COUNT = 10
_DDGS_NAME = "ddgs"


class WebSearchTool(BaseTool):
    """The tool `web_search`: searches the web by an engine that the host chose. Permission `auto`.

    Without arguments it takes the first engine whose variable is in the environment: `BOCHA_API_KEY`,
    `TAVILY_API_KEY`, `BRAVE_API_KEY` or `SEARXNG_URL`. The engine `ddgs` needs no key, only its package.
    """

    effects = Effects(kinds=frozenset({"read", "send"}), idempotent="natural", labels=frozenset({"untrusted"}))
    described = ("web_search", "Search the web. Returns titles, URLs and snippets.")
    parameters = (
        ToolParameter("query", "string", "The words to search for"),
        ToolParameter(
            "freshness",
            "string",
            "noLimit, oneDay, oneWeek, oneMonth, oneYear, a day as 2026-01-31, or days as 2026-01-01..2026-01-31",
            False,
            "noLimit",
        ),
        ToolParameter("count", "integer", "How many results at most, 1 to 50", False, DEFAULT_COUNT),
    )

    def __init__(
        self,
        provider: Literal["bocha", "tavily", "brave", "searxng", "ddgs"] | None = None,
        *,
        key: str | None = None,
        url: str | None = None,
    ) -> None:
        """Takes the name of an engine; None takes the first whose variable is set.

        `key` and `url` replace those of the environment and of the engine, for example for a proxy of your own.

        Raises:
            ConfigurationError: No engine's variable is set, the name is unknown, or the extra is not installed.
        """
        super().__init__(*self.described)
        extra = "web,ddgs" if provider == _DDGS_NAME else "web"
        with packages_of(extra, "web_search"):
            from toolwire.builtin.web.searching import PROVIDERS
        self._provider: Provider | None = None
        self._key = self._url = ""
        if provider == _DDGS_NAME:
            require_packages(extra, "the engine ddgs", ("ddgs",))
            return
        self._provider = _choose_provider(PROVIDERS, provider)
        given = os.environ.get(self._provider.variable, "")
        has_own_url = not self._provider.url
        self._url = url or (given if has_own_url else self._provider.url)
        self._key = key or ("" if has_own_url else given)
        if not self._url or not (self._key or has_own_url):
            raise ConfigurationError(f"the engine {provider} needs {self._provider.variable} in the environment")

    def get_parameters(self) -> list[ToolParameter]:
        """Returns the parameters, in order."""
        return list(self.parameters)

    def validate_params(self, params: dict[str, Any]) -> str | None:
        """Returns the error in the arguments, or None."""
        from toolwire.builtin.web.searching import is_freshness

        count = params.get("count", DEFAULT_COUNT)
        if not 1 <= count <= COUNT_LIMIT:
            return f"count is {count}: give a number from 1 to {COUNT_LIMIT}"
        freshness = params.get("freshness", "noLimit")
        if not is_freshness(freshness):
            return (
                f"freshness is {freshness[:80]!r}: give noLimit, oneDay, oneWeek, oneMonth, oneYear, "
                "a day as 2026-01-31, or days as 2026-01-01..2026-01-31"
            )
        if not params.get("query", "").strip():
            return "query is empty: give the words to search for"
        return super().validate_params(params)

    async def execute(self, query: str, freshness: str = "noLimit", count: int = DEFAULT_COUNT) -> ToolResult:
        """Asks the engine."""
        from toolwire.builtin.web.refusals import FetchFailed
        from toolwire.builtin.web.searching import SearchRequest, search, search_ddgs

        most = COUNT_LIMIT if self._provider is None else self._provider.most
        wanted = SearchRequest(query=query, freshness=freshness, count=min(count, most))
        try:
            if self._provider is None:
                found = await search_ddgs(wanted)
            else:
                found = await search(self._provider, wanted, url=self._url, key=self._key)
        except FetchFailed as error:
            return ToolResult.failed("unavailable" if error.may_repeat else "tool_error", str(error), exception=error)
        lines = [] if count <= most or self._provider is None else [f"[{self._provider.name} gives at most {most}]"]
        lines += [_result_text(number, each) for number, each in enumerate(found, 1)] or ["Nothing was found."]
        data = [asdict(each) for each in found]
        return ToolResult(True, data, content=[{"type": "text", "text": "\n\n".join(lines)}])


def _choose_provider(providers: tuple[Provider, ...], name: str | None) -> Provider:
    named = {each.name: each for each in providers}
    if name is None:
        found = next((each for each in providers if os.environ.get(each.variable)), None)
        if found is None:
            variables = ", ".join(each.variable for each in providers)
            raise ConfigurationError(
                f"web_search has no search engine: set one of {variables}, or use WebSearchTool('ddgs')"
            )
        return found
    for each in providers:
        if each.name == name:
            return each
    raise ConfigurationError(f"{name!r} is not a search engine: use {', '.join(named)} or ddgs")


def _result_text(number: int, result: SearchResult) -> str:
    when = f" ({result.published})" if result.published else ""
    lines = [f"{number}. {result.title}{when}", result.url, result.summary or result.snippet]
    return "\n".join(line for line in lines if line)
