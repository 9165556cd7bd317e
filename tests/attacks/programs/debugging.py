"""Other processes' memory: ptrace, process_vm_readv and their relatives. Against the host's canary, never another."""

from tests.attacks.attack import Attack, family

PRELUDE = """\
ctypes = native()
libc = ctypes.CDLL(None, use_errno=True)
class Piece(ctypes.Structure):
    _fields_ = [('start', ctypes.c_void_p), ('size', ctypes.c_size_t)]
def vectors():
    room = ctypes.create_string_buffer(32)
    return room, Piece(ctypes.cast(room, ctypes.c_void_p), 32), Piece(CANARY_ADDRESS, 32)
"""

ATTACKS = family(
    "debugging",
    threat=48,
    prelude=PRELUDE,
    attacks=[
        Attack(
            name="process_vm_readv",
            tries="reads another process's memory in one call",
            sign="memory secret",
            source="""\
room, ours, theirs = vectors()
libc.process_vm_readv(CANARY, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
print(room.raw)
""",
        ),
        Attack(
            name="process_vm_writev",
            tries="overwrites a secret in another process and reads it back",
            sign="got through",
            source="""\
room, ours, theirs = vectors()
libc.process_vm_readv(CANARY, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
if libc.process_vm_writev(CANARY, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0) > 0:
    got_through()
""",
        ),
        Attack(
            name="ptrace attach",
            tries="becomes the debugger of a process of the host and peeks at its memory",
            sign="memory secret",
            source="""\
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace(16, CANARY, None, None)
os.waitpid(CANARY, 0x40000000)
words = [libc.ptrace(2, CANARY, CANARY_ADDRESS + 8 * place, None) for place in range(4)]
libc.ptrace(17, CANARY, None, None)
print(b''.join((word & (2 ** 64 - 1)).to_bytes(8, 'little') for word in words))
""",
        ),
        Attack(
            name="ptrace seize",
            tries="the gentler way to attach, which stops nobody",
            sign="got through",
            source="""\
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
if libc.ptrace(0x4206, CANARY, None, None) == 0:
    got_through()
""",
        ),
        Attack(
            name="ptrace traceme",
            tries="asks its parent to debug it, which stops it at its next signal and stays unreaped",
            sign="got through",
            source="""\
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
if libc.ptrace(0, 0, None, None) == 0:
    got_through()
""",
        ),
        Attack(
            name="kcmp",
            tries="compares kernel objects of two processes, an oracle for addresses",
            sign="got through",
            source="""\
number = {'x86_64': 312, 'aarch64': 272}[os.uname().machine]
if system_call(number, CANARY, CANARY, 1, 0, 0) >= 0:
    got_through()
""",
        ),
        Attack(
            name="process_madvise",
            tries="advises the kernel about another process's memory",
            sign="got through",
            needs_root=True,
            source="""\
handle = system_call(434, CANARY, 0)
room, ours, theirs = vectors()
theirs.start, theirs.size = CANARY_ADDRESS & ~4095, 4096
if system_call(440, handle, ctypes.byref(theirs), 1, 20, 0) >= 0:
    got_through()
""",
        ),
        Attack(
            name="dumpable again",
            tries="makes itself debuggable and readable by others of its user",
            sign="got through",
            source="""\
if libc.prctl(4, 1, 0, 0, 0) == 0:
    got_through()
""",
        ),
        Attack(
            name="perf_event_open",
            tries="opens a performance counter on another process",
            sign="got through",
            source="""\
number = {'x86_64': 298, 'aarch64': 241}[os.uname().machine]
wanted = (ctypes.c_uint32 * 32)(1, 128, 0)
wanted[10] = 0x61
if system_call(number, ctypes.cast(wanted, ctypes.c_void_p), 0, -1, -1, 0) >= 0:
    got_through()
""",
        ),
        Attack(
            name="core dump",
            tries="raises its limit on core dumps and dies, to leave its memory in a file",
            sign="got through",
            source="""\
resource = sys.modules['resource']
resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
got_through()
""",
        ),
        Attack(
            name="priority and scheduling",
            tries="moves itself before everybody else",
            sign="got through",
            needs_root=True,
            source="""\
if libc.setpriority(0, 0, -5) == 0:
    got_through()
""",
        ),
    ],
)
