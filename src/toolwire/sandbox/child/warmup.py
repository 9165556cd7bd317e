"""Does once in the zygote, before it forks, all that is slow or needs a file the first time."""

import importlib
import sys
import time
import warnings
from collections.abc import Callable

from . import stage, wire
from .world import imports

LAZY = (
    "tokenize", "_strptime", "encodings.idna", "encodings.punycode", "encodings.ascii", "encodings.latin_1",
    "encodings.utf_8", "encodings.utf_8_sig", "encodings.utf_16", "encodings.utf_16_le", "encodings.utf_16_be",
    "encodings.utf_32", "encodings.cp1252", "encodings.raw_unicode_escape", "encodings.unicode_escape",
    "encodings.hex_codec", "encodings.base64_codec", "encodings.rot_13", "encodings.utf_7", "encodings.gbk",
    "encodings.gb18030", "encodings.gb2312", "encodings.big5", "encodings.shift_jis", "encodings.euc_jp",
    "encodings.euc_kr", "encodings.cp1250", "encodings.cp1251", "encodings.cp437", "encodings.iso8859_1",
    "encodings.iso8859_15", "encodings.koi8_r", "encodings.mac_roman", "unicodedata", "stringprep", "locale",
    "textwrap", "copyreg", "copy", "decimal", "fractions", "numbers", "traceback", "linecache", "calendar", "bisect",
    "heapq", "itertools", "functools", "operator", "collections.abc", "string", "contextvars", "types", "weakref",
    "encodings.cp932", "encodings.cp949", "encodings.cp950", "encodings.utf_32_le", "encodings.utf_32_be",
    "encodings.cp850", "encodings.iso8859_2", "encodings.iso8859_5", "_sitebuiltins", "_colorize", "_pylong", "_sha2",
)  # fmt: skip
"""Modules that the modules of programs, tracebacks or text methods import when they are first needed."""
_OF_SOME_VERSIONS = frozenset({"_colorize", "_pylong", "_sha2"})

SAMPLE = r"""
import json
def area(radius: float) -> float:
    return math.pi * radius ** 2
class Point:
    def __init__(self, x): self.x = x
rows = [{"name": f"row {number}", "value": number * 1.5, "at": datetime(2024, 1, number + 1)} for number in range(5)]
text = json.dumps({row["name"]: row["value"] for row in rows}, indent=1, sort_keys=True)
assert json.loads(text)["row 1"] == 1.5 and re.sub(r"(\w+)\s+(\d+)", r"\2 \1", "row 1") == "1 row"
datetime.strptime("2024-01-31", "%Y-%m-%d").strftime("%A %d %B %Y")
datetime.parse("2024-01-31T10:00:00Z").astimezone(), datetime.now(), datetime.now(datetime.UTC).isoformat()
random.Random(1).sample(range(10), 3), random.gauss(0, 1), statistics.stdev([1, 2, 3]), statistics.median([1, 2, 3])
try:
    rows[0]["nothing"]
except KeyError as error:
    print("caught", error, area(2), Point(1).x, sorted(rows, key=lambda row: -row["value"])[0]["name"])
match rows:
    case [first, *_]: "ä".encode("idna"), "{:,}".format(1e6), first
__result__ = {"rows": rows, "set": {1, 2}, "tuple": (1, b"x")}
"""
ASYNC_SAMPLE = """
async def one(number):
    await asyncio.sleep(0)
    return number
async with asyncio.timeout(5):
    values = await asyncio.gather(one(1), one(2))
await asyncio.wait_for(one(3), 1)
"""
SAMPLES = {"sample": SAMPLE, "async sample": ASYNC_SAMPLE}
USUAL = """\
rows = [{"name": f"row {number}", "value": sample(number) * 1.5} for number in range(2)]
def total(rows):
    return sum(row["value"] for row in rows)
print(", ".join(sorted(row["name"].upper() for row in rows if row["value"] > 0)))
__result__ = {"total": total(rows), "rows": rows}
"""
"""A typical program, which spare children rehearse while they wait."""
FAILURES = (
    "def f(rows):\n    return rows[0]['x'] + undefined_name\nf([{'x': 1}])",
    "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('why') from error",
    "math.sqr(2)",
    "x = (1,\ny = 2",
    "json.loads('{')",
    "f = lambda: f()\nf()",
    "raise ExceptionGroup('both', [ValueError(1), TypeError(2)])",
)

LARGEST_SMALL = 512
"""Bytes up to which CPython keeps objects in pools of one size."""
_STEP = 16
_POOL_BYTES = 16_384
_FIRST_IN_POOL = 48
_MOST_OF_A_SIZE = 4096
"""Gaps of one size to fill at most; a thousand is usual. This bound ends the loop if CPython lays out its pools
differently.
"""
_OVERHEAD_BYTES = bytes.__basicsize__
_kept: list[bytes] = []


def warm_up() -> list[str]:
    """Imports, compiles, runs and fails once with all that programs usually do; returns the parts that failed."""
    missed = [name for name in LAZY if not _import(name)] + imports.load()
    # Warnings about a model's text must not appear in its program's output.
    warnings.simplefilter("ignore", SyntaxWarning)
    warnings.simplefilter("ignore", DeprecationWarning)
    if hasattr(time, "tzset"):
        time.tzset()
    time.localtime()
    for name, source in SAMPLES.items():
        if not _run_sample(source):
            missed.append(name)
    for source in FAILURES:
        _run_sample(source)
    sys.path_importer_cache.clear()
    return missed


def usual() -> Callable[[], None]:
    """Returns a function that runs a typical program once on its own stage, and changes nothing else.

    The zygote and its forks can each call it once. The pages that it touches need not be copied when a program is
    waiting.
    """
    return _rehearsal(USUAL, [])


def fill_gaps() -> None:
    """Fills the gaps in the zygote's memory, so that its children write to few of its pages.

    The kernel copies each page that a child writes to. Python puts small objects into gaps all over that memory.
    Once these gaps are filled, size by size, a child's own objects lie side by side on fresh pages.
    """
    for size in range(LARGEST_SMALL, _OVERHEAD_BYTES, -_STEP):
        for _ in range(_MOST_OF_A_SIZE):
            piece = bytes(size - _OVERHEAD_BYTES)
            _kept.append(piece)
            if id(piece) % _POOL_BYTES == _FIRST_IN_POOL:
                break


def _import(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return name in _OF_SOME_VERSIONS
    return True


def _run_sample(source: str) -> bool:
    """Runs a sample as a child would; returns True if it finished."""
    written: list[bytes] = []
    _rehearsal(source, written)()
    return bool(written) and b'["result"' in written[-1]


def _rehearsal(source: str, written: list[bytes]) -> Callable[[], None]:
    """Returns a function that runs the source with a simulated host, which sends the start and two answers."""
    tool = ["sample", "", [], [["value", "value", "either", True]], ""]
    options = {
        "tools": [tool], "source_checks": True, "result_bytes": 1 << 20, "call_bytes": 1 << 20, "outstanding_calls": 8,
    }  # fmt: skip
    sent = [('["answer",2,', 2), ('["answer",1,', 1), (f'["start",{wire.dump(options)},', source)]
    frames: list[bytes] = [wire.encode(head, payload, 1 << 20) for head, payload in sent]

    def read(_: int) -> bytes:
        return frames.pop() if frames else b""

    def write(frame: bytes) -> int:
        written.append(frame)
        return len(frame)

    own_stage = stage.Stage(read, write)

    def play() -> None:
        before = sys.stdout, sys.stderr, sys.modules["__main__"]
        try:
            own_stage.play()
        finally:
            sys.stdout, sys.stderr, sys.modules["__main__"] = before

    return play
