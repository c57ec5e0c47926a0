"""Why the engine did something: stored in English once, shown in the reader's language.

What an outside system said stays in its own words; what we put around it is translated.
"""

import re
from functools import cache

from django.utils.translation import gettext, gettext_noop

from apps.provisioning import blueprints, evidence_words

_PHRASES = (
    gettext_noop("not what was bought: {found}"),
    gettext_noop("tried until the deadline; {detail}"),
    gettext_noop("no capacity: {detail}"),
    gettext_noop("clean failed: {detail}"),
    gettext_noop("in maintenance: {detail}"),
    gettext_noop("still carries lessee {lessee}"),
    gettext_noop("the site deployed something else: {found}"),
    gettext_noop("{n} checks passed"),
    gettext_noop("waiting for the server to call home"),
    gettext_noop("site does not answer"),
    gettext_noop("no reason given"),
    gettext_noop("a customer holds the node"),
    gettext_noop("a run works on the node now"),
    gettext_noop("transient: {detail}"),
    gettext_noop("node_fault: {detail}"),
    gettext_noop("no_capacity: {detail}"),
    gettext_noop("refused: {detail}"),
    gettext_noop("unknown: {detail}"),
    gettext_noop("site_unreachable: {detail}"),
)
_OUR_WORDS = ("detail", "found")
_DIFFERENCE = gettext_noop("{item}: wanted {wanted}, got {seen}")
_TRY = gettext_noop("{step}: try {n}")


def in_words(text: str) -> str:
    """A reason as the reader's language has it."""
    if not text:
        return ""
    step, colon, rest = text.partition(":")
    if colon and step in _labels():
        if rest.isdigit():
            return gettext(_TRY).format(step=_labels()[step], n=rest)
        return f"{_labels()[step]}: {in_words(rest.strip())}"
    for phrase, form in _forms().items():
        if found := form.fullmatch(text):
            parts = {
                name: _differences(value) if name in _OUR_WORDS else value
                for name, value in found.groupdict().items()
            }
            return gettext(phrase).format(**parts)
    return text


def _differences(text: str) -> str:
    """What was found, item by item; anything else is a reason in a reason."""
    form = _form(_DIFFERENCE)
    told = []
    for part in text.split("; "):
        found = form.fullmatch(part)
        if found is None:
            return in_words(text)
        words = {name: evidence_words.in_words(value) for name, value in found.groupdict().items()}
        told.append(gettext(_DIFFERENCE).format(**words))
    return "; ".join(told)


@cache
def _forms() -> dict[str, re.Pattern[str]]:
    return {phrase: _form(phrase) for phrase in _PHRASES}


@cache
def _form(phrase: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(phrase)), re.DOTALL)


def _labels() -> dict[str, str]:
    """The names of all steps and what they are called."""
    return {name: str(label) for name, label in _steps().items()}


@cache
def _steps() -> dict[str, object]:
    return {step.name: step.label for one in blueprints.TABLE for step in one.steps}
