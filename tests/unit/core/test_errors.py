"""Errors a person may read, and the kinds of failure outside."""

import pickle
from typing import Any

import pytest
from django.utils import translation
from django.utils.translation import gettext_lazy as _

from apps.core import errors
from apps.core.errors import Conflict, Invalid


class OutOfCapacity(Conflict):
    code = "out_of_capacity"
    message = "Only {free} {gpu} nodes are free in {site}; you asked for {wanted}."


FACTS: dict[str, Any] = {"free": 1, "gpu": "H200", "site": "seoul", "wanted": 3}


def test_a_message_is_filled_with_its_facts():
    error = OutOfCapacity(**FACTS)
    assert str(error) == "Only 1 H200 nodes are free in seoul; you asked for 3."
    assert error.facts == FACTS
    assert (error.status, error.code, error.field) == (409, "out_of_capacity", None)


def test_a_fact_nobody_gave_does_not_hide_the_error():
    assert OutOfCapacity(free=1).detail.startswith("Only 1 {gpu} nodes")


def test_a_message_is_translated_when_it_is_read():
    error = Invalid(_("Yes"))
    with translation.override("ko"):
        korean = error.detail
    with translation.override("en"):
        assert error.detail == "Yes"
    assert korean == "예"


@pytest.mark.parametrize(
    ("family", "status"),
    [
        ("Invalid", 422),
        ("SignInRequired", 401),
        ("Forbidden", 403),
        ("NotFound", 404),
        ("Conflict", 409),
        ("TooMany", 429),
        ("Unavailable", 503),
    ],
)
def test_each_family_has_its_status_and_speaks_without_being_told(family, status):
    error = getattr(errors, family)()
    assert error.status == status
    assert error.detail
    assert "{" not in error.detail


def test_several_errors_of_one_form_come_together():
    merged = Invalid.many(
        [
            Invalid("{n} is too small.", field="quantity", code="too_small", n=0),
            Invalid.many([Invalid("A", field="a"), Invalid("B", field="b")]),
        ]
    )
    assert [part.field for part in merged.errors] == ["quantity", "a", "b"]
    assert merged.detail == "0 is too small. A B"
    assert (merged.field, merged.code) == ("quantity", "too_small")


def test_one_error_alone_stays_itself():
    merged = Invalid.many([Invalid("{n} is too small.", field="quantity", n=0)])
    assert merged.errors == (merged,)
    assert merged.detail == "0 is too small."


def test_no_error_at_all_is_not_an_error():
    with pytest.raises(ValueError, match="at least one"):
        Invalid.many([])


def test_errors_travel_between_processes():
    for error in (OutOfCapacity(field="quantity", **FACTS), errors.TooMany(retry_after=5)):
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        assert (type(copy), copy.detail, copy.field) == (type(error), error.detail, error.field)
    outside = pickle.loads(pickle.dumps(errors.NodeFault("no power", node="n1")))  # noqa: S301
    assert (outside.kind, outside.detail, outside.facts) == (
        "node_fault",
        "no power",
        {"node": "n1"},
    )


def test_every_kind_of_failure_outside_has_one_error():
    kinds = {kind.kind for kind in errors.OutsideError.__subclasses__()}
    assert kinds == set(errors.FailureKind)
