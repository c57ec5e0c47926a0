"""What we own: sites, nodes with their GPUs and NICs, address pools, and who holds what."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import (
    DateTimeRangeField,
    IntegerRangeField,
    RangeOperators,
)
from django.db import models
from django.db.models import F, Q

from apps.catalog.models import CODE, GPUModel, Plan
from apps.core import realms, show
from apps.core.clock import NeoNow
from apps.core.models import Secret
from apps.core.uuids import uuid7
from apps.inventory.states import NodeStatus, SiteStatus


class Site(realms.Public, models.Model):
    """A place with servers behind one infrastructure endpoint."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    code = models.CharField(max_length=60, unique=True, validators=[CODE])
    name = models.CharField(max_length=120)
    name_ko = models.CharField(max_length=120, default="", blank=True)
    timezone = models.CharField(max_length=60, default="Asia/Seoul")
    driver = models.CharField(max_length=30, default="ironic")
    endpoint = models.URLField()
    username = models.CharField(max_length=120, default="", blank=True)
    credentials = models.ForeignKey(Secret, null=True, on_delete=models.PROTECT)
    call_home_url = models.URLField()
    is_simulated = models.BooleanField(default=False)  # fake hardware: proofs say "simulated"
    status = models.CharField(max_length=10, choices=SiteStatus.choices, default=SiteStatus.PAUSED)
    status_reason = models.CharField(max_length=300, default="", blank=True)
    cleans_automatically = models.BooleanField(default=False)  # nothing is sold until it is seen
    is_routable = models.BooleanField(default=False)  # servers can be reached from here
    console_url = models.CharField(  # with {node}; "" asks the infrastructure itself
        max_length=300, default="", blank=True
    )
    concurrency = models.PositiveSmallIntegerField(default=20)
    turn_around_minutes = models.PositiveIntegerField(default=60)  # between two customers of a node
    failing_since = models.DateTimeField(null=True)
    last_error = models.TextField(default="", blank=True)
    last_seen_at = models.DateTimeField(null=True)
    watch_lease_until = models.DateTimeField(null=True)
    watch_due_at = models.DateTimeField(db_default=NeoNow())
    created_at = models.DateTimeField(db_default=NeoNow())

    def __str__(self) -> str:
        return self.name

    @property
    def shown_name(self) -> str:
        """Its name in the reader's language."""
        return show.local(self, "name")


def default_plans() -> list[str]:
    """A node serves every plan until an operator says otherwise."""
    return [str(plan) for plan in Plan.values]


class Node(realms.Public, models.Model):
    """A server. `status` is our belief; `seen_*` is what the infrastructure last said."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="nodes")
    infra_id = models.UUIDField()  # Ironic's UUID
    name = models.CharField(max_length=120)
    status = models.CharField(
        max_length=20, choices=NodeStatus.choices, default=NodeStatus.ENROLLED
    )
    status_reason = models.CharField(max_length=400, default="", blank=True)
    resource_class = models.CharField(max_length=80)
    traits = models.JSONField(default=list)
    gpu_model = models.ForeignKey(GPUModel, null=True, on_delete=models.PROTECT)
    gpu_count = models.PositiveIntegerField(default=0)
    cpus = models.PositiveIntegerField(default=0)
    memory_mib = models.PositiveIntegerField(default=0)
    disk_gb = models.PositiveIntegerField(default=0)
    rack = models.CharField(max_length=40, default="", blank=True)
    unit = models.PositiveSmallIntegerField(null=True)
    serial = models.CharField(max_length=80, default="", blank=True)
    bmc_address = models.CharField(max_length=200, default="", blank=True)
    seen_provision_state = models.CharField(max_length=40, default="", blank=True)
    seen_target_state = models.CharField(max_length=40, default="", blank=True)
    seen_power_state = models.CharField(max_length=20, default="", blank=True)
    seen_maintenance = models.BooleanField(default=False)
    seen_fault = models.CharField(max_length=60, default="", blank=True)
    seen_reservation = models.BooleanField(default=False)  # Ironic's conductor holds the node
    seen_instance = models.UUIDField(null=True)
    seen_last_error = models.TextField(default="", blank=True)
    seen_changed_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    is_cordoned = models.BooleanField(default=False)  # keeps its service, is given to nobody new
    plans = models.JSONField(default=default_plans)  # which plans it may serve
    hardware = models.JSONField(default=dict)  # vendor, product, bios, bmc, nic and GPU firmware
    cleaned_at = models.DateTimeField(null=True)
    clean_proof = models.JSONField(null=True)  # steps, start, end, result, simulated
    created_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["site", "infra_id"], name="node_infra_id_once"),
            models.UniqueConstraint(fields=["site", "name"], name="node_name_once"),
            models.UniqueConstraint(
                fields=["serial"], condition=~Q(serial=""), name="node_serial_once"
            ),
            models.UniqueConstraint(
                fields=["bmc_address"], condition=~Q(bmc_address=""), name="node_bmc_once"
            ),
        ]
        indexes = [models.Index(fields=["site", "resource_class", "status"], name="node_on_offer")]

    def __str__(self) -> str:
        return self.name


class NIC(realms.Public, models.Model):
    """A network port; MAC addresses are kept lower case with colons, so one address is one row."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="nics")
    mac = models.CharField(max_length=17, unique=True)
    name = models.CharField(max_length=60, default="", blank=True)
    switch = models.CharField(max_length=120, default="", blank=True)
    switch_port = models.CharField(max_length=60, default="", blank=True)

    def __str__(self) -> str:
        return self.mac


class GPU(realms.Public, models.Model):
    """A GPU in its slot; UUID and serial become known when a guest reports them."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="gpus")
    position = models.PositiveSmallIntegerField()
    model = models.ForeignKey(GPUModel, on_delete=models.PROTECT)
    uuid = models.CharField(max_length=60, default="", blank=True)
    serial = models.CharField(max_length=60, default="", blank=True)
    memory_mib = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["node", "position"], name="gpu_slot_once")]

    def __str__(self) -> str:
        return f"{self.node_id}:{self.position}"


class NodeEvent(realms.Public, realms.InsertOnly, models.Model):
    """What happened to a node: the history operators read and auditors keep."""

    id = models.BigAutoField(primary_key=True)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="events")
    at = models.DateTimeField(db_default=NeoNow())
    verb = models.CharField(max_length=40)
    status = models.CharField(max_length=20)
    reason = models.TextField(default="")
    actor = models.CharField(max_length=200, default="")

    def __str__(self) -> str:
        return f"{self.verb} at {self.at}"


class Ticket(realms.Public, models.Model):
    """Work on broken hardware: opened by a fault or a person, closed by a person."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="tickets")
    title = models.CharField(max_length=200)
    detail = models.TextField(default="")
    category = models.CharField(max_length=40, default="node")  # node, gpu, nic, disk, bmc, power
    action = models.CharField(max_length=200, default="", blank=True)  # what is done about it
    opened_at = models.DateTimeField(db_default=NeoNow())
    updated_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    resolution = models.TextField(default="")

    def __str__(self) -> str:
        return self.title


class Allocation(realms.Public, models.Model):
    """A tenant holds GPUs of a node during a time; the database refuses a second holder.

    With a reservation the node is held for its term; `service` is who lives there now, if anybody.
    On demand it is held until the agreed end and the site's turn-around, or for ever; who accepts
    a recall may borrow a node that somebody reserved for later.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="allocations")
    gpus = IntegerRangeField()  # slots [0, n): a whole node is all of them
    during = DateTimeRangeField()  # [start, end); the end may be infinity
    tenant = models.UUIDField()
    order = models.UUIDField(null=True)
    service = models.UUIDField(null=True)
    reservation = models.UUIDField(null=True)
    agreed_end = models.DateTimeField(null=True)  # of the service, before the turn-around
    accepts_recall = models.BooleanField(default=False)
    gpu_count = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=NeoNow())
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="node_allocated_once",
                condition=Q(released_at=None),
                expressions=[
                    ("node", RangeOperators.EQUAL),
                    ("gpus", RangeOperators.OVERLAPS),
                    ("during", RangeOperators.OVERLAPS),
                ],
            ),
            models.CheckConstraint(
                name="allocation_has_a_holder",
                condition=Q(service__isnull=False) | Q(reservation__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["tenant"], name="allocation_live", condition=Q(released_at=None)),
            models.Index(fields=["service"], name="allocation_of_service"),
            models.Index(
                fields=["reservation"],
                name="allocation_of_reservation",
                condition=Q(reservation__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node_id} for {self.service}"


class AddressPool(realms.Public, models.Model):
    """Addresses of a site that servers are given: prefix, gateway, DNS, VLAN range."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="address_pools")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=50)  # 10.20.0.0/24
    gateway = models.GenericIPAddressField()
    dns = models.JSONField(default=list)
    first_address = models.GenericIPAddressField()
    last_address = models.GenericIPAddressField()
    vlan_first = models.PositiveIntegerField(default=100)
    vlan_last = models.PositiveIntegerField(default=199)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["site", "name"], name="pool_name_once")]

    def __str__(self) -> str:
        return self.name


class AddressLease(realms.Public, models.Model):
    """An address of a pool held for a service until released."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    pool = models.ForeignKey(AddressPool, on_delete=models.PROTECT, related_name="leases")
    address = models.GenericIPAddressField()
    vlan = models.PositiveIntegerField(null=True)
    tenant = models.UUIDField()
    service = models.UUIDField()
    leased_at = models.DateTimeField(db_default=NeoNow())
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pool", "address"],
                condition=Q(released_at=None),
                name="address_leased_once",
            )
        ]

    def __str__(self) -> str:
        return str(self.address)


class Qualification(realms.Public, models.Model):
    """A combination of hardware and firmware that was really deployed, proven and cleaned here."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    fingerprint = models.CharField(max_length=64, unique=True)  # of `hardware`, sorted
    hardware = models.JSONField(default=dict)  # server, BMC, NIC, GPU, driver and firmware versions
    is_simulated = models.BooleanField(default=False)
    deploys = models.PositiveIntegerField(default=0)
    cleanings = models.PositiveIntegerField(default=0)
    first_proven_at = models.DateTimeField(null=True)
    last_proven_at = models.DateTimeField(null=True)
    last_cleaned_at = models.DateTimeField(null=True)
    last_node = models.ForeignKey(Node, null=True, on_delete=models.PROTECT)
    last_run = models.UUIDField(null=True)  # where its evidence stands

    def __str__(self) -> str:
        return self.fingerprint[:12]


class Maintenance(realms.Public, models.Model):
    """Planned work on nodes, announced to the tenants it touches."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="maintenances")
    nodes = models.ManyToManyField(Node, through="MaintenanceNode", related_name="maintenances")
    title = models.CharField(max_length=200)
    detail = models.TextField(default="", blank=True)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    is_retirement = models.BooleanField(default=False)  # the nodes go out for good then
    announced_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)  # closed or cancelled by a person
    created_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="maintenance_ends_after_it_begins", condition=Q(ends_at__gt=F("starts_at"))
            )
        ]

    def __str__(self) -> str:
        return self.title


class MaintenanceNode(realms.Public, models.Model):
    """A node that planned work touches."""

    maintenance = models.ForeignKey(Maintenance, on_delete=models.CASCADE)
    node = models.ForeignKey(Node, on_delete=models.PROTECT)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["maintenance", "node"], name="maintenance_node_once")
        ]

    def __str__(self) -> str:
        return f"{self.node_id} in {self.maintenance_id}"
