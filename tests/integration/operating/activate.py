"""Hands listening sockets to a program as systemd does: activate.py NAME[,NAME…] PROGRAM ARGUMENT…"""

import os
import socket
import sys

names = sys.argv[1].split(",")
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in names]
# Away from 3 and up first, where some of them may lie already.
copies = [os.dup2(each.fileno(), 100 + number) for number, each in enumerate(sockets)]
for number, copy in enumerate(copies):
    os.dup2(copy, 3 + number, inheritable=True)
    os.close(copy)
ports = [str(each.getsockname()[1]) for each in sockets]
with open(os.path.join(os.environ["TMPDIR"], "ports"), "w") as file:
    file.write(" ".join(ports))
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(names)), LISTEN_FDNAMES=":".join(names))
os.execv(sys.argv[2], sys.argv[2:])
