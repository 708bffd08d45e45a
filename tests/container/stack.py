"""The services of docker-compose.yml on podman, and the sandbox's mail provider beside them."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

PROJECT = "mailgate"
# Long enough for a machine that does something else besides.
START = 300
COMMAND_SECONDS = 600
# As many files as this machine lets a container have (environment.sh), which may be fewer than `.env` says.
FILES = 16384


def say(words):
    seconds = time.time() - int(os.environ["CONTAINER_TEST_BEGAN"])
    print(f"container: [{seconds:3.0f} s] {words}", flush=True)


def run(*command, timeout=COMMAND_SECONDS, check=True, input=None, environment=None):
    """Runs a program; answers its standard output, and shows all of it when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, input=input, env=environment)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout if check else done


def eventually(what, condition, limit=START):
    end = time.monotonic() + limit
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"no {what} within {limit} s"
        time.sleep(0.25)


def logs_of(container):
    done = run("podman", "logs", container, check=False)
    return done.stdout + done.stderr


class Stack:
    """A copy of the compose file and its folder, as an operator has them."""

    def __init__(self, repository, home):
        self.folder = home / "project"
        self.provider_folder = home / "provider"
        self.binary = home / "mailgate"
        self.sandbox = home / "mailgate-dev"
        self._compose = home / "python/bin/podman-compose"
        for folder in (self.folder, self.provider_folder):
            shutil.rmtree(folder, ignore_errors=True)
        self.folder.mkdir()
        self.provider_folder.mkdir()
        for name in ("docker-compose.yml", ".env.example"):
            shutil.copy(repository / name, self.folder)
        (self.folder / "deploy").mkdir()
        for name in ("prepare", "mailgate.toml", "Caddyfile"):
            shutil.copy(repository / "deploy" / name, self.folder / "deploy")
        self.private = self.folder / "deploy/private"
        self.units = repository / "config/systemd"

    def compose(self, *arguments, check=True, input=None, profiles=None):
        """`docker compose`; with profiles as `docker compose --profile` has it, which podman-compose adds to those of
        `.env` instead of taking its own alone."""
        environment = dict(os.environ, MAILGATE_FILES=str(FILES))
        if profiles:
            environment["COMPOSE_PROFILES"] = profiles
        command = (self._compose, "--file", self.folder / "docker-compose.yml", *arguments)
        return run(*command, check=check, input=input, environment=environment)

    def container(self, service):
        return f"{PROJECT}_{service}_1"

    def up(self):
        """`docker compose up --detach`. podman 4.3 knows no `condition: service_healthy` and, without
        systemd, no timer for the checks: services are started here in the order of depends_on, each once
        the check of its predecessor has passed."""
        for service in ("database", "gateway"):
            self.compose("up", "--detach", "--no-build", "--no-recreate", "--no-deps", service)
            self.await_healthy(service)

    def is_healthy(self, service):
        """Runs the health check that the image or the compose file names, once."""
        return run("podman", "healthcheck", "run", self.container(service), check=False).returncode == 0

    def await_healthy(self, service):
        def healthy():
            state = self.inspect(service)["State"]
            assert state["Running"] or service != "database", "the database has ended"
            return self.is_healthy(service)

        eventually(f"healthy {service}", healthy)

    def inspect(self, service):
        return json.loads(run("podman", "inspect", self.container(service)))[0]

    def logs(self, service):
        return logs_of(self.container(service))

    def show_logs(self, folder):
        """Keeps the log of every container in a folder, and prints the ends of them."""
        print(run("podman", "ps", "--all", check=False).stdout, file=sys.stderr)
        for name in run("podman", "ps", "--all", "--format", "{{.Names}}").split():
            path = folder / f"{name}.log"
            path.write_text(logs_of(name))
            print(f"--- {name} (all of it in {path})", path.read_text()[-4000:], sep="\n", file=sys.stderr)

    def mailgate(self, *arguments):
        """A command of the program in the gateway's container."""
        return self.compose("exec", "-T", "gateway", "mailgate", *arguments)

    def sql(self, query):
        """The rows of a query, each a list of texts."""
        out = run(
            "podman", "exec", self.container("database"),
            "psql", "--username=mailgate", "--dbname=mailgate", "--csv", "--tuples-only", "--command", query,
        )
        return [line.split(",") for line in out.splitlines()]

    def take_binary(self):
        """The program as it lies in the image."""
        source = run("podman", "create", "localhost/mailgate:latest").strip()
        run("podman", "cp", f"{source}:/usr/local/bin/mailgate", self.binary)
        run("podman", "rm", source)

    def start_provider(self):
        """`mailgate dev`, for its sandbox: it stands in for the mail providers outside, and is reached as
        `provider` on the network of the compose file. The image's own binary has no sandbox."""
        run(
            "podman", "run", "--detach", "--name", "provider",
            "--network", f"{PROJECT}_default:alias=provider",
            "--publish", "127.0.0.1::8025", "--entrypoint", "/usr/local/bin/mailgate",
            "--volume", f"{self.sandbox}:/usr/local/bin/mailgate:ro",
            "--volume", f"{self.provider_folder}:/provider",
            "--env", "MAILGATE__SMTP__HOST=provider",
            "--env", "MAILGATE__SANDBOX__LISTEN=0.0.0.0:8025", "--env", "MAILGATE__HTTP__BASE_URL=http://provider:8080",
            "--env", "MAILGATE__SANDBOX__SMTP_LISTEN=0.0.0.0:2525",
            "localhost/postgres:17-trixie", "dev", "--dir", "/provider",
        )
        eventually("provider", lambda: (self.provider_folder / "dev.json").exists())
        return run("podman", "port", "provider", "8025/tcp").strip()

    def make_newer_image(self):
        """Gives the image's name to another one, which differs by a label, and answers its id. The next
        build gives it back."""
        container = run("buildah", "from", "--pull-never", "localhost/mailgate:latest").strip()
        run("buildah", "config", "--label", "newer=yes", container)
        run("buildah", "commit", "--quiet", "--rm", "--format", "docker", container, "localhost/mailgate:latest")
        return json.loads(run("podman", "image", "inspect", "localhost/mailgate:latest"))[0]["Id"]

    def start_bare_copy(self, name):
        """The gateway once more, as compose made it, but without ports, shells, and the temporary file
        systems that podman gives to a read-only container (Docker gives none)."""
        created = iter(self.inspect("gateway")["Config"]["CreateCommand"][2:])
        options = []
        for option in created:
            if option in ("-p", "--restart", "--label"):
                next(created)
            elif option != "-d" and not option.startswith("--name="):
                options.append(option)
        nothing = self.folder / "nothing"
        nothing.touch(0o644)
        shells = [f"--volume={nothing}:/usr/bin/{shell}:ro" for shell in ("bash", "dash")]
        run("podman", "run", "--detach", "--name", name, "--read-only-tmpfs=false", *shells, *options)

    def remove(self):
        """Everything of this and of an earlier run."""
        run("podman", "rm", "--force", "--time", "0", "--all", check=False)
        run("podman", "pod", "rm", "--force", "--all", check=False)
        run("podman", "volume", "rm", "--force", "--all", check=False)
        run("podman", "network", "rm", "--force", f"{PROJECT}_default", check=False)
