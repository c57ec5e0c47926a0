"""Every change to runs and sites: by events, by guests, and by the hands of operators."""

from apps.provisioning.services.call_home import (
    LARGEST_REPORT,
    check_report_size,
    receive_call_home,
)
from apps.provisioning.services.hands import (
    replace_node,
    retry_step,
    skip_step,
    take_over,
    undo_run,
)
from apps.provisioning.services.leaks import assign_leak, close_leak, retry_leak
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
from apps.provisioning.services.overrides import (
    ask_override,
    confirm_override,
    expire_overrides,
    refuse_override,
    vouchable_step,
)
from apps.provisioning.services.policies import remove_policy, set_policy
from apps.provisioning.services.runs import end_work, start_run
from apps.provisioning.services.sites import discover_site
from apps.provisioning.validation import validate_site

__all__ = [
    "LARGEST_REPORT",
    "TENANT_VERBS",
    "ask_override",
    "assign_leak",
    "check_report_size",
    "close_leak",
    "confirm_override",
    "discover_site",
    "end_work",
    "expire_overrides",
    "open_console",
    "operate",
    "operate_for_tenant",
    "possible_verbs",
    "receive_call_home",
    "refuse_override",
    "remove_policy",
    "replace_host",
    "replace_lost",
    "replace_node",
    "retry_leak",
    "retry_step",
    "return_node",
    "set_policy",
    "skip_step",
    "start_run",
    "take_over",
    "undo_run",
    "validate_site",
    "vouchable_step",
]
