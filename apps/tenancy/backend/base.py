"""The database backend: `search_path` and `neo.tenant` are set together, so they can never
disagree.
"""

import django.db.utils
import psycopg
from django_tenants.postgresql_backend import base
from django_tenants.utils import get_limit_set_calls

from apps.core.realms import speaker_of


class DatabaseWrapper(base.DatabaseWrapper):
    """django-tenants' backend that also tells row level security who is speaking."""

    _setting_search_path: bool
    search_path_set_schemas: list[str] | None

    def _handle_search_path(self, cursor=None):  # type: ignore[no-untyped-def]
        if self._setting_search_path:
            return
        if get_limit_set_calls() and self.search_path_set_schemas:
            return
        paths = self._get_cursor_search_paths()
        speaks_as = speaker_of(self.tenant)
        if speaks_as not in ("", "platform") and self.schema_name == "public":
            raise RuntimeError("a tenant cannot speak from the public schema")
        path_list = ", ".join(base.quote_schema_name(path) for path in paths)
        literal = "'" + speaks_as.replace("'", "") + "'"
        self._setting_search_path = True
        used = self.connection.cursor() if cursor is None else cursor
        try:
            used.execute(f"SET search_path = {path_list}; SET neo.tenant = {literal}")
        except (django.db.utils.DatabaseError, psycopg.InternalError):
            # The transaction is already broken: the next statement fails too, and a rollback
            # forgets this.
            self.search_path_set_schemas = None
        else:
            self.search_path_set_schemas = paths
        finally:
            self._setting_search_path = False
            if cursor is None:
                used.close()
