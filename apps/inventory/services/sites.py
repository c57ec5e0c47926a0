"""Sites: made, paused, resumed, watched; their password sealed at rest."""

from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils.translation import gettext_lazy as _

from apps.audit import services as audit
from apps.core import clock, secrets
from apps.core.errors import Invalid
from apps.core.models import Secret
from apps.core.periods import time_zone
from apps.core.realms import PLATFORM
from apps.inventory.drivers import drivers
from apps.inventory.errors import BadUrl, UnknownDriver
from apps.inventory.models import Site
from apps.inventory.states import SITE
from apps.tenancy.context import platform_context

_TABLE = "core_secret"
_SHOWN = (
    "name",
    "name_ko",
    "timezone",
    "driver",
    "endpoint",
    "username",
    "call_home_url",
    "is_simulated",
    "is_routable",
    "console_url",
    "concurrency",
    "turn_around_minutes",
)


@transaction.atomic
def save_site(
    *,
    code: str,
    name: str,
    endpoint: str,
    call_home_url: str,
    actor: Any,
    username: str = "",
    password: str | None = None,
    is_simulated: bool = False,
    timezone: str = "Asia/Seoul",
    name_ko: str = "",
    driver: str = "ironic",
    concurrency: int = 20,
    is_routable: bool | None = None,
    console_url: str | None = None,
    turn_around_minutes: int | None = None,
) -> Site:
    """Make a site (paused) or change it, by its code; for the platform's side.

    The password is kept sealed. None leaves what there is: of the password, of whether servers can
    be reached from here, of the console's address (with `{node}`), of the minutes between two
    customers of a node. Raises BadUrl, UnknownTimeZone or Invalid naming the field.
    """
    for field, value in (
        ("endpoint", endpoint),
        ("call_home_url", call_home_url),
        *([("console_url", console_url)] if console_url else []),
    ):
        _refuse_bad_url(field, value)
    if driver not in drivers():
        known = ", ".join(sorted(drivers()))
        raise UnknownDriver(field="driver", driver=driver, known=known)
    time_zone(timezone, field="timezone")
    site = Site.objects.select_for_update().filter(code=code).first() or Site(code=code)
    is_new = site._state.adding
    before = None if is_new else {column: getattr(site, column) for column in _SHOWN}
    site.name, site.name_ko, site.timezone, site.driver = name, name_ko, timezone, driver
    site.endpoint, site.username, site.call_home_url = endpoint, username, call_home_url
    site.is_simulated, site.concurrency = is_simulated, concurrency
    _set_given(
        site,
        is_routable=is_routable,
        console_url=console_url,
        turn_around_minutes=turn_around_minutes,
    )
    if password is not None:
        site.credentials = _sealed(site, password)
    try:
        site.clean_fields(exclude={column.name for column in Site._meta.fields} - {"code", *_SHOWN})
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise Invalid(
            _("{what}: {problem}"), field=field, what=field, problem=messages[0]
        ) from None
    site.save()
    audit.record(
        actor,
        "site.added" if is_new else "site.changed",
        site,
        before=before,
        after={column: getattr(site, column) for column in _SHOWN},
    )
    return site


def _set_given(site: Site, **columns: Any) -> None:
    for name, value in columns.items():
        if value is not None:
            setattr(site, name, value)


def site_password(site: Site) -> str:
    """The password of the site's endpoint, "" when it has none; works on either side."""
    if site.credentials_id is None:
        return ""
    with platform_context():
        secret = Secret.objects.get(pk=site.credentials_id)
    return secrets.decrypt(secret.sealed, owner=PLATFORM, table=_TABLE, row=str(secret.pk)).decode()


@transaction.atomic
def pause_site(*, site: Site, actor: Any, reason: str) -> Site:
    """Stop selling and hold the site's work. Raises WrongStatus when it is paused."""
    return _moved(site, "pause", actor, reason)


@transaction.atomic
def resume_site(*, site: Site, actor: Any, reason: str = "") -> Site:
    """Sell again. Raises WrongStatus when it is active."""
    return _moved(site, "resume", actor, reason)


def mark_site_cleaning(*, site: Site, cleans_automatically: bool) -> None:
    """Keep what was found out: nothing is sold where automated cleaning is off."""
    Site.objects.filter(pk=site.pk).exclude(cleans_automatically=cleans_automatically).update(
        cleans_automatically=cleans_automatically
    )


def record_site_failure(*, site: Site, error: str) -> None:
    """The site did not answer: keep since when, and its last words without secrets."""
    now = clock.now()
    Site.objects.filter(pk=site.pk, failing_since=None).update(failing_since=now)
    Site.objects.filter(pk=site.pk).update(last_error=secrets.redact_text(error)[:2000])


def record_site_success(*, site: Site) -> None:
    """The site answered."""
    Site.objects.filter(pk=site.pk).update(
        failing_since=None, last_error="", last_seen_at=clock.now()
    )


def claim_site_watch(*, site_id: UUID, seconds: int) -> bool:
    """Become the site's only watcher for so many seconds.

    False while another one is, or none is due.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE public.inventory_site"
            " SET watch_lease_until = public.neo_now() + make_interval(secs => %s)"
            " WHERE id = %s AND watch_due_at <= public.neo_now()"
            " AND (watch_lease_until IS NULL OR watch_lease_until <= public.neo_now())",
            [seconds, site_id],
        )
        return bool(cursor.rowcount)


def finish_site_watch(*, site_id: UUID, next_in_seconds: int = 0) -> None:
    """Let go of the watch; the next one is due in so many seconds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE public.inventory_site SET watch_lease_until = NULL,"
            " watch_due_at = public.neo_now() + make_interval(secs => %s) WHERE id = %s",
            [next_in_seconds, site_id],
        )


def _moved(site: Site, verb: str, actor: Any, reason: str) -> Site:
    site = Site.objects.select_for_update(no_key=True).get(pk=site.pk)
    before = SITE.move(site, verb)
    site.status_reason = reason[:300]
    site.save(update_fields=["status", "status_reason"])
    audit.record(
        actor,
        f"site.{verb}d",
        site,
        reason=reason,
        before={"status": before},
        after={"status": site.status},
    )
    return site


def _sealed(site: Site, password: str) -> Secret:
    secret = site.credentials or Secret(name=f"site {site.code}")
    secret.sealed = secrets.encrypt(
        password.encode(), owner=PLATFORM, table=_TABLE, row=str(secret.pk)
    )
    secret.save()
    return secret


def _refuse_bad_url(field: str, value: str) -> None:
    try:
        parts = urlsplit(value)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or parts.username or len(value) > 200:
        raise BadUrl(field=field, value=secrets.redact_text(value))
