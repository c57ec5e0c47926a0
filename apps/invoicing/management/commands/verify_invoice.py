"""`manage.py verify_invoice NUMBER`: sum an issued invoice again, slowly and independently."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.invoicing.models import Document, InvoiceProjection
from apps.invoicing.verify import verify_invoice
from apps.tenancy.context import platform_context, tenant_by_id, tenant_context


class Command(BaseCommand):
    """Ends with status 1 and names every difference when the sums do not agree."""

    help = "Check an issued invoice against an independent calculation from its facts and prices."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("number")

    def handle(self, *args: Any, **options: Any) -> None:
        number = options["number"]
        with platform_context():
            found = InvoiceProjection.objects.filter(number=number, kind="invoice").first()
        if found is None:
            raise CommandError(f"There is no issued invoice {number}.")
        with tenant_context(tenant_by_id(found.tenant)):
            document = Document.objects.get(pk=found.document)
            findings = verify_invoice(document)
            lines = document.lines.count()
        if findings:
            raise CommandError("\n".join(str(finding) for finding in findings))
        self.stdout.write(f"{number}: {lines} lines, subtotal, tax and total agree.")
