"""The words templates use: money, instants, badges, icons, fields, live parts."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django import template
from django.forms import BoundField, CheckboxInput, CheckboxSelectMultiple, RadioSelect, Select
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import show
from apps.core.live import Live
from apps.core.money import Money

register = template.Library()


@register.filter
def money(value: Money | Decimal | None, currency: str = "") -> str:
    """`{{ line.amount|money:line.currency }}`."""
    return show.money(value, currency)


@register.filter
def instant(value: datetime | None, precision: str = "") -> SafeString:
    """`{{ at|instant }}`, or `{{ at|instant:"seconds" }}`."""
    return show.instant(value, seconds=precision == "seconds")


@register.filter
def duration(value: timedelta | int | None) -> str:
    """`{{ seconds|duration }}`."""
    return show.duration(value)


@register.filter
def local(thing: Any, column: str) -> str:
    """`{{ site|local:"name" }}`: the Korean text for Korean readers where there is one."""
    return show.local(thing, column)


@register.filter
def percent(share: Decimal) -> str:
    """A share as people read it: 0.1000 is 10 %."""
    return f"{(Decimal(share) * 100).normalize():f} %"


@register.simple_tag
def badge(status: Any, label: Any = None, tone: str = "") -> SafeString:
    """`{% badge order.status order.get_status_display %}`."""
    return show.badge(status, label, tone=tone)


@register.simple_tag
def icon(name: str, css: str = "icon") -> SafeString:
    """`{% icon "server" %}`."""
    return show.icon(name, css=css)


@register.filter
def styled(field: BoundField) -> SafeString:
    """The input of a form field, with its look, its hint and its error tied to it."""
    widget = field.field.widget
    css = "form-control"
    if isinstance(widget, CheckboxInput | CheckboxSelectMultiple | RadioSelect):
        css = "form-check-input"
    elif isinstance(widget, Select):
        css = "form-select"
    attributes: dict[str, str | bool] = {"class": f"{css} is-invalid" if field.errors else css}
    told = [f"{field.auto_id}_hint"] if field.help_text else []
    if field.errors:
        attributes["aria-invalid"] = "true"
        told.append(f"{field.auto_id}_error")
    if told:
        attributes["aria-describedby"] = " ".join(told)
    return field.as_widget(attrs=attributes)


@register.filter
def is_box(field: BoundField) -> bool:
    """Whether the field is one check box, whose label stands behind it."""
    widget = field.field.widget
    return isinstance(widget, CheckboxInput)


@register.filter
def is_choice_list(field: BoundField) -> bool:
    """Whether the field is a list of boxes or radio buttons."""
    return isinstance(field.field.widget, CheckboxSelectMultiple | RadioSelect)


@register.simple_tag
def live(part: Live) -> SafeString:
    """The attributes of a live part: `<section {% live part %}>…</section>`."""
    if not part.seconds:
        return format_html('id="{}"', part.id)
    return format_html(
        'id="{}" data-live hx-get="{}" hx-trigger="every {}s, neo:visible" hx-swap="outerHTML"'
        ' hx-target="this" hx-sync="this:drop"',
        part.id,
        part.url,
        part.seconds,
    )
