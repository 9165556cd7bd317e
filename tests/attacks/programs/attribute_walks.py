"""Walks from any object to any other: Python has no private parts, so one expression reaches every module in memory."""

from tests.attacks.attack import Attack, family

ATTACKS = family(
    "attribute walks",
    threat=48,
    attacks=[
        Attack(
            name="statistics.sys",
            tries="reads a file with the io module that sys.modules holds",
            sign="file secret",
            source="__result__ = statistics.sys.modules['io'].open(SECRET_FILE).read()",
        ),
        Attack(
            name="random._os",
            tries="reads a file with the bare system calls of os",
            sign="file secret",
            source="__result__ = random._os.read(random._os.open(SECRET_FILE, 0), 100)",
        ),
        Attack(
            name="json.codecs",
            tries="reads a file with codecs.open, which json imports",
            sign="file secret",
            source="__result__ = json.codecs.open(SECRET_FILE, encoding='utf-8').read()",
        ),
        Attack(
            name="re.enum.sys",
            tries="goes through three modules to the import machinery and gets the file as 'data' of a loader",
            sign="file secret",
            source="""\
loaders = re.enum.sys.modules['importlib.machinery']
__result__ = loaders.SourceFileLoader('x', SECRET_FILE).get_data(SECRET_FILE)
""",
        ),
        Attack(
            name="subclasses of object",
            tries="finds the raw file class FileIO among all classes there are, without naming a module",
            sign="file secret",
            source="""\
def below(kind):
    for item in type.__subclasses__(kind):
        yield item
        yield from below(item)
raw = next(kind for kind in below(object) if kind.__name__ == 'FileIO')
__result__ = raw(SECRET_FILE).readall().decode()
""",
        ),
        Attack(
            name="globals of a method",
            tries="takes the built-in open from the globals of an innocent method",
            sign="file secret",
            source="""\
builtin = random.Random.seed.__globals__['__builtins__']
builtin = builtin if isinstance(builtin, dict) else vars(builtin)
__result__ = builtin['open'](SECRET_FILE).read()
""",
        ),
        Attack(
            name="closure of a stub",
            tries="goes from a tool's stub through its closure to the zygote's own modules and opens a file there",
            sign="file secret",
            source="""\
def reachable(function, seen):
    if id(function) in seen or not hasattr(function, '__globals__'):
        return
    seen[id(function)] = function
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        reachable(getattr(value, '__func__', value), seen)
seen = {}
reachable(add, seen)
names = next(f.__globals__ for f in seen.values())
__result__ = names['__builtins__']['open'](SECRET_FILE).read()
""",
        ),
        Attack(
            name="the garbage collector",
            tries="follows what refers to what, from a tool to a module that can open files",
            sign="file secret",
            source="""\
seen, level = set(), [add]
while level:
    found = [thing for thing in sys.modules['gc'].get_referents(*level) if id(thing) not in seen]
    seen.update(map(id, found))
    level = list({id(thing): thing for thing in found}.values())
    for thing in level:
        if type(thing) is type(math) and 'fdopen' in vars(thing):
            __result__ = thing.fdopen(thing.open(SECRET_FILE, 0)).read()
            level = []
            break
""",
        ),
        Attack(
            name="the fork server's own object",
            tries="finds the fork server's copy in its memory, and tells the original to end",
            sign="zygote",
            source="""\
frame = sys._getframe()
while type(frame.f_locals.get('self')).__name__ != 'ForkServer':
    frame = frame.f_back
os.kill(frame.f_locals['self']._id, 15)
""",
        ),
        Attack(
            name="the import system",
            tries="imports a module that was never loaded, whose code lies in a file",
            sign="got through",
            source="""\
sys.path[:] = [os.path.dirname(os.__file__)]
sys.modules['importlib'].import_module('colorsys')
got_through()
""",
        ),
        Attack(
            name="the main module",
            tries="takes the environment from the zygote's main module and from posix, before anyone cleared it",
            sign="environment secret",
            source="""\
found = [os.environ, vars(sys.modules['posix'])['environ']]
with sys.modules['io'].open('/proc/%d/environ' % CANARY, 'rb') as file:
    found.append(file.read())
__result__ = repr(found)
""",
        ),
        Attack(
            name="an attribute that answers everything",
            tries="smuggles the walk through getattr with names that are computed",
            sign="file secret",
            source="""\
part = lambda text: text[::-1]
modules = getattr(getattr(statistics, part('sys')[::-1][::-1][::-1]), part('seludom'))
__result__ = getattr(modules[part('oi')], part('nepo'))(SECRET_FILE).read()
""",
        ),
    ],
)
