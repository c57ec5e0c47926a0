"""Acts are recorded as codes; every one of them has its words."""

import ast
from pathlib import Path

from django.conf import settings
from django.utils import translation

from apps.audit import words
from apps.inventory.states import NODE, SITE
from apps.orders.states import OrderStatus


def recorded() -> set[str]:
    """Every code the program gives to `record`, as far as it is written out."""
    found: set[str] = set()
    for path in Path(settings.BASE_DIR, "apps").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _name(node.func) in ("record", "_record"):
                found |= {
                    one.value
                    for given in node.args[1:2]
                    for one in ast.walk(given)
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                }
    return {code for code in found if "." in code.strip(".") and " " not in code}


def _name(called: ast.expr) -> str:
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


def test_every_act_that_is_recorded_has_its_words():
    assert len(recorded()) > 40
    assert recorded() <= words.ACTIONS.keys()


def test_acts_named_by_a_status_or_a_verb_have_theirs():
    assert {f"node.{verb}" for verb in NODE.verbs} <= words.ACTIONS.keys()
    assert {f"site.{verb}d" for verb in SITE.verbs} <= words.ACTIONS.keys()
    assert {f"order.{status}" for status in (OrderStatus.EXPIRED, OrderStatus.REFUSED)} <= (
        words.ACTIONS.keys()
    )


def test_an_act_is_shown_in_the_readers_language_with_its_code():
    with translation.override("ko"):
        shown = str(words.action("service.terminated"))
    assert "서비스 해지" in shown
    assert "service.terminated" in shown
    assert "nobody.knows" in str(words.action("nobody.knows"))
