"""Builds up the services of docker-compose.yml, sends through them, stops them under load, and accounts
for every message: what was accepted is at the provider or in the spool, and nothing is there twice."""

import json
import os
import re
import shutil
import smtplib
import ssl
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path

from load import ANSWER_SECONDS, Load
from stack import COMMAND_SECONDS, FILES, PROJECT, Stack, eventually, run, say

REST = "http://127.0.0.1:8080"
# What the image adds to its base, the binary included where it is a release; and without the binary.
IMAGE_MEGABYTES = 60
OTHER_MEGABYTES = 15


def request(method, url, body=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else json.dumps(body).encode()
    if data:
        headers["Content-Type"] = "application/json"
    asked = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(asked, timeout=ANSWER_SECONDS) as answer:
        return answer.read().decode()


def check_image(binary, profile):
    image = json.loads(run("podman", "image", "inspect", "localhost/mailgate:latest"))[0]
    base = json.loads(run("podman", "image", "inspect", "localhost/debian:trixie-slim"))[0]
    added = (image["Size"] - base["Size"]) / 1e6
    other = added - binary.stat().st_size / 1e6
    config = image["Config"]
    assert other <= OTHER_MEGABYTES, f"the image is {other:.1f} MB over its base and the binary"
    assert added <= IMAGE_MEGABYTES or profile != "release", f"the image is {added:.1f} MB over its base"
    assert config["User"] == "10001:10001", config
    assert set(config["ExposedPorts"]) == {"587/tcp", "465/tcp", "8080/tcp", "9464/tcp"}, config
    assert image["Healthcheck"]["Test"] == [
        "CMD", "/usr/local/bin/mailgate", "healthcheck",
    ]
    assert config["StopSignal"] == "SIGTERM", config
    assert config["Labels"]["org.opencontainers.image.title"] == "Mailgate", config
    say(f"the image is {added:.1f} MB over its base, {other:.1f} without the binary")


def check_binary(binary):
    sections = run("readelf", "--section-headers", "--wide", binary)
    # Without optimisation rustc adds a name for gdb, in memory, which isn't stripped.
    debug = re.findall(r"\.z?debug_(?!gdb_scripts)\w+", sections)
    assert ".text" in sections and not debug, f"the binary has debug information: {debug}"


def check_no_sandbox():
    asked = ("podman", "run", "--rm", "localhost/mailgate:latest", "dev")
    done = subprocess.run(asked, capture_output=True, text=True, timeout=ANSWER_SECONDS)
    assert done.returncode == 1 and "has no sandbox" in done.stderr, done


def prepare(stack):
    """As docs/install.md says."""
    script = stack.folder / "deploy/prepare"
    run(script, "localhost", REST)
    secrets = {path.name: path.read_text() for path in (stack.private / "secrets").iterdir()}
    again = run(script, "localhost", REST)
    assert "made" not in again, again
    assert secrets == {path.name: path.read_text() for path in (stack.private / "secrets").iterdir()}
    assert stack.private.stat().st_mode & 0o777 == 0o700
    return secrets


def use_provider(stack, address):
    """What an operator edits: a provider, and its secret in a file."""
    certificate = json.loads((stack.provider_folder / "dev.json").read_text())["ca_file"]
    inside = Path("/provider")
    ca = stack.provider_folder / Path(certificate).relative_to(inside)
    (stack.private / "etc/provider-ca.pem").write_bytes(ca.read_bytes())
    (stack.private / "secrets/plugin_a_client_secret").write_text("sandbox\n")
    with (stack.private / "etc/mailgate.toml").open("a") as settings:
        settings.write(f"""
[plugins.plugin_a]
kind = "generic"
client_id = "mailgate-sandbox"
authorize_url = "http://{address}/oauth/authorize"
token_url = "http://provider:8025/oauth/token"
revoke_url = "http://provider:8025/oauth/revoke"
userinfo_url = "http://provider:8025/oauth/userinfo"
scopes = ["openid", "email", "offline_access", "mail.send"]
smtp_host = "provider"
smtp_port = 2525
ca_file = "/etc/mailgate/provider-ca.pem"
[plugins.plugin_a.limits]
concurrency = 16
[limits]
requests_per_second = 10000
requests_burst = 10000
[sending]
retry_seconds = [1, 3600]
""")


def press_connect_button(link):
    """What a browser does with a connect link, cookies and redirects included."""
    browser = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor()
    )
    with browser.open(link, timeout=60) as page:
        assert b'<form method="post"' in page.read()
    with browser.open(urllib.request.Request(link, data=b"", method="POST"), timeout=60) as page:
        return page.read().decode()


def make_app(stack):
    """A subscriber by the command line, an app by REST, a mailbox by the connect link."""
    created = json.loads(stack.mailgate("subscriber", "create", "--label", "Test", "--email", "t@example.com", "--json"))
    secret = {"X_Api_Secret": created["api_secret"]}
    app = json.loads(request("POST", f"{REST}/apps", {"name": "Container"}, **secret))
    pushable_key = app["pushable_key"]
    key = json.loads(request("GET", f"{REST}/apps/{pushable_key}/send-key", **secret))
    page = press_connect_button(f"{REST}/connect/{pushable_key}?plugin=plugin_a&login_hint=ada@sandbox.example")
    detail = json.loads(request("GET", f"{REST}/apps/{pushable_key}", **secret))
    assert [user["email"] for user in detail["users"]] == ["ada@sandbox.example"], page
    return {
        "app_id": app["app_id"], "pushable_key": pushable_key, "send_key": key["send_key"],
        "api_secret": created["api_secret"],
    }


def check_pinning(repository, home):
    """`deploy/pin-images`, with an engine that makes its digests up: each name has one, and later another one."""
    folder = home / "pinned"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "deploy").mkdir(parents=True)
    for name in ("docker-compose.yml", "deploy/pin-images"):
        shutil.copy(repository / name, folder / name)
    own = "# mine\nCOMPOSE_PROFILES=gateway\n"
    (folder / ".env").write_text(own)
    compose = (folder / "docker-compose.yml").read_text()
    engine = folder / "engine"
    for digit in "ab":
        engine.write_text(f"#!/bin/sh\n[ $1 = pull ] || echo example/it@sha256:{digit * 64}\n")
        engine.chmod(0o755)
        run(folder / "deploy/pin-images", environment=dict(os.environ, ENGINE=str(engine)))
        text = (folder / ".env").read_text()
        assert text.startswith(own), text
        named = text.removeprefix(own).splitlines()
        assert len(named) == 4 and all(it.endswith(f"@sha256:{digit * 64}") for it in named), named
        for name, image in (line.split("=") for line in named):
            assert f"${{{name}:-{image.split('@')[0]}}}" in compose, (name, image)
    assert (folder / "docker-compose.yml").read_text() == compose, "git tracks it"
    # Both name the same ones.
    dockerfile = (repository / "Dockerfile").read_text()
    for name, image in re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", dockerfile, re.M):
        assert f"{name}: ${{MAILGATE_{name}:-{image}}}" in compose, name


def try_demo(stack):
    """What a newcomer types, from nothing: no `deploy/prepare`, no database. Ends with a mail in the sandbox."""
    began = time.monotonic()
    assert not stack.private.exists()
    stack.compose("up", "--detach", "--no-build", profiles="demo")
    assert run("podman", "ps", "--format", "{{.Names}}").split() == [stack.container("demo")]
    # What lists the ways in is printed once all of it is there.
    screen = eventually("screen of the demo", lambda: re.search(r"Mailgate is ready.*Ctrl-C", stack.logs("demo"), re.S))[0]
    assert stack.is_healthy("demo"), "ready, and not healthy"
    portal = re.search(r"Portal +(http://127\.0\.0\.1:8080/portal/\S+)", screen)[1]
    inbox = re.search(r"Sandbox +(http://127\.0\.0\.1:8025)\b", screen)[1]
    assert all("<html" in request("GET", page) for page in (portal, inbox))
    done = run("bash", "-euc", re.search(r"curl -w .*/send .*", screen)[0])
    assert json.loads(done)["status"] == "sent", done
    key = re.search(r"send_key +(\S+)", screen)[1]
    app = re.search(r"app_id +(\S+)", screen)[1]
    with smtplib.SMTP("127.0.0.1", 2587, timeout=ANSWER_SECONDS) as client:
        # Its authority is its own.
        client.starttls(context=ssl._create_unverified_context())
        client.login(app, key)
        client.sendmail("ada@sandbox.example", ["bob@example.com"], "From: ada@sandbox.example\nSubject: By SMTP\n\nHi\n")
    assert arrived(inbox.removeprefix("http://")) == {"Hello": 1, "By SMTP": 1}
    took = time.monotonic() - began
    stack.compose("down", profiles="demo")
    assert not run("podman", "ps", "--all", "--quiet"), "something of the demo is left"
    say(f"the demo: a mail by REST and one by SMTP in the sandbox, {took:.0f} s after the first command")


def check_proxy(stack, app):
    """Caddy has REST's TLS, and what it says of its clients' addresses counts."""
    caddyfile = stack.private / "proxy/Caddyfile"
    text = caddyfile.read_text()
    # For a name without an authority outside, Caddy has its own.
    assert REST in text, text
    caddyfile.write_text(text.replace(REST, "https://localhost"))
    run("podman", "run", "--rm", "--volume", f"{caddyfile.parent}:/etc/caddy:ro", "localhost/caddy:2",
        "caddy", "validate", "--config", "/etc/caddy/Caddyfile")
    stack.compose("up", "--detach", "--no-build", "--no-deps", "proxy", profiles="gateway,proxy")
    root = "/data/caddy/pki/authorities/local/root.crt"
    read = ("podman", "exec", stack.container("proxy"), "cat", root)
    eventually("authority of Caddy", lambda: run(*read, check=False).returncode == 0)
    tls = ssl.create_default_context(cadata=run(*read))

    def ready():
        try:
            with urllib.request.urlopen("https://localhost/readyz", timeout=ANSWER_SECONDS, context=tls) as answer:
                return answer.status == 200
        except OSError:
            return False

    eventually("answer by way of Caddy", ready)
    (stack.private / "proxy/challenge/.well-known/acme-challenge").mkdir(parents=True)
    (stack.private / "proxy/challenge/.well-known/acme-challenge/token").write_text("proof")
    assert request("GET", "http://localhost/.well-known/acme-challenge/token") == "proof"
    # What is no file is the gateway's to answer, which has no ACME here, so that nothing listens.
    try:
        request("GET", "http://localhost/.well-known/acme-challenge/another")
        raise AssertionError("a challenge of the gateway's was answered by Caddy")
    except urllib.error.HTTPError as error:
        assert error.code == 502, error
    forged = {"X-Api-Secret": app["api_secret"], "Content-Type": "application/json", "X-Forwarded-For": "203.0.113.9"}
    path = f"/apps/{app['pushable_key']}"

    def rename(base, name, **options):
        body = json.dumps({"name": name}).encode()
        urllib.request.urlopen(urllib.request.Request(base + path, body, forged, method="PUT"), timeout=60, **options).read()
        [[address]] = stack.sql("SELECT address FROM audit_entries ORDER BY id DESC LIMIT 1")
        return address

    # From the network that the settings trust, and by Caddy, which says where its own client is.
    assert rename(REST, "Renamed") == "203.0.113.9"
    assert rename("https://localhost", "Again", context=tls) != "203.0.113.9"
    stack.compose("stop", "proxy", profiles="gateway,proxy")
    run("podman", "rm", stack.container("proxy"))
    say("Caddy passes REST on, and the clients' addresses")


def check_sbom(repository, folder):
    """All that the program is made of, as cargo has it, and the checksums of the files."""
    run("sh", "-ec", f"cd {folder} && sha256sum --quiet --check SHA256SUMS")
    [bom] = folder.glob("*.cdx.json")
    bom = json.loads(bom.read_text())
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
    components = {(it["name"], it["version"]): it for it in bom["components"]}
    tree = run("cargo", "tree", "--offline", "--locked", "--package=mailgate", "--no-default-features",
               "--edges=normal,build", "--prefix=none", "--format={p}", "--manifest-path", repository / "Cargo.toml")
    crates = set(re.findall(r"^(\S+) v(\S+)", tree, re.M)) - {("mailgate", bom["metadata"]["component"]["version"])}
    listed = {it for it, entry in components.items() if entry["purl"].startswith("pkg:cargo/")}
    assert len(crates) > 100 and crates == listed, crates ^ listed
    references = {it["bom-ref"] for it in bom["components"]} | {bom["metadata"]["component"]["bom-ref"]}
    assert {it["ref"] for it in bom["dependencies"]} | {
        needed for it in bom["dependencies"] for needed in it["dependsOn"]
    } == references
    ours = [it["name"] for it in bom["components"] if not it.get("hashes")]
    assert all(name.startswith("mailgate") for name in ours), ours


def check_package(stack):
    """Debian's package on a Debian of its own: nothing is started without settings; with them it serves."""
    image = "localhost/mailgate-package"
    inside = ("podman", "run", "--rm", "--network", "none", image)
    assert "Usage: mailgate serve" in run(*inside, "mailgate", "serve", "--help")
    found = run(*inside, "sh", "-ec", """
        stat --format '%a %U %n' /etc/mailgate/mailgate.toml
        dpkg-query --show --showformat '${Conffiles}\\n' mailgate
        getent passwd mailgate
        dpkg --verify mailgate
        ls /usr/lib/systemd/system
        grep -E '^(ExecStart|User)=' /usr/lib/systemd/system/mailgate.service""")
    for line in ("600 root /etc/mailgate/mailgate.toml", " /etc/mailgate/mailgate.toml ", ":/nonexistent:/usr/sbin/nologin",
                 "ExecStart=/usr/bin/mailgate serve --config %d/mailgate.toml", "User=mailgate",
                 *(path.name for path in stack.units.iterdir())):
        assert line in found, (line, found)
    bare = run(*inside, "mailgate", "serve", "--config", "/etc/mailgate/mailgate.toml", check=False)
    assert bare.returncode == 2, bare
    assert all(name in bare.stderr for name in ("database.url", "seal.keys", "tls.certificate")), bare.stderr
    run(*inside, "sh", "-ec", "dpkg --purge mailgate && ! test -e /etc/mailgate && ! test -e /usr/bin/mailgate")

    # As an operator fills them in, on the same Postgres in a database of its own.
    run("podman", "exec", stack.container("database"), "createdb", "--username=mailgate", "packaged")
    settings = stack.folder / "packaged.toml"
    settings.write_text(run(*inside, "cat", "/etc/mailgate/mailgate.toml"))
    url = (stack.private / "secrets/database_url").read_text().strip().removesuffix("/mailgate") + "/packaged"
    keys = (stack.private / "secrets/seal_keys").read_text().strip()
    text = settings.read_text()
    for line, value in (
        ('# url = "postgres://mailgate:…@localhost/mailgate"', f'url = "{url}"'),
        ('# keys = ["k1:…"]', f'keys = ["{keys}"]'),
        ('# certificate = ', "certificate = "),
        ('# key = ', "key = "),
        ('# base_url = ', "base_url = "),
        ('# host = "smtp.gateway.example"', 'host = "localhost"'),
    ):
        assert text.count(line) == 1, (line, text)
        text = text.replace(line, value)
    # As many files as this machine lets a container open are enough for so many.
    settings.write_text(text + f"\n[limits]\nhttp_connections = {FILES // 8}\nsmtp_connections = {FILES // 8}\n")
    settings.chmod(0o644)
    run("podman", "run", "--detach", "--name", "packaged", "--network", f"{PROJECT}_default", "--user", "mailgate",
        "--sysctl", "net.ipv4.ip_unprivileged_port_start=0", "--env", "MAILGATE_CONFIG=/settings.toml",
        "--volume", f"{settings}:/settings.toml:ro", "--volume", f"{stack.private}/etc/tls:/etc/mailgate/tls:ro",
        image, "mailgate", "serve")
    asked = ("podman", "exec", "packaged", "mailgate")
    eventually("packaged gateway", lambda: run(*asked, "healthcheck", check=False).returncode == 0)
    checked = json.loads(run(*asked, "check", "--json", check=False).stdout)
    wrong = [it for it in checked["checks"] if not it["ok"]]
    assert not wrong, wrong
    run("podman", "stop", "--time", "40", "packaged")
    assert json.loads(run("podman", "inspect", "packaged"))[0]["State"]["ExitCode"] == 0, run("podman", "logs", "packaged")
    run("podman", "rm", "packaged")
    say(f"the package serves, and passes its {len(checked['checks'])} checks")


def make_former_volume(stack):
    """A database as root's container made it, which the compose file had before: what follows runs on its volume."""
    file = stack.folder / "docker-compose.yml"
    text = file.read_text()
    former, count = re.subn(r"(?m)^      # Its socket\..*?(?=^    healthcheck:)", "", text, flags=re.S)
    assert count == 1 and "user: postgres" not in former, former
    file.write_text(former)
    stack.compose("up", "--detach", "--no-build", "--no-deps", "database")
    stack.await_healthy("database")
    assert stack.inspect("database")["HostConfig"]["ReadonlyRootfs"] is False
    stack.sql("CREATE TABLE former (number integer); INSERT INTO former VALUES (1)")
    stack.compose("down")
    file.write_text(text)


def check_limits(stack):
    """What the compose file allows a container is what the kernel holds it to."""
    for service, memory, processes in (("gateway", 1536 << 20, 256), ("database", 2 << 30, 512)):
        limits = stack.inspect(service)["HostConfig"]
        assert limits["Memory"] == memory and limits["PidsLimit"] == processes, limits
        assert limits["NanoCpus"] == 10**9, limits
        assert limits["LogConfig"]["Size"] == "10MB", limits["LogConfig"]
        process = Path(f"/proc/{stack.inspect(service)['State']['Pid']}")
        assert re.search(rf"^Max open files +{FILES} +{FILES} ", (process / "limits").read_text(), re.M)


def check_confinement(stack):
    """The containers can't write, aren't root, and the gateway's shows no secret in its environment or log."""
    check_limits(stack)
    for service in ("database", "gateway"):
        details = stack.inspect(service)
        assert details["HostConfig"]["ReadonlyRootfs"] is True, details["HostConfig"]
        process = Path(f"/proc/{details['State']['Pid']}")
        status = (process / "status").read_text()
        user = "10001" if service == "gateway" else r"[1-9]\d*"
        assert re.search(rf"^Uid:\t({user})\t\1\t\1\t\1$", status, re.M), status
        assert re.search(rf"^Gid:\t({user})\t\1\t\1\t\1$", status, re.M), status
        assert re.search(r"^CapEff:\t0+$", status, re.M) and re.search(r"^CapBnd:\t0+$", status, re.M), status
        assert re.search(r"^NoNewPrivs:\t1$", status, re.M), status
    environment = (process / "environ").read_bytes()
    for path in (stack.private / "secrets").iterdir():
        value = path.read_text().strip()
        if value and value != "sandbox":
            assert value.encode() not in environment, f"{path.name} is in the environment"
            assert value not in stack.logs("gateway"), f"{path.name} is in the log"


def check_doors(stack):
    """All of them are open by the time that the gateway is healthy."""
    tls = ssl.create_default_context(cafile=stack.private / "etc/tls/fullchain.pem")
    with smtplib.SMTP("localhost", 587, timeout=ANSWER_SECONDS) as client:
        client.starttls(context=tls)
        client.noop()
    with smtplib.SMTP_SSL("localhost", 465, timeout=ANSWER_SECONDS, context=tls) as client:
        client.noop()
    request("GET", f"{REST}/readyz")


def check_bare(stack):
    """No shell is needed, and no place to write to."""
    stack.start_bare_copy("bare")
    eventually("health of the bare copy", lambda: run("podman", "healthcheck", "run", "bare", check=False).returncode == 0)
    for shell in ("bash", "sh"):
        assert run("podman", "exec", "bare", shell, "-c", ":", check=False).returncode != 0, f"{shell} is there"
    run("podman", "stop", "--time", "40", "bare")
    assert json.loads(run("podman", "inspect", "bare"))[0]["State"]["ExitCode"] == 0, run("podman", "logs", "bare")
    run("podman", "rm", "bare")
    say("it runs without a shell, and with nothing to write to")


def arrived(address):
    messages = json.loads(request("GET", f"http://{address}/messages?limit=100000"))
    return Counter(message["subject"] for message in messages)


def spooled(stack):
    return {subject: state for subject, state in stack.sql("SELECT subject, state FROM spool")}


def account(load, at_provider, in_spool, when):
    """Every accepted message is somewhere, none is at the provider twice."""
    twice = [subject for subject, count in at_provider.items() if count > 1]
    assert not twice, f"{when}: sent twice: {twice}"
    lost = [s for s, told in load.told.items() if told == "accepted" and s not in at_provider and s not in in_spool]
    assert not lost, f"{when}: lost: {lost}"
    strange = set(at_provider) - set(load.told)
    assert not strange, f"{when}: nobody sent these: {strange}"
    counts = Counter(load.told.values())
    say(f"{when}: {dict(counts)}; {len(at_provider)} at the provider, {len(in_spool)} in the spool")


def stop_under_load(stack, address, app):
    load = Load(app, stack.private / "etc/tls/fullchain.pem")
    load.await_accepted({"587": 100, "465": 100, "rest": 100})
    say(f"stopping the gateway under load: {dict(load.answers)}")
    root = Path(f"/proc/{stack.inspect('gateway')['State']['Pid']}/root")
    written = [path for folder in ("tmp", "var/tmp") for path in (root / folder).iterdir()]
    assert not written, f"the gateway has written {written}"
    began = time.monotonic()
    stack.compose("stop", "gateway")
    took = time.monotonic() - began
    load.finish()
    state = stack.inspect("gateway")["State"]
    # Not killed after the time that the compose file allows, and within the gateway's own.
    assert state["ExitCode"] == 0, f"exit {state['ExitCode']}"
    assert "the deadline has passed" not in stack.logs("gateway"), "it wasn't done by the deadline"
    say(f"stopped in {took:.1f} s, exit 0")
    in_spool = spooled(stack)
    left_open = [subject for subject, state in in_spool.items() if state == "open"]
    assert not left_open, f"left in hand: {left_open}"
    assert any(told == "accepted" for subject, told in load.told.items() if subject in in_spool), "an empty spool"
    at_provider = arrived(address)
    untold = [subject for subject in at_provider if load.told[subject] != "accepted"]
    assert not untold, f"sent, and nobody was told before the end: {untold}"
    account(load, at_provider, in_spool, "after the stop")
    return load


def check_upgrade(stack, address, load):
    """As docs/upgrading.md says: a container of a newer image takes the old one's place, and goes on there."""
    newer = stack.make_newer_image()
    stack.compose("up", "--detach", "--no-build", "--no-deps", "--force-recreate", "gateway")
    stack.await_healthy("gateway")
    assert stack.inspect("gateway")["Image"] == newer
    # What was deferred once is tried again after a second, then waits for an hour.
    eventually(
        "second attempts",
        lambda: stack.sql("SELECT count(*) FROM spool WHERE attempts < 2") == [["0"]],
    )
    account(load, arrived(address), spooled(stack), "after the upgrade")


def check_restart(stack):
    """A gateway that dies is started again by the engine, and is unhealthy while its database is away."""
    before = stack.inspect("gateway")["State"]["Pid"]
    run("kill", "-KILL", str(before))
    eventually("restart", lambda: stack.inspect("gateway")["State"]["Pid"] not in (0, before))
    stack.await_healthy("gateway")
    say("killed, it was started again")
    stack.compose("stop", "database")
    # It looks at its database once in a second, and waits some seconds more for an answer.
    eventually("unhealthy gateway", lambda: not stack.is_healthy("gateway"))
    say("without its database it is unhealthy")
    stack.compose("start", "database")
    stack.await_healthy("database")
    say("the database is back")
    # aardvark-dns, podman's, at times answers nothing for half a minute after a container has come and gone.
    stack.await_healthy("gateway")
    say("the gateway is healthy again")


def check_backup(stack):
    """The commands of docs/install.md: what was dumped comes back into an empty volume, with the keys."""
    dump = stack.folder / "mailgate.dump"
    name = stack.container("database")
    with dump.open("wb") as out:
        subprocess.run(
            ["podman", "exec", name, "pg_dump", "--username=mailgate", "--format=custom", "mailgate"],
            stdin=subprocess.DEVNULL, stdout=out, check=True, timeout=COMMAND_SECONDS,
        )
    with dump.open("rb") as backup:
        subprocess.run(
            ["podman", "exec", "--interactive", name, "pg_restore", "--file=/dev/null"],
            stdin=backup, check=True, timeout=COMMAND_SECONDS,
        )
    spool = spooled(stack)
    stack.compose("down")
    run("podman", "volume", "rm", f"{PROJECT}_database")
    stack.compose("up", "--detach", "--no-build", "--no-deps", "database")
    stack.await_healthy("database")
    with dump.open("rb") as backup:
        subprocess.run(
            ["podman", "exec", "--interactive", name, "pg_restore", "--username=mailgate", "--dbname=mailgate",
             "--exit-on-error"],
            stdin=backup, check=True, timeout=COMMAND_SECONDS,
        )
    stack.compose("run", "--rm", "-T", "--no-deps", "gateway", "migrate", input="")
    # Nothing has left since the dump, but what is due by now might have.
    marked = stack.compose("run", "--rm", "-T", "--no-deps", "gateway", "queue", "verify", "--json", input="")
    assert '"marked":' in marked, marked
    stack.up()
    assert spooled(stack).keys() == spool.keys(), "the spool came back otherwise"
    say("dumped and restored")


def send(app, subject):
    body = {"pk": app["pushable_key"], "to": "bob@example.com", "subject": subject, "body": "Hello"}
    answer = json.loads(request("POST", f"{REST}/send", body, X_Send_Key=app["send_key"]))
    assert answer["status"] == "sent", answer


def main():
    repository, home = map(Path, sys.argv[1:3])
    stack = Stack(repository, home)
    stack.remove()
    passed = 0
    try:
        check_pinning(repository, home)
        try_demo(stack)
        prepare(stack)
        make_former_volume(stack)
        stack.compose("up", "--detach", "--no-build", "--no-deps", "database")
        stack.await_healthy("database")
        assert stack.sql("DELETE FROM former RETURNING number")[0] == ["1"]
        stack.sql("DROP TABLE former")
        say("the database is healthy, on a volume that root's container made")
        address = stack.start_provider()
        stack.take_binary()
        check_image(stack.binary, sys.argv[3])
        check_binary(stack.binary)
        check_no_sandbox()
        use_provider(stack, address)
        stack.up()
        check_doors(stack)
        say("the gateway is healthy, and all doors are open")
        app = make_app(stack)
        check_confinement(stack)
        check_proxy(stack, app)
        check_sbom(repository, home / "dist")
        check_package(stack)
        check_bare(stack)
        load = stop_under_load(stack, address, app)
        check_upgrade(stack, address, load)
        check_restart(stack)
        account(load, arrived(address), spooled(stack), "after the restart")
        check_backup(stack)
        account(load, arrived(address), spooled(stack), "after the backup came back")
        send(app, "restored")
        assert arrived(address)["restored"] == 1
        passed = 1
    finally:
        if not passed:
            stack.show_logs(home / "logs")
        stack.remove()
    say("passed")


main()
