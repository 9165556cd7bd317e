"""Frames written by hand: a program may write anything into its channel, so the host must stand anything."""

from tests.attacks.attack import Attack, family
from toolwire import Limits

PRELUDE = """\
def send(parts, size=None):
    data = parts if isinstance(parts, bytes) else json.dumps(parts).encode()
    os.write(3, (len(data) if size is None else size).to_bytes(4, 'big') + data)
"""

FEW_CALLS = Limits(wall_s=3, cpu_s=3, deadline_s=6, calls=20)
MANY_CALLS = Limits(wall_s=3, cpu_s=3, deadline_s=6, calls=60)


def forged(name: str, tries: str, source: str, *, sign: str = "host fault") -> Attack:
    """A naive host is the control: it believes every frame."""
    return Attack(name=name, tries=tries, sign=sign, control="naive host", source=source)  # pyright: ignore


ATTACKS = family(
    "forged frames",
    threat=48,
    prelude=PRELUDE,
    attacks=[
        forged(
            "a tool by its name",
            "calls a tool that it was not given, by the name it has in the host",
            "send(['call', 1, 'forbidden', False, {'text': 'by name'}])",
            sign="tool",
        ),
        forged(
            "a negative position",
            "counts the host's tools from their end",
            "send(['call', 1, -1, False, {'text': 'from the end'}])",
            sign="tool",
        ),
        forged(
            "a true position",
            "gives true where a number is expected, and a float, a list, a text",
            "for position in ('1', 1e0, [1], True, None): send(['call', 1, position, False, {}])",
        ),
        forged(
            "a position beyond the last tool",
            "calls tool number one million",
            "send(['call', 1, 1_000_000, False, {'text': 'x'}])",
        ),
        forged(
            "an ordinal used twice",
            "makes a second call under the number of one that was let through",
            """\
send(['call', 1, 'add', False, {'a': 1, 'b': 2}])
send(['call', 1, 2, False, {'text': 'under another number'}])
""",
            sign="tool",
        ),
        forged(
            "ordinals of no order",
            "numbers its calls backwards, below zero, and beyond any number",
            "for ordinal in (5, 4, 0, -1, 10 ** 30): send(['call', ordinal, 0, False, {'a': 1, 'b': 1}])",
        ),
        forged(
            "hidden arguments",
            "gives a tool an argument that is not its program's to give",
            "send(['call', 1, 0, False, {'a': 1, 'b': 2, 'self': 3, '__class__': 4}])",
        ),
        forged("a kind that there is not", "sends a frame of a kind of its own", "send(['grant', 'forbidden'])"),
        forged(
            "a frame that is no list",
            "sends an object, a text, a number, an empty list",
            "for frame in ({'call': 1}, 'call', 7, None, [], [[]], [None]): send(frame)",
        ),
        forged("no JSON", "sends what no parser takes", "send(b'call, 1, forbidden')"),
        forged("no text", "sends bytes that are no UTF-8", "send(bytes(range(128, 256)))"),
        forged("NaN", "sends what Python's parser takes and JSON forbids", "send(b'[\"wake\", 1, NaN')"),
        forged("a huge length", "announces four gigabytes", "send(b'[', 0xFFFFFFFF)"),
        forged("a length above the cap by one byte", "announces slightly too much", "send(b'[', 128 << 20)"),
        forged("length zero", "sends frames without content", "send(b'')\nsend(b'')"),
        forged(
            "half a frame", "announces a hundred bytes, sends ten, and ends", 'send(b\'["print","\', 100)\nos.close(3)'
        ),
        forged(
            "a frame in single bytes",
            "sends the header byte by byte and then stops in the middle",
            "for byte in b'\\x00\\x00\\x01\\x00[': os.write(3, bytes([byte]))\nos.close(3)",
        ),
        forged(
            "deep nesting",
            "sends brackets beyond the parser's depth",
            "send(b'[\"result\",true,\"\",' + b'[' * 100_000 + b']' * 100_000 + b']')",
        ),
        forged(
            "a number of a million digits",
            "sends a number that takes the host minutes to read",
            "send(b'[\"result\",true,\"\",' + b'9' * 900_000 + b']')",
        ),
        forged(
            "tags that lie",
            "marks texts as dates, decimals, bytes and frozen sets which they are not",
            """\
for tag, value in [('datetime', 'never'), ('Decimal', 'x'), ('bytes', '!'), ('set', 7), ('frozenset', [[]]),
                   ('timedelta', ['a']), ('float', []), ('raw', 5), ('module', 'os'), (['x'], 1)]:
    send(['call', 1, 0, False, {'a': {'$t': tag, 'v': value}, 'b': {'$t': 'raw'}}])
""",
        ),
        forged(
            "raw strings that are not there",
            "announces raw strings of impossible sizes and number",
            """\
for sizes in ([1 << 40], [-1], ['x'], [True], [], [0] * 5000, 7):
    send(['raw', sizes, ['print', {'$t': 'raw', 'v': 0}]])
""",
        ),
        forged(
            "answers to itself",
            "sends the frames that only the host may send",
            "send(['answer', 1, 'granted'])\nsend(['start', {}, 'x'])\nsend(['error', 1, ['x', 'y', 'z']])",
        ),
        forged(
            "a drop of a stranger's call",
            "takes back calls that were never made",
            "send(['drop', 99])\nsend(['drop', -1])\nsend(['drop', 'all'])",
        ),
        forged(
            "timers out of range",
            "asks to be woken at the end of time, before its beginning, under false names",
            "for at in ((1, -5), (1, 1e300), (2 ** 70, 1), ('x', 1), (1, '1')): send(['wake', *at])",
        ),
        forged(
            "two ends",
            "ends twice, with different results, and calls a tool in between",
            """\
send(['result', True, '', 'first'])
send(['call', 1, 'forbidden', False, {'text': 'after the end'}])
send(['result', True, '', 'second'])
""",
            sign="tool",
        ),
        forged(
            "a failure of the wrong shape",
            "tells of an exception with numbers for names and a line before the first",
            "send(['failed', [1, None, [], {}, -5]])\nsend(['stopped', ['why', 1, 2]])",
        ),
        forged(
            "text of eighty megabytes",
            "sends one frame of output larger than any piece may be",
            "send(['print', 'x' * 80_000_000])",
        ),
        Attack(
            name="more calls than allowed",
            tries="writes calls around the stubs, which would count them",
            sign="over limit",
            control="higher limits",
            limits=FEW_CALLS,
            higher_limits=MANY_CALLS,
            source="for number in range(1, 500): send(['call', number, 0, False, {'a': 1, 'b': 1}])",
        ),
        Attack(
            name="calls without reading the answers",
            tries="fills the host's buffers with answers that it never reads",
            sign="over limit",
            control="higher limits",
            limits=Limits(wall_s=0.2, cpu_s=3, deadline_s=20, calls=100_000),
            higher_limits=Limits(wall_s=0.6, cpu_s=3, deadline_s=20, calls=100_000, outstanding_calls=100_000),
            source="for number in range(1, 100_000): send(['call', number, 1, False, {'text': 'x' * 15_000}])",
        ),
        Attack(
            name="parallel calls without reading the answers",
            tries="the same with calls that the host answers side by side",
            sign="over limit",
            control="higher limits",
            limits=Limits(wall_s=0.2, cpu_s=3, deadline_s=8, calls=100_000),
            higher_limits=Limits(wall_s=0.6, cpu_s=3, deadline_s=8, calls=100_000),
            source="""\
for number in range(1, 61):
    send(['call', number, 1, True, {'text': 'x' * 15_000}])
sys.modules['time'].sleep(100)
""",
        ),
        forged(
            "arguments that pile up",
            "makes large calls, one after the other, for a host that keeps what each was called with",
            """\
for _ in range(40):
    note(text='x' * 4_000_000)
""",
        ),
        forged(
            "many small items",
            "sends four megabytes that take a hundred and fifty when they are read",
            """\
send(b'["call",1,1,false,{"text":[' + b'{"":0},' * 600_000 + b'0]}]')
os.read(4, 10)
""",
        ),
        forged(
            "one string under many names",
            "sends one string of a megabyte and names it in four hundred places, each of which becomes a copy",
            """\
send(['raw', [1_000_000], ['call', 1, 1, False, {'text': [{'$t': 'raw', 'v': 0}] * 400}]])
os.write(3, b'x' * 1_000_000)
os.read(4, 10)
""",
        ),
        forged(
            "one string under a great many names",
            "names a string so often that a host goes on making copies after the program's end",
            """\
send(['raw', [1_000_000], ['result', True, '', [{'$t': 'raw', 'v': 0}] * 20_000]])
os.write(3, b'x' * 1_000_000)
""",
        ),
    ],
)
