"""The qualification list: hardware that was really deployed, proven and cleaned here."""

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.accounts.access import needs
from apps.console import cells
from apps.core import csvsafe, filters, show
from apps.core.answers import drawn
from apps.core.paging import paginate
from apps.core.tables import Column, Empty, Row, Table
from apps.inventory import selectors
from apps.inventory.models import Qualification
from apps.inventory.services import PARTS

KINDS = (("real", gettext_lazy("Real hardware")), ("simulated", gettext_lazy("Simulated")))
WORDS = {
    "server": gettext_lazy("Server"),
    "bios": "BIOS",
    "bmc": "BMC",
    "nic": gettext_lazy("Network"),
    "gpu": "GPU",
    "gpu_firmware": gettext_lazy("GPU firmware"),
    "driver": gettext_lazy("Driver"),
    "cuda": "CUDA",
}


@needs("node.view")
def qualification_list(request: HttpRequest) -> HttpResponse:
    """Combinations, last proven first."""
    kind = filters.choice(request, "kind", _("Hardware"), _("All hardware"), KINDS)
    text = filters.text(request, _("Part or version"))
    found = selectors.qualifications(text=text.value)
    if kind.value:
        found = found.filter(is_simulated=kind.value == "simulated")
    page = paginate(found, keys=("-id",), cursor=request.GET.get("cursor", ""))
    listing = filters.Listing(_table(page.items), [kind, text], page.next)
    return drawn(request, "console/qualification_list.html", {"listing": listing})


@needs("node.view")
def qualification_file(request: HttpRequest) -> StreamingHttpResponse:
    """The whole list as CSV."""
    response = StreamingHttpResponse(_pieces(), content_type=csvsafe.CONTENT_TYPE)
    response["Content-Disposition"] = 'attachment; filename="qualifications.csv"'
    return response


def _pieces() -> Iterator[bytes]:
    return csvsafe.encoded(selectors.qualification_lines())


def _table(rows: Any) -> Table:
    columns = [
        Column(_("Hardware"), wrap=True),
        Column(_("Kind")),
        Column(_("Deployed"), number=True),
        Column(_("Cleaned"), number=True),
        Column(_("Last proven"), hide="sm"),
        Column(_("Evidence"), hide="md"),
    ]
    return Table(
        columns,
        [
            Row(
                [
                    show.stacked(_words(one), show.code(one.fingerprint[:12])),
                    show.badge("simulated", _("simulated"), tone="yellow")
                    if one.is_simulated
                    else show.badge("ok", _("real")),
                    one.deploys,
                    one.cleanings,
                    show.instant(one.last_proven_at),
                    show.stacked(
                        cells.node_link(one.last_node),
                        show.link(_("Run"), reverse("console:run_detail", args=[one.last_run]))
                        if one.last_run
                        else "",
                    ),
                ]
            )
            for one in rows
        ],
        _("Qualified hardware"),
        empty=Empty(
            _("Nothing is qualified yet"),
            _("Hardware is listed once a server of it was proven ready and cleaned."),
            icon="circle-check",
        ),
    )


def _words(one: Qualification) -> str:
    told = [
        f"{WORDS[name]}: {_plain(one.hardware[name])}" for name in PARTS if name in one.hardware
    ]
    return " · ".join(told)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(str(part) for part in value.values() if part)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
