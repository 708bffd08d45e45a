"""A Debian of its own, whose first process is systemd, and somebody who types into its shells."""

import os
import selectors
import shutil
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BOOT_SECONDS = 120
BLOCK_SECONDS = 180
ENDED = "@@walk: the block has ended@@"


def run(*command, check=True, input=None, timeout=BLOCK_SECONDS):
    done = subprocess.run(command, text=True, input=input, timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert not check or done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}"
    return done.stdout if check else done


def control_groups():
    """Where cgroup2 is mounted: alone, or beside the former ones."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, folder, kind = line.split()[:3]
        if kind == "cgroup2":
            return Path(folder)
    raise AssertionError("this machine has no cgroup2, which systemd wants")


class Machine:
    """Everything that it does ends with it."""

    def __init__(self, debian, work):
        self.work = work
        self.group = control_groups() / f"mailgate-walk-{os.getpid()}"
        for group in self.group.parent.glob("mailgate-walk-*"):
            self.remove_groups(group, 0)
        self.group.mkdir()
        shutil.rmtree(work, ignore_errors=True)
        (work / "changes").mkdir(parents=True)
        self.log = (work / "machine.log").open("w")
        namespaces = ("--mount", "--pid", "--ipc", "--net", "--uts", "--cgroup", "--propagation", "private")
        # Enters its group before the namespace of groups begins there.
        enter = f'echo $$ >"{self.group}/cgroup.procs" && exec setpriv --pdeathsig KILL "$@"'
        self.process = subprocess.Popen(
            ["sh", "-c", enter, "sh", "unshare", *namespaces, "--fork", "--kill-child", HERE / "machine", debian, work],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
        )
        end = time.monotonic() + BOOT_SECONDS
        while self._state() not in ("running", "degraded"):
            assert self.process.poll() is None and time.monotonic() < end, (work / "machine.log").read_text()
            time.sleep(0.3)
        self.type("root", "ip link set lo up")

    def _state(self):
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        if not children:
            return None
        self.init = children[0]
        asked = run("nsenter", "--target", self.init, "--all", "systemctl", "is-system-running", check=False)
        return asked.stdout.strip()

    def enter(self, *namespaces):
        return ("nsenter", "--target", self.init, *(namespaces or ("--all",)))

    def type(self, user, line, check=True):
        return run(*self.enter(), "runuser", "--login", user, "--command", line, check=check, timeout=2 * BLOCK_SECONDS)

    def write(self, path, text, mode=0o644):
        run(*self.enter(), "sh", "-c", f'umask 077; mkdir -p "$(dirname {path})"; cat >{path}; chmod {mode:o} {path}', input=text)

    def copy(self, source, target):
        with source.open("rb") as file:
            subprocess.run([*self.enter(), "sh", "-c", f"cat >{target}"], stdin=file, check=True)

    def shell(self, user):
        return Shell(self, user)

    def end(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.log.close()
        self.remove_groups(self.group, 10)

    def remove_groups(self, group, limit):
        """They have no owner that would take them along. The kernel takes a moment for the last processes; another
        walk's stay."""
        end = time.monotonic() + limit
        while group.exists():
            for folder, _, _ in os.walk(group, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    if time.monotonic() > end:
                        return
            time.sleep(0.1)


class Shell:
    """One that stays open from block to block, as a reader's does; it ends at the first command that fails."""

    def __init__(self, machine, user):
        self.machine = machine
        self.process = subprocess.Popen(
            [*machine.enter(), "runuser", "--login", user],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        if user != "root":
            self._send("sudo -i\n")
        self._send("set -eE -o pipefail\n")

    def _send(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def run(self, text, limit=BLOCK_SECONDS):
        """Types a block; answers what it printed."""
        self.machine.write("/run/walk/block", text, 0o600)
        self._send(f". /run/walk/block </dev/null\necho '{ENDED}'\n")
        printed = b""
        end = time.monotonic() + limit
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not printed.endswith(f"{ENDED}\n".encode()):
                left = end - time.monotonic()
                more = os.read(self.process.stdout.fileno(), 65536) if left > 0 and selector.select(left) else b""
                if not more:
                    raise Failed(printed.decode(errors="replace"), left <= 0)
                printed += more
        return printed.decode(errors="replace").removesuffix(f"{ENDED}\n")

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


class Failed(AssertionError):
    def __init__(self, printed, is_late):
        super().__init__(("it takes too long:\n" if is_late else "it failed:\n") + printed)
