"""One identity has one form."""

import pytest

from apps.inventory.errors import MalformedMac
from apps.inventory.services.importing import normalised_bmc, normalised_mac


@pytest.mark.parametrize(
    "value", ["02:AB:00:00:00:01", "02-ab-00-00-00-01", "02ab.0000.0001", " 02AB00000001 "]
)
def test_case_and_separators_of_a_mac_do_not_matter(value: str) -> None:
    assert normalised_mac(value) == "02:ab:00:00:00:01"


@pytest.mark.parametrize(
    "value", ["", "02:ab", "02:ab:00:00:00:0g", "02:ab:00:00:00:01:02", "０" * 12]
)
def test_what_is_no_mac_is_refused_with_the_way_to_write_one(value: str) -> None:
    with pytest.raises(MalformedMac, match="such as 52:54:00"):
        normalised_mac(value)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("https://BMC-1.example.com/", "bmc-1.example.com"),
        ("10.0.0.5", "10.0.0.5"),
        ("http://10.0.0.5:8000/redfish/v1/Systems/A", "10.0.0.5:8000/redfish/v1/Systems/A"),
        ("[FD00:0:0::5]", "fd00::5"),
        ("", ""),
    ],
)
def test_a_management_address_has_one_form(value: str, form: str) -> None:
    assert normalised_bmc(value) == form
