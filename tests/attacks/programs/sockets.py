"""Sockets of every kind: the network, this machine, and the kernel itself."""

from tests.attacks.attack import Attack, family

ATTACKS = family(
    "sockets",
    threat=48,
    attacks=[
        Attack(
            name="tcp",
            tries="connects to a server on this machine",
            sign="tcp",
            source="""\
socket = sockets()
line = socket.socket()
line.connect(('127.0.0.1', TCP_PORT))
line.sendall(b'hello')
""",
        ),
        Attack(
            name="tcp by bare system calls",
            tries="the same through the C library, around Python's classes",
            sign="tcp",
            source="""\
ctypes = native()
libc = ctypes.CDLL(None, use_errno=True)
number = libc.socket(2, 1, 0)
address = sys.modules['struct'].pack('=HH4s8x', 2, (TCP_PORT >> 8) | (TCP_PORT & 255) << 8, bytes([127, 0, 0, 1]))
libc.connect(number, address, 16)
""",
        ),
        Attack(
            name="tcp fast open",
            tries="connects by sendto, without a call of connect that a filter could see",
            sign="tcp",
            source="""\
socket = sockets()
line = socket.socket()
line.sendto(b'hello', 0x20000000, ('127.0.0.1', TCP_PORT))
""",
        ),
        Attack(
            name="udp",
            tries="sends one packet, which needs no connection",
            sign="udp",
            source="""\
socket = sockets()
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'hello', ('127.0.0.1', UDP_PORT))
""",
        ),
        Attack(
            name="udp over IPv6",
            tries="the same by the other family, with an address that is IPv4 inside",
            sign="udp",
            source="""\
socket = sockets()
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'hello', ('::ffff:127.0.0.1', UDP_PORT))
""",
        ),
        Attack(
            name="a question to a name server",
            tries="carries data out in the name of a DNS question",
            sign="udp",
            source="""\
socket = sockets()
question = bytes.fromhex('123401000001000000000000') + b'\\x06secret\\x07example\\x00\\x00\\x01\\x00\\x01'
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(question, ('127.0.0.1', UDP_PORT))
""",
        ),
        Attack(
            name="getaddrinfo",
            tries="lets the C library look a name up, with whatever files and servers that takes",
            sign="got through",
            source="""\
# An address in figures needs no look-up: the library is asked which services there are, which lie in a file.
if sockets().getservbyname('https') == 443:
    got_through()
""",
        ),
        Attack(
            name="unix socket",
            tries="connects to a service on this machine by its path, as to a container daemon",
            sign="unix",
            source="""\
socket = sockets()
socket.socket(socket.AF_UNIX).connect(UNIX_PATH)
""",
        ),
        Attack(
            name="abstract unix socket",
            tries="the same by a name outside of the file system, which no mount hides",
            sign="unix",
            source="""\
socket = sockets()
socket.socket(socket.AF_UNIX).connect(chr(0) + UNIX_NAME)
""",
        ),
        Attack(
            name="netlink",
            tries="asks the kernel for its network interfaces",
            sign="got through",
            source="""\
socket = sockets()
line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
line.bind((0, 0))
line.send(sys.modules['struct'].pack('=IHHIIB3xiII', 32, 18, 0x301, 1, 0, 0, 0, 0, 0))
if len(line.recv(4096)) > 16:
    got_through()
""",
        ),
        Attack(
            name="raw socket",
            tries="makes packets of its own, headers and all",
            sign="got through",
            needs_root=True,
            source="""\
socket = sockets()
socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
got_through()
""",
        ),
        Attack(
            name="packet socket",
            tries="listens to everything that passes on the wire",
            sign="got through",
            needs_root=True,
            source="""\
socket = sockets()
socket.socket(17, socket.SOCK_RAW, 0x300)
got_through()
""",
        ),
        Attack(
            name="socket pair",
            tries="makes sockets that lead nowhere, the first step to passing descriptors",
            sign="got through",
            source="""\
sockets().socketpair()
got_through()
""",
        ),
        Attack(
            name="a server",
            tries="listens for others on a port of its own",
            sign="got through",
            source="""\
line = sockets().socket()
line.bind(('127.0.0.1', 0))
line.listen()
got_through()
""",
        ),
        Attack(
            name="asyncio's own network",
            tries="makes the real event loop that the shim hides, and connects with it",
            sign="tcp",
            source="""\
events = sys.modules['asyncio.selector_events']
class Fake:
    def register(self, *rest): raise OSError
    def unregister(self, *rest): return None
    def get_map(self): return {}
line = events.socket.socket()
line.setblocking(False)
try:
    line.connect(('127.0.0.1', TCP_PORT))
except BlockingIOError:
    pass
""",
        ),
        Attack(
            name="connecting the channel anew",
            tries="connects the very socket it may write to somewhere else",
            sign="udp",
            source="""\
socket = sockets()
address = ('127.0.0.1', UDP_PORT)
try:
    socket.socket(fileno=3).connect(chr(0) + UNIX_NAME)
except OSError:
    pass
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'hello', address)
""",
        ),
    ],
)
