"""Drivers of sites by name: those built in, and any package's by entry point.

[project.entry-points."neocloud.compute"]
my-cloud = "my_package:compute_of"  # called with the Site, returns a ports.Compute
"""

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from django.conf import settings

GROUP = "neocloud.compute"
BUILT_IN = {
    "ironic": "apps.provisioning.adapters.openstack:ironic_of",
}
FOR_TESTS = {"fake": "apps.provisioning.adapters.fake:fake_of"}  # sells nothing that exists


@lru_cache(maxsize=1)
def drivers() -> dict[str, EntryPoint]:
    """Every driver by name; a built-in one cannot be replaced unseen."""
    installed = {point.name: point for point in entry_points(group=GROUP)}
    ours = BUILT_IN | (FOR_TESTS if settings.NEOCLOUD_FAKE_DRIVER else {})
    built_in = {name: EntryPoint(name, value, GROUP) for name, value in ours.items()}
    return installed | built_in
