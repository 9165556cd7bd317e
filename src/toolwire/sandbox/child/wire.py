"""The program's end of the channel: reads and writes whole frames. Twin of the host's `wire.py`."""

import json
import json.encoder
from collections.abc import Callable
from typing import Any, cast

from .values import TAG, VALUE, NotData, kind_of, tag, untag

HEADER_BYTES = 4
RAW_FROM = 16_384
RAW = "raw"
READ_BYTES = 65_536
_SCALARS = frozenset({int, bool, float, type(None), str})
_TAG_TEXT = f'"{TAG}"'


class ChannelClosed(BaseException):
    """The host has closed the channel."""


class TooLarge(Exception):
    """A value is larger than its limit, in encoded bytes."""

    def __init__(self, size: int, cap: int) -> None:
        super().__init__(f"{size:,} bytes, at most {cap:,} fit")
        self.size = size
        self.cap = cap


class Wire:
    """Frames over `read(count) -> bytes` and `write(data) -> count`, both of which block."""

    def __init__(self, read: Callable[[int], bytes], write: Callable[[bytes], int]) -> None:
        self._read = read
        self.write = write
        self._pending = b""
        self.is_writing = False
        """True in the middle of a frame: a signal handler must not write then."""

    def send(self, frame: bytes) -> None:
        """Writes one encoded frame."""
        self.is_writing = True
        written = self.write(frame)
        while written < len(frame):
            written += self.write(frame[written:])
        self.is_writing = False

    def receive(self) -> list[Any]:
        """Returns the next frame, its payload as plain values. Blocks until it has come."""
        data = self._pending or self._read(READ_BYTES)
        size = int.from_bytes(data[:HEADER_BYTES], "big") + HEADER_BYTES
        if len(data) == size and size > HEADER_BYTES:
            self._pending = b""
        else:
            data = self._exactly(data)
        text = data[HEADER_BYTES:].decode("utf-8", "surrogatepass")
        parts = scan(text, 0)[0]
        if parts[0] == RAW:
            parts = settle(parts[2], [self._raw(size) for size in parts[1]])
            parts[-1] = untag(parts[-1])
        elif _TAG_TEXT in text:
            parts[-1] = untag(parts[-1])
        return parts

    def _exactly(self, data: bytes) -> bytes:
        """Returns one frame's header and text; bytes beyond them stay pending."""
        data = self._at_least(data, HEADER_BYTES)
        size = int.from_bytes(data[:HEADER_BYTES], "big") + HEADER_BYTES
        data = self._at_least(data, size)
        self._pending = data[size:]
        return data[:size]

    def _raw(self, size: int) -> str:
        data = self._at_least(self._pending, size)
        self._pending = data[size:]
        return data[:size].decode("utf-8", "surrogatepass")

    def _at_least(self, data: bytes, size: int) -> bytes:
        if len(data) >= size:
            return data
        pieces = [data]
        have = len(data)
        while have < size:
            piece = self._read(max(size - have, READ_BYTES))
            if not piece:
                raise ChannelClosed
            pieces.append(piece)
            have += len(piece)
        return b"".join(pieces)


def encode(head: str, payload: Any, cap: int) -> bytes:
    """Returns the frame of a head and a payload, which is tagged. The head is text up to the payload, as `["print",`.

    Raises:
        NotData: a part of the payload cannot leave the program.
        TooLarge: the frame is larger than `cap` bytes.
    """
    text = _quick(payload)
    if text is None:
        return _encode_tagged(head, payload, cap)
    data = f"{head}{text}]".encode("utf-8", "surrogatepass")
    size = len(data)
    if size > cap:
        raise TooLarge(size, cap)
    return size.to_bytes(HEADER_BYTES, "big") + data


def size_of(text: str) -> int:
    """Returns the bytes of a text in a frame."""
    return len(text.encode("utf-8", "surrogatepass"))


def lift(value: Any, raws: list[bytes]) -> Any:
    """Returns the tagged value with its long strings moved to `raws`."""
    kind = kind_of(value)
    if kind is str:
        if len(value) < RAW_FROM:
            return value
        raws.append(value.encode("utf-8", "surrogatepass"))
        return {TAG: RAW, VALUE: len(raws) - 1}
    if kind is list:
        return [lift(item, raws) for item in value]
    if kind is dict:
        return {key: lift(item, raws) for key, item in value.items()}
    return value


def settle(value: Any, raws: list[str]) -> Any:
    """Returns the value with its long strings back in their places."""
    kind = kind_of(value)
    if kind is list:
        return [settle(item, raws) for item in value]
    if kind is not dict:
        return value
    if value.get(TAG) != RAW:
        return {key: settle(item, raws) for key, item in value.items()}
    position: int = value[VALUE]
    return raws[position]


def _encode_tagged(head: str, payload: Any, cap: int) -> bytes:
    raws: list[bytes] = []
    text = f"{head}{dump(lift(tag(payload), raws))}]"
    if raws:
        text = f'["{RAW}",{dump([len(raw) for raw in raws])},{text}]'
    data = text.encode("utf-8", "surrogatepass")
    size = len(data) + sum(map(len, raws))
    if size > cap:
        raise TooLarge(size, cap)
    return b"".join([len(data).to_bytes(HEADER_BYTES, "big"), data, *raws])


def _quick(payload: Any) -> str | None:
    kind = kind_of(payload)
    if kind is dict:
        for key, item in payload.items():
            inner = kind_of(item)
            if (
                inner not in _SCALARS
                or (inner is str and len(item) >= RAW_FROM)
                or kind_of(key) is not str
                or key == TAG
            ):
                return None
    elif kind not in _SCALARS or (kind is str and len(payload) >= RAW_FROM):
        return None
    try:
        return str(payload) if kind is int else dump(payload)
    except ValueError:  # NaN or an endless integer
        return None


def _refuse_type(value: Any) -> Any:
    raise NotData(f"a value of type {type(value).__name__}")


def _make_dump() -> Callable[[Any], str]:
    make = getattr(json.encoder, "c_make_encoder", None)
    quote = getattr(json.encoder, "c_encode_basestring", None)
    if make is None or quote is None:
        return json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")).encode
    encoder = make(None, _refuse_type, quote, None, ":", ",", False, False, False)
    join = "".join
    return lambda value: join(encoder(value, 0))


dump = _make_dump()
scan: Callable[[str, int], tuple[Any, int]] = cast("Any", json.JSONDecoder()).scan_once
