"""Who sells: the operator's legal data, printed on every document."""

import re
from typing import Any

from django.db import transaction
from django.forms.models import model_to_dict
from django.utils.translation import gettext_lazy as _

from apps.audit import services as audit
from apps.core.errors import Invalid
from apps.invoicing.models import Seller

KOREAN_NUMBER = re.compile(r"\d{3}-?\d{2}-?\d{5}")
WEIGHTS = (1, 3, 7, 1, 3, 7, 1, 3, 5)


class WrongRegistrationNumber(Invalid):
    """Ten digits that no tax office has given out."""

    code = "wrong_registration_number"
    message = _(
        "{number} is not a Korean business registration number: its last digit should be {digit}."
        " Look at the certificate again."
    )


def check_registration_number(number: str, *, field: str = "registration_number") -> str:
    """The number as it is written, `123-45-67891` when it is Korean; others stay as they are.

    The last of ten digits is a check digit: ten minus the weighted sum of the others with the tens
    of five times the ninth, modulo ten (National Tax Service). Raises WrongRegistrationNumber.
    """
    number = number.strip()
    if not KOREAN_NUMBER.fullmatch(number):
        return number
    digits = [int(one) for one in number.replace("-", "")]
    total = sum(one * weight for one, weight in zip(digits, WEIGHTS, strict=False))
    wanted = (10 - (total + digits[8] * 5 // 10) % 10) % 10
    if digits[9] != wanted:
        raise WrongRegistrationNumber(number=number, digit=wanted, field=field)
    text = "".join(map(str, digits))
    return f"{text[:3]}-{text[3:5]}-{text[5:]}"


def seller_printed() -> dict[str, str]:
    """The seller's data as a document freezes them; empty until somebody has filled them in."""
    seller = Seller.objects.first()
    return {} if seller is None else model_to_dict(seller, exclude=["id"])


@transaction.atomic
def save_seller(*, actor: Any, legal_name: str, **data: str) -> Seller:
    """Set the operator's legal data; documents issued before keep theirs. For the platform's side.

    Raises WrongRegistrationNumber.
    """
    number = check_registration_number(data.get("registration_number", ""))
    before = seller_printed()
    after = {**data, "legal_name": legal_name.strip(), "registration_number": number}
    seller, _made = Seller.objects.update_or_create(id=1, defaults=after)
    audit.record(actor, "seller.changed", seller, before=before or None, after=after)
    return seller
