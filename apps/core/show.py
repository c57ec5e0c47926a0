"""How values look on a page: money, instants, durations, statuses. Every function gives safe HTML
or text.
"""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from apps.core import instants
from apps.core.money import Money, format_money

NOTHING = "–"
NO_INSTANT = format_html('<span class="text-secondary">{}</span>', NOTHING)

_GOOD = "active available issued accepted done succeeded ready ok passed completed on"
_BUSY = (
    "provisioning forward running waiting working cleaning placed approved scheduled creating"
    " delivered open"
)
_WARN = (
    "queued in_queue retrying replacing delayed stopped suspended draft undoing maintenance paused"
    " degraded due unread preempted"
)
_BAD = "failed held looked_at quarantined refused leaked error overdue broken revoked expired"
TONES: dict[str, str] = {
    **dict.fromkeys(_GOOD.split(), "green"),
    **dict.fromkeys(_BUSY.split(), "azure"),
    **dict.fromkeys(_WARN.split(), "yellow"),
    **dict.fromkeys(_BAD.split(), "red"),
}
MOVING = frozenset(
    [
        "provisioning",
        "forward",
        "running",
        "waiting",
        "working",
        "cleaning",
        "undoing",
        "deleting",
        "in_queue",
        "retrying",
        "replacing",
        "stopping",
        "powering",
        "rebooting",
        "reinstalling",
        "rescuing",
    ]
)


def money(value: Money | Decimal | None, currency: str = "") -> str:
    """An amount as the reader's language writes it; a dash for None."""
    if value is None:
        return NOTHING
    amount = value if isinstance(value, Money) else Money(_plain(Decimal(value)), currency)
    return format_money(amount, get_language() or "en")


def instant(value: datetime | None, *, seconds: bool = False) -> SafeString:
    """An instant in the zone of this side, exact and in UTC for programs and on hover."""
    if value is None:
        return NO_INSTANT
    text, name = instants.in_zone(value, seconds=seconds)
    utc = value.astimezone(ZoneInfo("UTC")).strftime("%Y-%m-%dT%H:%M:%SZ")
    return format_html(
        '<time datetime="{}" title="{}" class="text-nowrap">{}'
        ' <span class="neo-zone">{}</span></time>',
        utc,
        utc,
        text,
        name,
    )


def reads_korean() -> bool:
    """Whether the reader's language is Korean."""
    return (get_language() or "").startswith("ko")


def local(thing: Any, column: str) -> str:
    """A text that exists in Korean too, in the reader's language."""
    korean = reads_korean() and getattr(thing, f"{column}_ko")
    return str(korean or getattr(thing, column))


def duration(value: timedelta | int | float | None) -> str:
    """A length of time in its two largest units: 3 d 4 h, 12 min 5 s."""
    if value is None:
        return NOTHING
    total = int(value.total_seconds() if isinstance(value, timedelta) else value)
    sign, total = ("-", -total) if total < 0 else ("", total)
    days, rest = divmod(total, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    parts = (
        (days, _("{n} d")),
        (hours, _("{n} h")),
        (minutes, _("{n} min")),
        (left, _("{n} s")),
    )
    first = next((place for place, (count, _unit) in enumerate(parts) if count), 3)
    shown = [unit.format(n=count) for count, unit in parts[first : first + 2] if count]
    return sign + (" ".join(shown) or parts[3][1].format(n=0))


def count(number: int, singular: str, plural: str) -> str:
    """`3 servers`: the number with its word; both words are message ids."""
    return f"{number:,} {ngettext(singular, plural, number)}"


def badge(status: Any, label: Any = None, *, tone: str = "") -> SafeString:
    """A status with its colour and its word; what is under way has a moving dot."""
    value = str(getattr(status, "value", status) or "")
    text = label if label is not None else getattr(status, "label", value.replace("_", " "))
    chosen = tone or TONES.get(value, "secondary")
    dot = "status-dot status-dot-animated" if value in MOVING else "status-dot"
    return format_html(
        '<span class="status status-{}"><span class="{}" aria-hidden="true"></span>{}</span>',
        chosen,
        dot,
        text,
    )


def link(text: Any, url: str) -> SafeString:
    """A link to a page of ours."""
    return format_html('<a href="{}">{}</a>', url, text)


def code(text: Any) -> SafeString:
    """Something a machine reads: a name, an address, a key."""
    return format_html("<code>{}</code>", text) if text else NO_INSTANT


def strong(text: Any) -> SafeString:
    """What stands out of its row."""
    return format_html("<strong>{}</strong>", text)


def stacked(main: Any, under: Any) -> SafeString:
    """Two lines in one cell: what it is, and in grey what goes with it."""
    return format_html('<div>{}</div><div class="text-secondary small">{}</div>', main, under)


def icon(name: str, *, css: str = "icon") -> SafeString:
    """A drawing of the sprite, for eyes only: the word beside it says the same."""
    return format_html(
        '<svg class="{}" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        css,
        static("sprite.svg"),
        name,
    )


def _plain(value: Decimal) -> Decimal:
    """Without the zeros a NUMERIC column adds: 38025.0000 is 38025."""
    whole = value.to_integral_value()
    return whole if value == whole else value.normalize()
