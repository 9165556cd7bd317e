"""Tampering with the program's surroundings: stubs, builtins, modules, the interpreter it runs in."""

from tests.attacks.attack import Attack, Sign, family


def tampered(name: str, tries: str, source: str, *, sign: Sign = "host fault") -> Attack:
    """The control is a host that runs programs in its own interpreter."""
    return Attack(name=name, tries=tries, sign=sign, control="naive host", source=source)


ATTACKS = family(
    "tampering",
    threat=48,
    attacks=[
        tampered(
            "the closure of a stub",
            "changes the number of the tool inside a stub, to call one that it was not given",
            """\
for cell in add.__closure__ or ():
    if type(cell.cell_contents) is int and cell.cell_contents == 0:
        cell.cell_contents = -1
note.__closure__
for values in ({'a': 1, 'b': 2}, {'text': 'by closure'}):
    try:
        add(**values)
    except Exception:
        pass
""",
            sign="tool",
        ),
        tampered(
            "its own permission",
            "declares a forbidden tool allowed",
            """\
tool = globals().get('forbidden', add)
tool.permission = 'auto'
tool.__dict__.update(permission='auto', granted=True)
tool('allowed by myself')
""",
            sign="tool",
        ),
        tampered(
            "the log",
            "empties the list of calls that was kept of it",
            """\
note('done in secret')
for thing in sys.modules['gc'].get_objects():
    if type(thing) is list and thing and type(thing[0]) is tuple and thing[0][:1] == ('note',):
        thing.clear()
for kind in object.__subclasses__():
    if kind.__name__ == 'Calls':
        for thing in sys.modules['gc'].get_referrers(kind):
            if type(thing) is kind:
                thing._ordinal = 0
""",
            sign="false log",
        ),
        tampered(
            "the client of the channel",
            "sends every call to another tool, from inside the client",
            """\
for cell in [*(add.__closure__ or ()), *(note.__closure__ or ())]:
    calls = getattr(cell.cell_contents, '__self__', None)
    if calls is not None and hasattr(calls, '_send'):
        honest = calls._send
        calls._send = lambda tool, arguments, parallel: honest(-1, {'text': 'redirected'}, parallel=parallel)
        calls._names = ['forbidden'] * 9
    elif type(cell.cell_contents) is int:
        cell.cell_contents = 2
try:
    note('harmless')
except TypeError:
    add(1, 2)
""",
            sign="tool",
        ),
        tampered(
            "print",
            "replaces print for everybody in the interpreter",
            """\
def broken(*rest, **more): raise RuntimeError('no output for you')
vars(sys.modules['builtins'])['print'] = broken
sys.stdout.write = broken
""",
        ),
        tampered(
            "builtins",
            "replaces functions that any host code relies on",
            """\
for name in ('len', 'isinstance', 'repr', 'getattr', 'sorted'):
    vars(sys.modules['builtins'])[name] = None
""",
        ),
        tampered(
            "json",
            "replaces the encoder and decoder that frames are made with",
            """\
json.dumps = json.loads = json.JSONEncoder.encode = lambda *rest, **more: 1 / 0
json.encoder.c_make_encoder = json.decoder.scanstring = None
__result__ = 1
""",
        ),
        tampered(
            "an audit hook",
            "forbids everything to whatever runs in this interpreter, which cannot be undone",
            """\
def forbid(event, given):
    if event in ('open', 'pickle.find_class', 'import', 'compile', 'object.__getattr__'): raise RuntimeError(event)
sys.addaudithook(forbid)
""",
        ),
        tampered("leaving at once", "ends the process that it runs in", "os._exit(0)"),
        tampered("abort", "ends it with a signal", "os.abort()"),
        tampered(
            "a stack that overflows",
            "lifts the limit on recursion, and recurses in C code",
            """\
sys.setrecursionlimit(10 ** 9)
class Endless:
    def __getattr__(self, name): return getattr(self, name + 'x')
    def __repr__(self): return repr(self)
value = ()
for _ in range(400_000): value = (value,)
hash(value)
repr(Endless())
""",
        ),
        tampered(
            "code at exit",
            "registers code for the end of the interpreter, when nobody looks any more",
            """\
def late():
    os.close(os.open(NEW_FILE, os.O_CREAT | os.O_WRONLY))
sys.modules['atexit'].register(late)
""",
            sign="file created",
        ),
        tampered(
            "SystemExit in disguise",
            "raises what ordinary handlers let through, with a value of its own",
            """\
class Leaving(SystemExit, KeyboardInterrupt.__base__):
    code = property(lambda self: 1 / 0)
raise Leaving()
""",
        ),
        tampered(
            "KeyboardInterrupt",
            "raises what the host takes for the user's own wish to stop",
            "raise KeyboardInterrupt",
        ),
        tampered(
            "the result's name",
            "puts an object where the result is looked up that runs code when it is",
            """\
space = globals()
space['__result__'] = property(lambda self: os._exit(3))
space['__builtins__'] = None
raise KeyboardInterrupt
""",
        ),
        tampered(
            "warnings and excepthook",
            "takes over how errors are reported",
            """\
sys.excepthook = sys.unraisablehook = lambda *rest: os._exit(4)
sys.modules['traceback'].format_exception = sys.modules['traceback'].print_exc = lambda *rest, **more: os._exit(5)
raise ValueError('look at me')
""",
        ),
    ],
)
