"""What an import did or would do, as a table."""

from collections.abc import Iterable
from typing import Any

from django.utils.html import format_html_join
from django.utils.translation import gettext as _

from apps.catalog.reports import CHANGED, CREATED, REFUSED, UNCHANGED, ImportReport, ImportRow
from apps.console.views.runs import plain
from apps.core import show
from apps.core.tables import Column, Empty, Figure, Row, Table


def figures(report: ImportReport) -> list[Figure]:
    """How many rows are new, changed, the same, refused."""
    labels = _labels()
    tones = {CREATED: "green", CHANGED: "yellow", UNCHANGED: "", REFUSED: "red"}
    return [
        Figure(labels[result], number, tone=tones[result] if number else "")
        for result, number in report.counts.items()
    ]


def table(report: ImportReport) -> Table:
    """Row by row: what becomes of it, the difference or what is wrong; unchanged ones last."""
    labels = _labels()
    tones = {CREATED: "green", CHANGED: "yellow", UNCHANGED: "secondary", REFUSED: "red"}
    order = (REFUSED, CHANGED, CREATED, UNCHANGED)
    columns = [
        Column(_("Row")),
        Column(_("Name")),
        Column(_("Result")),
        Column(_("Difference or error"), wrap=True),
    ]
    rows = [
        Row(
            [
                row.place,
                row.name,
                show.badge(row.result, labels[row.result], tone=tones[row.result]),
                _told(row),
            ],
            tone="red" if row.result == REFUSED else "",
        )
        for row in sorted(report.rows, key=lambda row: order.index(row.result))
    ]
    return Table(columns, rows, _("Rows"), empty=Empty(_("Nothing to import"), icon="upload"))


def _labels() -> dict[str, str]:
    return {
        CREATED: _("new"),
        CHANGED: _("changed"),
        UNCHANGED: _("unchanged"),
        REFUSED: _("refused"),
    }


def _told(row: ImportRow) -> Any:
    if row.errors:
        return format_html_join(
            "", "<div><code>{}</code> {}</div>", ((e.field, e.message) for e in row.errors)
        )
    if row.changes and row.result == CHANGED:
        return format_html_join(
            "",
            "<div><code>{}</code> {} → {}</div>",
            ((name, plain(old), plain(new)) for name, (old, new) in row.changes.items()),
        )
    return show.NOTHING


def lines(values: Iterable[Any]) -> Any:
    """Values below each other in one cell; a dash for none."""
    return format_html_join("", "<div>{}</div>", ((value,) for value in values)) or show.NOTHING
