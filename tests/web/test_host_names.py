"""Names that resolve slowly hold up nobody else."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.web.test_guarding_proxy import asked, named
from toolwire.builtin.web import host_names as module
from toolwire.builtin.web.guard import GuardedTransport
from toolwire.builtin.web.guarding_proxy import guarding_proxy
from toolwire.builtin.web.host_names import LOOKUPS_OF_A_DOMAIN, LOOKUPS_OF_A_PAGE, Names
from toolwire.builtin.web.refusals import FetchFailed


class NameServer:
    """Answers at once, but names that begin with `slow` only after `answer`."""

    def __init__(self) -> None:
        self.asked = Counter[str]()
        self.answer = threading.Event()

    def __call__(self, host: str, port: int, **_: object) -> list[Any]:
        self.asked[host] += 1
        if host.startswith("slow"):
            self.answer.wait(PATIENCE_S)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("1.1.1.1", port))]

    async def heard(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.asked.total() < count:  # noqa: ASYNC110 - threads ask
                await asyncio.sleep(0.005)


@asynccontextmanager
async def waiting(names: Names, server: NameServer, hosts: Iterable[str]) -> AsyncIterator[None]:
    """Resolves slow names during the block."""
    tasks = [asyncio.ensure_future(names.addresses(host, 80)) for host in hosts]
    try:
        await server.heard(len(tasks))
        yield
    finally:
        server.answer.set()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_an_honest_name_is_resolved_beside_forty_slow_ones() -> None:
    server = NameServer()
    slow = [f"slow.of-{number}.test" for number in range(40)]
    async with waiting(Names(server), server, slow), asyncio.timeout(PATIENCE_S):
        assert await Names(server).addresses("honest.test", 80) == ["1.1.1.1"]
        # The threads of the loop are free too.
        await asyncio.to_thread(lambda: None)
    # The control: in the threads of the loop the honest name waits behind the slow ones.
    control, loop = NameServer(), asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(max_workers=6))
    futures = [loop.run_in_executor(None, control, host, 80) for host in [*slow, "honest.test"]]
    await control.heard(6)
    assert not futures[-1].done()
    control.answer.set()
    await asyncio.gather(*futures)


async def test_one_domain_has_a_share_of_the_places(monkeypatch: pytest.MonkeyPatch) -> None:
    server = NameServer()
    names = Names(server)
    async with waiting(names, server, [f"slow{number}.evil.test" for number in range(LOOKUPS_OF_A_DOMAIN)]):
        with monkeypatch.context() as patched:
            patched.setattr(module, "LOOKUP_TIMEOUT_S", 0.1)
            with pytest.raises(FetchFailed, match=r"the name 'quick\.evil\.test' is not resolved within 0\.1 seconds"):
                await names.addresses("quick.evil.test", 80)
        assert await names.addresses("quick.honest.test", 80) == ["1.1.1.1"]
    assert await names.addresses("quick.evil.test", 80) == ["1.1.1.1"]


async def test_all_names_have_a_number_of_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOKUPS", 3)
    server = NameServer()
    names = Names(server)
    async with waiting(names, server, [f"slow.of-{number}.test" for number in range(3)]):
        later = asyncio.ensure_future(names.addresses("honest.test", 80))
        await asyncio.sleep(0.05)
        assert server.asked["honest.test"] == 0
    # It waited for a place, and takes the first that is free.
    assert await later == ["1.1.1.1"]


async def test_a_name_has_a_time_and_its_place_is_held_until_the_resolver_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LOOKUPS", 1)
    monkeypatch.setattr(module, "LOOKUP_TIMEOUT_S", 0.1)
    server = NameServer()
    names = Names(server)
    for host in ("slow.test", "honest.test"):
        with pytest.raises(FetchFailed, match=rf"the name '{host}' is not resolved within 0\.1 seconds") as failed:
            await names.addresses(host, 80)
        assert failed.value.may_repeat
    server.answer.set()
    monkeypatch.setattr(module, "LOOKUP_TIMEOUT_S", PATIENCE_S)
    assert await names.addresses("honest.test", 80) == ["1.1.1.1"]


async def test_a_rendered_page_resolves_few_names_at_a_time() -> None:
    under_way, most, is_full = 0, 0, asyncio.Event()

    async def resolve(host: str, port: int) -> Iterable[str]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == LOOKUPS_OF_A_PAGE:
            is_full.set()
        await is_full.wait()
        await asyncio.sleep(0)
        under_way -= 1
        return ["127.0.0.1"]

    async with guarding_proxy(GuardedTransport(resolve=resolve), (80,)) as proxy:
        hosts = [f"name-{number}.test" for number in range(3 * LOOKUPS_OF_A_PAGE)]
        await asyncio.gather(*(asked(proxy, named(host), 80) for host in hosts))
    assert most == LOOKUPS_OF_A_PAGE
