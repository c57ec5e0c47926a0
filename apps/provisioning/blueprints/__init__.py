"""The blueprints, by name and version: an old version stays as long as a run of it may be open."""

from apps.provisioning.blueprints.bare_metal import BARE_METAL
from apps.provisioning.blueprints.bare_metal_removal import BARE_METAL_REMOVAL
from apps.provisioning.blueprints.host_replacement import HOST_REPLACEMENT
from apps.provisioning.blueprints.power import POWER_CYCLE, POWER_OFF, POWER_ON, REBOOT
from apps.provisioning.blueprints.reinstall import REINSTALL
from apps.provisioning.blueprints.rescue import RESCUE, UNRESCUE
from apps.provisioning.engine.steps import Blueprint

TABLE = (  # one line each; the newest version of a name comes last
    BARE_METAL,
    BARE_METAL_REMOVAL,
    POWER_OFF,
    POWER_ON,
    REBOOT,
    POWER_CYCLE,
    REINSTALL,
    RESCUE,
    UNRESCUE,
    HOST_REPLACEMENT,
)
ALL = {(one.name, one.version): one for one in TABLE}
BUILDERS = {one.makes: one for one in TABLE if one.makes}  # service model → what makes it
REMOVERS = {one.removes: one for one in TABLE if one.removes}  # service model → what removes it
# kind of work and service model → what does it
WORK = {("make", model): one for model, one in BUILDERS.items()}
WORK |= {("remove", model): one for model, one in REMOVERS.items()}
WORK |= {(one.verb, one.serves): one for one in TABLE if one.verb}


def get(name: str, version: int) -> Blueprint:
    """A blueprint. Raises KeyError for one that was taken away too early."""
    return ALL[name, version]
