"""Processor time in C code, where no trace function, no signal handler and no byte code counter is reached."""

from tests.attacks.attack import Attack, family
from toolwire import Limits

SHORT = Limits(wall_s=0.1, cpu_s=2, deadline_s=3)
LONGER = Limits(wall_s=0.3, cpu_s=2, deadline_s=3)
BY_PROCESSOR = Limits(wall_s=30, cpu_s=1, deadline_s=40)


def busy(name: str, tries: str, source: str, limits: Limits = SHORT, higher: Limits = LONGER) -> Attack:
    """Runs on until it is stopped, by whichever limit comes first."""
    return Attack(
        name=name,
        tries=tries,
        sign="over limit",
        control="higher limits",
        limits=limits,
        higher_limits=higher,
        source=source,
    )


ATTACKS = family(
    "processor",
    threat=49,
    attacks=[
        busy("a loop", "never ends", "while True: pass"),
        busy("a power", "computes a power of astronomical size in one step", "x = 7 ** (7 ** 11)"),
        busy("a sum", "sums a range in one step of C", "sum(range(10 ** 14))"),
        busy("digits", "turns a huge number into text", "sys.set_int_max_str_digits(0)\nx = str(1 << 60_000_000)"),
        busy("a regular expression", "backtracks without end", "re.match('(a+)+$', 'a' * 64 + 'b')"),
        busy(
            "a search in text", "looks for what is not there", "while True: ('ab' * 10 ** 6).count('ba' * 5 * 10 ** 5)"
        ),
        busy("a factorial", "multiplies", "math.factorial(50_000_000)"),
        busy(
            "sorting with a comparison of its own",
            "sorts items that never agree",
            """\
class Never:
    def __lt__(self, other): return random.random() < 0.5
while True: sorted(Never() for _ in range(1000))
""",
        ),
        busy(
            "a drain",
            "lets a deque drain a counter",
            "import collections, itertools\ncollections.deque(itertools.count(), 0)",
        ),
        busy(
            "a logarithm",
            "asks for a million digits of it",
            "import decimal\ndecimal.getcontext().prec = 10**6\ndecimal.Decimal(3).ln()",
        ),
        busy(
            "a comparison of texts",
            "compares what is quadratic",
            "import difflib\ndifflib.SequenceMatcher(None, 'ab' * 9999, 'ba' * 9999, autojunk=False).ratio()",
        ),
        busy("an iterator without end", "lets C code drain what never ends", "max(iter(int, 1))"),
        busy(
            "compiling",
            "keeps the compiler busy",
            """\
build = vars(sys.modules['builtins'])['compile']
while True: build('x = ' + '+'.join(['1'] * 2000), 'x', 'exec')
""",
        ),
        busy("sleeping", "does nothing at all, for ever", "sys.modules['time'].sleep(1000)"),
        busy(
            "waiting for nobody",
            "awaits what never comes, with a timer that keeps it alive",
            """\
async def forever():
    while True:
        await asyncio.sleep(0.001)
await forever()
""",
        ),
        busy(
            "spinning tasks",
            "keeps the event loop turning",
            """\
async def spin():
    while True:
        await asyncio.sleep(0)
await asyncio.gather(spin(), spin())
""",
        ),
        busy(
            "waiting on the channel",
            "reads from the channel, where nothing comes",
            "os.read(4, 1)",
        ),
        busy(
            "exceptions swallowed",
            "catches whatever is meant to stop it",
            """\
while True:
    try:
        while True: pass
    except BaseException:
        continue
""",
        ),
        busy(
            "in its last moments",
            "goes on after its last line",
            """\
class Last:
    def __del__(self):
        while True: pass
kept = Last()
del kept
""",
        ),
        busy(
            "in the compiler's sight",
            "a constant expression that is folded before the program runs",
            """\
x = 'a'.join(['b' * 1000] * 1000)
while True: x.translate({ord('b'): 'c' * 2})
""",
        ),
        busy(
            "processor seconds",
            "uses processor time while the wall clock stands still",
            "while True: math.sqrt(2)",
            limits=BY_PROCESSOR,
            higher=Limits(wall_s=30, cpu_s=2, deadline_s=40),
        ),
    ],
)
