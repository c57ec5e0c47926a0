"""The figures Prometheus is given."""

import pytest

from tests.integration.inventory.builders import a_node, a_site

pytestmark = pytest.mark.django_db
HOST = "console.localhost"


def test_nobody_without_the_token_reads_the_figures(client, settings):
    assert client.get("/metrics", HTTP_HOST=HOST).status_code == 404
    settings.NEOCLOUD_METRICS_TOKEN = "right"
    answer = client.get("/metrics", HTTP_HOST=HOST, HTTP_AUTHORIZATION="Bearer wrong")
    assert answer.status_code == 404


def test_the_figures_say_how_many_nodes_stand_where(client, settings, platform):
    settings.NEOCLOUD_METRICS_TOKEN = "right"
    site = a_site("busan")
    a_node(site)
    a_node(site, status="quarantined")

    answer = client.get("/metrics", HTTP_HOST=HOST, HTTP_AUTHORIZATION="Bearer right")

    text = answer.content.decode()
    assert 'neocloud_nodes{site="busan",status="available"} 1.0' in text
    assert 'neocloud_nodes{site="busan",status="quarantined"} 1.0' in text
    assert "neocloud_outbox_oldest_seconds 0.0" in text


def test_a_tenants_host_has_no_figures(client, settings, acme):
    settings.NEOCLOUD_METRICS_TOKEN = "right"
    answer = client.get("/metrics", HTTP_HOST="acme.localhost", HTTP_AUTHORIZATION="Bearer right")
    assert answer.status_code == 404
