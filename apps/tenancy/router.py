"""Which tables a schema gets: read from the realm of each model."""

from typing import Any

from django.apps import apps
from django.db import connections, models

from apps.core.realms import Both, Public, Tenant, realm_of


class RealmRouter:
    """Allow a migration operation in a schema of its model's realm only."""

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **hints: Any
    ) -> bool | None:
        """RunSQL and RunPython name theirs by `hints={"realm": "public"|"tenant"|"both"}`."""
        in_public = schema_of(connections[db]) == "public"
        realm = hints.get("realm")
        if realm is None:
            model = hints.get("model")
            if model is None and model_name:
                model = _live_model(app_label, model_name)
            if model is None:
                return None
            realm = _name(_realm(model))
        return bool(realm == "both" or realm == ("public" if in_public else "tenant"))


def schema_of(connection: Any) -> str:
    """The schema a connection is in."""
    return str(connection.schema_name)


def _realm(model: type[models.Model]) -> type:
    try:
        return realm_of(model)
    except LookupError:
        return realm_of(_live_model(model._meta.app_label, model._meta.model_name or "") or model)


def _live_model(app_label: str, model_name: str) -> type[models.Model] | None:
    try:
        return apps.get_model(app_label, model_name)
    except LookupError:
        return None


def _name(realm: type) -> str:
    names: dict[type, str] = {Public: "public", Tenant: "tenant", Both: "both"}
    return names[realm]
