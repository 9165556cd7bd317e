"""State left behind: one program changes something, and the next program, of another user, looks for it."""

from tests.attacks.attack import Attack, family


def left(name: str, tries: str, source: str, then: str) -> Attack:
    """The control is a host that runs one program after the other in the same interpreter."""
    return Attack(name=name, tries=tries, sign="got through", control="naive host", source=source, then=then)


ATTACKS = family(
    "state left behind",
    threat=48,
    attacks=[
        left("a global", "leaves a variable", "left_here = 7", "if 'left_here' in globals(): got_through()"),
        left(
            "a builtin",
            "leaves a name among the builtins, which every program sees",
            "vars(sys.modules['builtins'])['left_here'] = 7",
            "if 'left_here' in vars(sys.modules['builtins']): got_through()",
        ),
        left(
            "a patched function",
            "changes what math.sqrt gives",
            "math.sqrt = lambda x: 7",
            "if math.sqrt(4) == 7: got_through()",
        ),
        left(
            "a patched class",
            "changes a class of the standard library that is written in Python",
            "statistics.NormalDist.left_here = 7",
            "if hasattr(statistics.NormalDist, 'left_here'): got_through()",
        ),
        left(
            "a patched tool",
            "replaces a tool's stub, to read what others give to it",
            "add = lambda *given: 'read'",
            "if add(1, 2) == 'read': got_through()",
        ),
        left(
            "the seed of random",
            "seeds the shared generator, to know the next program's numbers",
            "random.seed(7)",
            "if random.random() == random.Random(7).random(): got_through()",
        ),
        left(
            "the environment",
            "leaves a variable in the environment",
            "os.environ['LEFT_HERE'] = '7'",
            "if 'LEFT_HERE' in os.environ: got_through()",
        ),
        left(
            "a module",
            "leaves a module under a name that others will import",
            "sys.modules['left_here'] = math",
            "if 'left_here' in sys.modules: got_through()",
        ),
        left(
            "interpreter settings",
            "changes the recursion limit and the switch interval",
            "sys.setrecursionlimit(777)\nsys.setswitchinterval(0.5)",
            "if sys.getrecursionlimit() == 777 or sys.getswitchinterval() == 0.5: got_through()",
        ),
        left(
            "a cache",
            "leaves its text in the cache of the re module, where the next one reads it",
            "re.compile('left here [0-9]+')",
            "if any('left here' in str(key) for key in re._cache): got_through()",
        ),
        left(
            "the decimal context",
            "changes how exactly everybody computes",
            "sys.modules['decimal'].getcontext().prec = 3",
            "if sys.modules['decimal'].getcontext().prec == 3: got_through()",
        ),
        left(
            "an error handler",
            "registers a handler that is called with other programs' texts",
            "json.codecs.register_error('left_here', lambda error: ('', error.end))",
            "json.codecs.lookup_error('left_here')\ngot_through()",
        ),
        left(
            "a file",
            "leaves a file that the next program reads",
            "os.close(os.open(NEW_FILE, os.O_CREAT | os.O_WRONLY, 0o666))",
            "os.stat(NEW_FILE)\ngot_through()",
        ),
        left(
            "hooks",
            "leaves a trace function and an import hook",
            "sys.meta_path.append(7)\nsys.path_hooks.append(7)",
            "if 7 in sys.meta_path or 7 in sys.path_hooks: got_through()",
        ),
        left(
            "a signal handler",
            "leaves a handler for the signals that end a program",
            "sys.modules['signal'].signal(15, sys.modules['signal'].SIG_IGN)",
            "if sys.modules['signal'].getsignal(15) == sys.modules['signal'].SIG_IGN: got_through()",
        ),
    ],
)
