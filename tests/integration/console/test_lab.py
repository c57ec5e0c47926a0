"""The console asks a real Ironic what it has, shows the difference, and imports it."""

import pytest
from django.conf import settings
from django.urls import reverse

from apps.inventory import services as inventory
from apps.inventory.models import Node
from apps.provisioning.models import SiteCheck
from tests.integration.inventory.builders import a_gpu_model
from tests.people import a_browser, an_operator

pytestmark = pytest.mark.ironic


def test_a_real_site_is_asked_compared_and_imported(platform: None):
    # given the lab as a site nobody has looked at
    admin = an_operator()
    browser = a_browser("console", user=admin)
    for code in ("h200", "h100", "b200"):
        a_gpu_model(code)
    site = inventory.save_site(
        code="lab-1",
        name="Lab 1",
        endpoint=settings.LAB_IRONIC_URL,
        username=settings.LAB_IRONIC_USER,
        password=settings.LAB_IRONIC_PASSWORD,
        call_home_url=settings.NEOCLOUD_CALL_HOME_URL,
        is_simulated=True,
        actor=admin,
    )

    def post(name: str, **fields: str) -> str:
        url = reverse(f"console:{name}", args=[site.pk], urlconf="neocloud.urls_platform")
        answer = browser.post(url, fields)
        assert answer.status_code == 200, answer.text
        return str(answer.text)

    # when it is asked, it answers and says that it cleans
    url = reverse("console:site_validate", args=[site.pk], urlconf="neocloud.urls_platform")
    assert browser.post(url, {}).status_code == 302
    check = SiteCheck.objects.get()
    url = reverse("console:check_detail", args=[check.pk], urlconf="neocloud.urls_platform")
    page = browser.get(url).text
    assert "Speaks the dialect we need" in page
    assert "On for every node" in page
    site.refresh_from_db()
    assert site.cleans_automatically
    # when its nodes are compared, they are shown and not kept
    assert "Nothing was changed." in post("site_import")
    assert not Node.objects.exists()
    # when they are imported, they are there, and a second time nothing changes
    post("site_import", keep="1")
    count = Node.objects.count()
    assert count > 0
    assert "unchanged" in post("site_import", keep="1")
    assert Node.objects.count() == count
