"""Walks through the operators' pages: each block for a shell is typed as it stands, in its order, on a Debian that had
nothing of it before, by root and by a user with sudo."""

import json
import re
import sys
import time
from pathlib import Path

from machine import Failed, Machine
from pages import commands
from world import WORLD, World, eventually

# What a reader puts in for the placeholders of the first hour: the sandbox stands in for Google.
GOOGLE = """kind = "google"
client_id = "$client_id"
client_secret = "$client_secret"
transport = "gmail_api"
"""
SANDBOX = f"""kind = "generic"
client_id = "mailgate-sandbox"
client_secret = "sandbox"
authorize_url = "http://{WORLD}:8025/oauth/authorize"
token_url = "http://{WORLD}:8025/oauth/token"
revoke_url = "http://{WORLD}:8025/oauth/revoke"
userinfo_url = "http://{WORLD}:8025/oauth/userinfo"
scopes = ["openid", "email", "offline_access", "mail.send"]
smtp_host = "provider.example"
smtp_port = 2525
ca_file = "/etc/mailgate-provider-ca.pem"

# As many as the open files that this machine permits are enough for.
[limits]
http_connections = 2048
smtp_connections = 2048
"""
# Longest that the first hour may take a machine.
FIRST_HOUR_SECONDS = 900


class Walk:
    def __init__(self, repository, machine, world, user):
        self.repository, self.machine, self.world, self.user = repository, machine, world, user
        # What stands in for the placeholders; filled by what the commands print.
        self.values = {GOOGLE: SANDBOX}

    def page(self, page, headings=None, after=lambda block, printed: None):
        shell = self.machine.shell(self.user)
        began = time.monotonic()
        for block in commands(self.repository, page, headings):
            text = block.text
            for placeholder, value in self.values.items():
                text = text.replace(placeholder, value)
            started = time.monotonic()
            try:
                printed = shell.run(text)
            except Failed as error:
                raise AssertionError(f"{block.place}, as {self.user}:\n{text}\n{error}") from error
            say(f"{self.user} {block.place} [{time.monotonic() - started:.1f} s] {block.text.splitlines()[0][:60]}")
            if VERBOSE:
                print(printed, flush=True)
            after(block, printed)
        shell.close()
        return time.monotonic() - began

    def first_hour(self):
        def after(block, printed):
            if found := re.search(r"\bsk_[A-Za-z0-9_-]+", printed):
                self.values.setdefault("sk_…", found[0])
            if printed.rstrip().endswith("}") and '"pushable_key"' in printed:
                app = json.loads(printed[printed.index('{"'):])
                self.values.update({"sek_…": app["send_key"], "pk_…": app["pushable_key"]})
            if link := re.search(r"^https://gateway\.example/connect/\S+$", printed, re.M):
                self.world.connect(f"{link[0]}?plugin=plugin_a&login_hint=ada@sandbox.example")

        took = self.page("docs/first-hour.md", after=after)
        arrived = [message["subject"] for message in self.world.arrived()]
        assert arrived.count("Hello") == 1, arrived
        assert took < FIRST_HOUR_SECONDS, f"{took:.0f} s"
        say(f"the first hour, as {self.user}: {took:.0f} s, and the message has arrived")

    def prometheus(self):
        """It reads the gateway's metrics, has its rules, and passes alerts on."""
        alerts = []
        self.page("docs/monitoring.md", ["Prometheus on Debian"], after=lambda _, printed: alerts.append(printed))
        assert "Test" in alerts[-1] and "A test" in alerts[-1], alerts[-1]
        rules = json.loads(self.type("curl --silent http://127.0.0.1:9090/api/v1/rules"))["data"]["groups"]
        assert [group["name"] for group in rules] == ["mailgate"], rules
        say(f"Prometheus has {len(rules[0]['rules'])} rules, as {self.user}")

    def units(self):
        """The gateway's units: to another address, and after they have failed."""
        self.machine.write("/etc/systemd/system/mailgate-metrics.socket.d/override.conf",
                           "[Socket]\nListenStream=\nListenStream=127.0.0.1:9465\n")
        self.type("systemctl daemon-reload")
        self.page("docs/operating.md", ["systemd"])
        self.type("curl --silent --fail http://127.0.0.1:9465/metrics >/dev/null && ! curl --silent http://127.0.0.1:9464/metrics")
        self.type("systemctl revert mailgate-metrics.socket")
        self.page("docs/operating.md", ["systemd"])
        self.type("until curl --silent --fail https://gateway.example/readyz; do sleep 1; done")

    def upgrade(self, package):
        """To a package of another version with other settings of its own, and back."""
        former = self.type("mailgate --version; sha256sum /etc/mailgate/mailgate.toml")
        newer = f"/tmp/{package.name.replace('_0.1.0', '_0.1.1')}"
        self.type(f"""dpkg-deb --raw-extract /tmp/{package.name} /tmp/newer
            sed -i 's/^Version: 0.1.0$/Version: 0.1.1/' /tmp/newer/DEBIAN/control
            echo '# Another line.' >> /tmp/newer/etc/mailgate/mailgate.toml
            dpkg-deb -Znone --root-owner-group --build /tmp/newer {newer}""")
        self.values.update({"/tmp/mailgate_….deb": newer, "/former/mailgate_….deb": f"/former/{package.name}"})
        versions = []

        def after(*_):
            versions.append(self.type("dpkg-query --show --showformat='${Version}' mailgate").strip())

        self.page("docs/upgrading.md", ["The Debian package"], after=after)
        assert versions == ["0.1.0", "0.1.0", "0.1.1", "0.1.0", "0.1.0"], versions
        assert self.type("mailgate --version; sha256sum /etc/mailgate/mailgate.toml") == former
        self.type("until curl --silent --fail https://gateway.example/readyz; do sleep 1; done")
        say(f"an upgrade, and the way back, as {self.user}")

    def backup(self):
        """Backs up, deletes what was sent, and goes back to before that."""
        began = time.monotonic()
        self.page("docs/postgres.md", BACKUP)
        archive = self.type("ls -l /var/backups/mailgate/wal | awk '/gz$/ { print $5 }'").split()
        say(f"segments of {sorted(map(int, archive))} bytes are in the archive")
        base = self.type("ls /var/backups/mailgate/base").split()
        assert 1 <= len(base) <= 2, base
        moment = self.sql("SELECT now()")
        self.sql("UPDATE email_logs SET subject = 'A mistake'")
        segment = self.sql("SELECT pg_walfile_name(pg_switch_wal())")
        eventually("archived WAL", lambda: self.sql(f"SELECT last_archived_wal >= '{segment}' FROM pg_stat_archiver") == "t")
        self.values.update({"2026-11-25T030000Z": base[-1], "2026-11-25 12:00:00+00": moment})
        self.page("docs/postgres.md", RESTORE)
        assert self.sql("SELECT DISTINCT subject FROM email_logs") == "Hello"
        self.page("docs/postgres.md", ["From a dump", "After a restore"])
        assert self.sql("SELECT DISTINCT subject FROM email_logs") == "Hello"
        self.machine.type("root", "until curl --silent --fail https://gateway.example/readyz; do sleep 1; done")
        say(f"backup, both restores, as {self.user}: {time.monotonic() - began:.0f} s")

    def certbot(self):
        """Port 80 is nobody's: certbot asks for a certificate, and its hook copies it."""
        self.type("systemctl stop caddy && apt-get install --yes certbot ssl-cert")
        self.page("docs/certificates.md", ["By certbot"])
        found = self.type("stat --format '%a %G %n' /etc/mailgate/tls/*; openssl x509 -noout -ext subjectAltName -in /etc/mailgate/tls/fullchain.pem")
        for line in ("640 ssl-cert /etc/mailgate/tls/fullchain.pem", "640 ssl-cert /etc/mailgate/tls/privkey.pem", "DNS:smtp.gateway.example"):
            assert line in found, (line, found)
        self.type("certbot renew --force-renewal --no-random-sleep-on-renew")
        renewed = self.type("cmp /etc/letsencrypt/live/smtp.gateway.example/fullchain.pem /etc/mailgate/tls/fullchain.pem && echo the same")
        assert "the same" in renewed, renewed
        say(f"certbot's hook copies the first certificate and the renewed one, as {self.user}")

    def make_database(self):
        """The page's own way, where the first hour's isn't taken."""
        self.type("systemctl stop 'mailgate*'")
        for name in ("mailgate", "before_restore"):
            self.machine.type("postgres", f"dropdb {name}")
        self.machine.type("postgres", "dropuser mailgate")
        self.page("docs/postgres.md", ["Make the database"])
        assert self.sql("SHOW server_encoding") == "UTF8"

    def measure_idle_archive(self):
        """How much a gateway that does nothing makes Postgres archive."""
        self.type("systemctl start mailgate-base-backup.service; sleep 300")
        found = self.type("find /var/backups/mailgate/wal -mmin -4 -name '????????????????????????.gz' -printf '%s\\n'")
        say(f"segments of the last four minutes, idle: {found.split()} bytes")

    def type(self, line):
        return self.machine.type("root", line)

    def sql(self, query):
        quoted = query.replace('"', '\\"')
        return self.machine.type("postgres", f'psql --no-align --tuples-only --command="{quoted}" mailgate').strip()


RESTORE = ("On a new machine", "To a moment", "After a restore")
BACKUP = ("Archive the WAL", "A base backup each day", "Notice when it fails", "A dump")


def say(words):
    print(f"walk: {words}", flush=True)


VERBOSE = "--verbose" in sys.argv
# What is shown of the machine when a step fails.
LOGS = """journalctl --no-pager --lines=60 --unit='mailgate*' --unit=caddy --unit='postgres*'
tail -n 40 /var/log/postgresql/*"""


def prepare(machine, package):
    """What a provider of machines does: a user with sudo. And what the reader copies there: the package."""
    machine.type("root", "useradd --create-home --shell /bin/bash ada && echo 'ada ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ada")
    # This machine may permit fewer open files than the unit asks for, which can't be raised from within.
    machine.write("/etc/systemd/system/mailgate.service.d/walk.conf", "[Service]\nLimitNOFILE=16384\n")
    machine.copy(package, f"/tmp/{package.name}")


# How commands for containers begin: tests/container runs those.
CONTAINERS = ("docker ", "deploy/prepare ", "git ")


def check_headings(repository):
    """No command of these pages is passed over, but for what another test runs."""
    walked = {
        "docs/postgres.md": {*BACKUP, *RESTORE, "From a dump", "Make the database"},
        "docs/certificates.md": {"By certbot"},
        "docs/monitoring.md": {"Prometheus on Debian"},
        "docs/operating.md": {"systemd"},
        "docs/upgrading.md": {"The Debian package"},
    }
    elsewhere = {
        # Wants a second machine; tests/integration/command_line/database_tls.rs makes the certificate.
        "docs/postgres.md": {"Postgres on another machine"},
        # These want nginx or HAProxy in Caddy's place, further machines, or Let's Encrypt's test server.
        "docs/certificates.md": {
            "nginx and certbot on one machine", "HAProxy and certbot", "Several gateways and files", "Check certificates",
        },
        # tests/container and tests/integration/operating.
        "docs/monitoring.md": {"Prometheus in the compose network"},
        # The first is for a clone and containers, the second builds the program anew.
        "docs/upgrading.md": {"Containers", "By hand"},
    }
    for page, headings in walked.items():
        found = [it for it in commands(repository, page) if not it.text.startswith(CONTAINERS)]
        there = {block.heading for block in found}
        assert there == headings | elsewhere.get(page, set()), f"{page}: {there ^ headings}"


def main():
    repository, debian, work, package, program = map(Path, sys.argv[1:6])
    check_headings(repository)
    users = [it for it in sys.argv[6:] if not it.startswith("--")] or ["root", "ada"]
    for user in users:
        machine = Machine(debian, work)
        world = None
        try:
            prepare(machine, package)
            world = World(machine, work / "world", program)
            walk = Walk(repository, machine, world, user)
            walk.first_hour()
            walk.prometheus()
            walk.units()
            walk.backup()
            walk.upgrade(package)
            walk.certbot()
            if "--idle" in sys.argv:
                walk.measure_idle_archive()
            walk.make_database()
        except BaseException:
            print(machine.type("root", LOGS, check=False).stdout)
            raise
        finally:
            if world:
                world.end()
            machine.end()


main()
