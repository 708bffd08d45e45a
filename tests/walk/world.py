"""What is outside of the machine: Let's Encrypt (Pebble, behind its name and path) and a mail provider (the sandbox of
`mailgate dev`), in a network of its own with a wire to the machine's, and on the files of this one."""

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from machine import run

AUTHORITY = "acme-v02.api.letsencrypt.org"
# Both ends of the wire between the machine and the world.
MACHINE = "10.99.0.1"
WORLD = "10.99.0.2"
NAMES = {
    "127.0.0.1": ("localhost", "gateway"),
    MACHINE: ("gateway.example", "smtp.gateway.example"),
    WORLD: (AUTHORITY, "provider.example"),
}


def eventually(what, condition, limit=120):
    end = time.monotonic() + limit
    while not (found := condition()):
        assert time.monotonic() < end, f"no {what} within {limit} s"
        time.sleep(0.3)
    return found


class World:
    def __init__(self, machine, folder, program):
        self.machine, self.folder, self.processes = machine, folder, []
        folder.mkdir(parents=True, exist_ok=True)
        hosts = "".join(f"{address} {' '.join(names)}\n" for address, names in NAMES.items())
        machine.write("/etc/hosts", hosts + "::1 localhost\n")
        self._wire()
        self._authority()
        self._provider(program)

    def _wire(self):
        holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"])
        self.processes.append(holder)
        self.net = f"/proc/{holder.pid}/ns/net"
        mine = os.readlink("/proc/self/ns/net")
        eventually("network of the world's", lambda: os.readlink(self.net) != mine, 10)
        for command in (
            f"ip link add world type veth peer name eth0 netns {self.machine.init}",
            f"ip address add {WORLD}/24 dev world", "ip link set world up", "ip link set lo up",
        ):
            run(*self.inside(), *command.split())
        self.machine.type("root", f"ip address add {MACHINE}/24 dev eth0 && ip link set eth0 up")

    def inside(self):
        return ("nsenter", f"--net={self.net}")

    def _start(self, name, command, **environment):
        log = (self.folder / f"{name}.log").open("w")
        process = subprocess.Popen(
            [*self.inside(), "setpriv", "--pdeathsig", "KILL", *command], env=dict(os.environ, **environment),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )
        self.processes.append(process)

    def _authority(self):
        folder = self.folder
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Walk", "-keyout",
            folder / "ca.key", "-out", folder / "ca.pem")
        run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={AUTHORITY}", "-keyout", folder / "le.key",
            "-out", folder / "le.csr")
        (folder / "le.ext").write_text(f"subjectAltName=DNS:{AUTHORITY},DNS:localhost\n")
        run("openssl", "x509", "-req", "-days", "2", "-in", folder / "le.csr", "-extfile", folder / "le.ext", "-CA",
            folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial", "-out", folder / "le.pem")
        (folder / "pebble.json").write_text(json.dumps({"pebble": {
            "listenAddress": f"{WORLD}:14000", "managementListenAddress": f"{WORLD}:15000",
            "certificate": str(folder / "le.pem"), "privateKey": str(folder / "le.key"),
            "httpPort": 80, "tlsPort": 443, "ocspResponderURL": "",
        }}))
        dns = f"{WORLD}:5353"
        self._start("names", ("pebble-challtestsrv", "-http01", "", "-https01", "", "-tlsalpn01", "",
                              "-defaultIPv4", MACHINE, "-defaultIPv6", "", "-dns01", dns,
                              "-management", f"{WORLD}:8055"))
        self._start("pebble", ("pebble", "-dnsserver", dns, "-config", folder / "pebble.json"),
                    PEBBLE_VA_NOSLEEP="1", PEBBLE_WFE_NONCEREJECT="1", PEBBLE_AUTHZREUSE="0")
        self._start("fronts", (sys.executable, __file__, folder))
        roots = lambda: self.fetch(f"https://{WORLD}:15000/roots/0")
        root = eventually("root of Pebble's", roots)
        self.machine.write("/usr/local/share/ca-certificates/walk.crt", (folder / "ca.pem").read_text())
        self.machine.write("/usr/local/share/ca-certificates/pebble.crt", root)
        self.machine.type("root", "update-ca-certificates")

    def _provider(self, program):
        state = self.folder / "provider"
        self._start(
            "provider", (program, "dev", "--dir", state, "--ephemeral"),
            MAILGATE__SMTP__HOST="provider.example", MAILGATE__METRICS__LISTEN="",
            MAILGATE__SANDBOX__SMTP_LISTEN=f"{WORLD}:2525",
        )
        dev = eventually("provider", lambda: (state / "dev.json").exists() and json.loads((state / "dev.json").read_text()))
        self.machine.write("/etc/mailgate-provider-ca.pem", Path(dev["ca_file"]).read_text())

    def fetch(self, url):
        asked = run(*self.inside(), "curl", "--silent", "--insecure", "--fail", "--noproxy", "*", url, check=False)
        return asked.stdout if asked.returncode == 0 else None

    def connect(self, link):
        """What somebody does with a connect link in a browser."""
        script = """
import socket, ssl, sys, urllib.request
resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, *more, **named: resolve(sys.argv[2] if host.endswith("gateway.example") else host, *more, **named)
tls = ssl.create_default_context(); tls.check_hostname = False; tls.verify_mode = ssl.CERT_NONE
browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls),
                                      urllib.request.HTTPCookieProcessor())
browser.open(sys.argv[1], timeout=60).read()
print(browser.open(urllib.request.Request(sys.argv[1], data=bytes(), method="POST"), timeout=60).read().decode())
"""
        return run(*self.inside(), sys.executable, "-c", script, link, MACHINE)

    def arrived(self):
        return json.loads(self.fetch(f"http://{WORLD}:8025/messages?limit=100000"))

    def end(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Front(BaseHTTPRequestHandler):
    """Passes everything on to a server behind, without proxies or doubts about certificates."""

    behind = None
    # Whether the server behind is asked by the name that the client asked for.
    keeps_host = True

    def to(self, text):
        return text

    def back(self, text):
        return text

    def pass_on(self):
        body = self.to(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode("latin-1")).encode("latin-1")
        dropped = ["connection", "accept-encoding", "content-length"] + ([] if self.keeps_host else ["host"])
        headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
        asked = urllib.request.Request(self.behind + self.to(self.path), body or None, headers, method=self.command)
        tls = urllib.request.HTTPSHandler(context=ssl._create_unverified_context())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), tls, Stays)
        try:
            answer = opener.open(asked, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in ("content-length", "connection", "transfer-encoding", "date"):
                self.send_header(name, self.back(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_HEAD = pass_on


class Stays(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Authority(Front):
    """Pebble's directory has another path than Let's Encrypt's."""

    behind = f"https://{WORLD}:14000"

    def to(self, text):
        return "/dir" if text == "/directory" else text


class Provider(Front):
    """The sandbox takes redirect addresses of the loopback network alone."""

    behind = "http://127.0.0.1:8025"
    keeps_host = False
    ours = "https%3A%2F%2Fgateway.example%2Foauth%2Fcallback"
    its = "http%3A%2F%2F127.0.0.1%2Foauth%2Fcallback"

    def to(self, text):
        return text.replace(self.ours, self.its)

    def back(self, text):
        return text.replace("http://127.0.0.1/oauth/callback", "https://gateway.example/oauth/callback")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    authority = ThreadingHTTPServer((WORLD, 443), Authority)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "le.pem", folder / "le.key")
    authority.socket = tls.wrap_socket(authority.socket, server_side=True)
    provider = ThreadingHTTPServer((WORLD, 8025), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    authority.serve_forever()
