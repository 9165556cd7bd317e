"""Byte code: CPython does not verify it, so crafted code reads and writes memory outside its objects."""

from tests.attacks.attack import Attack, family

CRASHES = "host fault"

ATTACKS = family(
    "byte code",
    threat=48,
    attacks=[
        Attack(
            name="CodeType by hand",
            tries="assembles a function with other builtins than the program's, and opens a file with it",
            sign="file secret",
            source="""\
def plain(path):
    return open(path).read()
real = random.Random.seed.__globals__['__builtins__']
real = real if isinstance(real, dict) else vars(real)
made = type(plain)(plain.__code__.replace(co_name='made'), {'__builtins__': real})
__result__ = made(SECRET_FILE)
""",
        ),
        Attack(
            name="__code__ replaced",
            tries="puts its own code into a function of a trusted module, to run with that module's globals",
            sign="file secret",
            source="""\
def instead(path):
    return _os.read(_os.open(path, 0), 100)
random.Random.randint.__code__ = instead.__code__
__result__ = random.Random.randint(SECRET_FILE)
""",
        ),
        Attack(
            name="__builtins__ swapped",
            tries="runs text through the real compile and exec with full builtins",
            sign="file secret",
            source="""\
builtin = vars(sys.modules['builtins'])
space = {'__builtins__': builtin, 'path': SECRET_FILE}
builtin['exec'](builtin['compile']('text = open(path).read()', 'x', 'exec'), space)
__result__ = space['text']
""",
        ),
        Attack(
            name="marshal",
            tries="loads code from bytes, where no check sees it",
            sign="file secret",
            source="""\
def plain(path):
    return json.codecs.open(path).read()
marshal = sys.modules['marshal']
copy = marshal.loads(marshal.dumps(plain.__code__))
__result__ = type(plain)(copy, globals())(SECRET_FILE)
""",
        ),
        Attack(
            name="constant out of bounds",
            tries="loads a constant far outside of the tuple: a wild read that crashes whatever runs it",
            sign=CRASHES,
            control="naive host",
            source="""\
def plain():
    return 12345
opcode = sys.modules['opcode'].opmap
code = bytes([opcode['RESUME'], 0, opcode['EXTENDED_ARG'], 127, opcode['EXTENDED_ARG'], 255,
              opcode['EXTENDED_ARG'], 255, opcode['LOAD_CONST'], 255, opcode['RETURN_VALUE'], 0])
type(plain)(plain.__code__.replace(co_code=code), {})()
""",
        ),
        Attack(
            name="stack underflow",
            tries="pops more than is on the stack and returns what lies below",
            sign=CRASHES,
            control="naive host",
            source="""\
def plain():
    return 1
opcode = sys.modules['opcode'].opmap
code = bytes([opcode['RESUME'], 0] + [opcode['POP_TOP'], 0] * 4000 + [opcode['RETURN_VALUE'], 0])
for _ in range(50):
    type(plain)(plain.__code__.replace(co_code=code), {})()
""",
        ),
        Attack(
            name="write to address 0",
            tries="writes to a null pointer through ctypes: its own process is all it can end",
            sign=CRASHES,
            control="naive host",
            source="native().memset(0, 65, 1)",
        ),
        Attack(
            name="the host's memory",
            tries="reads a secret of the host at its address, as any code in the host's process could",
            sign="got through",
            control="naive host",
            source="""\
ctypes = native()
address = int(globals().get('HOST_SECRET_ADDRESS', 0))
text = ctypes.string_at(address, 4) if address else b''
if text == b'host':
    got_through()
""",
        ),
        Attack(
            name="a constant changed in memory",
            tries="changes the value of a small integer that all later programs would share",
            sign="got through",
            control="naive host",
            source="""\
# The digits of the one object for 255 that the interpreter has.
ctypes = native()
ctypes.c_uint32.from_address(id(255) + 24).value = 77
""",
            then="got_through() if 250 + len('12345') == 77 else print(250 + len('12345'))",
        ),
        Attack(
            name="machine code",
            tries="puts machine code into memory, makes it executable, and jumps there",
            sign="got through",
            source="""\
ctypes = native()
libc = ctypes.CDLL(None, use_errno=True)
codes = {'x86_64': bytes.fromhex('b8efbeadde' 'c3'), 'aarch64': bytes.fromhex('e0dd9752' 'a0d5bb72' 'c0035fd6')}
code = codes[os.uname().machine]
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
page = libc.mmap(None, 4096, 3, 0x22, -1, 0)
ctypes.memmove(page, code, len(code))
if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(4096), 5) == 0:
    ctypes.CFUNCTYPE(ctypes.c_uint32)(page)()
    got_through()
""",
        ),
    ],
)
