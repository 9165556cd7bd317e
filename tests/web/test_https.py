"""Pages are fetched by https with a certificate that is checked for the name in the URL, and by IPv6."""

from __future__ import annotations

import pytest

from tests.patience import PATIENCE_S
from tests.web.authority import Authority
from tests.web.servers import LoopbackServer, answer, serving
from toolwire import ToolRegistry
from toolwire.builtin.web import browser
from toolwire.builtin.web.fetching import Fetched, fetch
from toolwire.builtin.web.guard import GuardedTransport
from toolwire.builtin.web.refusals import Blocked, FetchFailed
from toolwire.tools import WebFetchTool

HOST = "page.example"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def trusted(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine trusts the authority: OpenSSL's own variable names its file."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))


async def resolve(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


async def read(url: str, *servers: LoopbackServer) -> Fetched:
    transport = GuardedTransport([("127.0.0.1", each.port) for each in servers], resolve)
    return await fetch(url, transport=transport, deadline_s=PATIENCE_S, ports=[each.port for each in servers])


@pytest.mark.usefixtures("trusted")
async def test_a_page_is_read_by_https_under_the_name_of_its_url(authority: Authority) -> None:
    asked: list[str | None] = []
    tls = authority.server(HOST)
    tls.sni_callback = lambda connection, name, context: asked.append(name)  # type: ignore[assignment]
    async with serving(lambda path: answer(b"page"), tls=tls) as server:
        got = await read(f"https://{HOST}:{server.port}/a", server)
    assert (got.body, got.url, asked) == (b"page", f"https://{HOST}:{server.port}/a", [HOST])
    assert f"host: {HOST}:{server.port}\r\n" in server.requests[0].lower()


async def test_a_certificate_of_an_unknown_authority_is_refused(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(lambda path: answer(b"page"), tls=authority.server(HOST)) as server:
        url = f"https://{HOST}:{server.port}/"
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        with pytest.raises(FetchFailed) as failed:
            await read(url, server)
        assert (str(failed.value), failed.value.may_repeat) == (
            f"the server of '{url}' has no valid certificate",
            False,
        )
        assert server.requests == []
        # The control: a machine that trusts the authority reads the same page.
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        assert (await read(url, server)).body == b"page"


@pytest.mark.threat(40)
@pytest.mark.usefixtures("trusted")
async def test_a_certificate_of_another_name_is_refused(authority: Authority) -> None:
    async with serving(lambda path: answer(b"page"), tls=authority.server("other.example")) as server:
        with pytest.raises(FetchFailed, match="has no valid certificate"):
            await read(f"https://{HOST}:{server.port}/", server)
        assert server.requests == []
        assert (await read(f"https://other.example:{server.port}/", server)).body == b"page"


@pytest.mark.threat(41)
@pytest.mark.usefixtures("trusted")
async def test_a_redirect_leads_from_http_to_https_and_not_back(authority: Authority) -> None:
    async with serving(lambda path: answer(b"plain") if path == "/plain" else up()) as plain:

        def up() -> bytes:
            return answer(status="302 Found", location=f"https://{HOST}:{safe.port}/end")

        def reply(path: str) -> bytes:
            down = answer(status="302 Found", location=f"http://{HOST}:{plain.port}/plain")
            return answer(b"safe") if path == "/end" else down

        async with serving(reply, tls=authority.server(HOST)) as safe:
            assert (await read(f"http://{HOST}:{plain.port}/up", plain, safe)).body == b"safe"
            with pytest.raises(Blocked, match="the page redirects from https to http"):
                await read(f"https://{HOST}:{safe.port}/down", plain, safe)
            assert plain.paths == ["/up"]
            # The control: the page that it leads to can be read.
            assert (await read(f"http://{HOST}:{plain.port}/plain", plain, safe)).body == b"plain"


async def test_a_page_is_read_by_ipv6_and_a_loopback_one_only_if_it_is_allowed() -> None:
    async def to_loopback(host: str, port: int) -> list[str]:
        return ["::1"]

    async with serving(lambda path: answer(b"page"), host="::1") as server:
        allowed = GuardedTransport([("::1", server.port)], to_loopback)
        for host in ("[::1]", "[0:0:0:0:0:0:0:1]", HOST):
            url, ports = f"http://{host}:{server.port}/", (server.port,)
            assert (await fetch(url, transport=allowed, deadline_s=PATIENCE_S, ports=ports)).body == b"page"
            with pytest.raises(Blocked, match="is not on the public internet"):
                await fetch(url, transport=GuardedTransport(resolve=to_loopback), deadline_s=PATIENCE_S, ports=ports)
        assert len(server.requests) == 3


@pytest.mark.usefixtures("trusted")
async def test_the_tool_reads_by_https_and_by_ipv6(authority: Authority) -> None:
    body = answer(b"page", content_type="text/plain")
    async with (
        serving(lambda path: body, tls=authority.server("localhost")) as safe,
        serving(lambda path: body, host="::1") as six,
    ):
        registry = ToolRegistry()
        registry.register(WebFetchTool(allow=[("127.0.0.1", safe.port), ("::1", safe.port), ("::1", six.port)]))
        for url in (f"https://localhost:{safe.port}/", f"http://[::1]:{six.port}/"):
            assert (await registry.ainvoke("web_fetch", {"url": url})).data["text"] == "page"


async def test_a_page_is_rendered_by_https_if_its_certificate_is_good(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = browser._flags  # pyright: ignore[reportPrivateUsage]
    page = b"<body><script>document.body.append('made by ' + location.protocol)</script></body>"
    async with serving(lambda path: answer(page, content_type="text/html"), tls=authority.server(HOST)) as server:
        url, transport = f"https://{HOST}:{server.port}/", GuardedTransport([("127.0.0.1", server.port)], resolve)
        with pytest.raises(FetchFailed, match="ERR_CERT_AUTHORITY_INVALID"):
            await browser.render(url, transport=transport, ports=[server.port])
        assert server.requests == []
        # The browser does not read SSL_CERT_FILE, so it is told to trust this key.
        trust = f"--ignore-certificate-errors-spki-list={authority.pin(HOST)}"
        monkeypatch.setattr(browser, "_flags", lambda port: [*flags(port), trust])
        read = await browser.render(url, transport=transport, ports=[server.port])
    assert read is not None
    assert (b"made by https:" in read.body, read.url) == (True, url)
