"""`manage.py seed_demo`: a small operator to look at: staff, two tenants, a catalog,
the lab as a site.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.accounts import services as accounts
from apps.accounts.models import User
from apps.accounts.roles import Role
from apps.catalog import services as catalog
from apps.core import clock
from apps.inventory import services as inventory
from apps.inventory.models import Site
from apps.inventory.states import SiteStatus
from apps.invoicing import sellers
from apps.invoicing.models import InvoiceProjection
from apps.orders import services as orders
from apps.provisioning import services as provisioning
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant

STAFF = (
    ("operator@console.localhost", "Operator", Role.OPERATOR, "operations console"),
    ("finance@console.localhost", "Finance", Role.FINANCE, "finance desk"),
    ("admin@console.localhost", "Administrator", Role.PLATFORM_ADMIN, "console and finance"),
)
TENANTS = (
    ("acme", "Acme AI", {"currency": "KRW", "language": "ko"}),
    (
        "globex",
        "Globex Research",
        {
            "currency": "USD",
            "language": "en",
            "billing_timezone": "America/Los_Angeles",
            "vat_rate": "0",
        },
    ),
)
SITE = "lab-1"


SELLER = {
    "legal_name": "NeoCloud Demo",
    "address": "demo operator; fill in your own under Finance, Seller",
}


class Command(BaseCommand):
    """Make what is missing; change nothing that is there."""

    help = __doc__

    def add_arguments(self, parser: Any) -> None:
        """One flag."""
        parser.add_argument(
            "--story",
            action="store_true",
            help="only print a tenant without an invoice of this month, made if there is none",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Seed, then print the sign-ins."""
        if not settings.DEMO_PASSWORD or not settings.LAB_IRONIC_URL:
            raise CommandError("DEMO_PASSWORD and LAB_IRONIC_URL are set by ./dev; run ./dev up")
        if options["story"]:
            with platform_context():
                self.stdout.write(f"story-tenant: {self._story_tenant()}")
            return
        with platform_context():
            for email, name, role, _what in STAFF:
                self._person(email, name, role)
            self._catalog()
            self._site()
            if not sellers.seller_printed():
                sellers.save_seller(actor=None, **SELLER)
            for slug, name, terms in TENANTS:
                self._tenant(slug, name, terms)
        for email, _name, _role, what in STAFF:
            self.stdout.write(f"sign-in: {email}  {what}")
        for slug, name, terms in TENANTS:
            reads = ", in Korean" if terms["language"] == "ko" else ""
            self.stdout.write(f"sign-in: owner@{slug}.localhost  portal of {name}{reads}")

    def _person(self, email: str, name: str, role: str) -> None:
        person = User.objects.filter(email=email).first()
        if person is None:
            accounts.create_person(
                email=email, name=name, role=role, password=settings.DEMO_PASSWORD, actor=None
            )
        elif not person.check_password(settings.DEMO_PASSWORD):
            person.set_password(settings.DEMO_PASSWORD)
            person.save(update_fields=["password"])

    def _catalog(self) -> None:
        text = (Path(settings.BASE_DIR) / "data" / "catalog.yaml").read_text()
        catalog.import_catalog(text=text, dry_run=False, actor=None)

    def _site(self) -> None:
        before = Site.objects.filter(code=SITE).first()
        site = inventory.save_site(
            code=SITE,
            name="Lab 1",
            name_ko="랩 1",
            endpoint=settings.LAB_IRONIC_URL,
            username=settings.LAB_IRONIC_USER,
            password=settings.LAB_IRONIC_PASSWORD,
            call_home_url=settings.NEOCLOUD_CALL_HOME_URL,
            is_simulated=True,
            actor=None,
        )
        inventory.save_address_pool(
            site=site,
            name="servers",
            prefix="10.20.0.0/24",
            gateway="10.20.0.1",
            first_address="10.20.0.11",
            last_address="10.20.0.250",
            dns=["10.20.0.2"],
            actor=None,
        )
        provisioning.validate_site(site=site, actor=None)
        provisioning.discover_site(site=site, actor=None)
        if before is None and site.status == SiteStatus.PAUSED:
            inventory.resume_site(site=site, actor=None, reason="set up")

    def _tenant(self, slug: str, name: str, terms: dict[str, Any]) -> None:
        tenant = Tenant.objects.filter(slug=slug).first()
        email = f"owner@{slug}.localhost"
        if tenant is None:
            orders.open_tenant(
                slug=slug,
                name=name,
                owner_email=email,
                owner_name="Owner",
                owner_password=settings.DEMO_PASSWORD,
                actor=None,
                **terms,
            )
            return
        with tenant_context(tenant):
            self._person(email, "Owner", Role.OWNER)

    def _story_tenant(self) -> str:
        """A tenant whose running month has no invoice yet: a month is invoiced once."""
        invoiced = set(
            InvoiceProjection.objects.filter(
                created_at__gte=clock.now() - timedelta(days=32), kind="invoice"
            ).values_list("tenant", flat=True)
        )
        acme = Tenant.objects.get(slug="acme")
        if acme.id not in invoiced:
            return str(acme.slug)
        slug = f"demo-{1 + Tenant.objects.filter(slug__startswith='demo-').count()}"
        self._tenant(slug, f"Customer {slug}", {"currency": "KRW", "language": "en"})
        return slug
