"""The product's processes and the environment each of them gets."""

from __future__ import annotations

import os
import signal
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from lab import ironic
from lab.install import python
from lab.instance import Instance, die
from lab.processes import Child, Children
from lab.stores import DATABASE, cluster

GIVEN = ("DATABASE_URL", "OWNER_DATABASE_URL", "BROKER_URL")
CONSOLE_HOST = "console.localhost"


def check_given_addresses(*, for_tests: bool) -> None:
    """Stores given from outside must be complete; say what is missing before anything starts."""
    if "DATABASE_URL" in os.environ:
        wanted = ["OWNER_DATABASE_URL"] + (["SUPERUSER_DATABASE_URL"] if for_tests else [])
        missing = [name for name in wanted if name not in os.environ]
        if missing:
            die(
                f"DATABASE_URL is given, so {' and '.join(missing)} must be too "
                "(deploy/roles.sql and deploy/extensions.sql make the roles); "
                "or unset DATABASE_URL and an embedded database is used"
            )
    if "OWNER_DATABASE_URL" in os.environ and "DATABASE_URL" not in os.environ:
        die("OWNER_DATABASE_URL is given without DATABASE_URL; give both or neither")


def own_database() -> bool:
    """Whether the product's database is ours to start."""
    return "DATABASE_URL" not in os.environ


def own_broker() -> bool:
    """Whether Valkey is ours to start."""
    return "BROKER_URL" not in os.environ


def web_environment(instance: Instance, settings: str) -> dict[str, str]:
    """What web, worker and beat get: the app role only."""
    web = instance.port("web")
    if own_database():
        database = cluster(instance, "product").url("neo_app", instance.secret("app"), DATABASE)
    else:
        database = os.environ["DATABASE_URL"]
    broker = (
        f"redis://:{instance.secret('valkey')}@127.0.0.1:{instance.port('valkey')}/0"
        if own_broker()
        else os.environ["BROKER_URL"]
    )
    return {
        "DJANGO_SETTINGS_MODULE": f"neocloud.settings.{settings}",
        "DATABASE_URL": database,
        "BROKER_URL": broker,
        "CACHE_URL": os.environ.get("CACHE_URL") or urlsplit(broker)._replace(path="/1").geturl(),
        "SECRET_KEY": instance.secret("django_key"),
        "NEOCLOUD_KEYS": f"k1:{instance.secret('key')}",
        "NEOCLOUD_BASE_DOMAIN": "localhost",
        "NEOCLOUD_PORT": str(web),
        "NEOCLOUD_CALL_HOME_URL": f"http://127.0.0.1:{web}/call-home",
        "NEOCLOUD_PG_BIN": str(cluster(instance, "product").programs),
        "DEMO_PASSWORD": instance.secret("demo"),
        **lab_environment(instance),
    }


def lab_environment(instance: Instance) -> dict[str, str]:
    """Where the lab is and what decides how its guests behave."""
    return {
        "LAB_IRONIC_URL": ironic.url(instance),
        "LAB_IRONIC_USER": ironic.USER,
        "LAB_IRONIC_PASSWORD": instance.secret("ironic"),
        "LAB_GUEST_CONTROL": str(instance.folder / "guests.json"),
        "LAB_GUEST_FOLDER": str(instance.folder / "guests"),
        "LAB_CONTROL": str(instance.folder / "control"),
    }


def owner_environment(instance: Instance, settings: str) -> dict[str, str]:
    """For migrations: the same, as the role that owns the tables."""
    owner = owner_url(instance)
    return {
        **web_environment(instance, settings),
        "DATABASE_URL": owner,
        "OWNER_DATABASE_URL": owner,
    }


def owner_url(instance: Instance) -> str:
    """The owner's connection, for migrations only."""
    if not own_database():
        return os.environ["OWNER_DATABASE_URL"]
    return cluster(instance, "product").url("neo_owner", instance.secret("owner"), DATABASE)


def test_environment(instance: Instance) -> dict[str, str]:
    """For pytest, which makes databases of its own."""
    product = cluster(instance, "product")
    superuser = product.url("postgres", product.password, "postgres")
    return {
        **web_environment(instance, "test"),
        "OWNER_DATABASE_URL": owner_url(instance),
        "SUPERUSER_DATABASE_URL": os.environ.get("SUPERUSER_DATABASE_URL", superuser),
    }


# ------------------------------------------------------------------ processes
def start_guests(instance: Instance, children: Children) -> Child:
    """Start what plays the operating system of every deployed node."""
    environment = lab_environment(instance)
    return children.start("guests", [python(), "-m", "lab.guest"], environment=environment)


def start_web(instance: Instance, children: Children, environment: Mapping[str, str]) -> Child:
    """Start the web server; wait for it with `wait_for_web`."""
    return children.start(
        "web",
        [
            *(python(), "-m", "granian", "--interface", "wsgi"),
            *("--host", "127.0.0.1", "--port", instance.port("web")),
            *("--workers", 2, "--blocking-threads", 4),
            *("--workers-kill-timeout", 2, "--respawn-failed-workers"),
            "neocloud.wsgi:application",
        ],
        environment={**environment, "NEOCLOUD_DB_POOL": "1"},
    )


def start_worker(children: Children, environment: Mapping[str, str]) -> None:
    """Start the Celery worker."""
    children.start(
        "worker",
        [
            *(*_celery(), "worker", "-c", 2, "-Q", "engine,default", "-l", "info"),
            *("--without-gossip", "--without-mingle"),
        ],
        firm_signal=signal.SIGQUIT,  # its polite stop waits for the running task
        environment=environment,
    )


def start_beat(children: Children, environment: Mapping[str, str]) -> None:
    """Start the scheduler."""
    schedule = children.instance.folder / "beat"
    children.start(
        "beat",
        [*_celery(), "beat", "-l", "info", "-s", schedule, "--pidfile="],
        environment=environment,
    )


def _celery() -> list[str | Path]:
    return [python(), "-m", "celery", "-A", "neocloud"]


def wait_for_web(instance: Instance, children: Children, child: Child) -> None:
    """Wait until the site is healthy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    address = f"http://127.0.0.1:{instance.port('web')}/healthz"

    def healthy() -> bool:
        request = urllib.request.Request(address, headers={"Host": CONSOLE_HOST})
        try:
            with opener.open(request, timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    children.until("the web server", healthy, child)
