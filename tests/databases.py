"""The test databases: one migrated template a run, one copy for each worker, tests connect as
`neo_app`.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg
from psycopg import sql

ROOT = Path(__file__).resolve().parents[1]
PASSWORD = "tests-only"
TENANTS = (("acme", "Acme AI", "KRW"), ("globex", "Globex Research", "USD"))


def superuser_url(database: str = "postgres") -> str:
    """Where the tests may make databases; `./dev test` gives it."""
    url = os.environ.get("SUPERUSER_DATABASE_URL")
    if not url:
        raise RuntimeError("the tests need PostgreSQL: run them with ./dev test")
    return urlsplit(url)._replace(path="/" + database).geturl()


def url_of(role: str, database: str) -> str:
    """The URL of a role in a database of the test server."""
    parts = urlsplit(superuser_url())
    return f"postgresql://{role}:{PASSWORD}@{parts.hostname}:{parts.port}/{database}"


def _fingerprint() -> str:
    """Changes with whatever the template is made of."""
    digest = hashlib.sha256()
    paths = [*ROOT.glob("apps/**/*.py"), *ROOT.glob("apps/**/*.sql"), *ROOT.glob("deploy/*.sql")]
    paths += [ROOT / "requirements.txt", Path(__file__), ROOT / "tests/template.py"]
    for path in sorted(paths):
        relevant = "/migrations/" in str(path) or path.suffix == ".sql" or path.name in (
            "models.py", "rules.py", "upgrades.py", "realms.py", "databases.py", "template.py",
        )  # fmt: skip
        if relevant:
            digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def template() -> str:
    """The name of the migrated template with its tenants, made when missing."""
    name = f"neo_template_{_fingerprint()}"
    with psycopg.connect(superuser_url(), autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(7301)")
        found = connection.execute(
            "SELECT datistemplate FROM pg_database WHERE datname = %s", [name]
        ).fetchone()
        if found and found[0]:
            return name
        _make_roles(connection)
        connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER neo_owner").format(sql.Identifier(name))
        )
        with psycopg.connect(superuser_url(name), autocommit=True) as inside:
            inside.execute(_plain(ROOT / "deploy" / "extensions.sql"))
        for role, program in (
            ("neo_owner", ["manage.py", "upgrade"]),
            ("neo_app", ["-m", "tests.template"]),
        ):
            done = subprocess.run(
                [sys.executable, *program],
                cwd=ROOT,
                env={**os.environ, "DATABASE_URL": url_of(role, name),
                     "DJANGO_SETTINGS_MODULE": "neocloud.settings.test"},
                capture_output=True,
                text=True,
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(f"{program}: {done.stdout}\n{done.stderr}")
        connection.execute(
            sql.SQL("ALTER DATABASE {} IS_TEMPLATE true").format(sql.Identifier(name))
        )
    return name


def copy(worker: str) -> str:
    """A fresh copy of the template for one worker, or for one racing test."""
    source, name = template(), f"neo_test_{worker}"
    with psycopg.connect(superuser_url(), autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(7302)")  # a template is copied by one at a time
        connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER neo_owner STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(source)
            )
        )
    return name


def drop(name: str) -> None:
    """Remove a copy."""
    with psycopg.connect(superuser_url(), autocommit=True) as connection:
        connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )


def entry(url: str) -> dict[str, str]:
    """What Django's DATABASES says of a URL."""
    parts = urlsplit(url)
    return {
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port),
    }


def _make_roles(connection: psycopg.Connection) -> None:
    for role in ("neo_owner", "neo_app"):
        have = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone()
        verb = "ALTER" if have else "CREATE"
        connection.execute(
            sql.SQL(verb + " ROLE {} LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD {}").format(
                sql.Identifier(role), sql.Literal(PASSWORD)
            )
        )


def _plain(path: Path) -> str:
    return "\n".join(line for line in path.read_text().splitlines() if not line.startswith("\\"))
