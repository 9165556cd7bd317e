"""Format strings and templates: small languages that read attributes and items, out of sight of source checks."""

from tests.attacks.attack import Attack, family

ATTACKS = family(
    "format strings",
    threat=48,
    attacks=[
        Attack(
            name="str.format to the environment",
            tries="reads os.environ from inside a format string",
            sign="environment secret",
            control="naive host",
            source="__result__ = '{0._os.environ}'.format(random)",
        ),
        Attack(
            name="str.format_map",
            tries="the same with a mapping, by the globals of a function",
            sign="environment secret",
            control="naive host",
            source="__result__ = '{f.__globals__[_os].environ}'.format_map({'f': random.Random.seed})",
        ),
        Attack(
            name="f-string",
            tries="reads a file inside an f-string, where simple checks do not look",
            sign="file secret",
            source="print(f\"{statistics.sys.modules['io'].FileIO(SECRET_FILE).read()!r:>5}\")",
        ),
        Attack(
            name="Formatter.get_field",
            tries="gets the object itself, not its text, out of a format field, and calls it",
            sign="file secret",
            source="""\
formatter = sys.modules['string'].Formatter()
opener, _ = formatter.get_field('0.sys.modules[io].open', [statistics], {})
__result__ = opener(SECRET_FILE).read()
""",
        ),
        Attack(
            name="Formatter subclass",
            tries="a formatter whose conversion calls what the field found",
            sign="file secret",
            source="""\
class Calling(sys.modules['string'].Formatter):
    def convert_field(self, value, conversion):
        return value(SECRET_FILE).read() if conversion == 'r' else value
__result__ = Calling().format('{0.codecs.open!r}', json)
""",
        ),
        Attack(
            name="__format__",
            tries="an object whose formatting reads a file, formatted by the program's own print",
            sign="file secret",
            source="""\
class Late:
    def __format__(self, spec):
        return random._os.read(random._os.open(spec, 0), 100).decode()
print(format(Late(), SECRET_FILE), '{:{}}'.format(Late(), SECRET_FILE))
""",
        ),
        Attack(
            name="Template",
            tries="a template whose mapping computes its values from files",
            sign="file secret",
            source="""\
class Files(dict):
    def __missing__(self, name):
        return json.codecs.open(SECRET_FILE).read()
__result__ = sys.modules['string'].Template('$anything').substitute(Files())
""",
        ),
        Attack(
            name="re.sub with a function",
            tries="a pattern's replacement that opens what it has matched",
            sign="file secret",
            source="__result__ = re.sub('.+', lambda found: json.codecs.open(found[0]).read(), SECRET_FILE)",
        ),
        Attack(
            name="json default",
            tries="an encoder hook that reads a file in the middle of C code",
            sign="file secret",
            source="__result__ = json.dumps(object(), default=lambda _: json.codecs.open(SECRET_FILE).read())",
        ),
        Attack(
            name="logging format",
            tries="the logging module's own formatting, which opens a file for its output",
            sign="file created",
            source="""\
handler = sys.modules['logging'].FileHandler(NEW_FILE)
handler.emit(sys.modules['logging'].makeLogRecord({'msg': '%(x)s', 'args': {'x': 'made'}}))
""",
        ),
    ],
)
