"""Pages whose text is made by JavaScript: Chromium runs it behind the guarding proxy, in its own sandbox.

Each page has a browser of its own, with an empty profile, which ends with it. Playwright speaks to it by two pipes, so
no port of this machine controls it.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from playwright.async_api import Error, Page, Request, async_playwright

from toolwire.builtin.web.fetching import HTML, URL_LIMIT, Fetched, content_type_of, require_fetchable
from toolwire.builtin.web.guard import GuardedTransport
from toolwire.builtin.web.guarding_proxy import GuardingProxy, guarding_proxy
from toolwire.builtin.web.network import BODY_LIMIT_BYTES
from toolwire.builtin.web.refusals import Blocked, FetchFailed
from toolwire.vocabulary.errors import SandboxUnavailable
from toolwire.vocabulary.machine import system

RENDER_DEADLINE_S = 45.0
"""Maximum seconds of one rendered page. The start of the browser takes 2 of them on a machine at rest."""
SETTLE_LIMIT_S = 10.0
"""Maximum seconds that a page may go on loading. A page that polls its server would go on for ever."""
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_USER = "nobody"
"""The user of the browser if the host runs as root: Chromium's sandbox does not start as root."""
_NO_SANDBOX = ("No usable sandbox", "sandboxing failed", "Failed to move to new namespace")


async def render(url: str, *, transport: GuardedTransport, ports: Collection[int]) -> Fetched | None:
    """Returns a page as its scripts have made it, as HTML in UTF-8; None if it is not HTML. The body is the document
    without its frames and shadow roots, and empty unless the status is 200 to 299.

    Raises:
        Blocked: The guard refuses the URL or its address, or the page needs too much.
        FetchFailed: The page cannot be reached, or not within `RENDER_DEADLINE_S`.
        SandboxUnavailable: This machine has no browser, or cannot confine it.
    """
    at = str(require_fetchable(url, ports))
    try:
        async with (
            asyncio.timeout(RENDER_DEADLINE_S),
            guarding_proxy(transport, ports) as proxy,
            _open_browser(_flags(proxy.port)) as page,
        ):
            reading = asyncio.ensure_future(_load_page(page, at, proxy))
            try:
                await asyncio.wait({reading, proxy.stopped}, return_when=asyncio.FIRST_COMPLETED)
                if proxy.stopped.done():
                    raise proxy.stopped.result()
                return await reading
            finally:
                reading.cancel()
    except TimeoutError:
        raise FetchFailed(f"the page is not rendered within {RENDER_DEADLINE_S:g} seconds", may_repeat=True) from None


def _flags(proxy_port: int) -> list[str]:
    """Returns the flags that leave the browser no other way than the proxy."""
    return [
        f"--proxy-server=socks5://127.0.0.1:{proxy_port}",
        # Without it Chromium reaches loopback directly.
        "--proxy-bypass-list=<-loopback>",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    ]


@asynccontextmanager
async def _open_browser(flags: list[str]) -> AsyncGenerator[Page, None]:
    """Starts a browser and gives its page. The browser and its profile are gone at the end of the block."""
    command = _command()
    with tempfile.TemporaryDirectory(prefix="toolwire-browser-", ignore_cleanup_errors=True) as folder:
        home = _Home(Path(folder), command)
        playwright = await async_playwright().start()
        try:
            try:
                context = await playwright.chromium.launch_persistent_context(
                    home.profile,
                    executable_path=home.script,
                    args=flags,
                    chromium_sandbox=True,
                    headless=True,
                    env={"HOME": str(home.profile), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
                    accept_downloads=False,
                    service_workers="block",
                    timeout=RENDER_DEADLINE_S * 1_000,
                )
            except Error as error:
                raise _does_not_start(error.message) from error
            yield await context.new_page()
        finally:
            # A page in an endless loop does not close. All processes of the browser are one group.
            home.kill()
            await playwright.stop()


class _Home:
    """The folder of one browser: its profile, and the script that starts it."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.profile = folder / "profile"
        self.script = folder / "browser"
        self._process_id = folder / "process"
        self.profile.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(self.profile, *_ids())
            folder.chmod(0o711)
        self.script.write_text(
            f'#!/bin/sh\necho $$ > {shlex.quote(str(self._process_id))}\nexec {shlex.join(command)} "$@"\n'
        )
        self.script.chmod(0o700)

    def kill(self) -> None:
        with suppress(OSError, ValueError):
            os.killpg(int(self._process_id.read_text()), signal.SIGKILL)


def _command() -> list[str]:
    """Returns the command that starts a browser whose sandbox works.

    Raises:
        SandboxUnavailable: No browser was found, or its sandbox cannot work here.
    """
    if not system.IS_LINUX:
        raise _unavailable(f"pages cannot be rendered on {system.PLATFORM} yet", "It runs on Linux.")
    browser = next(filter(None, map(shutil.which, _NAMES)), None)
    if browser is None:
        raise _unavailable("this machine has no Chromium", "Run: apt-get install chromium")
    if os.geteuid() != 0:
        return [browser]
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise _unavailable(
            "Chromium's sandbox does not start as root", "Run as another user, or run: apt-get install util-linux"
        )
    _, group = _ids()
    return [setpriv, f"--reuid={_USER}", f"--regid={group}", "--clear-groups", "--no-new-privs", browser]


def _ids() -> tuple[int, int]:
    """Returns the numbers of the browser's user and of its group."""
    # Windows has no such module, and imports this one to learn that it cannot render pages.
    import pwd

    user = pwd.getpwnam(_USER)
    return user.pw_uid, user.pw_gid


def _does_not_start(said: str) -> SandboxUnavailable:
    if any(each in said for each in _NO_SANDBOX):
        return _unavailable(
            "Chromium's sandbox needs user namespaces, which this machine refuses",
            "Run: sysctl -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1 "
            "kernel.apparmor_restrict_unprivileged_userns=0 (a machine has some of these), "
            "or give a container a seccomp profile that allows them.",
        )
    return _unavailable(f"Chromium does not start: {said[:2_000]}", "Run: chromium --headless about:blank")


def _unavailable(why: str, how_to_fix: str) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"web_fetch renders pages in a confined browser, and {why}",
        report={"platform": system.PLATFORM, "user": system.user_id()},
        how_to_fix=how_to_fix,
    )


async def _load_page(page: Page, url: str, proxy: GuardingProxy) -> Fetched | None:
    at = [url]

    def note_request(request: Request) -> None:
        proxy.count_request(request)
        if request.is_navigation_request() and request.frame == page.main_frame:
            at.append(request.url)

    page.context.on("request", note_request)
    try:
        response = await page.goto(url, wait_until="domcontentloaded", timeout=0)
        kind = content_type_of(response.headers.get("content-type", ""))[0] if response else ""
        if response is None or kind not in HTML:
            return None
        body = await _document(page) if response.ok else b""
        # A script may have given the page another URL, of any length.
        if len(page.url) > URL_LIMIT:
            raise Blocked(f"the page gives itself a URL of more than {URL_LIMIT:,} characters")
        return Fetched(url=page.url, status=response.status, content_type=kind, charset="utf-8", body=body)
    except Error as error:
        if "Download is starting" in error.message:
            return None
        raise _load_failure(at[-1], error.message, proxy) from error


def _load_failure(url: str, said: str, proxy: GuardingProxy) -> FetchFailed:
    refused = proxy.refusals.get((urlsplit(url).hostname or "").strip("[]"))
    if refused is not None:
        return refused
    named = re.search(r"net::(ERR_\w+)", said)
    why = f" ({named[1]})" if named else ""
    return FetchFailed(f"the browser cannot show {url[:200]!r}{why}", may_repeat=True)


async def _document(page: Page) -> bytes:
    """Returns the document in UTF-8 once the page loads nothing more, or after `SETTLE_LIMIT_S`."""
    with suppress(Error):
        await page.wait_for_load_state("networkidle", timeout=SETTLE_LIMIT_S * 1_000)
    session = await page.context.new_cdp_session(page)
    # Playwright types it as `dict` alone.
    send = cast("Callable[..., Awaitable[Any]]", session.send)  # pyright: ignore[reportUnknownMemberType]
    tree = await send("Page.getFrameTree")
    # The page's scripts cannot change the functions of this world. The browser cuts the text, and not this host.
    world = await send("Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"]})
    expression = f"document.documentElement.outerHTML.slice(0, {BODY_LIMIT_BYTES + 1})"
    wanted = {"expression": expression, "contextId": world["executionContextId"], "returnByValue": True}
    found = await send("Runtime.evaluate", wanted)
    text = found.get("result", {}).get("value")
    body = text.encode("utf-8", "replace") if isinstance(text, str) else b""
    if len(body) > BODY_LIMIT_BYTES:
        raise Blocked(f"the page has more than {BODY_LIMIT_BYTES:,} bytes")
    return body
