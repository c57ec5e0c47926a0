"""The rules of a model's columns, told as our errors before the database is asked."""

from django.core.exceptions import ValidationError
from django.db import models

from apps.core.errors import Invalid


def check_fields(instance: models.Model) -> None:
    """Check every column of an instance by its own rule. Raises Invalid naming each
    field and its rule.
    """
    try:
        instance.clean_fields()
    except ValidationError as error:
        raise Invalid.many(
            Invalid(" ".join(messages).replace("{", "{{").replace("}", "}}"), field=field)
            for field, messages in error.message_dict.items()
        ) from error
