"""Runbooks: what is seen, what it means, what to do; the pages of `docs/runbooks`."""

from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt

from apps.accounts.access import needs
from apps.core import show
from apps.core.errors import NotFound
from apps.core.tables import Column, Row, Table

FOLDER = Path(settings.BASE_DIR) / "docs" / "runbooks"
_DRAW = MarkdownIt("commonmark", {"html": False}).enable("table")


@needs("run.view")
def runbook_list(request: HttpRequest) -> HttpResponse:
    """All runbooks."""
    rows = [
        Row([show.link(_title(path), reverse("console:runbook", args=[path.stem]))])
        for path in sorted(FOLDER.glob("*.md"))
        if path.stem != "README"
    ]
    table = Table([Column(_("Runbook"))], rows, _("Runbooks"))
    return render(request, "console/runbook_list.html", {"table": table})


@needs("run.view")
def runbook(request: HttpRequest, name: str) -> HttpResponse:
    """One runbook, in the reader's language where it is written in it."""
    path = FOLDER / f"{name}.md"  # a slug: it cannot lead out of the folder
    if not path.is_file() or name == "README":
        raise NotFound()
    title, text = _title(path), _local(path).read_text(encoding="utf-8").partition("\n")[2]
    body = SafeString(_DRAW.render(text))
    return render(request, "console/runbook.html", {"heading": title, "body": body})


def _local(path: Path) -> Path:
    translated = FOLDER / (get_language() or "en") / path.name
    return translated if translated.is_file() else path


def _title(path: Path) -> str:
    return _local(path).read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
