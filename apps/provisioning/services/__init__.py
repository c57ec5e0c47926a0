"""Every change to runs and sites: by events, by guests, and by the hands of operators."""

from apps.provisioning.services.call_home import (
    LARGEST_REPORT,
    check_report_size,
    receive_call_home,
)
from apps.provisioning.services.hands import retry_step, undo_run
from apps.provisioning.services.nodes import return_node
from apps.provisioning.services.operating import (
    TENANT_VERBS,
    open_console,
    operate,
    operate_for_tenant,
    possible_verbs,
    replace_host,
    replace_lost,
)
from apps.provisioning.services.runs import end_work, start_run
from apps.provisioning.services.sites import discover_site, validate_site

__all__ = [
    "LARGEST_REPORT",
    "TENANT_VERBS",
    "check_report_size",
    "discover_site",
    "end_work",
    "open_console",
    "operate",
    "operate_for_tenant",
    "possible_verbs",
    "receive_call_home",
    "replace_host",
    "replace_lost",
    "retry_step",
    "return_node",
    "start_run",
    "undo_run",
    "validate_site",
]
