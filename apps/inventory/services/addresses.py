"""Addresses servers are given: the lowest free one of a site's pools, held until released."""

import ipaddress
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from apps.audit import services as audit
from apps.core import clock
from apps.inventory.errors import AddressesExhausted, BadAddress, BadQuantity
from apps.inventory.models import AddressLease, AddressPool, Site

_LAST_VLAN = 4094


@transaction.atomic
def lease_address(*, site: Site, tenant: UUID, service: UUID) -> AddressLease:
    """The address of a service at a site: the one it has, or the lowest free one, pools by name.

    A tenant's servers of a pool share a VLAN nobody else has. Raises AddressesExhausted.
    """
    pools = list(AddressPool.objects.filter(site=site).order_by("name"))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"addresses:{site.pk}"]
        )
        held = AddressLease.objects.filter(
            pool__site=site, service=service, released_at=None
        ).select_related("pool")
        if (lease := held.first()) is not None:
            return lease
        for pool in pools:
            cursor.execute(
                "SELECT host(address), vlan FROM public.inventory_next_address(%s, %s)",
                [pool.pk, tenant],
            )
            if (found := cursor.fetchone()) is not None:
                return AddressLease.objects.create(
                    pool=pool, address=found[0], vlan=found[1], tenant=tenant, service=service
                )
    raise AddressesExhausted(field="site", site=site.shown_name, pools=len(pools))


@transaction.atomic
def release_addresses(*, service: UUID) -> int:
    """Give back every address of the service; how many there were. Safe to repeat."""
    return AddressLease.objects.filter(service=service, released_at=None).update(
        released_at=clock.now()
    )


@transaction.atomic
def save_address_pool(
    *,
    site: Site,
    name: str,
    prefix: str,
    gateway: str,
    first_address: str,
    last_address: str,
    actor: Any,
    dns: Sequence[str] = (),
    vlan_first: int = 100,
    vlan_last: int = 199,
) -> AddressPool:
    """Make or change a site's pool. Raises BadAddress or BadQuantity naming the field."""
    try:
        network = ipaddress.ip_network(prefix)
    except ValueError:
        raise BadAddress(field="prefix", value=prefix, prefix="10.20.0.0/24") from None
    inside = {
        field: _inside(value, network, field)
        for field, value in (
            ("gateway", gateway),
            ("first_address", first_address),
            ("last_address", last_address),
        )
    }
    if int(inside["last_address"]) < int(inside["first_address"]):
        raise BadAddress(
            field="last_address", value=last_address, prefix=f"{first_address} - {network[-1]}"
        )
    if not 1 <= vlan_first <= vlan_last <= _LAST_VLAN:
        raise BadQuantity(
            field="vlan_last",
            what="vlan_last",
            value=vlan_last,
            minimum=max(1, vlan_first),
            maximum=_LAST_VLAN,
        )
    pool, _created = AddressPool.objects.update_or_create(
        site=site,
        name=name,
        defaults={
            "prefix": str(network),
            **{field: str(value) for field, value in inside.items()},
            "dns": list(dns),
            "vlan_first": vlan_first,
            "vlan_last": vlan_last,
        },
    )
    audit.record(actor, "address_pool.saved", pool, after={"prefix": pool.prefix})
    return pool


def _inside(
    value: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network, field: str
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        address = None
    if address is None or address not in network:
        raise BadAddress(field=field, value=value, prefix=str(network))
    return address
