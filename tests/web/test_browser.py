"""A page in a browser reaches no more of this machine than a page that is fetched, and its limits hold."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.async_api import Error

from tests.elsewhere.answers import pretend_system
from tests.patience import until
from tests.web.attacking_page import WAYS, Attack, attacking, browser_processes
from tests.web.servers import answer, serving
from toolwire import ToolRegistry, ToolResult
from toolwire.builtin.web import browser, guarding_proxy
from toolwire.builtin.web.fetching import URL_LIMIT, Fetched
from toolwire.builtin.web.guard import GuardedTransport
from toolwire.builtin.web.network import BODY_LIMIT_BYTES
from toolwire.builtin.web.refusals import Blocked, FetchFailed
from toolwire.tools import WebFetchTool
from toolwire.vocabulary.errors import SandboxUnavailable

PATIENCE_S = 120.0
URL = "http://page.example/"


async def rendered(attack: Attack) -> ToolResult:
    """Renders the attacking page. The ports of the inner servers are allowed, and their addresses are not."""
    registry = ToolRegistry()
    allow = [("127.0.0.1", attack.outer.port), *(("192.0.2.1", server.port) for server in attack.inner)]
    registry.register(WebFetchTool(allow=allow))
    return await registry.ainvoke("web_fetch", {"url": f"http://127.0.0.1:{attack.outer.port}/", "render": True})


@pytest.fixture
def temporary_files(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A place for temporary files where no other process starts a browser."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.mark.threat(39)
@pytest.mark.threat(48)
async def test_no_script_of_a_page_reaches_loopback_and_without_the_flags_each_does(
    monkeypatch: pytest.MonkeyPatch, temporary_files: None
) -> None:
    for name in ("RENDER_DEADLINE_S", "SETTLE_LIMIT_S"):
        monkeypatch.setattr(browser, name, PATIENCE_S)
    async with attacking() as attack:
        read = await rendered(attack)
        assert read.text.partition("\n\n")[2] == f"# Ways\n\n{' '.join(WAYS)}"
        assert attack.reached == []
        confined(attack.processes)
        # A killed process needs the processor once more to end.
        await asyncio.to_thread(until, lambda: all(each["State"] == "Z" for each in browser_processes()))
    # The control: without the flags each of these ways leads there.
    monkeypatch.setattr(browser, "_flags", lambda port: [])
    async with attacking() as attack:
        read = await rendered(attack)
        assert read.text.partition("\n\n")[2] == f"# Ways\n\n{' '.join(WAYS)}"
        assert attack.reached == WAYS


def confined(processes: list[dict[str, Any]]) -> None:
    """The page's process is in Chromium's sandbox, and no process of the browser is root's."""
    pages = [each for each in processes if "--type=renderer" in each["command"]]
    assert pages
    assert {(each["Seccomp"], each["NoNewPrivs"]) for each in pages} == {("2", "1")}
    user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()
    assert {each["Uid"] for each in processes} == {str(user)}


class FakePage:
    """A page of Playwright as `render` uses it. Its answer is given; it starts no browser."""

    def __init__(self, goto: Callable[[FakePage], Awaitable[Any]], document: object = "<p>x</p>") -> None:
        self.goto_it, self.document, self.url = goto, document, URL
        self.main_frame = object()
        self.context = self
        self.requested: list[Callable[[Any], None]] = []

    def on(self, event: str, heard: Callable[[Any], None]) -> None:
        self.requested.append(heard)

    def request(self, url: str) -> None:
        for heard in self.requested:
            heard(SimpleNamespace(url=url, frame=self.main_frame, is_navigation_request=lambda: True))

    async def goto(self, url: str, **_: object) -> Any:
        self.request(url)
        return await self.goto_it(self)

    async def wait_for_load_state(self, state: str, **_: object) -> None:
        raise Error("Timeout exceeded")

    async def new_cdp_session(self, page: object) -> FakePage:
        return self

    async def send(self, method: str, given: object = None) -> Any:
        return {
            "Page.getFrameTree": {"frameTree": {"frame": {"id": "1"}}},
            "Page.createIsolatedWorld": {"executionContextId": 7},
            "Runtime.evaluate": {"result": {"value": self.document}},
        }[method]


def answering(content_type: str = "text/html; charset=latin-1", status: int = 200) -> Callable[..., Awaitable[Any]]:
    async def goto(page: FakePage) -> Any:
        return SimpleNamespace(headers={"content-type": content_type}, status=status, ok=status < 300)

    return goto


def failing(message: str) -> Callable[..., Awaitable[Any]]:
    async def goto(page: FakePage) -> Any:
        raise Error(message)

    return goto


async def shown(monkeypatch: pytest.MonkeyPatch, page: FakePage) -> Fetched | None:
    @asynccontextmanager
    async def opened(flags: list[str]) -> AsyncIterator[FakePage]:
        yield page

    monkeypatch.setattr(browser, "_open_browser", opened)
    return await browser.render(URL, transport=GuardedTransport(), ports=(80,))


@pytest.mark.parametrize(("length", "is_read"), [(100, True), (1_500_000, False)])
async def test_a_script_that_gives_its_page_a_long_url_adds_nothing_to_the_result(length: int, is_read: bool) -> None:
    body = f"<p id='a'>x</p><script>history.replaceState(null, '', '/' + 'u'.repeat({length}))</script>".encode()
    async with serving(lambda path: answer(body, content_type="text/html")) as server:
        registry = ToolRegistry()
        registry.register(WebFetchTool(allow=[("127.0.0.1", server.port)]))
        url = f"http://127.0.0.1:{server.port}/"
        done = await registry.ainvoke("web_fetch", {"url": url, "render": True, "max_chars": 10})
    assert done.success is is_read, done.error
    assert len(str(done.data or done.error)) < 1_000


async def test_a_page_may_give_itself_a_url_up_to_the_limit_and_no_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    page = FakePage(answering(), "x")
    page.url = URL.ljust(URL_LIMIT, "x")
    found = await shown(monkeypatch, page)
    assert found is not None
    assert found.url == page.url
    page.url += "x"
    with pytest.raises(Blocked, match="the page gives itself a URL of more than 2,048 characters"):
        await shown(monkeypatch, page)


async def test_a_document_up_to_the_limit_is_read_and_a_longer_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "BODY_LIMIT_BYTES", 10)
    found = await shown(monkeypatch, FakePage(answering(), "é" * 5))
    assert found == Fetched(url=URL, status=200, content_type="text/html", charset="utf-8", body=("é" * 5).encode())
    for longer in ("é" * 5 + "x", "x" * 11):
        with pytest.raises(Blocked, match="the page has more than 10 bytes"):
            await shown(monkeypatch, FakePage(answering(), longer))
    assert BODY_LIMIT_BYTES == 10 * 1024 * 1024


async def test_a_page_that_never_ends_is_left_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(page: FakePage) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(browser, "RENDER_DEADLINE_S", 0.05)
    with pytest.raises(FetchFailed, match=r"the page is not rendered within 0\.05 seconds") as failed:
        await shown(monkeypatch, FakePage(never))
    assert failed.value.may_repeat


async def test_a_page_with_too_many_requests_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarding_proxy, "REQUEST_LIMIT", 3)

    def asking(count: int) -> Callable[..., Awaitable[Any]]:
        async def goto(page: FakePage) -> Any:
            for _ in range(count):
                page.request(URL)
            await asyncio.sleep(0)
            if count == 3:
                await asyncio.Event().wait()
            return await answering()(page)

        return goto

    # The document itself is the first request.
    assert await shown(monkeypatch, FakePage(asking(2)))
    with pytest.raises(Blocked, match="the page needs more than 3 requests, with its scripts and images"):
        await shown(monkeypatch, FakePage(asking(3)))


@pytest.mark.parametrize(
    "goto",
    [answering("application/pdf"), answering("application/json"), failing("Page.goto: Download is starting")],
    ids=["pdf", "json", "download"],
)
async def test_what_a_browser_does_not_render_is_not_rendered(
    goto: Callable[..., Awaitable[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await shown(monkeypatch, FakePage(goto)) is None


async def test_an_error_of_the_server_has_no_body(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await shown(monkeypatch, FakePage(answering(status=404)))
    assert found == Fetched(url=URL, status=404, content_type="text/html", charset="utf-8", body=b"")


async def test_a_document_without_halves_of_characters_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await shown(monkeypatch, FakePage(answering(), "a\ud83d"))
    assert found is not None
    assert found.body == b"a?"
    nothing = await shown(monkeypatch, FakePage(answering(), None))
    assert nothing is not None
    assert nothing.body == b""


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (
            "Page.goto: net::ERR_CERT_AUTHORITY_INVALID at x",
            f"the browser cannot show '{URL}' (ERR_CERT_AUTHORITY_INVALID)",
        ),
        ("Page crashed", f"the browser cannot show '{URL}'"),
    ],
)
async def test_a_page_that_cannot_be_shown_says_why(message: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FetchFailed) as failed:
        await shown(monkeypatch, FakePage(failing(message)))
    assert (str(failed.value), failed.value.may_repeat) == (why, True)


async def test_a_redirect_to_a_refused_host_tells_the_refusal_of_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Blocked("'localhost' is not on the public internet (loopback): only public pages can be fetched")

    async def goto(page: FakePage) -> Any:
        page.request("http://LOCALHOST/admin")
        raise Error("Page.goto: net::ERR_SOCKS_CONNECTION_FAILED")

    made = guarding_proxy.GuardingProxy

    def refusing(*given: Any) -> guarding_proxy.GuardingProxy:
        proxy = made(*given)
        proxy.refusals.update({"localhost": refusal, "update.example": FetchFailed("the browser's own request")})
        return proxy

    monkeypatch.setattr(guarding_proxy, "GuardingProxy", refusing)
    with pytest.raises(Blocked) as failed:
        await shown(monkeypatch, FakePage(goto))
    assert failed.value is refusal


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://user:word@page.example/", "http://page.example:22/"])
async def test_a_url_that_is_not_fetched_starts_no_browser(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "_open_browser", None)
    with pytest.raises(Blocked):
        await browser.render(url, transport=GuardedTransport(), ports=(80,))


async def test_a_browser_that_does_not_close_is_killed_and_its_profile_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    profiles: list[Path] = []
    ended: list[int] = []

    class Playwright:
        """Starts the program as Playwright does, in a group of its own, and cannot end it."""

        @property
        def chromium(self) -> Playwright:
            return self

        async def start(self) -> Playwright:
            return self

        async def launch_persistent_context(self, profile: Path, *, executable_path: Path, **_: object) -> Any:
            process = begun(executable_path)
            started.append(process)
            profiles.append(profile)
            return FakeContext()

        async def stop(self) -> None:
            try:
                ended.append(await asyncio.to_thread(started[0].wait, PATIENCE_S))
            finally:
                started[0].kill()

    class FakeContext:
        async def new_page(self) -> Any:
            return FakePage(answering())

    monkeypatch.setattr(browser, "async_playwright", Playwright)
    monkeypatch.setattr(browser, "_command", lambda: ["/bin/sh", "-c", "echo ready; sleep 600", "browser"])
    async with browser._open_browser([]):
        assert started[0].poll() is None
    assert ended == [-signal.SIGKILL]
    assert [path.parent for path in profiles if path.parent.exists()] == []


def begun(program: Path) -> subprocess.Popen[bytes]:
    """Starts a program in a group of its own, and waits until it says that it runs."""
    process = subprocess.Popen([program], process_group=0, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as said:
        assert said.readline() == b"ready\n"
    return process


def machine(monkeypatch: pytest.MonkeyPatch, *programs: str, user: int) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in programs else None)
    monkeypatch.setattr(os, "geteuid", lambda: user)


@pytest.mark.parametrize(
    ("programs", "user", "command"),
    [
        (["chromium"], 1000, ["/usr/bin/chromium"]),
        (["google-chrome", "setpriv"], 1000, ["/usr/bin/google-chrome"]),
        (
            ["chromium", "google-chrome", "setpriv"],
            0,
            [
                "/usr/bin/setpriv",
                "--reuid=nobody",
                "--regid={}",
                "--clear-groups",
                "--no-new-privs",
                "/usr/bin/chromium",
            ],
        ),
    ],
)
def test_root_gives_the_browser_to_another_user(
    programs: list[str], user: int, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, *programs, user=user)
    group = pwd.getpwnam("nobody").pw_gid
    assert browser._command() == [part.format(group) for part in command]


@pytest.mark.parametrize(
    ("programs", "user", "platform", "why"),
    [
        ([], 0, "linux", "this machine has no Chromium\nRun: apt-get install chromium"),
        (
            ["chromium"],
            0,
            "linux",
            "Chromium's sandbox does not start as root\nRun as another user, or run: apt-get install util-linux",
        ),
        (["chromium"], 1000, "darwin", "pages cannot be rendered on darwin yet\nIt runs on Linux."),
    ],
)
def test_a_machine_that_cannot_confine_a_browser_says_what_to_run(
    programs: list[str], user: int, platform: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, *programs, user=user)
    pretend_system(platform, monkeypatch)
    with pytest.raises(SandboxUnavailable) as refused:
        browser._command()
    assert str(refused.value) == f"web_fetch renders pages in a confined browser, and {why}"


@pytest.mark.parametrize(
    ("said", "why", "how_to_fix"),
    [
        (
            "Browser logs:\nChromium sandboxing failed!",
            "Chromium's sandbox needs user namespaces, which this machine refuses",
            "Run: sysctl -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1",
        ),
        (
            "a library is missing",
            "Chromium does not start: a library is missing",
            "Run: chromium --headless about:blank",
        ),
    ],
)
def test_a_browser_that_does_not_start_says_what_to_run(said: str, why: str, how_to_fix: str) -> None:
    refused = browser._does_not_start(said)
    assert str(refused).partition("\n")[0] == f"web_fetch renders pages in a confined browser, and {why}"
    assert refused.how_to_fix.startswith(how_to_fix)
