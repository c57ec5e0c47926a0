"""Taking a site's nodes in: every row by itself, identities normalised and unique."""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction

from apps.audit import services as audit
from apps.catalog.models import GPUModel
from apps.catalog.reports import (
    CHANGED,
    CREATED,
    REFUSED,
    UNCHANGED,
    ImportReport,
    ImportRow,
    row_errors,
)
from apps.core import clock
from apps.core.errors import AppError, Invalid
from apps.inventory.errors import (
    BadQuantity,
    DuplicateHardware,
    MalformedMac,
    MissingValue,
    UnknownGPU,
)
from apps.inventory.models import GPU, NIC, Node, NodeEvent, Site
from apps.inventory.observations import ObservedNode
from apps.inventory.services.nodes import moved
from apps.inventory.services.observing import seen_columns
from apps.inventory.states import NodeStatus

_MAC = re.compile(r"[0-9a-f]{12}", re.ASCII)
_LARGEST = 2_147_483_647
_MOST_GPUS = 64


def normalised_mac(value: str, *, name: str = "nics.mac") -> str:
    """A MAC address in lower case with colons. Raises MalformedMac."""
    digits = re.sub(r"[:.\-\s]", "", value).lower()
    if not _MAC.fullmatch(digits):
        raise MalformedMac(field=name, value=value)
    return ":".join(digits[index : index + 2] for index in range(0, 12, 2))


def normalised_bmc(value: str) -> str:
    """A management address in one form.

    No scheme, lower case host, IPv6 shortened, no slash at the end.
    """
    text = re.sub(r"^[a-z][a-z0-9+.-]*://", "", value.strip(), flags=re.IGNORECASE).rstrip("/")
    host, slash, path = text.partition("/")
    host = host.lower()
    with suppress(ValueError):  # a name, or an address with its port: lower case is its one form
        host = str(ipaddress.ip_address(host.strip("[]")))
    return host + slash + path


@dataclass
class _Row:
    """A row made ready: columns of the node, its ports and GPUs by slot."""

    columns: dict[str, Any]
    nics: dict[str, dict[str, str]]
    gpus: list[GPUModel]


@dataclass
class _Known:
    """Who has which identity: what is stored, and the rows of this import so far."""

    models: list[GPUModel]
    nodes: dict[Any, Node]
    owners: dict[tuple[str, str], tuple[Any, str]] = field(default_factory=dict)

    def refuse_taken(self, infra_id: Any, claims: Iterable[tuple[str, str]]) -> None:
        """Raise DuplicateHardware naming the other node."""
        for what, value in claims:
            owner = self.owners.get((what, value))
            if value and owner is not None and owner[0] != infra_id:
                raise DuplicateHardware(field=what, what=what, value=value, other=owner[1])

    def claim(self, infra_id: Any, name: str, claims: Iterable[tuple[str, str]]) -> None:
        """Write down whose identities these are now."""
        for stale in [key for key, owner in self.owners.items() if owner[0] == infra_id]:
            del self.owners[stale]
        self.owners.update({key: (infra_id, name) for key in claims if key[1]})


def import_nodes(
    *, site: Site, observed: Iterable[ObservedNode], actor: Any, dry_run: bool = False
) -> ImportReport:
    """Make or change the site's nodes from what its infrastructure says.

    Those available there are admitted to the pool.
    Each row is told by itself and a bad one spoils no other; repeating an import changes nothing.
    MAC addresses, management addresses and serial numbers belong to one node only.
    """
    rows: list[ImportRow] = []
    with transaction.atomic():
        known = _known(site)
        for number, one in enumerate(observed, start=1):
            rows.append(_import_row(site, number, one, known))
        report = ImportReport(tuple(rows), is_dry_run=dry_run, was_applied=not dry_run)
        if dry_run:
            transaction.set_rollback(True)
        else:
            audit.record(actor, "nodes.imported", site, after=report.counts)
    return report


def _known(site: Site) -> _Known:
    nodes = list(Node.objects.filter(site=site).prefetch_related("nics", "gpus"))
    known = _Known(list(GPUModel.objects.order_by("code")), {node.infra_id: node for node in nodes})
    everywhere = Node.objects.values_list("infra_id", "name", "serial", "bmc_address", "site_id")
    for infra_id, name, serial, bmc, site_id in everywhere:
        pairs = [("serial", serial), ("bmc_address", bmc)]
        if site_id == site.pk:
            pairs.append(("name", name))
        known.owners.update({pair: (infra_id, name) for pair in pairs if pair[1]})
    for mac, infra_id, name in NIC.objects.values_list("mac", "node__infra_id", "node__name"):
        known.owners["mac", mac] = (infra_id, name)
    return known


def _import_row(site: Site, number: int, one: ObservedNode, known: _Known) -> ImportRow:
    place = f"row {number}"
    try:
        row = _read(one, known)
        claims = [
            ("name", one.name),
            ("serial", row.columns["serial"]),
            ("bmc_address", row.columns["bmc_address"]),
            *(("mac", mac) for mac in row.nics),
        ]
        known.refuse_taken(one.infra_id, claims)
        try:
            with transaction.atomic():
                result, changes = _store(site, one, row, known)
        except IntegrityError:
            raise DuplicateHardware(
                field="infra_id", what="infra_id", value=one.infra_id, other=one.name
            ) from None
    except AppError as error:
        return ImportRow(place, one.name, REFUSED, errors=row_errors(error))
    known.claim(one.infra_id, one.name, claims)
    return ImportRow(place, one.name, result, changes)


def _read(one: ObservedNode, known: _Known) -> _Row:
    problems: list[AppError] = [
        MissingValue(field=name, what=name)
        for name in ("name", "resource_class")
        if not getattr(one, name).strip()
    ]
    quantities = {}
    for name in ("cpus", "memory_mib", "disk_gb"):
        value = one.properties.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
            problems.append(
                BadQuantity(field=name, what=name, value=value, minimum=0, maximum=_LARGEST)
            )
        quantities[name] = value
    nics: dict[str, dict[str, str]] = {}
    for nic in one.nics:
        try:
            mac = normalised_mac(nic.mac)
        except MalformedMac as error:
            problems.append(error)
            continue
        if mac in nics:
            problems.append(DuplicateHardware(field="mac", what="mac", value=mac, other=one.name))
        nics[mac] = {"name": nic.name, "switch": nic.switch, "switch_port": nic.switch_port}
    try:
        gpus = _gpus(one.properties, known.models)
    except AppError as error:
        problems.append(error)
        gpus = []
    if problems:
        raise Invalid.many(problems)
    kinds = {model.pk for model in gpus}
    columns = {
        "name": one.name,
        "resource_class": one.resource_class,
        "traits": sorted(one.traits),
        "gpu_model_id": gpus[0].pk if len(kinds) == 1 else None,
        "gpu_count": len(gpus),
        **quantities,
        "rack": one.rack,
        "unit": one.unit,
        "serial": one.serial.strip(),
        "bmc_address": normalised_bmc(one.bmc_address),
    }
    return _Row(columns, nics, gpus)


def _gpus(properties: Mapping[str, Any], models: list[GPUModel]) -> list[GPUModel]:
    """A model for each GPU slot, in order. Raises UnknownGPU or BadQuantity."""
    slots: list[GPUModel] = []
    for entry in properties.get("gpu", ()):
        wanted = str(entry.get("model_code") or entry.get("reported_name") or "")
        model = next((m for m in models if wanted in (m.code, m.reported_name)), None)
        if model is None:
            known = ", ".join(m.code for m in models) or "-"
            raise UnknownGPU(field="properties.gpu", value=wanted, known=known)
        count = entry.get("count", 1)
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MOST_GPUS:
            raise BadQuantity(
                field="properties.gpu", what="count", value=count, minimum=1, maximum=_MOST_GPUS
            )
        slots += [model] * count
    return slots


def _store(
    site: Site, one: ObservedNode, row: _Row, known: _Known
) -> tuple[str, dict[str, tuple[Any, Any]]]:
    node = known.nodes.get(one.infra_id)
    seen = seen_columns(one)
    if node is None:
        node = Node(site=site, infra_id=one.infra_id, **row.columns, **seen, seen_at=clock.now())
        node.save(force_insert=True)
        NodeEvent.objects.create(node=node, verb="import", status=node.status)
        changes: dict[str, tuple[Any, Any]] = {}
        result = CREATED
    else:
        changes = {
            name: (getattr(node, name), value)
            for name, value in row.columns.items()
            if getattr(node, name) != value
        }
        for name, value in {**row.columns, **seen}.items():
            setattr(node, name, value)
        node.seen_at = clock.now()
        node.save(update_fields=[*row.columns, *seen, "seen_at"])
        result = CHANGED
    changes |= _store_nics(node, row.nics, is_new=result == CREATED)
    changes |= _store_gpus(node, row.gpus, is_new=result == CREATED)
    if node.status == NodeStatus.ENROLLED and _is_admissible(node):
        moved(node, "admit")
        changes["status"] = (NodeStatus.ENROLLED.value, node.status)
    if result == CHANGED:
        changes = {key: (str(old), str(new)) for key, (old, new) in changes.items()}
        if not changes:
            return UNCHANGED, {}
        NodeEvent.objects.create(
            node=node, verb="import", status=node.status, reason=", ".join(sorted(changes))
        )
        return CHANGED, changes
    known.nodes[one.infra_id] = node
    return CREATED, {}


def _is_admissible(node: Node) -> bool:
    return (
        node.seen_provision_state == "available"
        and not node.seen_maintenance
        and node.seen_instance is None
    )


def _store_nics(
    node: Node, wanted: dict[str, dict[str, str]], *, is_new: bool
) -> dict[str, tuple[Any, Any]]:
    have = {} if is_new else {nic.mac: nic for nic in node.nics.all()}
    before = {
        mac: {"name": nic.name, "switch": nic.switch, "switch_port": nic.switch_port}
        for mac, nic in have.items()
    }
    if before == wanted:
        return {}
    gone = [nic.pk for mac, nic in have.items() if mac not in wanted]
    NIC.objects.filter(pk__in=gone).delete()
    NIC.objects.bulk_create(
        [NIC(node=node, mac=mac, **columns) for mac, columns in wanted.items()],
        update_conflicts=True,
        unique_fields=["mac"],
        update_fields=["name", "switch", "switch_port"],
    )
    return {"nics": (", ".join(sorted(before)), ", ".join(sorted(wanted)))}


def _store_gpus(node: Node, wanted: list[GPUModel], *, is_new: bool) -> dict[str, tuple[Any, Any]]:
    have = [] if is_new else sorted(node.gpus.all(), key=lambda gpu: gpu.position)
    if [gpu.model_id for gpu in have] == [model.pk for model in wanted]:
        return {}
    GPU.objects.filter(node=node).delete()
    GPU.objects.bulk_create(
        GPU(node=node, position=position, model=model, memory_mib=model.memory_mib)
        for position, model in enumerate(wanted)
    )
    return {"gpus": (len(have), len(wanted))}
