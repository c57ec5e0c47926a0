"""One adapter per driver; the site says which."""

from apps.inventory.models import Site
from apps.inventory.services import site_password
from apps.provisioning.adapters.network import StaticNetwork
from apps.provisioning.ports import Compute, Network


def compute_of(site: Site) -> Compute:
    """The way to a site's bare metal service. Raises LookupError for an unknown driver."""
    if site.driver == "ironic":
        from apps.provisioning.adapters.openstack import Ironic  # the SDK is slow to import

        return Ironic(endpoint=site.endpoint, username=site.username, password=site_password(site))
    if site.driver == "fake":
        from apps.provisioning.adapters.fake import FakeCompute

        return FakeCompute.of(site.code)
    raise LookupError(f"site {site.code} has an unknown driver: {site.driver}")


def network_of(site: Site) -> Network:
    """The way to a site's network: static pools of ours, or the fake's."""
    if site.driver == "fake":
        from apps.provisioning.adapters.fake_parts import FakeNetwork

        return FakeNetwork.of(site.code)
    return StaticNetwork()
