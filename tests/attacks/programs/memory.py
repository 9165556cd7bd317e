"""Memory: more than was given, of every kind the kernel hands out, and memory that can be run."""

from tests.attacks.attack import Attack, family

PRELUDE = """\
ctypes = native()
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
FAILED = 2 ** 64 - 1
"""

ATTACKS = family(
    "memory",
    threat=49,
    prelude=PRELUDE,
    attacks=[
        Attack(
            name="one large object",
            tries="asks for twice its memory at once",
            sign="got through",
            source="""\
kept = bytearray(1 << 27)
got_through()
""",
        ),
        Attack(
            name="many small objects",
            tries="keeps twice its memory in pieces, each of them harmless",
            sign="got through",
            source="""\
kept = []
while len(kept) < 128:
    kept.append(bytearray(1 << 20))
got_through()
""",
        ),
        Attack(
            name="catching MemoryError",
            tries="goes on after each refusal, and collects what it got",
            sign="got through",
            source="""\
kept, size = [], 1 << 26
while size >= 1 << 20 and sum(map(len, kept)) < 1 << 27:
    try:
        kept.append(bytearray(size))
    except MemoryError:
        size >>= 1
if sum(map(len, kept)) >= 1 << 27:
    got_through()
""",
        ),
        Attack(
            name="anonymous mapping",
            tries="maps memory around Python's allocator",
            sign="got through",
            source="""\
if libc.mmap(None, 1 << 30, 3, 0x22, -1, 0) not in (None, FAILED):
    got_through()
""",
        ),
        Attack(
            name="mapping that is only reserved",
            tries="maps without commitment, to fill it later",
            sign="got through",
            source="""\
if libc.mmap(None, 1 << 36, 0, 0x4022, -1, 0) not in (None, FAILED):
    got_through()
""",
        ),
        Attack(
            name="shared mapping",
            tries="maps shared memory, which is charged to nobody in particular",
            sign="got through",
            source="""\
if libc.mmap(None, 1 << 30, 3, 0x21, -1, 0) not in (None, FAILED):
    got_through()
""",
        ),
        Attack(
            name="growing a mapping",
            tries="grows a small mapping by mremap",
            sign="got through",
            source="""\
page = libc.mmap(None, 4096, 3, 0x22, -1, 0)
libc.mremap.restype = ctypes.c_void_p
if libc.mremap(ctypes.c_void_p(page), ctypes.c_size_t(4096), ctypes.c_size_t(1 << 30), 1) not in (None, FAILED):
    got_through()
""",
        ),
        Attack(
            name="raising the limit",
            tries="raises its own limit on memory",
            sign="got through",
            source="""\
resource = sys.modules['resource']
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
got_through()
""",
        ),
        Attack(
            name="raising the limit by prlimit",
            tries="the same by the call that takes a process",
            sign="got through",
            source="""\
resource = sys.modules['resource']
resource.prlimit(0, resource.RLIMIT_NOFILE, (100, 100))
got_through()
""",
        ),
        Attack(
            name="executable mapping",
            tries="maps memory that can be written and run",
            sign="got through",
            source="""\
if libc.mmap(None, 4096, 7, 0x22, -1, 0) not in (None, FAILED):
    got_through()
""",
        ),
        Attack(
            name="executable by mprotect",
            tries="makes memory executable after it was written",
            sign="got through",
            source="""\
page = libc.mmap(None, 4096, 3, 0x22, -1, 0)
if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(4096), 5) == 0:
    got_through()
""",
        ),
        Attack(
            name="executable by pkey_mprotect and READ_IMPLIES_EXEC",
            tries="the same by two calls that a filter on mprotect does not see",
            sign="got through",
            source="""\
page = libc.mmap(None, 4096, 3, 0x22, -1, 0)
number = {'x86_64': 329, 'aarch64': 288}[os.uname().machine]
if system_call(number, page, 4096, 5, -1) == 0:
    got_through()
if libc.personality(0x0400000) != -1:
    got_through()
""",
        ),
        Attack(
            name="locked memory",
            tries="keeps pages in memory so that nobody else can have them",
            sign="got through",
            source="""\
page = libc.mmap(None, 1 << 20, 3, 0x22, -1, 0)
resource = sys.modules['resource']
if libc.mlock(ctypes.c_void_p(page), ctypes.c_size_t(1 << 20)) == 0:
    got_through()
""",
        ),
        Attack(
            name="System V shared memory",
            tries="makes a segment that outlives every process",
            sign="got through",
            source="""\
segment = libc.shmget(0, ctypes.c_size_t(1 << 20), 0o1600)
if segment >= 0:
    libc.shmctl(segment, 0, None)
    got_through()
""",
        ),
        Attack(
            name="message queue",
            tries="the same with a message queue",
            sign="got through",
            source="""\
queue = libc.msgget(0, 0o1600)
if queue >= 0:
    libc.msgctl(queue, 0, None)
    got_through()
""",
        ),
        Attack(
            name="a string that doubles",
            tries="doubles a string until somebody stops it",
            sign="got through",
            source="""\
text = 'x' * 1024
while len(text) < 1 << 27:
    text += text
got_through()
""",
        ),
        Attack(
            name="userfaultfd",
            tries="handles its own page faults, the usual help for exploits of the kernel",
            sign="got through",
            source="""\
number = {'x86_64': 323, 'aarch64': 282}[os.uname().machine]
if system_call(number, 1) >= 0:
    got_through()
""",
        ),
    ],
)
