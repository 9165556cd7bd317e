"""A naive first version of a host, which shows that the attacks succeed without protection.

It runs a program in its own process. It calls the tools that a frame names, believes lengths and ordinals, unpickles
and
shows the program's results, and keeps one namespace for all. A script for `python -I`; reads from standard input
`{"sources": [...], "new_file": path}`, writes the programs' output and the faults of the host: `TOOL name`, `FALSE
LOG`,
`HOST FAULT reason`, and `DONE` at the very end.
"""

import asyncio
import copy
import ctypes
import datetime
import decimal
import importlib
import io
import json
import math
import os
import pickle
import random
import re
import resource
import socket
import statistics
import sys
import threading
import traceback
from typing import Any

AT_HAND = ("asyncio.trsock", "atexit", "codecs", "gc", "importlib.machinery", "logging", "marshal", "opcode", "string")
TO_HOST, FROM_HOST = 3, 4
TOO_LARGE = 64 << 20
HOST_SECRET = ctypes.create_string_buffer(b"host memory")
RAN: list[str] = []
LOG: list[tuple[Any, ...]] = []
APPROVED: set[int] = set()


ANSWERS: list[Any] = [None] * 100


def _tool(name: str) -> Any:
    def run(text: str) -> str:
        RAN.append(name)
        if len(LOG) * len(text) > TOO_LARGE or sum(map(len, text)) > TOO_LARGE:
            fault("keeps whatever it was called with")
        LOG.append((name, text))
        return text

    return run


def _add(a: int, b: int) -> int:
    RAN.append("add")
    LOG.append(("add", a, b))
    return a + b


NAMES = ["add", "note", "forbidden", "ask_first"]
DENIED = ("forbidden", "ask_first")
TOOLS = {"add": _add} | {name: _tool(name) for name in NAMES[1:]}


def stub(position: int) -> Any:
    """The function that a program calls: which tool it means, and whether it may, is in its own hands."""

    def call(*given: Any, **named: Any) -> Any:
        if call.permission == "deny":  # type: ignore[attr-defined]
            raise PermissionError
        return TOOLS[NAMES[position]](*given, **named)

    call.permission = "deny" if NAMES[position] in DENIED else "auto"  # type: ignore[attr-defined]
    return call


SPACE: dict[str, Any] = {
    "asyncio": asyncio,
    "datetime": datetime.datetime,
    "json": json,
    "math": math,
    "random": random,
    "re": re,
    "statistics": statistics,
    "HOST_SECRET_ADDRESS": ctypes.addressof(HOST_SECRET),
    **{name: stub(position) for position, name in enumerate(NAMES)},
}


def fault(error: BaseException | str) -> None:
    """Returns the faults of this host."""
    print("HOST FAULT", error if isinstance(error, str) else type(error).__name__)


def serve(line: socket.socket) -> None:
    """Reads frames until there are no more. Nothing is checked that a stub would have done right."""
    try:
        while header := line.recv(4):
            size = int.from_bytes(header, "big")
            if size > TOO_LARGE:
                fault("allocates what a frame announces")
                return
            frame = json.loads(_exactly(line, size).decode())
            if frame[0] == "raw":
                frame = settle(frame[2], [_exactly(line, size).decode() for size in frame[1]])
            take(frame)
    except Exception as error:
        fault(error)
    finally:
        line.close()


def _exactly(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = line.recv(size - len(data))
        if not piece:
            raise EOFError("waits for the rest of a frame")
        data += piece
    return data


def settle(value: Any, strings: list[str]) -> Any:
    """The value with its long strings in the places that name them."""
    if isinstance(value, list):
        return [settle(item, strings) for item in value]
    if isinstance(value, dict):
        return strings[value["v"]] if value.get("$t") == "raw" else {k: settle(v, strings) for k, v in value.items()}
    return value


def take(frame: Any) -> None:
    """Executes the request of a frame."""
    kind = frame[0]
    if kind == "call":
        _, ordinal, tool, _, arguments = frame
        if ordinal not in APPROVED and tool in [NAMES.index(name) for name in DENIED]:
            raise PermissionError
        APPROVED.add(ordinal)
        name = tool if isinstance(tool, str) else NAMES[tool]
        ANSWERS[ordinal] = TOOLS[name](**{key: untag(value) for key, value in arguments.items()})
    elif kind == "print":
        sys.stdout.write(frame[1])
    elif kind == "result" and isinstance(frame[3], list) and len(str(frame[3][:100])) > TOO_LARGE:
        fault("shows whatever was left")
    elif kind not in ("result", "wake") or (kind == "wake" and not 0 < frame[2] < 1e9):
        raise KeyError(kind)


def untag(value: Any) -> Any:
    """The value of a tag."""
    kinds = {"datetime": datetime.datetime.fromisoformat, "Decimal": decimal.Decimal, "set": set}
    return kinds[value["$t"]](value["v"]) if isinstance(value, dict) else value


def run(source: str) -> None:
    """Runs one program and uses its result as hosts do."""
    printed = sys.stdout = io.StringIO()
    # So that neither end is given this number before it is wanted.
    for number in (TO_HOST, FROM_HOST):
        os.dup2(0, number)
    ours, theirs = socket.socketpair()
    for number in (TO_HOST, FROM_HOST):
        os.dup2(theirs.fileno(), number)
    theirs.close()
    ours.settimeout(2)
    reader = threading.Thread(target=serve, args=(ours,), daemon=True)
    reader.start()
    try:
        exec(compile(source, "<program>", "exec"), SPACE)
    except Exception as error:
        printed.write(f"{traceback.format_exc()}\n{error}")
    for number in (TO_HOST, FROM_HOST):
        try:
            os.close(number)
        except OSError:
            fault("its own descriptor is gone")
    reader.join()
    sys.stdout = sys.__stdout__
    text = printed.getvalue()
    print(text.encode("utf-8", "replace").decode())
    for line in text.splitlines():
        if line.startswith("["):
            take(json.loads(line))
    if "__result__" in SPACE:
        handle(SPACE.pop("__result__"))


def handle(value: Any) -> None:
    """Shows, copies, compares, stores and forgets a result, each as if nothing could go wrong."""
    for use in (
        lambda: print(value),
        lambda: print(repr(value), f"{value}", isinstance(value, str)),
        lambda: json.dumps(value, ensure_ascii=False, default=lambda item: format(item, "f")).encode(),
        lambda: value == copy.deepcopy(value),
        lambda: pickle.loads(pickle.dumps(value)),
        lambda: datetime.datetime.fromisoformat(value.isoformat()) if hasattr(value, "isoformat") else None,
    ):
        try:
            use()
        except Exception as error:
            fault(error)


def main() -> None:
    """Runs the programs that standard input holds, one after the other."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    for name in AT_HAND:
        importlib.import_module(name)
    for source in json.load(sys.stdin)["sources"]:
        run(source)
    with open(os.devnull, "w") as file:
        json.dump([str(entry) for entry in LOG], file)
    for name in RAN:
        print("TOOL", name)
    if len(RAN) != len(LOG):
        print("FALSE LOG")
    print("DONE", flush=True)


if __name__ == "__main__":
    main()
