"""Drivers of sites by name: those built in, and any package's by entry point.

[project.entry-points."neocloud.compute"]
my-cloud = "my_package:compute_of"  # called with the Site, returns a ports.Compute
"""

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

GROUP = "neocloud.compute"
BUILT_IN = {
    "ironic": "apps.provisioning.adapters.openstack:ironic_of",
    "fake": "apps.provisioning.adapters.fake:fake_of",
}


@lru_cache(maxsize=1)
def drivers() -> dict[str, EntryPoint]:
    """Every driver by name; a built-in one cannot be replaced unseen."""
    installed = {point.name: point for point in entry_points(group=GROUP)}
    built_in = {name: EntryPoint(name, value, GROUP) for name, value in BUILT_IN.items()}
    return installed | built_in
