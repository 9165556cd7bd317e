"""The MCP servers behind a `ToolServer`: their resources and prompts, under names that do not collide.

A resource is served under its URI with the server's name before it, `fs+file:///a.txt`, and a prompt as a tool is,
`fs_review`. The server's own name is accepted too, as long as no other server has the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from toolwire.catalogue.catalogue import Catalogue
from toolwire.definition.naming import NAME_LIMIT
from toolwire.definition.texts.outside_texts import clean_text
from toolwire.facade.toolkits.toolkit import Toolkit
from toolwire.gateway.served_names import client_safe_name
from toolwire.gateway.server_limits import GIVEN_NAME_CHARACTERS, URI_CHARACTERS
from toolwire.mcp.client_limits import OFFER_CHARACTERS
from toolwire.mcp.offered.listing import PROMPTS, RESOURCES, TEMPLATES, OfferKind
from toolwire.mcp.server_offers import CAPABILITY, GET, READ, Capability, ServerOffers
from toolwire.session.session import Session
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.texts.invisible import visible_text

_LOG = logging.getLogger("toolwire.gateway")

Updated = Callable[[ServerOffers, str], None]


@dataclass(frozen=True, slots=True)
class Target:
    """A resource or prompt of one server."""

    server: ServerOffers
    own: str
    """The server's own URI or name."""
    prefix: str = ""
    """The text that the client wrote before the URI; empty if it wrote the server's own."""


class Upstreams:
    """The servers whose resources, prompts and completion are passed on. They come and go with the tools."""

    def __init__(self, beside: Catalogue, toolkit: Toolkit, awaits_servers: Callable[[], bool]) -> None:
        """`beside` has the requests that can be passed on, and `toolkit` is the empty one by which they are made.

        `awaits_servers` returns True while a server may still come.
        """
        self.toolkit, self._awaits_servers = toolkit, awaits_servers
        self._server_requests = beside
        self._servers: dict[str, ServerOffers] = {}
        self._updated: list[Updated] = []
        self.resources_revision = self.prompts_revision = 0
        """Numbers that grow with each change of the lists."""

    def follow(self) -> None:
        """Takes over servers that were added or removed."""
        entries = list(self._server_requests)
        for entry in entries:
            # Drawing the same again changes nothing.
            self.toolkit.draw(self._server_requests, entry.name)
        found = {server.server: server for entry in entries if isinstance(server := entry.handle, ServerOffers)}
        if found == self._servers:
            return
        for name, server in found.items():
            if self._servers.get(name) is not server:
                server.watch(self._note_changes, lambda uri, server=server: self._tell_updated(server, uri))
        self._servers = found
        self._note_changes(frozenset((RESOURCES, TEMPLATES, PROMPTS)))

    def serves(self, capability: Capability) -> bool:
        """True if one of the servers has the capability, and its requests can be passed on, or if one may come later.

        Clients of the handshake protocols ask for the capabilities once.
        """
        self.follow()
        if self._awaits_servers():
            return True
        method = next(one for one, needed in CAPABILITY.items() if needed == capability)
        return any(
            server.serves(capability)
            for name, server in self._servers.items()
            if self._server_requests.find(f"{name}/{method}") is not None
        )

    def has(self, server: ServerOffers) -> bool:
        """True if the server is one of these still."""
        return self.find(server.server) is server

    def find(self, name: str) -> ServerOffers | None:
        """Returns the server that has the name now."""
        return self._servers.get(name)

    def watch(self, updated: Updated) -> None:
        """Calls the function with a server and the URI of its resource that changed, in another thread."""
        self._updated.append(updated)

    # -- the lists --------------------------------------------------------------------------------------------------

    async def resources(self, client: Session) -> list[types.Resource]:
        """Returns the resources that a client sees."""
        return await self._list_resources(RESOURCES, "uri", client)

    async def templates(self, client: Session) -> list[types.ResourceTemplate]:
        """Returns the templates of resources that a client sees."""
        return await self._list_resources(TEMPLATES, "uri_template", client)

    async def _list_resources(self, kind: OfferKind, field: str, client: Session) -> list[Any]:
        offered = await self._list_offers(kind, client)
        told = [served_resource(server, one, field) for server, entries in offered for one in entries]
        return [one for one in told if one is not None]

    async def prompts(self, client: Session) -> list[types.Prompt]:
        """Returns the prompts that a client sees. The first of two with one served name counts."""
        found: dict[str, types.Prompt] = {}
        for server, entries in await self._list_offers(PROMPTS, client):
            for one in entries:
                name = _prompt_name(server, one.name)
                if name is None:
                    _LOG.warning("a prompt of %r is off: its name cannot be used: %.200a", server.server, one.name)
                    continue
                told = prompt_to_serve(server, one, name)
                if told is not None and found.setdefault(name, told) is not told:
                    _LOG.warning("the prompt %r of %r is not served: %r is taken", one.name, server.server, name)
        return list(found.values())

    # -- one of them ------------------------------------------------------------------------------------------------

    async def resource(self, client: Session, uri: str, *, is_template: bool = False) -> Target:
        """Returns the resource with a URI, or the template.

        Raises:
            MCPError: -32602: the client sees no server with it, several servers have it, or it is too long.
        """
        _check_length("URI", uri, URI_CHARACTERS)
        shown = self._visible_servers(READ, client)
        for server in shown:
            prefix = _prefix(server)
            if uri.startswith(prefix):
                return Target(server, uri[len(prefix) :], prefix)
        if any(uri.startswith(_prefix(server)) for server in self._servers.values()):
            # It is that of a hidden server. No other one must hear of it.
            raise _error_for_unknown("resource", uri, (), {"uri": uri})
        found = await self._owners(client, uri, is_template=is_template)
        # A server may have resources that it does not list.
        owners = found or (shown if len(shown) == 1 else [])
        if len(owners) != 1:
            names = [f"{_prefix(server)}{uri}" for server in owners]
            raise _error_for_unknown("resource", uri, names, {"uri": uri})
        return Target(owners[0], uri)

    async def prompt(self, client: Session, name: str) -> Target:
        """Returns the prompt with a served name, or with a name that one server alone has.

        Raises:
            MCPError: -32602: the client sees no server with it, several servers have it, or it is too long.
        """
        _check_length("name", name, GIVEN_NAME_CHARACTERS)
        offered = await self._list_offers(PROMPTS, client)
        for server, entries in offered:
            for one in entries:
                if _prompt_name(server, one.name) == name:
                    return Target(server, one.name)
        owners = [server for server, entries in offered if any(one.name == name for one in entries)]
        if len(owners) != 1:
            names = [_prompt_name(server, name) or "" for server in owners]
            raise _error_for_unknown("prompt", name, names, {"name": name})
        return Target(owners[0], name)

    async def _owners(self, client: Session, uri: str, *, is_template: bool) -> list[ServerOffers]:
        """Returns the servers that list the URI, or else those with a template that begins as it does."""
        templates = await self._list_offers(TEMPLATES, client)
        if is_template:
            return [server for server, entries in templates if any(one.uri_template == uri for one in entries)]
        listed = await self._list_offers(RESOURCES, client)
        exact = [server for server, entries in listed if any(one.uri == uri for one in entries)]
        # A template is a stranger's pattern: only the text before its first variable is compared.
        return exact or [
            server
            for server, entries in templates
            if any((start := one.uri_template.partition("{")[0]) and uri.startswith(start) for one in entries)
        ]

    def _visible_servers(self, method: str, client: Session) -> list[ServerOffers]:
        """Returns the servers to which a client may send such a request. The first of two with one prefix counts."""
        self.follow()
        seen = {tool.name for tool in client.tools}
        found: dict[str, ServerOffers] = {}
        for name, server in self._servers.items():
            if f"{name}/{method}" in seen and found.setdefault(_prefix(server), server) is not server:
                _LOG.warning("the resources and prompts of %r are not served: its name is like that of another", name)
        return list(found.values())

    async def _list_offers(self, kind: OfferKind, client: Session) -> list[tuple[ServerOffers, tuple[Any, ...]]]:
        shown = self._visible_servers(GET if kind is PROMPTS else READ, client)
        lists = await asyncio.gather(*(asyncio.wrap_future(server.list_offers(kind)) for server in shown))
        return list(zip(shown, lists, strict=True))

    # -- news -------------------------------------------------------------------------------------------------------

    def _note_changes(self, kinds: frozenset[OfferKind]) -> None:
        if kinds & {RESOURCES, TEMPLATES}:
            self.resources_revision += 1
        if PROMPTS in kinds:
            self.prompts_revision += 1

    def _tell_updated(self, server: ServerOffers, uri: str) -> None:
        if self.has(server):
            for updated in tuple(self._updated):
                updated(server, uri)


def _prefix(server: ServerOffers) -> str:
    """Returns the text before the server's URIs. It is a scheme, which has no capital letters and no `_`."""
    return f"{server.server.lower().replace('_', '.')}+"


def _prompt_name(server: ServerOffers, own: str) -> str | None:
    """Returns the served name of a prompt; None for a name that is empty, too long or has hidden characters."""
    try:
        return client_safe_name(f"{server.server}/{own}") if own else None
    except DefinitionError:
        return None


def served_resource(server: ServerOffers, offer: Any, field: str) -> Any:
    """Returns a resource or template with its served URI in the field; None for one that cannot be shown.

    A warning says why.
    """
    uri = f"{_prefix(server)}{getattr(offer, field)}"
    if not _can_be_served(server.server, offer, f"{uri} {offer.name}"):
        return None
    shown = _shown_text(server)
    return offer.model_copy(update={"name": shown(offer.name), **_offer_texts(offer, shown), field: uri})


def prompt_to_serve(server: ServerOffers, prompt: types.Prompt, name: str) -> types.Prompt | None:
    """Returns a prompt with its served name; None for one that cannot be shown. A warning says why."""
    arguments = prompt.arguments or []
    if not _can_be_served(server.server, prompt, "".join(one.name for one in arguments)):
        return None
    if any(len(one.name) > NAME_LIMIT for one in arguments):
        _LOG.warning("the prompt %r of %r is off: an argument has a name that is too long", prompt.name, server.server)
        return None
    shown = _shown_text(server)
    told = [one.model_copy(update=_offer_texts(one, shown)) for one in arguments]
    return prompt.model_copy(update={"name": name, **_offer_texts(prompt, shown), "arguments": told or None})


def _can_be_served(server: str, offer: Any, words: str) -> bool:
    """True if its words, which a client must give back unchanged, have no hidden characters, and it is not too long."""
    size = len(offer.model_dump_json(by_alias=True, exclude_none=True))
    if words.isprintable() and size <= OFFER_CHARACTERS:
        texts = [offer.title or "", offer.description or ""]
        if list(map(visible_text, texts)) != texts:
            _LOG.warning("%r of the MCP server %r: invisible characters were removed", offer.name[:80], server)
        return True
    why = "it is too long" if size > OFFER_CHARACTERS else "its words have hidden characters"
    _LOG.warning("%r of the MCP server %r is off: %s", offer.name[:80], server, why)
    return False


def _shown_text(server: ServerOffers) -> Callable[[str], str]:
    """Returns the function that makes a text of the server one for clients.

    A client has a prompt of its own. Invisible characters are always removed.
    """
    return clean_text if server.is_sanitised else visible_text


def _offer_texts(offer: Any, shown: Callable[[str], str]) -> dict[str, str | None]:
    texts = {"title": offer.title, "description": offer.description}
    return {key: None if text is None else shown(text) for key, text in texts.items()}


def _check_length(what: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise MCPError(types.INVALID_PARAMS, f"The {what} is longer than {limit:,} characters")


def _error_for_unknown(what: str, name: str, several: Iterable[str], data: dict[str, Any]) -> MCPError:
    names = list(several)
    if names:
        told = f"Several servers have the {what} {name!r:.200}: write one of {', '.join(names)!s:.1000}"
    else:
        told = f"Unknown {what}: {name!r:.200}"
    return MCPError(types.INVALID_PARAMS, told, data=data)
