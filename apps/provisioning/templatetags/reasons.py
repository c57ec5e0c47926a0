"""The words templates use for what the engine says."""

from django import template

from apps.provisioning import reasons

register = template.Library()


@register.filter
def reason(text: str) -> str:
    """`{{ run.reason|reason }}`."""
    return reasons.in_words(text)
