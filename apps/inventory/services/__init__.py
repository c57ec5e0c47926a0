"""Every change to what we own: sites, nodes, capacity, addresses."""

from apps.inventory.services.addresses import lease_address, release_addresses, save_address_pool
from apps.inventory.services.capacity import (
    allocate,
    held_until,
    hold_free_node,
    lent_until,
    move_hold_end,
    release,
    replace_allocation,
)
from apps.inventory.services.cordons import (
    cordon_node,
    cordon_rack,
    services_on,
    uncordon_node,
)
from apps.inventory.services.gpus import note_gpus, note_hardware
from apps.inventory.services.importing import import_nodes
from apps.inventory.services.maintenance import (
    announce_maintenance,
    end_maintenance,
    plan_maintenance,
)
from apps.inventory.services.nodes import (
    last_lease,
    note_cleaning,
    quarantine,
    recycle,
    restore_node,
    retire_node,
    service_node,
)
from apps.inventory.services.observing import note_observation
from apps.inventory.services.qualifying import PARTS, note_cleaned, note_proven
from apps.inventory.services.sites import (
    claim_site_watch,
    finish_site_watch,
    mark_site_cleaning,
    pause_site,
    record_site_failure,
    record_site_success,
    resume_site,
    save_site,
    site_password,
)
from apps.inventory.services.terms import hold_term, leave_term, move_term, release_term
from apps.inventory.services.tickets import (
    CATEGORIES,
    close_ticket,
    ensure_ticket,
    open_ticket,
    update_ticket,
)

__all__ = [
    "CATEGORIES",
    "PARTS",
    "allocate",
    "announce_maintenance",
    "claim_site_watch",
    "close_ticket",
    "cordon_node",
    "cordon_rack",
    "end_maintenance",
    "ensure_ticket",
    "finish_site_watch",
    "held_until",
    "hold_free_node",
    "hold_term",
    "import_nodes",
    "last_lease",
    "lease_address",
    "leave_term",
    "lent_until",
    "mark_site_cleaning",
    "move_hold_end",
    "move_term",
    "note_cleaned",
    "note_cleaning",
    "note_gpus",
    "note_hardware",
    "note_observation",
    "note_proven",
    "open_ticket",
    "pause_site",
    "plan_maintenance",
    "quarantine",
    "record_site_failure",
    "record_site_success",
    "recycle",
    "release",
    "release_addresses",
    "release_term",
    "replace_allocation",
    "restore_node",
    "resume_site",
    "retire_node",
    "save_address_pool",
    "save_site",
    "service_node",
    "services_on",
    "site_password",
    "uncordon_node",
    "update_ticket",
]
