"""Drivers by name: built in, added by a package, or refused with the list."""

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from apps.inventory import drivers as registry
from apps.inventory import services as inventory
from apps.inventory.errors import UnknownDriver
from apps.inventory.models import Site
from apps.provisioning import adapters
from tests.integration.inventory.builders import a_site


def compute_of_a_package(site: Site) -> tuple[str, str]:
    """What somebody's package makes of a site."""
    return ("theirs", site.code)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package with a driver is installed; it also claims the name of ours."""
    points = [
        EntryPoint("theirs", f"{__name__}:compute_of_a_package", registry.GROUP),
        EntryPoint("ironic", f"{__name__}:compute_of_a_package", registry.GROUP),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    registry.drivers.cache_clear()
    yield
    registry.drivers.cache_clear()


def test_a_package_adds_a_driver_and_replaces_none(platform: None, installed: None) -> None:
    assert adapters.compute_of(a_site("one", driver="theirs")) == ("theirs", "one")
    assert type(adapters.compute_of(a_site("two", driver="ironic"))).__name__ == "Ironic"


def test_an_unknown_driver_is_refused_with_the_list(platform: None) -> None:
    with pytest.raises(UnknownDriver, match="fake, ironic"):
        inventory.save_site(
            code="x",
            name="x",
            endpoint="http://127.0.0.1:1",
            call_home_url="http://127.0.0.1:1/call-home",
            driver="vmware",
            actor=None,
        )
    with pytest.raises(LookupError, match="there are: fake, ironic"):
        adapters.compute_of(a_site("three", driver="vmware"))
