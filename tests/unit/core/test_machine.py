"""Status machines: the table decides, draws and names the buttons."""

from types import SimpleNamespace

import pytest
from django.db import models
from hypothesis import given
from hypothesis import strategies as st

from apps.core import machine
from apps.core.errors import Conflict
from apps.core.machine import Machine


class Door(models.TextChoices):
    OPEN = "open", "Open"
    CLOSED = "closed", "Closed"
    LOCKED = "locked", "Locked up"
    GONE = "gone", "Gone"


ROWS = [
    ("close", Door.OPEN, Door.CLOSED),
    ("open", Door.CLOSED, Door.OPEN),
    ("lock", Door.CLOSED, Door.LOCKED),
    ("unlock", Door.LOCKED, Door.CLOSED),
    ("take_out", (Door.OPEN, Door.CLOSED), Door.GONE),
]


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    monkeypatch.setattr(machine, "MACHINES", {})


@pytest.fixture
def door() -> Machine:
    return Machine("garden_door", ROWS, labels={"lock": "Lock up"})


def test_a_verb_sets_the_status_and_returns_the_one_before(door):
    thing = SimpleNamespace(status="open")
    assert door.move(thing, "close") == "open"
    assert thing.status == Door.CLOSED


def test_another_field_can_hold_the_status(door):
    thing = SimpleNamespace(state=Door.CLOSED)
    door.move(thing, "lock", field="state")
    assert thing.state == "locked"


def test_a_refusal_names_the_verb_the_status_and_what_is_possible(door):
    thing = SimpleNamespace(status="locked")
    with pytest.raises(Conflict) as caught:
        door.move(thing, "take_out")
    assert thing.status == "locked"
    assert caught.value.code == "wrong_status"
    for word in ("Take out", "garden door", "Locked up", "Unlock"):
        assert word in caught.value.detail


def test_a_refusal_in_a_final_status_says_so(door):
    with pytest.raises(Conflict, match="final"):
        door.move(SimpleNamespace(status="gone"), "open")


def test_a_verb_nobody_declared_is_a_mistake_of_the_program(door):
    with pytest.raises(KeyError):
        door.move(SimpleNamespace(status="open"), "paint")


def test_the_buttons_of_a_page_come_from_the_table(door):
    assert door.verbs_from(Door.CLOSED) == ("open", "lock", "take_out")
    assert door.verbs_from("gone") == ()
    assert door.can("closed", "lock")
    assert not door.can("open", "lock")
    assert door.label("lock") == "Lock up"
    assert door.label("take_out") == "Take out"
    assert door.sources("take_out") == ("open", "closed")


@given(st.lists(st.sampled_from([row[0] for row in ROWS]), max_size=20))
def test_only_moves_of_the_table_ever_happen(verbs):
    table = Machine("garden_door", ROWS)
    thing = SimpleNamespace(status="open")
    for verb in verbs:
        before, possible = thing.status, table.can(thing.status, verb)
        if possible:
            table.move(thing, verb)
        else:
            with pytest.raises(Conflict):
                table.move(thing, verb)
            assert thing.status == before
        assert thing.status in table.statuses


@pytest.mark.parametrize(
    "rows",
    [[], [("go", "a", "b"), ("go", "a", "c")], [("go", ("a", "a"), "b")]],
)
def test_a_table_that_contradicts_itself_is_refused(rows):
    with pytest.raises(ValueError, match="machine wrong"):
        Machine("wrong", rows)


def test_two_machines_of_one_name_are_refused(door):
    with pytest.raises(ValueError, match="another machine"):
        Machine("garden_door", [("go", "a", "b")])


def test_labels_belong_to_verbs_of_the_table():
    with pytest.raises(ValueError, match="unknown verbs"):
        Machine("mislabelled", [("go", "a", "b")], labels={"stop": "Stop"})


def test_the_picture_shows_every_move_and_both_ends(door):
    page = door.to_markdown()
    assert page.startswith("<!-- Generated")
    assert "# Garden door" in page
    assert "    [*] --> open" not in page.replace("[*] --> open\n", "", 1)
    assert "    open --> closed: close" in page
    assert "    gone --> [*]" in page
    assert "| take_out | open, closed | gone |" in page


def test_the_pages_are_written_once_and_stale_ones_go(door, tmp_path):
    (tmp_path / "old_thing.md").write_text("gone")
    changed = machine.write_state_pages(tmp_path)
    assert {path.name for path in changed} == {"README.md", "garden_door.md", "old_thing.md"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "garden_door.md"]
    assert machine.write_state_pages(tmp_path) == []
