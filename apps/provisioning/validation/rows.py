"""The rows of a check: what was asked of which component, what came of it, how long it took."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.core import secrets
from apps.core.errors import AppError, OutsideError

MOST_WORDS = 600


@dataclass(frozen=True)
class Item:
    """One thing that is asked: its component, what it is called, the way out when it is not so."""

    component: Promise
    label: Promise
    way_out: Promise


SERVICE, CLEANING = _("Bare metal service"), _("Cleaning")
IMAGES, NODES, NETWORK = _("Images"), _("Nodes"), _("Network")
TRIAL = _("Trial on one node")
ITEMS: dict[str, Item] = {
    "reachable": Item(
        SERVICE,
        _("Answers, with our credentials"),
        _("Check the endpoint, the user and the password of the site, and the way there."),
    ),
    "dialect": Item(
        SERVICE,
        _("Speaks the dialect we need"),
        _("Upgrade Ironic at the site: it is older than what we ask of it."),
    ),
    "clock": Item(
        SERVICE,
        _("Its clock agrees with ours"),
        _("Set up time synchronisation there: proofs of cleaning are compared by time."),
    ),
    "list_nodes": Item(
        SERVICE, _("We may list nodes"), _("Give our user the right to read nodes.")
    ),
    "list_claims": Item(
        SERVICE, _("We may list claims"), _("Give our user the right to read allocations.")
    ),
    "list_ports": Item(
        SERVICE, _("We may list ports"), _("Give our user the right to read ports.")
    ),
    "history": Item(
        SERVICE,
        _("We may read a node's history"),
        _("Give our user the right to read node history, and turn it on: it proves cleaning."),
    ),
    "validate": Item(
        SERVICE,
        _("We may ask whether a node can be deployed"),
        _("Read the reason; set the node's interfaces right, or take it out."),
    ),
    "cleaning_nodes": Item(
        CLEANING,
        _("On for every node"),
        _("Remove automated_clean=false from these nodes: without it nothing is sold."),
    ),
    "cleaning_seen": Item(
        CLEANING,
        _("Seen to work here"),
        _("Run the trial: only a cleaning that was carried out proves that it is on."),
    ),
    "image": Item(
        IMAGES,
        _("Reachable, with the right checksum"),
        _("Correct source or checksum of the image in the catalogue, or publish it again."),
    ),
    "importable": Item(
        NODES,
        _("Can be imported"),
        _("Correct these nodes at the site, then compare its nodes again."),
    ),
    "call_home": Item(
        NETWORK,
        _("Servers reach the call-home address"),
        _("Correct the address of the site: servers prove themselves there."),
    ),
    "addresses": Item(
        NETWORK,
        _("Free addresses"),
        _("Add an address pool, or widen this one."),
    ),
    "hold": Item(TRIAL, _("A free node is held"), _("Free a node, or import one.")),
    "claim": Item(TRIAL, _("Claimed"), _("Read the reason; the node is not as the site says.")),
    "deploy": Item(TRIAL, _("Deployed"), _("Read the reason; fix the image or the node.")),
    "power": Item(TRIAL, _("Switched on"), _("Look at the BMC of the node.")),
    "remove": Item(TRIAL, _("Removed and cleaned"), _("Clean the node by hand at the site.")),
    "proof": Item(
        TRIAL,
        _("Proven clean, back in the pool"),
        _("The node stays in quarantine until a cleaning is proven; turn automated cleaning on."),
    ),
}


def row(
    item: str, ok: bool | None, detail: object = "", *, about: str = "", seconds: float = 0.0
) -> dict[str, Any]:
    """A finished row; `ok` None: nobody can say."""
    return {
        "item": item,
        "about": about,
        "ok": ok,
        "detail": secrets.redact_text(str(detail))[:MOST_WORDS],
        "seconds": round(seconds, 3),
    }


def asked(item: str, ask: Callable[[], object], *, about: str = "") -> dict[str, Any]:
    """Ask, and take an answer for good: what is returned is the detail."""
    began = time.monotonic()
    try:
        detail, ok = ask(), True
    except (OutsideError, AppError) as error:
        detail, ok = error.detail, False
    return row(item, ok, detail or "", about=about, seconds=time.monotonic() - began)


def told(one: dict[str, Any]) -> dict[str, Any]:
    """A row with component, item and way out in the reader's language."""
    item = ITEMS[one["item"]]
    return one | {
        "component": str(item.component),
        "item": str(item.label),
        "way_out": "" if one["ok"] else str(item.way_out),
    }
