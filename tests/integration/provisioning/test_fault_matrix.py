"""A fixed sample of the fault matrix; the whole of it is `./dev bench matrix`."""

import pytest

from apps.provisioning import blueprints
from apps.provisioning.engine import failpoints, runs
from tests.integration.provisioning import matrix
from tests.integration.provisioning.strikes import FAULTS


@pytest.fixture
def acme(own_database):
    """Each case has a transaction of its own: a long one would hold up every relay here."""
    return own_database.tenant("acme")


@pytest.mark.slow
def test_whatever_strikes_a_step_nothing_leaks_nothing_is_done_twice_and_the_bill_is_right(acme):
    every = matrix.cases(acme)
    chosen = matrix.sample(every)
    assert {case.fault.name for case in chosen} == {fault.name for fault in FAULTS}
    assert {(case.place.blueprint, case.place.step) for case in chosen} == {
        (case.place.blueprint, case.place.step) for case in every
    }

    wrong = [f"{case}: {text}" for case in chosen for text in matrix.problems(case, acme)]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("name", "version"), blueprints.ALL)
def test_the_matrix_knows_how_each_blueprint_begins(name, version):
    matrix.start_of(name, undoing=False)
    if any(step.undo for step in blueprints.get(name, version).steps):
        matrix.start_of(name, undoing=True)


def test_a_blueprint_the_matrix_does_not_know_is_named():
    with pytest.raises(LookupError, match=r"'teleport' begins: add it to STARTS"):
        matrix.start_of("teleport", undoing=False)


def test_a_worker_that_is_killed_writes_nothing_more(acme):
    """As after SIGKILL: the transaction is rolled back, the claim stays until its lease is over."""
    with matrix.a_world(acme) as works:
        matrix.world.an_accepted_order()
        matrix.world.deliver()
        with failpoints.rehearse("claim_node", "outcome") as rehearsed:
            (run_id,) = matrix.world.claims.due_runs()
            works.mortal(runs.advance, run_id)
        assert rehearsed.has_fired
        run = matrix.Run.objects.get(pk=run_id)
        assert (run.position, run.steps.get(name="claim_node").status) == (0, "running")
        assert run.lease_until is not None
        assert matrix.world.claims.claim(run_id) is None
