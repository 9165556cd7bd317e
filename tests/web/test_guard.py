"""No URL, no name server and no redirect leads the guard to an address that is not public."""

from __future__ import annotations

import random
import socket
from collections.abc import Awaitable, Callable, Iterable

import httpx2
import pytest

from tests.patience import PATIENCE_S
from tests.web.servers import LoopbackServer, answer, serving
from toolwire.builtin.web.fetching import REDIRECT_LIMIT, URL_LIMIT, fetch
from toolwire.builtin.web.guard import GuardedTransport
from toolwire.builtin.web.refusals import Blocked, FetchFailed

LOOPBACK_HOSTS = (
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.255.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "0.0.0.0",
    "0",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "127.0.0.1.",
    "127。0。0。1",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
)


def resolving(*addresses: str) -> Callable[[str, int], Awaitable[Iterable[str]]]:
    async def resolve(host: str, port: int) -> Iterable[str]:
        return addresses

    return resolve


def reaching(server: LoopbackServer, *more: LoopbackServer) -> GuardedTransport:
    """Returns a transport for which the servers are public, as the control of an attack."""
    return GuardedTransport(allow=[("127.0.0.1", each.port) for each in (server, *more)])


@pytest.mark.threat(39)
async def test_no_form_of_a_loopback_address_reaches_a_server_there() -> None:
    async with serving(lambda path: answer(b"secret")) as server:
        reached: list[str] = []
        for host in LOOPBACK_HOSTS:
            url = f"http://{host}:{server.port}/"
            with pytest.raises(FetchFailed):
                await fetch(url, transport=GuardedTransport(), deadline_s=PATIENCE_S, ports=(server.port,))
            assert server.requests == []
            # The control: without the guard the same URL reaches it.
            async with httpx2.AsyncClient(trust_env=False) as client:
                try:
                    await client.get(url)
                except (httpx2.HTTPError, httpx2.InvalidURL):
                    continue
            reached.append(host)
            server.requests.clear()
    assert len(reached) >= 12, reached


INNER = ("127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00::1", "192.168.1.1")
OUTER = "127.0.0.2"
"""Stands for a public address: the transport allows it."""


class Rebinding:
    """A hostile name server: a name is inner, inner beside public, or public at first and inner from then on."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}
        self._chance = random.Random(7)

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked[host] = self.asked.get(host, 0) + 1
        kind = host.partition("-")[0]
        if kind == "inner":
            return [self._chance.choice(INNER)]
        if kind == "mixed":
            mixed = ["1.1.1.1", self._chance.choice(INNER), OUTER]
            self._chance.shuffle(mixed)
            return mixed
        return [OUTER if self.asked[host] == 1 else "127.0.0.1"]


class ResolvingTwice(GuardedTransport):
    """The usual mistake: the name is resolved for the check, and once more for the connection."""

    async def addresses(self, host: str, port: int) -> list[str]:
        await super().addresses(host, port)
        return list(await self._resolve(host, port))


@pytest.mark.threat(40)
async def test_a_name_server_that_changes_its_answer_leads_nowhere() -> None:
    names = [f"{('inner', 'mixed', 'flip')[number % 3]}-{number}.example" for number in range(500)]

    async def bodies(transport: GuardedTransport) -> list[bytes]:
        found: list[bytes] = []
        for name in names:
            try:
                url = f"http://{name}:{inner.port}/"
                got = await fetch(url, transport=transport, deadline_s=PATIENCE_S, ports=(inner.port,))
            except Blocked:
                assert not name.startswith("flip")
            else:
                found.append(got.body)
        return found

    async with (
        serving(lambda path: answer(b"secret")) as inner,
        serving(lambda path: answer(b"public"), host=OUTER, port=inner.port),
    ):
        resolve = Rebinding()
        guarded = await bodies(GuardedTransport([(OUTER, inner.port)], resolve))
        assert (set(guarded), len(guarded), inner.requests) == ({b"public"}, 166, [])
        assert resolve.asked == dict.fromkeys(names, 1), "each name is resolved once"
        # The control: each name that changes leads a transport that resolves twice to the inner server.
        assert await bodies(ResolvingTwice([(OUTER, inner.port)], Rebinding())) == [b"secret"] * 166
        assert len(inner.requests) == 166


@pytest.mark.threat(40)
async def test_the_checked_address_is_the_one_that_is_connected_to() -> None:
    answers = [["127.0.0.1"], ["127.0.0.2"]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    async with serving(lambda path: answer(b"page"), host="127.0.0.1") as server:
        transport = GuardedTransport(allow=[("127.0.0.1", server.port)], resolve=resolve)
        url = f"http://name.example:{server.port}/a"
        got = await fetch(url, transport=transport, deadline_s=PATIENCE_S, ports=(server.port,))
        assert (got.body, answers) == (b"page", [["127.0.0.2"]])
        assert f"host: name.example:{server.port}\r\n" in server.requests[0].lower()
        with pytest.raises(Blocked, match="loopback"):
            await fetch(url, transport=transport, deadline_s=PATIENCE_S, ports=(server.port,))


async def test_an_address_that_does_not_answer_is_followed_by_the_next() -> None:
    async with serving(lambda path: answer(b"page")) as server:
        transport = GuardedTransport(
            allow=[("127.0.0.1", server.port), ("127.0.0.2", server.port)], resolve=resolving("127.0.0.2", "127.0.0.1")
        )
        url = f"http://name.example:{server.port}/"
        assert (await fetch(url, transport=transport, deadline_s=PATIENCE_S, ports=(server.port,))).body == b"page"


HOPS = (
    "http://127.0.0.1:{inner}/",
    "http://localhost:{inner}/",
    "http://2130706433:{inner}/",
    "http://[::1]:{inner}/",
    "http://[::ffff:127.0.0.1]:{inner}/",
    "//127.0.0.1:{inner}/",
    "http://127.1:{inner}/",
    "http://user:word@127.0.0.1:{outer}/",
    "http://user@127.0.0.1:{outer}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://127.0.0.1:22/",
    "https://127.0.0.1:8443/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{inner}/",
    "ftp://127.0.0.1/",
    "javascript:alert(1)",
    "data:text/html,x",
    "http://[fe80::1]/",
    "http://127.0.0.1:99999/",
)


@pytest.mark.threat(41)
@pytest.mark.parametrize("hops", [0, 3])
async def test_no_chain_of_redirects_leads_to_an_inner_server(hops: int) -> None:
    assert len(HOPS) == 20
    async with serving(lambda path: answer(b"secret")) as inner:

        def reply(path: str) -> bytes:
            count, _, place = path.strip("/").partition("-")
            target = (
                HOPS[int(place)].format(inner=inner.port, outer=outer.port)
                if count == "0"
                else f"/{int(count) - 1}-{place}"
            )
            return answer(status="302 Found", location=target)

        async with serving(reply) as outer:
            for place in range(len(HOPS)):
                with pytest.raises(FetchFailed):
                    await fetch(
                        f"http://127.0.0.1:{outer.port}/{hops}-{place}",
                        transport=reaching(outer),
                        deadline_s=PATIENCE_S,
                        ports=(outer.port, inner.port, 80),
                    )
            assert inner.requests == []
            assert len(outer.requests) == len(HOPS) * (hops + 1)
            # The control: a transport for which the inner server is public follows the same chain to it.
            got = await fetch(
                f"http://127.0.0.1:{outer.port}/{hops}-0",
                transport=reaching(outer, inner),
                deadline_s=PATIENCE_S,
                ports=(outer.port, inner.port),
            )
            assert (got.body, got.url, len(inner.requests)) == (b"secret", f"http://127.0.0.1:{inner.port}/", 1)


@pytest.mark.threat(41)
async def test_a_redirect_carries_no_header_of_its_own() -> None:
    async with serving(lambda path: answer(b"end")) as other:
        url = f"http://127.0.0.1:{other.port}/end"
        async with serving(lambda path: answer(status="302 Found", location=url, set_cookie="id=7; Path=/")) as first:
            await fetch(
                f"http://127.0.0.1:{first.port}/",
                transport=reaching(first, other),
                deadline_s=PATIENCE_S,
                ports=(first.port, other.port),
            )
    names = sorted(line.partition(":")[0].lower() for line in other.requests[0].split("\r\n")[1:] if line)
    assert names == ["accept", "accept-encoding", "host", "user-agent"]


async def test_five_redirects_are_followed_and_a_sixth_is_not() -> None:
    def reply(path: str) -> bytes:
        left = int(path[1:])
        return answer(b"end") if left == 0 else answer(status="301 Moved", location=f"/{left - 1}")

    async with serving(reply) as server:
        base = f"http://127.0.0.1:{server.port}"
        got = await fetch(
            f"{base}/{REDIRECT_LIMIT}", transport=reaching(server), deadline_s=PATIENCE_S, ports=(server.port,)
        )
        assert (got.url, got.body) == (f"{base}/0", b"end")
        with pytest.raises(Blocked, match="redirects more than 5 times"):
            await fetch(
                f"{base}/{REDIRECT_LIMIT + 1}", transport=reaching(server), deadline_s=PATIENCE_S, ports=(server.port,)
            )


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://example.org/", "is not a page of the web: write a URL that begins with https:// or http://"),
        ("example.org", "is not a page of the web: write a URL that begins with https:// or http://"),
        ("file:///etc/passwd", "is not a page of the web: write a URL that begins with https:// or http://"),
        ("https://example.org:8443/", "port 8443 is not fetched: use 80 or 443"),
        ("https://user:word@example.org/", "the URL has a user name or a password before '@': leave it out"),
        ("http://exa\nmple.org/", "is not a URL: write it as https://example.org/page"),
        ("http://example.org/\ud800", "is not a URL: write it as https://example.org/page"),
        ("http://2xn--", "is not a URL: write it as https://example.org/page"),
        ("http://①②⑦.⓪.⓪.①/", "is not a URL: write it as https://example.org/page"),
        ("https://example.org/" + "a" * URL_LIMIT, "the URL has more than 2,048 characters"),
        ("https://example.org/" + "é" * 500, "the URL has more than 2,048 characters when it is encoded"),
    ],
)
async def test_a_url_of_another_form_is_refused_with_what_to_write(url: str, why: str) -> None:
    with pytest.raises(Blocked) as refused:
        await fetch(url, transport=GuardedTransport(resolve=resolving("127.0.0.1")), deadline_s=PATIENCE_S)
    assert str(refused.value).endswith(why)


async def test_a_url_of_the_greatest_length_is_looked_up() -> None:
    url = "https://example.org/".ljust(URL_LIMIT, "a")
    with pytest.raises(FetchFailed, match=r"the host 'example\.org' is not known"):
        await fetch(url, transport=GuardedTransport(resolve=resolving()), deadline_s=PATIENCE_S)


@pytest.mark.threat(43)
async def test_the_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(lambda path: answer(b"proxy")) as proxy, serving(lambda path: answer(b"page")) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        url = f"http://127.0.0.1:{server.port}/"
        got = await fetch(url, transport=reaching(server), deadline_s=PATIENCE_S, ports=(server.port,))
        assert (got.body, proxy.requests) == (b"page", [])
        # The control: a client that trusts the environment goes to the proxy.
        async with httpx2.AsyncClient() as client:
            assert (await client.get(url)).content == b"proxy"


async def test_a_server_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    transport = GuardedTransport(allow=[("127.0.0.1", port)])
    with pytest.raises(FetchFailed, match=f"the server of 'http://127.0.0.1:{port}/' cannot be reached") as failed:
        await fetch(f"http://127.0.0.1:{port}/", transport=transport, deadline_s=PATIENCE_S, ports=(port,))
    assert failed.value.may_repeat
