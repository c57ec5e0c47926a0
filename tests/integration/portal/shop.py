"""Something to sell and somebody to buy it: what the portal's tests and pages begin with."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from apps.accounts.models import Project, SSHKey, User
from apps.accounts.roles import Role
from apps.accounts.services import add_ssh_key
from apps.catalog.models import Image, Offering, OfferingImage, PriceBook
from apps.inventory.models import Site
from apps.orders import services as orders
from apps.orders.models import Order, Service
from apps.provisioning import services as provisioning
from apps.provisioning.models import Run, RunStep
from apps.provisioning.states import RunStatus, StepStatus
from apps.tenancy.context import platform_context
from tests.builders import a_price, a_price_book, a_project, an_instant
from tests.integration.inventory.builders import a_node, a_pool, a_site, an_offering
from tests.people import a_person

SKU = "bm-8xh200"
PUBLIC_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsV0nAMv7zqL1m9ZkAjkZ1yq3jD8TQxR3yJp1oM2c4k laptop"
)
PROOF = [
    {"item": "GPU count", "wanted": 8, "seen": 8, "ok": True},
    {"item": "GPU model", "wanted": "NVIDIA H200", "seen": "NVIDIA H200", "ok": True},
    {"item": "SSH keys", "wanted": "1 as ordered", "seen": "1 of 1", "ok": True},
]


@dataclass
class Shop:
    """What is sold, and the people and things of the tenant that buys."""

    site: Site
    offering: Offering
    book: PriceBook
    owner: User
    project: Project
    key: SSHKey


def a_shop(*, nodes: int = 3, price: int = 4000) -> Shop:
    """A site with free servers, one offering with a price, and an owner with project and key."""
    with platform_context():
        site = a_site(name="Seoul 1", is_simulated=True)
        for _number in range(nodes):
            a_node(site)
        a_pool(site)
        offering = an_offering(
            SKU, description="A whole server with eight H200.", name_ko="H200 8장 서버"
        )
        image = Image.objects.create(
            code="ubuntu-24.04",
            name="Ubuntu 24.04",
            source="http://127.0.0.1/ubuntu.img",
            checksum="0" * 64,
        )
        OfferingImage.objects.create(offering=offering, image=image, position=1)
    book = a_price_book()
    a_price(Decimal(price), sku=SKU, book=book, start="2026-01-01T00:00:00")
    owner = a_person(Role.OWNER)
    project = a_project("research")
    key = add_ssh_key(name="laptop", public_key=PUBLIC_KEY, actor=owner)
    return Shop(site, offering, book, owner, project, key)


def an_order_of(
    shop: Shop, *, quantity: int = 1, name: str = "train", queue: bool = False
) -> Order:
    """An order placed through the services, from quote to confirmation."""
    quote = orders.make_quote(
        actor=shop.owner, offering_sku=SKU, site_code=shop.site.code, quantity=quantity
    )
    return orders.place_order(
        actor=shop.owner,
        quote_id=quote.pk,
        project_id=shop.project.pk,
        name=name,
        ssh_key_ids=[shop.key.pk],
        if_unavailable="queue" if queue else "fail",
    )


def a_run_of(service: Service, *, position: int = 3) -> Run:
    """The run that makes a service, standing at its step `position`."""
    run = provisioning.start_run(service_id=service.pk)
    assert run is not None
    RunStep.objects.filter(run=run, position__lt=position).update(
        status=StepStatus.DONE, ended_at=an_instant("2026-03-01T00:00:00")
    )
    Run.objects.filter(pk=run.pk).update(position=position)
    run.refresh_from_db()
    return run


def make_ready(service: Service, *, run: Run | None = None) -> Service:
    """Prove a service ready, as the engine does."""
    run = run or a_run_of(service)
    RunStep.objects.filter(run=run).update(status=StepStatus.DONE)
    RunStep.objects.filter(run=run, name="prove_ready").update(
        evidence=PROOF, ended_at=an_instant("2026-03-01T00:00:00")
    )
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.SUCCEEDED, ended_at=an_instant("2026-03-01T00:10:00"), next_try_at=None
    )
    access = {
        "address": "10.20.0.10",
        "login": "ubuntu",
        "host_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBf3"],
    }
    return orders.mark_ready(service_id=service.pk, run=run.pk, access=access)


def month_before(instant: datetime) -> str:
    """The month before an instant, as 2026-03."""
    year, month = (instant.year, instant.month - 1) if instant.month > 1 else (instant.year - 1, 12)
    return f"{year}-{month:02d}"
