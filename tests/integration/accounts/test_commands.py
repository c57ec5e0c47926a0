"""Commands that go through every side: verify the audit trail, rotate secrets."""

import base64
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from apps.audit import services as audit
from apps.audit.sealing import seal
from apps.core.models import Secret
from apps.core.realms import speaker
from apps.core.secrets import decrypt, encrypt, needs_rotation
from apps.core.uuids import uuid7
from apps.tenancy.context import platform_context, tenant_context

OLD = "test:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
NEW = "next:" + base64.b64encode(bytes(32)).decode()


def _run(name):
    out, problems = StringIO(), StringIO()
    try:
        call_command(name, stdout=out, stderr=problems)
    except CommandError as error:
        return out.getvalue(), f"{problems.getvalue()}{error}"
    return out.getvalue(), ""


def _place(secret):
    return {"owner": speaker(), "table": Secret._meta.db_table, "row": str(secret.pk)}


def _a_secret(text=b"hunter2", **place):
    secret = Secret(name="password")
    secret.sealed = encrypt(text, **(_place(secret) | place))
    secret.save()
    return secret


def test_every_trail_is_verified_and_a_broken_one_is_named(own_database):
    acme = own_database.tenant("acme")
    with tenant_context(acme):
        with transaction.atomic():
            entry = audit.record(None, "a.b", ("x", uuid7(), "y"))
        own_database.settle()
        seal()
    said, problems = _run("verify_audit")
    assert "platform: 0 sealed" in said
    assert "acme: 1 sealed, 0 unsealed" in said
    assert problems == ""
    with own_database.connect("neo_owner") as owner:
        owner.execute("UPDATE t_acme.audit_auditentry SET reason = 'forged'")
    _said, problems = _run("verify_audit")
    assert f"acme: broken at entry {entry.pk}" in problems


def test_secrets_of_all_sides_get_the_new_key_and_stay_what_they_were(platform, acme, settings):
    with platform_context():
        ours = _a_secret()
    theirs = _a_secret(b"theirs")
    settings.NEOCLOUD_KEYS = f"{NEW},{OLD}"
    said, problems = _run("rotate_secrets")
    assert "platform: 1 rotated, 0 left" in said
    assert "acme: 1 rotated, 0 left" in said
    assert problems == ""
    settings.NEOCLOUD_KEYS = NEW  # the old key is gone for good
    for secret, text in ((theirs, b"theirs"), (ours, b"hunter2")):
        with platform_context() if secret is ours else tenant_context(acme):
            secret.refresh_from_db()
            assert not needs_rotation(secret.sealed)
            assert decrypt(secret.sealed, **_place(secret)) == text
            assert secret.rotated_at is not None
    assert "0 rotated" in _run("rotate_secrets")[0]


@pytest.mark.parametrize("place", [{"owner": "platform"}, {"row": "another"}, {"table": "other"}])
def test_a_secret_of_another_owner_or_row_is_named_and_left(acme, settings, place):
    secret = _a_secret(**place)
    before = bytes(secret.sealed)
    settings.NEOCLOUD_KEYS = f"{NEW},{OLD}"
    _said, problems = _run("rotate_secrets")
    assert "1 secrets could not be read; keep the older keys" in problems
    assert "hunter2" not in problems
    secret.refresh_from_db()
    assert bytes(secret.sealed) == before
