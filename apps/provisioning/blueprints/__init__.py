"""The blueprints, by name and version: an old version stays as long as a run of it may be open."""

from apps.provisioning.blueprints.bare_metal import BARE_METAL
from apps.provisioning.blueprints.bare_metal_removal import BARE_METAL_REMOVAL
from apps.provisioning.engine.steps import Blueprint

TABLE = (  # one line each; the newest version of a name comes last
    BARE_METAL,
    BARE_METAL_REMOVAL,
)
ALL = {(one.name, one.version): one for one in TABLE}
BUILDERS = {one.makes: one for one in TABLE if one.makes}  # service model → what makes it
REMOVERS = {one.removes: one for one in TABLE if one.removes}  # service model → what removes it


def get(name: str, version: int) -> Blueprint:
    """A blueprint. Raises KeyError for one that was taken away too early."""
    return ALL[name, version]
