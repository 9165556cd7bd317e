"""Results: objects made to run code, to mislead or to stall a host that unpacks, shows, compares or drops them."""

from tests.attacks.attack import Attack, Sign, family
from toolwire import Limits

PRELUDE = """\
def make_file(*_):
    os.close(os.open(NEW_FILE, os.O_CREAT | os.O_WRONLY))
    return ''
"""


def hostile(name: str, tries: str, source: str, *, sign: Sign = "file created") -> Attack:
    """The control is a host that handles the very objects."""
    return Attack(name=name, tries=tries, sign=sign, control="naive host", source=source)


ATTACKS = family(
    "hostile results",
    threat=50,
    prelude=PRELUDE,
    attacks=[
        hostile(
            "__reduce__",
            "is rebuilt by a call of the program's choice when it is unpickled",
            """\
class Evil:
    def __reduce__(self): return os.system, ('echo made > ' + NEW_FILE,)
__result__ = Evil()
""",
        ),
        hostile(
            "__reduce_ex__ deep inside",
            "the same, hidden in a list in a dict, where a check of the outermost type does not look",
            """\
class Evil:
    def __reduce_ex__(self, protocol): return os.open, (NEW_FILE, os.O_CREAT | os.O_WRONLY)
__result__ = {'rows': [1, 2, [Evil()]]}
""",
        ),
        hostile(
            "__del__",
            "runs code when the host lets go of it",
            """\
class Evil:
    __del__ = make_file
__result__ = [Evil()]
""",
        ),
        hostile(
            "__repr__ and __str__",
            "runs code when it is shown",
            """\
class Evil:
    __repr__ = __str__ = make_file
__result__ = Evil()
""",
        ),
        hostile(
            "a text that is more",
            "a subclass of str with methods of its own",
            """\
class Evil(str):
    __str__ = __repr__ = encode = make_file
__result__ = Evil('harmless')
""",
        ),
        hostile(
            "a number that is more",
            "a subclass of int that acts when it is compared or formatted",
            """\
class Evil(int):
    __repr__ = __str__ = __format__ = make_file
__result__ = {'count': Evil(3)}
""",
        ),
        hostile(
            "a dict that is more",
            "acts when its items are asked for",
            """\
class Evil(dict):
    def items(self):
        make_file()
        return [('a', 1)]
    __iter__ = keys = lambda self: iter([make_file()])
__result__ = Evil(a=1)
""",
        ),
        hostile(
            "a type that lies",
            "claims another class than it has",
            """\
class Evil:
    @property
    def __class__(self):
        make_file()
        return str
__result__ = Evil()
""",
        ),
        hostile(
            "equality and hashes",
            "acts when it is compared or put into a set",
            """\
class Evil:
    def __hash__(self): return 1
    def __eq__(self, other): make_file(); return True
__result__ = {Evil(): 1}
""",
        ),
        hostile(
            "an exception with a past",
            "an exception whose arguments act when the error is written down",
            """\
class Evil(Exception):
    __str__ = make_file
raise Evil()
""",
        ),
        hostile(
            "deep nesting",
            "a list in a list in a list, deeper than any recursion",
            """\
value = []
for _ in range(200_000): value = [value]
__result__ = value
""",
            sign="host fault",
        ),
        hostile(
            "a value that holds itself",
            "has no end when it is written out",
            """\
value = {'a': 1}
value['itself'] = [value]
__result__ = value
""",
            sign="host fault",
        ),
        hostile(
            "a huge number",
            "a number with more digits than Python turns into text",
            "__result__ = 10 ** 5000",
            sign="host fault",
        ),
        hostile(
            "a huge exponent",
            "a decimal of a few bytes with a million million digits when it is written out",
            "__result__ = sys.modules['decimal'].Decimal('1e900000000000')",
            sign="host fault",
        ),
        hostile(
            "a lone surrogate",
            "a text that no encoder takes",
            "__result__ = {'text': chr(0xD800)}",
            sign="host fault",
        ),
        hostile(
            "a date that is none",
            "a subclass of datetime that is written as something else",
            """\
class Evil(type(datetime.now())):
    def isoformat(self, *rest): return 'when I say so'
__result__ = Evil(2024, 1, 1)
""",
            sign="host fault",
        ),
        hostile(
            "not a number, in keys",
            "keys that are equal to nothing, or to everything",
            "__result__ = {math.nan: 1, (1, 2): 2, b'x': 3}",
            sign="host fault",
        ),
        Attack(
            name="an iterator without end",
            tries="hands over what is counted for ever",
            sign="over limit",
            control="higher limits",
            limits=Limits(wall_s=0.2, cpu_s=3, deadline_s=20),
            higher_limits=Limits(wall_s=0.6, cpu_s=3, deadline_s=20),
            source="__result__ = map(lambda _: None, iter(int, 1))",
        ),
        Attack(
            name="a result above its limit",
            tries="hands over more than a result may have",
            sign="over limit",
            control="higher limits",
            limits=Limits(wall_s=3, cpu_s=3, deadline_s=6, result_bytes=10_000),
            higher_limits=Limits(wall_s=3, cpu_s=3, deadline_s=6, result_bytes=5_000_000),
            source="__result__ = ['x' * 100] * 10_000",
        ),
    ],
)
