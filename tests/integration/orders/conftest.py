"""A site with a few fake servers."""

import pytest

from tests.integration.provisioning import world


@pytest.fixture
def site(platform):
    """A site that sells two servers."""
    return world.a_fake_site(nodes=2)
