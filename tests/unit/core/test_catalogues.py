"""Translation catalogues: found, written, read and compiled without GNU gettext."""

import gettext

import pytest

from apps.core.catalogues import (
    Message,
    find_messages,
    merged,
    messages_of_python,
    messages_of_template,
    problems,
    read_po,
    write_mo,
    write_po,
)


def _texts(messages):
    return [(one.context, one.singular, one.plural) for one in messages]


def test_texts_given_literally_to_a_gettext_function_are_found_in_python():
    source = """
message = _("one " "two")
other = gettext_lazy("three {name}")
many = ngettext("%(n)d node", "%(n)d nodes", n)
where = translation.pgettext("verb", "order")
computed = _(message)
"""
    assert _texts(messages_of_python(source)) == [
        ("", "one two", ""),
        ("", "three {name}", ""),
        ("", "%(n)d node", "%(n)d nodes"),
        ("verb", "order", ""),
    ]


def test_texts_of_templates_are_found():
    source = """{% load i18n %}<h1>{% translate "It's “here”" %}</h1>
{% translate "Order" context "verb" as word %}{% trans 'old' %}
{% include "x.html" with title=_("In a tag") %}{{ _("In a value")|upper }}
{% blocktranslate trimmed with name=a.name %}
  Hello {{ name }},
  100% ready
{% endblocktranslate %}
{% blocktranslate count n=nodes|length %}one node{% plural %}{{ n }} nodes{% endblocktranslate %}
{% partialdef rows %}{% translate "Row" %}{% endpartialdef %}"""
    found = _texts(messages_of_template(source))
    assert ("", "It's “here”", "") in found
    assert ("verb", "Order", "") in found
    assert ("", "Hello %(name)s, 100%% ready", "") in found
    assert ("", "one node", "%(n)s nodes") in found
    assert {"old", "In a tag", "In a value", "Row"} <= {singular for _c, singular, _p in found}


FORMS = "Plural-Forms: nplurals=1; plural=0;\n"
CATALOGUE = {
    message.key: message
    for message in (
        Message("", translations=["Content-Type: text/plain; charset=UTF-8\n" + FORMS]),
        Message('Say "hi"\n\tto {name}', translations=['{name}에게\n\t"인사" \\'], places={"a.py"}),
        Message("order", context="verb", translations=["주문하다"]),
        Message("one node", plural="{n} nodes", translations=["노드 {n}개"]),
        Message("doubtful", translations=["글쎄"], is_fuzzy=True),
        Message("empty", translations=[""]),
    )
}  # fmt: skip


def test_a_catalogue_is_read_as_it_was_written(tmp_path):
    write_po(tmp_path / "ko.po", CATALOGUE)
    assert read_po(tmp_path / "ko.po") == CATALOGUE


def test_what_was_compiled_is_what_programs_read_and_nothing_unconfirmed(tmp_path):
    write_mo(tmp_path / "ko.mo", CATALOGUE)
    with (tmp_path / "ko.mo").open("rb") as file:
        catalogue = gettext.GNUTranslations(file)
    assert catalogue.gettext('Say "hi"\n\tto {name}') == '{name}에게\n\t"인사" \\'
    assert catalogue.pgettext("verb", "order") == "주문하다"
    assert catalogue.ngettext("one node", "{n} nodes", 5) == "노드 {n}개"
    assert catalogue.gettext("doubtful") == "doubtful"
    assert catalogue.gettext("empty") == "empty"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (None, "missing: 'to {name}'"),
        (Message("to {name}", translations=[""]), "empty: 'to {name}'"),
        (Message("to {name}", translations=["{name}"], is_fuzzy=True), "fuzzy: 'to {name}'"),
        (Message("to {name}", translations=["{nmae}에게"]), "placeholders differ: 'to {name}'"),
        (Message("to {name}", translations=["누구"]), "placeholders differ: 'to {name}'"),
        (Message("to {name}", translations=["{name}에게"]), None),
    ],
)
def test_a_catalogue_that_is_behind_is_told_why(entry, problem):
    wanted = {("", "to {name}"): Message("to {name}", places={"a.py"})}
    found = problems(wanted, {entry.key: entry} if entry else {})
    assert [line.startswith(problem or "?") for line in found] == ([True] if problem else [])


def test_a_singular_may_leave_its_number_out():
    wanted = {("", "one node"): Message("one node", plural="%(n)s nodes")}
    entry = Message("one node", plural="%(n)s nodes", translations=["노드 %(n)s개"])
    assert problems(wanted, {entry.key: entry}) == []


def test_what_is_no_longer_used_is_told_and_dropped_and_translations_stay():
    wanted = {("", "a"): Message("a"), ("", "new"): Message("new")}
    have = {("", "a"): Message("a", translations=["가"]), ("", "old"): Message("old")}
    assert "no longer used: 'old'" in problems(wanted, have)
    result = merged(wanted, have, language="ko")
    assert result["", "a"].translations == ["가"]
    assert ("", "old") not in result
    assert "nplurals=1" in result["", ""].translations[0]


def test_a_broken_line_is_named(tmp_path):
    (tmp_path / "ko.po").write_text('msgid "a"\nmsgstr "b\n')
    with pytest.raises(ValueError, match=r"ko\.po: line near 3"):
        read_po(tmp_path / "ko.po")


def test_texts_of_the_product_are_found_with_their_places(settings):
    found = find_messages(settings.BASE_DIR)
    message = found["", "Sign in to go on."]
    assert message.places == {"apps/core/errors.py"}
