"""Through the modules that a program may import: each of them holds others, and some run text, programs or calls."""

from tests.attacks.attack import Attack, family

ATTACKS = family(
    "modules",
    threat=48,
    attacks=[
        Attack(
            name="uuid.os",
            tries="reads a file with the os module that uuid imports",
            sign="file secret",
            source="import uuid\n__result__ = uuid.os.read(uuid.os.open(SECRET_FILE, 0), 100)",
        ),
        Attack(
            name="enum.bltns",
            tries="takes the built-in open from enum",
            sign="file secret",
            source="import enum\n__result__ = enum.bltns.open(SECRET_FILE).read()",
        ),
        Attack(
            name="type hints",
            tries="has typing evaluate the text of an annotation, which reads a file; the error shows what it read",
            sign="file secret",
            source="""\
import enum, typing
def f(): pass
f.__annotations__ = {"x": "open(SECRET_FILE).read()"}
typing.get_type_hints(f, {"open": enum.bltns.open, "SECRET_FILE": SECRET_FILE})
""",
        ),
        Attack(
            name="code of types",
            tries="makes a function of code that was compiled elsewhere and gives it the real builtins",
            sign="file secret",
            source="""\
import enum, types
builtin = enum.bltns
code = builtin.compile("def f(): return open(path).read()", "", "exec").co_consts[0]
__result__ = types.FunctionType(code, {"__builtins__": builtin, "path": SECRET_FILE})()
""",
        ),
        Attack(
            name="attribute getter",
            tries="gets at open by a dotted text, without an attribute in the source",
            sign="file secret",
            source="""\
import enum, operator
__result__ = operator.methodcaller("read")(operator.attrgetter("bltns.open")(enum)(SECRET_FILE))
""",
        ),
        Attack(
            name="format field",
            tries="gets at open by the field of a format string",
            sign="file secret",
            source="""\
import enum, string
__result__ = string.Formatter().get_field("0.bltns.open", (enum,), {})[0](SECRET_FILE).read()
""",
        ),
        Attack(
            name="copy of a false object",
            tries="has copy call open, which an object names as its own constructor",
            sign="file secret",
            source="""\
import copy, enum
class False_:
    def __reduce_ex__(self, protocol):
        return enum.bltns.open, (SECRET_FILE,)
__result__ = copy.copy(False_()).read()
""",
        ),
        Attack(
            name="zoneinfo's search path",
            tries="reads a file with the os module that zoneinfo uses to search its folders",
            sign="file secret",
            source="""\
import zoneinfo
system = zoneinfo._tzpath.os
__result__ = system.read(system.open(SECRET_FILE, 0), 100)
""",
        ),
        Attack(
            name="a file where contextlib finds os",
            tries="creates a file with the os module that contextlib imports",
            sign="file created",
            source="import contextlib\ncontextlib.os.close(contextlib.os.open(NEW_FILE, contextlib.os.O_CREAT))",
        ),
        Attack(
            name="a digest of another file",
            tries="reads a file by the name of a class that reads digests of files, found among all classes",
            sign="file secret",
            source="""\
import hashlib, io
raw = next(kind for kind in type(io.BytesIO()).__mro__[2].__subclasses__() if kind.__name__ == "_RawIOBase")
file = next(kind for kind in raw.__subclasses__() if kind.__name__ == "FileIO")(SECRET_FILE)
__result__ = [hashlib.file_digest(file, "sha256").hexdigest(), file.seek(0), file.readall().decode()]
""",
        ),
        Attack(
            name="a csv writer on a file",
            tries="writes rows to a file that the os module of uuid opens",
            sign="file changed",
            source="""\
import csv, uuid
class Target:
    def write(self, text):
        return uuid.os.write(uuid.os.open(CHANGED_FILE, uuid.os.O_WRONLY), text.encode())
csv.writer(Target()).writerow(["changed"])
""",
        ),
    ],
)
