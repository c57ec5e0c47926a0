"""One adapter per driver; the site says which, and packages add theirs by entry point."""

from apps.inventory.drivers import drivers
from apps.inventory.models import Site
from apps.provisioning.adapters.network import StaticNetwork
from apps.provisioning.ports import Compute, Network, Volumes


def compute_of(site: Site) -> Compute:
    """The way to a site's bare metal service. Raises LookupError naming the drivers there are."""
    found = drivers().get(site.driver)
    if found is None:
        known = ", ".join(sorted(drivers()))
        raise LookupError(
            f"site {site.code} has an unknown driver: {site.driver}; there are: {known}"
        )
    make = found.load()  # only now: an SDK is slow to import
    compute: Compute = make(site)
    return compute


def network_of(site: Site) -> Network:
    """The way to a site's network: static pools of ours, or the fake's."""
    if site.driver == "fake":
        from apps.provisioning.adapters.fake_parts import FakeNetwork

        return FakeNetwork.of(site.code)
    return StaticNetwork()


def volumes_of(site: Site) -> Volumes | None:
    """The way to a site's volumes; None where it has none."""
    if site.driver == "fake":
        from apps.provisioning.adapters.fake_parts import FakeVolumes

        return FakeVolumes.of(site.code)
    return None
