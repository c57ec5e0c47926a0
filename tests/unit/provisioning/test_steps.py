"""The contract of steps: what one leaves to the next."""

from dataclasses import dataclass

import pytest

from apps.provisioning.engine.steps import Done, Output


@dataclass(frozen=True)
class Leased(Output, step="lease"):
    """An address."""

    address: str


def test_an_output_is_stored_as_json_and_read_back_as_its_own_type():
    assert Leased.load(Done(Leased("10.0.0.1/24")).stored) == Leased("10.0.0.1/24")


def test_a_field_of_another_version_of_the_step_is_passed_over():
    assert Leased.load({"address": "10.0.0.1/24", "vlan": 7}) == Leased("10.0.0.1/24")


def test_an_output_that_sounds_like_a_secret_is_refused():
    with pytest.raises(TypeError, match="never holds a secret"):

        class Leaky(Output, step="leaky"):
            login_token: str
