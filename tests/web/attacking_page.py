"""A page whose scripts try many ways to a server on loopback, and the servers that see which of them lead there."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.web.servers import LoopbackServer, answer, serving

PAGE = b"""<!doctype html><html><head><title>Start</title></head><body><article id="told"></article><script>
const inner = %s, seen = [];
const at = (way, host = '127.0.0.1', port = inner.port) => `http://${host}:${port}/${way}`;
const loaded = (element, attributes) => new Promise(done => {
  element = Object.assign(document.createElement(element), attributes, {onload: done, onerror: done});
  document.body.append(element);
});
const asked = (way, ...place) => fetch(at(way, ...place), {mode: 'no-cors'});
const work = code => new Promise(done => {
  const worker = new Worker(URL.createObjectURL(new Blob([code], {type: 'text/javascript'})));
  worker.onmessage = worker.onerror = done;
});
const heard = way => fetch(`/heard-${way}`);
const ways = {
  fetch: () => asked('fetch'),
  xhr: () => new Promise(done => {
    const request = new XMLHttpRequest();
    request.onloadend = done;
    request.open('GET', at('xhr'));
    request.send();
  }),
  image: () => loaded('img', {src: at('image')}),
  script: () => loaded('script', {src: at('script')}),
  style: () => loaded('link', {rel: 'stylesheet', href: at('style')}),
  font: () => new FontFace('f', `url(${at('font')})`).load(),
  frame: () => loaded('iframe', {src: at('frame')}),
  object: () => loaded('object', {data: at('object')}),
  form: () => {
    const sent = loaded('iframe', {name: 'form'});
    const form = Object.assign(document.createElement('form'), {action: at('form'), method: 'POST', target: 'form'});
    document.body.append(form);
    // The first load is that of the empty frame.
    return sent.then(() => new Promise(done => {
      document.getElementsByName('form')[0].onload = done;
      form.submit();
    }));
  },
  redirect: () => fetch('/redirect', {mode: 'no-cors'}),
  socket: () => new Promise(done => { new WebSocket(at('socket').replace('http', 'ws')).onclose = done; }),
  events: () => new Promise(done => {
    const events = new EventSource(at('events'));
    events.onerror = events.onopen = () => done(events.close());
  }),
  worker: () => work(`fetch('${at('worker')}', {mode: 'no-cors'}).finally(() => postMessage(0))`),
  imported: () => work(`try { importScripts('${at('imported')}'); } finally { postMessage(0); }`),
  ipv6: () => asked('ipv6', '[::1]', inner.port6),
  mapped: () => asked('mapped', '[::ffff:127.0.0.1]'),
  decimal: () => asked('decimal', '2130706433'),
  hex: () => asked('hex', '0x7f000001'),
  octal: () => asked('octal', '0177.0.0.1'),
  short: () => asked('short', '127.1'),
  zero: () => asked('zero', '0.0.0.0'),
  localhost: () => asked('localhost', 'localhost'),
  rebound: () => asked('rebound', 'rebound.localhost'),
  webrtc: () => new Promise(done => {
    const connection = new RTCPeerConnection({iceServers: [{urls: `stun:127.0.0.1:${inner.webrtc}`}]});
    connection.onicegatheringstatechange = () => connection.iceGatheringState == 'complete' && done();
    heard('webrtc').then(done);
    connection.createDataChannel('x');
    connection.createOffer().then(offer => connection.setLocalDescription(offer));
  }),
  webtransport: () => Promise.race([
    new WebTransport(`https://127.0.0.1:${inner.webtransport}/`).ready, heard('webtransport'),
  ]),
};
fetch('/hold');
Promise.all(Object.entries(ways).map(async ([way, go]) => {
  try { await go(); } catch {}
  seen.push(way);
  told.innerHTML = `<h1>Ways</h1><p>${seen.sort().join(' ')}</p>`;
})).then(() => fetch('/done'));
</script></body></html>"""
# fmt: off
WAYS = [
    "decimal", "events", "fetch", "font", "form", "frame", "hex", "image", "imported", "ipv6", "localhost", "mapped",
    "object", "octal", "rebound", "redirect", "script", "short", "socket", "style", "webrtc", "webtransport", "worker",
    "xhr", "zero",
]
# fmt: on


@dataclass(slots=True)
class Attack:
    """The servers of one attack."""

    outer: LoopbackServer
    """Serves the page, and may be reached."""
    inner: list[LoopbackServer]
    """Those that must not be reached: one of IPv4 and one of IPv6."""
    datagrams: dict[str, asyncio.Event]
    """Set once a datagram came by this way."""
    is_done: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the page has tried every way."""
    processes: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """The facts of the browser's processes at that time."""

    @property
    def reached(self) -> list[str]:
        """The ways that led to a server on loopback."""
        by_tcp = {path.strip("/") for server in self.inner for path in server.paths}
        by_udp = {way for way, heard in self.datagrams.items() if heard.is_set()}
        return sorted((by_tcp | by_udp) - {"favicon.ico"})


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, heard: asyncio.Event) -> None:
        self._heard = heard

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._heard.set()


@asynccontextmanager
async def attacking() -> AsyncIterator[Attack]:
    """Serves the page and what it tries to reach."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        inner = [
            await stack.enter_async_context(serving(lambda path: answer(b"secret"), host=host))
            for host in ("127.0.0.1", "::1")
        ]
        events = {way: asyncio.Event() for way in ("webrtc", "webtransport")}
        ports = {"port": inner[0].port, "port6": inner[1].port}
        for way, heard in events.items():
            made, _ = await loop.create_datagram_endpoint(
                lambda heard=heard: _Datagrams(heard), local_addr=("127.0.0.1", 0)
            )
            stack.callback(made.close)
            ports[way] = made.get_extra_info("sockname")[1]
        attack: Attack

        async def reply(path: str, writer: asyncio.StreamWriter) -> None:
            match path.strip("/").split("-"):
                case ["redirect"]:
                    writer.write(answer(status="302 Found", location=f"http://127.0.0.1:{inner[0].port}/redirect"))
                case ["hold"]:
                    await attack.is_done.wait()
                    writer.write(answer())
                case ["heard", way]:
                    await _first(attack.datagrams[way], attack.is_done)
                    writer.write(answer())
                case ["done"]:
                    attack.processes = browser_processes()
                    attack.is_done.set()
                    writer.write(answer())
                case _:
                    writer.write(answer(PAGE % json.dumps(ports).encode()))
            await writer.drain()

        async with serving(reply, writes=True) as outer:
            attack = Attack(outer=outer, inner=inner, datagrams=events)
            try:
                yield attack
            finally:
                attack.is_done.set()


async def _first(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()


def browser_processes() -> list[dict[str, str]]:
    """Returns the facts of all processes of browsers whose folders are in this process's folder of temporary files."""
    mark = f"{tempfile.gettempdir()}/toolwire-browser-".encode()
    found = [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]
    groups = {os.getpgid(int(each)) for each in found if mark in _read(each, "cmdline")}
    return [facts for each in found if (facts := _facts(each)) and int(facts["group"]) in groups]


def _facts(process: str) -> dict[str, str]:
    lines = [line.partition(":") for line in _read(process, "status").decode().splitlines()]
    facts = {name: value.split()[0] for name, _, value in lines if name in ("Uid", "Seccomp", "NoNewPrivs", "State")}
    try:
        group = os.getpgid(int(process))
    except OSError:
        return {}
    return {
        **facts,
        "id": process,
        "group": str(group),
        "command": _read(process, "cmdline").replace(b"\0", b" ").decode(),
    }


def _read(process: str, name: str) -> bytes:
    try:
        return Path("/proc", process, name).read_bytes()
    except OSError:
        return b""
