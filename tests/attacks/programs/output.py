"""Output: floods, text that a terminal or a reader obeys, and frames written where text belongs."""

from tests.attacks.attack import Attack, family
from toolwire import Limits

SMALL = Limits(wall_s=3, cpu_s=3, deadline_s=6, output_bytes=10_000, output_flood_bytes=200_000)
LARGE = Limits(wall_s=3, cpu_s=3, deadline_s=6, output_bytes=100_000, output_flood_bytes=2_000_000)

ATTACKS = family(
    "output",
    threat=49,
    attacks=[
        Attack(
            name="flood of lines",
            tries="prints without end",
            sign="over limit",
            control="higher limits",
            limits=SMALL,
            higher_limits=LARGE,
            source="for number in range(1_000_000): print('x' * 100)",
        ),
        Attack(
            name="one endless line",
            tries="prints without a newline, so that a reader of lines keeps it all",
            sign="over limit",
            control="higher limits",
            limits=SMALL,
            higher_limits=LARGE,
            source="print('x' * 10_000_000, end='')",
        ),
        Attack(
            name="flood on standard error",
            tries="floods the stream that is often forgotten",
            sign="over limit",
            control="higher limits",
            limits=SMALL,
            higher_limits=LARGE,
            source="for number in range(1_000_000): print('x' * 100, file=sys.stderr)",
        ),
        Attack(
            name="wide characters",
            tries="prints characters of four bytes each, to get past a limit that counts characters",
            sign="over limit",
            control="higher limits",
            limits=SMALL,
            higher_limits=LARGE,
            source="for number in range(1_000_000): print('\\U0001F600' * 100)",
        ),
        Attack(
            name="flood by the channel itself",
            tries="writes frames of output around print",
            sign="over limit",
            control="higher limits",
            limits=SMALL,
            higher_limits=LARGE,
            source="""\
frame = json.dumps(['print', 'y' * 8000]).encode()
frame = len(frame).to_bytes(4, 'big') + frame
while True:
    os.write(3, frame)
""",
        ),
        Attack(
            name="flood of small frames",
            tries="writes frames that hold one byte of output each, so that the count of bytes hardly counts them",
            sign="over limit",
            control="higher limits",
            limits=Limits(wall_s=0.3, cpu_s=3, deadline_s=2),
            higher_limits=Limits(wall_s=0.9, cpu_s=3, deadline_s=4),
            source="""\
frame = json.dumps(['print', 'x']).encode()
frame = (len(frame).to_bytes(4, 'big') + frame) * 1000
while True:
    os.write(3, frame)
""",
        ),
        Attack(
            name="a frame in the text",
            tries="prints the bytes of a call, for a host that reads calls from standard output",
            sign="tool",
            control="naive host",
            source="""\
frame = json.dumps(['call', 1, 'forbidden', False, {'text': 'printed'}])
print(len(frame).to_bytes(4, 'big').decode('latin-1') + frame)
print(frame)
""",
        ),
        Attack(
            name="a result in the text",
            tries="prints an end of its own, and goes on where the host believes that it is over",
            sign="tool",
            control="naive host",
            source="""\
print('["result", true, "", "done"]')
print('["call", 2, "forbidden", false, {"text": "after the end"}]')
""",
        ),
        Attack(
            name="huge exception",
            tries="fails with a message and a traceback larger than any output limit",
            sign="over limit",
            control="naive host",
            limits=SMALL,
            source="raise ValueError('x' * 10_000_000)",
        ),
        Attack(
            name="an exception that cannot be shown",
            tries="raises what fails, floods and lies when its text is asked for",
            sign="host fault",
            control="naive host",
            source="""\
class Unshowable(Exception):
    def __str__(self):
        raise SystemExit('the host asked for my text')
    __repr__ = __str__
raise Unshowable()
""",
        ),
        Attack(
            name="half characters",
            tries="prints half of a pair of surrogates, which no encoder takes",
            sign="host fault",
            control="naive host",
            source="""\
frame = b'["print","\\xed\\xa0\\x80\\\\n"]'
os.write(3, len(frame).to_bytes(4, 'big') + frame)
__result__ = chr(0xD800)
""",
        ),
    ],
)
