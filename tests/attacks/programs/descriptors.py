"""File descriptors: those open in the parent, those that can be opened again, and misuse of the only channel."""

from tests.attacks.attack import Attack, family

ATTACKS = family(
    "descriptors",
    threat=48,
    attacks=[
        Attack(
            name="write to every descriptor",
            tries="writes into whatever it inherited: files, sockets of the zygote, terminals",
            sign="got through",
            control="open child",
            source="""\
for number in range(64):
    if number not in (3, 4):
        try:
            os.write(number, b'')
            found = True
        except OSError:
            continue
        got_through()
""",
        ),
        Attack(
            name="dup",
            tries="makes copies of the channel, to outlive a closed one or to hand on",
            sign="got through",
            source="""\
os.dup(3)
got_through()
""",
        ),
        Attack(
            name="dup2 over a low number",
            tries="puts the channel where other code expects standard output",
            sign="got through",
            source="""\
if os.dup2(3, 1) == 1:
    got_through()
""",
        ),
        Attack(
            name="fcntl",
            tries="copies the channel with F_DUPFD, which is no dup to a careless filter",
            sign="got through",
            source="""\
if sys.modules['fcntl'].fcntl(3, 0, 10) >= 10:
    got_through()
""",
        ),
        Attack(
            name="/proc/self/fd",
            tries="lists its own descriptors by name and opens them again with more rights",
            sign="got through",
            source="""\
names = os.listdir('/proc/self/fd')
os.readlink('/proc/self/fd/3')
got_through()
""",
        ),
        Attack(
            name="peer of the channel",
            tries="asks the kernel who sits at the other end, and so learns ids of the host",
            sign="got through",
            control="naive host",
            source="""\
ctypes = native()
libc = ctypes.CDLL(None, use_errno=True)
told = (ctypes.c_int * 3)()
size = ctypes.c_int(12)
if libc.getsockopt(3, 1, 17, told, ctypes.byref(size)) == 0:
    got_through()
""",
        ),
        Attack(
            name="ancillary data",
            tries="sends a descriptor of its own to the host along with a frame",
            sign="got through",
            control="naive host",
            source="""\
socket = sockets()
channel = socket.socket(fileno=os.dup(3))
channel.sendmsg([b'\\x00\\x00\\x00\\x0f["print","x\\\\n"]'], [(1, 1, sys.modules['struct'].pack('i', 3))])
got_through()
""",
        ),
        Attack(
            name="the other ends of the channel",
            tries="opens the pipes again in the host's direction, to answer itself and to read what it said",
            sign="got through",
            source="""\
if os.open('/proc/self/fd/4', os.O_WRONLY) >= 0 and os.open('/proc/self/fd/3', os.O_RDONLY) >= 0:
    got_through()
""",
        ),
        Attack(
            name="a larger channel",
            tries="lets the kernel keep a megabyte more of what it says",
            sign="got through",
            source="""\
if sys.modules['fcntl'].fcntl(3, 1031, 1 << 20) >= 1 << 20:
    got_through()
""",
        ),
        Attack(
            name="pidfd_getfd",
            tries="takes open descriptors out of its parent and out of a process of the host",
            sign="got through",
            source="""\
for process in (CANARY, os.getppid()):
    handle = system_call(434, process, 0)
    for number in range(3):
        if handle >= 0 and system_call(438, handle, number, 0) >= 0:
            got_through()
""",
        ),
        Attack(
            name="memfd",
            tries="makes a file in memory, to keep data or to run it",
            sign="got through",
            source="""\
handle = os.memfd_create('x')
got_through()
""",
        ),
        Attack(
            name="pipe, eventfd, epoll, inotify",
            tries="makes new descriptors of every harmless-looking kind",
            sign="got through",
            source="""\
ctypes = native()
libc = ctypes.CDLL(None, use_errno=True)
made = [libc.eventfd(0, 0), libc.epoll_create1(0), libc.inotify_init1(0), libc.timerfd_create(1, 0),
        libc.pipe((ctypes.c_int * 2)()), libc.signalfd(-1, ctypes.create_string_buffer(128), 0)]
if any(number >= 0 for number in made):
    got_through()
""",
        ),
        Attack(
            name="a closed channel",
            tries="closes the channel under its own stubs and opens something else with its number",
            sign="file secret",
            source="""\
copy = os.dup(3)
os.close(3)
text = os.read(os.open(SECRET_FILE, 0), 100)
os.dup2(copy, 3)
__result__ = text
""",
        ),
        Attack(
            name="io_uring",
            tries="opens files through a ring that bypasses the table of system calls",
            sign="got through",
            source="""\
ctypes = native()
if system_call(425, 4, ctypes.create_string_buffer(200)) >= 0:
    got_through()
""",
        ),
    ],
)
