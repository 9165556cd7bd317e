"""A runner that has been taken over, and hosts that have: each gets a reason in one line, in time, and no memory."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.runners import Authority, RunnerProcess
from tests.patience import PATIENCE_S
from tests.sandbox.channel.test_channel import BAD, frame
from tests.sandbox.programs import TOOLS, FakeTools
from toolwire import SandboxUnavailable
from toolwire.fleet import RemoteRunner, relay, remote_child, remote_runner
from toolwire.sandbox.answers import Replay, replay_engine
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Program
from toolwire.sandbox.report import ProgramResult

LIMITS = Limits(deadline_s=PATIENCE_S, wall_s=PATIENCE_S, call_bytes=100_000, result_bytes=100_000, calls=5)
HASTY = replace(LIMITS, deadline_s=0.5, wall_s=0.4)
"""For runners that only a clock ends."""
LATE_S = 2.0
"""Seconds after the limit within which a runner that is silent is left."""
MEMORY_KB = 16_384
HUGE = 1 << 30
WORD = {"level": "kernel", "report": {"seccomp": "on"}, "engine": replay_engine, "places": 4}
EXIT = json.dumps({"status": 0, "cpu_s": 0.5}).encode()
DONE = frame("result", True, "", 5)


def message(kind: bytes, data: bytes = b"", size: int | None = None) -> bytes:
    return kind + (len(data) if size is None else size).to_bytes(4, "big") + data


def word(**changes: Any) -> bytes:
    return message(b"I", json.dumps({**WORD, **changes}).encode())


class Host:
    """The other end of a liar: a host that believes it is a runner."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def receive(self) -> bytes:
        return self._connection.recv(65_536)

    def wait_for_its_leave(self) -> None:
        while self.receive():
            pass

    def give_a_process(self) -> None:
        """Does what an honest runner does until its program runs."""
        self.send(word())
        self.receive()
        self.send(message(b"G"))
        self.receive()


Lie = Callable[[Host], None]


@contextmanager
def liar(lie: Lie, path: Path) -> Iterator[RemoteRunner]:
    """A runner that treats each connection so, as its host sees it."""
    with socket.socket(socket.AF_UNIX) as listening, ExitStack() as stack:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=_quietly, args=(lie, connection), daemon=True).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield stack.enter_context(RemoteRunner([f"unix:{path}"], trust="kernel"))
        stack.close()
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE_S)


def _quietly(lie: Lie, connection: socket.socket) -> None:
    with connection, suppress(OSError):
        lie(Host(connection))


def run(lie: Lie, folder: Path, limits: Limits = LIMITS, replay: Replay | None = None) -> ProgramResult:
    with liar(lie, folder / "liar") as runner:
        return runner.run(Program(source="x", tools=TOOLS, limits=limits, replay=replay), FakeTools())


def says(data: bytes, *, then: Lie = Host.wait_for_its_leave) -> Lie:
    """A runner that says this in the name of a program that runs."""

    def lie(host: Host) -> None:
        host.give_a_process()
        host.send(data)
        then(host)

    return lie


def says_as_its_program(data: bytes, **options: Any) -> Lie:
    pieces = [data[place : place + 65_536] for place in range(0, len(data), 65_536)]
    return says(b"".join(message(b"D", piece) for piece in pieces), **options)


def peak_kb() -> int:
    return int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0])


@contextmanager
def little_memory() -> Iterator[None]:
    """Asserts that the block takes less memory at its peak than a runner may make its host take."""
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_kb()
    yield
    assert peak_kb() - before < MEMORY_KB


@pytest.fixture(autouse=True)
def short_wait_for_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few of these runners tell how a process ended that was killed."""
    monkeypatch.setattr(remote_child, "KILL_LIMIT_S", 0.1)


def test_an_honest_one_is_believed(tmp_path: Path) -> None:
    """The control: what the liars below change is all that is wrong with them."""
    result = run(says(message(b"D", DONE) + message(b"X", EXIT)), tmp_path)
    assert (result.status, result.value, result.cpu_s) == ("finished", 5, 0.5)


@pytest.mark.parametrize(("data", "reason"), BAD.values(), ids=BAD.keys())
def test_a_wrong_frame_ends_the_program_with_its_reason(data: bytes, reason: str, tmp_path: Path) -> None:
    result = run(says_as_its_program(data), tmp_path)
    assert result.status == "protocol_violation"
    assert result.error is not None
    assert reason in result.error.message


def test_a_frame_of_a_gigabyte_is_refused_when_its_length_is_read(tmp_path: Path) -> None:
    with little_memory():
        result = run(says_as_its_program(HUGE.to_bytes(4, "big") + b"x" * 500_000), tmp_path)
    assert result.error is not None
    assert "a frame of 1,073,741,824 bytes" in result.error.message


def test_a_million_calls_end_at_the_limit_of_calls(tmp_path: Path) -> None:
    tools = FakeTools()
    few = b"".join(message(b"D", frame("call", n, 0, False, {"a": n, "b": 0})) for n in range(1, 1_001))

    def lie(host: Host) -> None:
        host.give_a_process()
        for _ in range(1_000):
            host.send(few)

    with little_memory(), liar(lie, tmp_path / "liar") as runner:
        result = runner.run(Program(source="x", tools=TOOLS, limits=LIMITS), tools)
    assert (result.status, len(tools.calls)) == ("calls", 5)


WRONG_MESSAGES: dict[str, tuple[bytes, str]] = {
    "a gigabyte": (message(b"D", b"x" * 500_000, HUGE), "a message of 1,073,741,824 bytes was announced"),
    "an unknown kind": (message(b"?"), r"an unexpected message came: b'\?'"),
    "a second process": (message(b"G"), "an unexpected message came: b'G'"),
    "a second word": (word(), "an unexpected message came: b'I'"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 30, "a message of .* bytes was announced"),
    "an exit that is no JSON": (message(b"X", b"{"), "the exit that it told is none"),
    "an exit of a megabyte": (message(b"X", b" " * 1_000_000), "the exit that it told is none"),
    "an exit nested a hundred times": (message(b"X", b"[" * 128 + b"]" * 128), "the exit that it told is none"),
    "an exit without a status": (message(b"X", b'{"cpu_s": 1.0}'), "the exit that it told is none"),
    "an exit of text": (message(b"X", b'{"status": "0", "cpu_s": 1.0}'), "the exit that it told is none"),
    "an exit out of range": (message(b"X", b'{"status": 1e999, "cpu_s": 1.0}'), "the exit that it told is none"),
    "a huge status": (message(b"X", b'{"status": 99999999999, "cpu_s": 1.0}'), "the exit that it told is none"),
    "no number of seconds": (message(b"X", b'{"status": 0, "cpu_s": NaN}'), "the exit that it told is none"),
    "negative seconds": (message(b"X", b'{"status": 0, "cpu_s": -1.0}'), "the exit that it told is none"),
}


@pytest.mark.parametrize(("data", "reason"), WRONG_MESSAGES.values(), ids=WRONG_MESSAGES.keys())
def test_a_wrong_message_breaks_the_connection(data: bytes, reason: str, tmp_path: Path) -> None:
    with little_memory():
        result = run(says(data), tmp_path)
    assert result.status == "crashed"
    lost = result.isolation.report["lost"]
    assert re.search(reason, lost)
    assert "\n" not in lost


@pytest.mark.parametrize("seen", [b"", b"D", message(b"D", frame("print", "x"))[:9]], ids=["", "header", "frame"])
def test_an_early_close_breaks_the_connection(seen: bytes, tmp_path: Path) -> None:
    result = run(says(seen, then=lambda _: None), tmp_path)
    assert (result.status, "the connection was closed" in result.isolation.report["lost"]) == ("crashed", True)


def test_a_result_counts_although_its_runner_breaks_afterwards(tmp_path: Path) -> None:
    result = run(says(message(b"D", DONE), then=lambda _: None), tmp_path)
    assert (result.status, result.value) == ("finished", 5)


@pytest.mark.parametrize("sent", [b"", message(b"D", frame("print", "x"))], ids=["at once", "after a while"])
def test_silence_before_the_result_ends_with_the_deadline(sent: bytes, tmp_path: Path) -> None:
    began = time.monotonic()
    result = run(says(sent), tmp_path, HASTY)
    assert result.status == "timeout_program"
    assert time.monotonic() - began < HASTY.deadline_s + remote_child.KILL_LIMIT_S + LATE_S


def test_silence_after_the_result_is_waited_for_a_second(tmp_path: Path) -> None:
    began = time.monotonic()
    result = run(says(message(b"D", DONE)), tmp_path)
    assert (result.status, result.value) == ("finished", 5)
    assert time.monotonic() - began < remote_child.KILL_LIMIT_S + LATE_S


def refusal(lie: Lie, folder: Path) -> str:
    """The one line that says why a runner gave no process."""
    began = time.monotonic()
    with pytest.raises(SandboxUnavailable) as refused:
        run(lie, folder)
    assert time.monotonic() - began < LATE_S + 1
    reason = refused.value.report[f"unix:{folder}/liar"]
    assert "\n" not in reason
    return reason


def test_silence_before_the_process_is_refused_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_runner, "CONNECT_LIMIT_S", 0.3)
    monkeypatch.setattr(remote_runner, "SPAWN_TIMEOUT_S", 0.3)
    assert refusal(Host.wait_for_its_leave, tmp_path) == "it was silent for too long"
    (tmp_path / "later").mkdir()

    def word_only(host: Host) -> None:
        host.send(word())
        host.wait_for_its_leave()

    assert refusal(word_only, tmp_path / "later") == "it was silent for too long"


NO_WORD = "it does not say what it is, so it is no runner of this version"
WRONG_WORDS: dict[str, tuple[bytes, str]] = {
    "none": (b"", "the connection was closed"),
    "HTTP": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a message of 1,414,811,695 bytes was announced"),
    "another message": (message(b"G"), "an unexpected message came: b'G'"),
    "no JSON": (message(b"I", b"{"), NO_WORD),
    "a list": (message(b"I", b"[]"), NO_WORD),
    "deep": (message(b"I", b"[" * 60_000), NO_WORD),
    "an unknown level": (word(level="perfect"), NO_WORD),
    "a level of another type": (word(level=["kernel"]), NO_WORD),
    "a report of another type": (word(report=5), NO_WORD),
    "without an engine": (message(b"I", b'{"level": "kernel", "report": {}}'), NO_WORD),
    "places of another type": (word(places=[]), NO_WORD),
    "endless places": (message(b"I", json.dumps(WORD).replace("4}", "1e999}").encode()), NO_WORD),
    "another engine": (word(engine="python 9\n9"), f"it has python 9 9, and this process {replay_engine}: use one"),
}


@pytest.mark.parametrize(("data", "reason"), WRONG_WORDS.values(), ids=WRONG_WORDS.keys())
def test_a_wrong_word_about_itself_is_refused(data: bytes, reason: str, tmp_path: Path) -> None:
    with little_memory():
        assert refusal(lambda host: host.send(data), tmp_path).startswith(reason)


def test_its_report_is_cut_and_cannot_break_a_line_or_tell_of_a_lost_connection(tmp_path: Path) -> None:
    report = {
        "lost": "no",
        "claimed": "by nobody",
        "a\nb": "c\x1b[2J\n" + "d" * 1_000,
        **{str(n): 0 for n in range(99)},
    }

    def lie(host: Host) -> None:
        host.send(word(report=report))
        host.receive()
        host.send(message(b"G"))
        host.receive()
        host.send(message(b"D", DONE) + message(b"X", EXIT))

    told = run(lie, tmp_path).isolation.report
    assert "lost" not in told
    assert told["claimed"] == f"'kernel' by the runner unix:{tmp_path}/liar"
    assert all(text.isprintable() and len(text) <= 300 for text in told.values())
    assert len(told) <= 33


def test_why_it_refuses_is_one_line(tmp_path: Path) -> None:
    def lie(host: Host) -> None:
        host.send(word())
        host.receive()
        host.send(message(b"N", b"full\nrm -rf\x1b[2J" + b"x" * 1_000))
        host.wait_for_its_leave()

    assert refusal(lie, tmp_path).startswith("full rm -rf")


@contextmanager
def a_runner(folder: Path, *arguments: str) -> Iterator[RunnerProcess]:
    process = RunnerProcess(folder / "said", *arguments)
    try:
        yield process
    finally:
        process.kill()


def test_certificates_of_others_none_and_plain_tcp_are_refused(tmp_path: Path) -> None:
    ours, others = Authority(tmp_path, "ours"), Authority(tmp_path, "others")
    mine, theirs, host = ours.identity("runner"), others.identity("theirs"), ours.identity("host")
    by_ours = {"cert": host.cert, "key": host.key, "ca": ours.ca}
    options = ("--cert", str(mine.cert), "--key", str(mine.key), "--client-ca", str(ours.ca))

    def reason(address: str, **given: Any) -> str:
        with RemoteRunner([address], **given) as runner, pytest.raises(SandboxUnavailable) as refused:
            runner.run(Program(source="1", tools=()), FakeTools())
        return refused.value.report[address]

    with a_runner(tmp_path, "--listen", "127.0.0.1:0", *options) as process:
        address = process.address
        with RemoteRunner([address], trust="kernel", **by_ours) as runner:
            assert runner.run(Program(source="1", tools=()), FakeTools()).value == 1
        # A runner of another authority, and a host of another one.
        assert "its certificate is refused" in reason(address, **by_ours | {"ca": others.ca})
        assert "TLS failed" in reason(address, cert=theirs.cert, key=theirs.key, ca=ours.ca)
        assert reason(address, insecure=True) in ("it was silent for too long", relay.CLOSED)
        # A host that shows none.
        context = ssl.create_default_context(cafile=str(ours.ca))
        with (
            context.wrap_socket(socket.create_connection(_place(address)), server_hostname="127.0.0.1") as nobody,
            pytest.raises(OSError, match=r"required|reset"),
        ):
            nobody.recv(1)
        said = process.said()
        for why in ("certificate", "TLS failed"):
            assert why in said
        assert all(line.count("refused 127.0.0.1:") <= 1 for line in said.splitlines())
    with a_runner(tmp_path, "--listen", "127.0.0.1:0", "--insecure") as plain_runner:
        assert "TLS failed" in reason(plain_runner.address, **by_ours)


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


ASKED = message(b"R", b'{"memory_mb": 64, "cpu_s": 5}')
WRONG_HOSTS: dict[str, tuple[bytes, str]] = {
    "a gigabyte": (message(b"D", b"x" * 100_000, HUGE), "a message of 1,073,741,824 bytes was announced"),
    "an unknown kind": (message(b"G"), "an unexpected message came: b'G'"),
    "a second program": (ASKED + ASKED, "a second program was asked for on one connection"),
    "another signal": (ASKED + message(b"S", b"\x13"), "a signal was asked for that is neither SIGTERM nor SIGKILL"),
    "no limits": (message(b"R", b"{}"), "a program was asked for with limits that are none"),
    "endless limits": (message(b"R", b'{"memory_mb": 1e999, "cpu_s": 5}'), "limits that are none"),
    "no number": (message(b"R", b'{"memory_mb": NaN, "cpu_s": 5}'), "limits that are none"),
    "deep": (message(b"R", b"[" * 60_000), "limits that are none"),
}


def test_a_runner_refuses_wrong_hosts_and_goes_on(tmp_path: Path) -> None:
    with a_runner(tmp_path, "--listen", f"unix:{tmp_path}/runner") as process:
        for data, _ in WRONG_HOSTS.values():
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PATIENCE_S)
                connection.connect(f"{tmp_path}/runner")
                with suppress(OSError):
                    connection.sendall(data)
                    while connection.recv(65_536):
                        pass
        for _, reason in WRONG_HOSTS.values():
            assert reason in process.said()
        with RemoteRunner([f"unix:{tmp_path}/runner"], trust="kernel") as runner:
            assert runner.run(Program(source="2", tools=()), FakeTools()).value == 2


@pytest.mark.parametrize(("more", "is_refused"), [(0, False), (1, True)])
def test_a_message_may_have_a_mebibyte(more: int, is_refused: bool, tmp_path: Path) -> None:
    printed = frame("print", "x" * 1_000)
    size = relay.MESSAGE_LIMIT_BYTES + more
    result = run(says(message(b"D", printed.ljust(size, b"\0"), size)), tmp_path)
    assert ("was announced" in result.isolation.report["lost"]) is is_refused
