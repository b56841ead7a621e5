"""What somebody would try who wants out. Each piece is run alone in the sandbox, without the runner and its own refusals.

A piece that got what it wanted says so with won(); what it tried and could not is no matter. Lines `#: NAME [LIMIT]` begin a piece;
those with a limit are to be stopped by it.
"""
#: connect to the host's loopback
socket.create_connection(("127.0.0.1", CANARY["port"]), 2); won("connected")
#: connect to the host by its name
socket.create_connection((socket.gethostname(), CANARY["port"]), 2); won("connected")
#: connect over IPv6
socket.create_connection(("::1", CANARY["port"]), 2); won("connected")
#: connect outside
socket.create_connection(("1.1.1.1", 53), 2); won("connected")
#: send a datagram outside
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"x", ("1.1.1.1", 53)); won("sent")
#: resolve a name
socket.getaddrinfo("example.org", 80); won("resolved")
#: fetch a page
import urllib.request
urllib.request.urlopen(f"http://127.0.0.1:{CANARY['port']}", timeout=2); won("fetched")
#: raw socket
socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); won("raw socket")
#: packet socket
socket.socket(socket.AF_PACKET, socket.SOCK_RAW); won("packet socket")
#: netlink socket
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); won("netlink")
#: vsock to the machine's host
socket.socket(40, socket.SOCK_STREAM); won("vsock")
#: unix socket
s = socket.socket(socket.AF_UNIX); s.connect("/var/run/docker.sock"); won("docker")
#: abstract unix socket
s = socket.socket(socket.AF_UNIX); s.bind("\0archie"); won("abstract")
#: socket pair
socket.socketpair(); won("pair")
#: listen for others
s = socket.socket(); s.bind(("0.0.0.0", 0)); s.listen(); won("listens")
#: socket by its number
syscall(41, 2, 1, 0) >= 0 and won("socket")
#: socket by the x32 interface
syscall(0x40000000 | 41, 2, 1, 0) >= 0 and won("x32 socket")
#: read the list of users
open("/etc/passwd").read(); won("passwd")
#: read the passwords
open("/etc/shadow").read(); won("shadow")
#: read the home of root
os.listdir("/root"); won("root")
#: read homes
os.listdir("/home"); won("home")
#: read a file of the host
won(open(CANARY["file"]).read())
#: read it through /proc/1/root
won(open("/proc/1/root" + CANARY["file"]).read())
#: read it through /proc/self/cwd
won(open("/proc/self/cwd/../../../.." + CANARY["file"]).read())
#: read it through a symbolic link
os.symlink(CANARY["file"], "/data/link"); won(open("/data/link").read())
#: leave a symbolic link for the host to follow
os.symlink(CANARY["file"], "/data/workbook.xlsx")
#: leave a symbolic link to a folder of the host
os.symlink(os.path.dirname(CANARY["file"]), "/data/folder")
#: leave a pipe for the host to wait for
os.mkfifo("/data/result.json")
#: leave a device
os.mknod("/data/device", 0o600 | stat.S_IFBLK, os.makedev(8, 0)); won("device")
#: write a file of the host
put(CANARY["file"], "changed"); won("wrote")
#: write to the system
open("/usr/bin/archie-was-here", "w"); won("wrote /usr")
#: write to /etc
open("/etc/archie-was-here", "w"); won("wrote /etc")
#: write to the root folder
open("/archie-was-here", "w"); won("wrote /")
#: write to /dev
open("/dev/archie-was-here", "w"); won("wrote /dev")
#: write to shared memory
open("/dev/shm/archie-was-here", "w"); won("wrote /dev/shm")
#: write to what is given
open("/in/step.py", "w"); won("wrote /in")
#: delete what is given
os.remove("/in/canary.json"); won("removed")
#: write to the interpreter
open(sys.executable, "r+b"); won("wrote python")
#: write to the packages
open(os.path.join(os.path.dirname(os.__file__), "site.py"), "a"); won("wrote site.py")
#: link what is given into the folder and write that
os.link("/in/canary.json", "/data/linked"); put("/data/linked", "x"); won("linked")
#: open the disk
open("/dev/sda", "rb"); won("disk")
#: open the memory
open("/dev/mem", "rb"); won("memory")
#: read the system's messages
open("/dev/kmsg", "rb").read(1); won("kmsg")
#: list the kernel's objects
os.listdir("/sys/kernel"); won("sys")
#: use a descriptor that was left open
for fd in range(3, 256):
    try:
        info = os.fstat(fd)
    except OSError:
        continue
    if stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode):
        path = os.readlink(f"/proc/self/fd/{fd}")
        if not path.startswith(("/in", "/data", "/usr", "/proc")):
            won(f"descriptor {fd} is {path}")
#: change the root folder
os.chroot("/data"); won("chroot")
#: mount something
libc.mount(b"tmpfs", b"/data", b"tmpfs", 0, None) == 0 and won("mounted")
#: mount the given folder to be written
libc.mount(b"none", b"/in", None, 4096 | 32, None) == 0 and won("remounted")
#: take a mount away
libc.umount2(b"/in", 2) == 0 and won("unmounted")
#: turn the root
syscall(155, b"/data", b"/data") == 0 and won("pivoted")
#: open by handle
syscall(304, -100, ctypes.create_string_buffer(64), 0) >= 0 and won("handle")
#: the secrets of the caller in /proc/1/environ
if CANARY["secret"] in open("/proc/1/environ", "rb").read().decode(errors="replace"): won("secret")
#: the secrets of anybody in /proc
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        text = open(f"/proc/{pid}/environ", "rb").read().decode(errors="replace")
    except OSError:
        continue
    if CANARY["secret"] in text or "ARCHIE" in text: won(f"secret of {pid}")
#: processes of others
pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
if len(pids) > 4: won(f"{len(pids)} processes")
#: the name of the program for dumps
put("/proc/sys/kernel/core_pattern", "|/bin/x"); won("core_pattern")
#: a setting of the kernel
put("/proc/sys/kernel/hostname", "x"); won("hostname")
#: the kernel's emergency key
put("/proc/sysrq-trigger", "h"); won("sysrq")
#: the memory of the first process
if os.getpid() != 1: open("/proc/1/mem", "r+b"); won("mem")
#: the memory of the kernel
open("/proc/kcore", "rb").read(1); won("kcore")
#: become somebody else
os.setuid(0); won("root")
#: map users anew
put("/proc/self/uid_map", "0 0 1"); won("uid_map")
#: a namespace of users
libc.unshare(0x10000000) == 0 and won("unshared")
#: a namespace of mounts
libc.unshare(0x00020000) == 0 and won("unshared")
#: enter a namespace
libc.setns(os.open("/proc/1/ns/mnt", os.O_RDONLY), 0) == 0 and won("entered")
#: fork
pid = os.fork(); won("forked")
#: run a shell
if os.system("echo x > /data/shell") == 0: won("system")
#: run a program
import subprocess
subprocess.run(["/usr/bin/id"], check=True); won("ran")
#: spawn
os.posix_spawn("/usr/bin/id", ["id"], {}); won("spawned")
#: many processes of Python
import multiprocessing
multiprocessing.Process(target=print).start(); won("process")
#: clone by its number
syscall(56, 17, 0, 0, 0, 0) > 0 and won("clone")
#: clone3 by its number
syscall(435, ctypes.create_string_buffer(88), 88) > 0 and won("clone3")
#: vfork by its number
syscall(58) > 0 and won("vfork")
#: fork by the x32 interface
syscall(0x40000000 | 57) > 0 and won("x32 fork")
#: watch the first process
libc.ptrace(16, 1, 0, 0) == 0 and won("attached")
#: let oneself be watched
libc.ptrace(0, 0, 0, 0) == 0 and won("traced")
#: read the memory of the first process
syscall(310, 1, ctypes.create_string_buffer(32), 1, ctypes.create_string_buffer(32), 1, 0) > 0 and won("read")
#: take a descriptor of the first process
fd = syscall(434, 1, 0)
fd >= 0 and syscall(438, fd, 0, 0) >= 0 and won("descriptor")
#: kill everybody
os.kill(-1, 9)
#: kill the first process
os.kill(1, 9)
#: the keys of the kernel
syscall(250, 0, -3, 1) >= 0 and won("keys")
#: a program in the kernel
syscall(321, 0, ctypes.create_string_buffer(128), 128) >= 0 and won("bpf")
#: watch the processor
syscall(298, ctypes.create_string_buffer(128), 0, -1, -1, 0) >= 0 and won("perf")
#: faults handled by oneself
syscall(323, 0) >= 0 and won("userfaultfd")
#: rings of calls
syscall(425, 8, ctypes.create_string_buffer(256)) >= 0 and won("io_uring")
#: memory without an address
syscall(319, b"x", 0) >= 0 and won("memfd")
#: shared memory of the old kind
syscall(29, 0, 4096, 0o1600) >= 0 and won("shmget")
#: a module of the kernel
syscall(175, b"x", 1, b"") == 0 and won("module")
#: lift one's own limits
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)); won("limit")
#: memory at once [memory]
blob = bytearray(4 << 30); won("memory")
#: memory bit by bit [memory]
kept = []
while True:
    kept.append(bytearray(1 << 20))
    if len(kept) > 3000: won("memory"); break
#: memory by map [memory]
kept = []
while True:
    area = mmap.mmap(-1, 64 << 20); area[::4096] = b"x" * len(area[::4096]); kept.append(area)
    if len(kept) > 48: won("memory"); break
#: memory in the folder for temporary files
with open("/tmp/x", "wb") as file:
    for _ in range(1000): file.write(b"x" * (1 << 20))
won("tmpfs")
#: one large file
with open("/data/x", "wb") as file:
    for _ in range(1000): file.write(b"x" * (1 << 20))
won("file")
#: a file with a hole of a terabyte
with open("/data/x", "wb") as file: file.truncate(1 << 40)
won("hole")
#: many large files [disk]
at = 0
while True:
    with open(f"/data/{at}", "wb") as file: file.write(b"x" * (8 << 20))
    at += 1
#: files that are deleted and still open [disk]
held = []
for at in range(40):
    file = open("/data/x", "wb"); os.unlink("/data/x"); held.append(file)
    for _ in range(30): file.write(b"x" * (1 << 20))
    file.flush()
time.sleep(1)
won("unlinked")
#: files that never had a name [disk]
held = []
for at in range(40):
    held.append(os.open("/data", os.O_TMPFILE | os.O_RDWR))
    for _ in range(30): os.write(held[-1], b"x" * (1 << 20))
time.sleep(1)
won("unnamed")
#: files that are deleted and still mapped [disk]
held = []
for at in range(40):
    file = open("/data/x", "w+b")
    for _ in range(30): file.write(b"x" * (1 << 20))
    file.flush(); held.append(mmap.mmap(file.fileno(), 4096)); file.close(); os.unlink("/data/x")
time.sleep(1)
won("mapped")
#: many small files [disk]
at = 0
while True:
    open(f"/data/{at}", "w").close()
    at += 1
#: many folders [disk]
at = 0
while True:
    os.mkdir(f"/data/{at}")
    at += 1
#: a loop [time]
while True: pass
#: a loop that hears no signal [time]
for number in range(1, 32):
    try: signal.signal(number, signal.SIG_IGN)
    except OSError: pass
while True: pass
#: sleep [time]
time.sleep(1000)
#: wait for oneself [time]
lock = threading.Lock(); lock.acquire(); lock.acquire()
#: an expression that never ends [time]
re.match(r"(a+)+$", "a" * 60 + "b")
#: a number without end [time]
number = 10 ** 9
while True: number = number * number % (10 ** 100000 + 7)
#: many threads [time]
def wait(): time.sleep(1000)
count = 0
try:
    while count < 1000: threading.Thread(target=wait).start(); count += 1
except RuntimeError:
    pass
if count > 64: won(f"{count} threads")
#: threads that compute [time]
def burn():
    while True: pass
for _ in range(8): threading.Thread(target=burn).start()
#: words without end [time]
while True: os.write(2, b"x" * 65536)
#: many descriptors
kept = []
while len(kept) < 5000: kept.append(os.open("/dev/null", os.O_RDONLY))
won("descriptors")
#: a fork bomb
while True:
    os.fork(); won("forked")
#: a deep recursion
sys.setrecursionlimit(10 ** 9)
def deep(): return deep()
deep()
#: a jump to nowhere
ctypes.string_at(0)
#: replace oneself by a shell
os.execv("/bin/sh", ["sh", "-c", "cat /etc/passwd > /data/escaped; /usr/bin/id >> /data/escaped"])
