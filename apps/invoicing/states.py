"""The statuses of an invoice run and of each tenant in it."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.core.machine import Machine


class RunStatus(models.TextChoices):
    """Where the closing of a month is."""

    DRAFTING = "drafting", _("Drafting")
    REVIEW = "review", _("For review")
    ISSUING = "issuing", _("Issuing")
    FINISHED = "finished", _("Finished")
    CANCELLED = "cancelled", _("Cancelled")


R = RunStatus

INVOICE_RUN = Machine("invoice_run", [
    # verb      from                              to
    ("present", R.DRAFTING,                       R.REVIEW),
    ("redraft", R.REVIEW,                         R.DRAFTING),
    ("issue",   R.REVIEW,                         R.ISSUING),
    ("return",  R.ISSUING,                        R.REVIEW),
    ("finish",  (R.REVIEW, R.ISSUING),            R.FINISHED),
    ("cancel",  (R.DRAFTING, R.REVIEW),           R.CANCELLED),
])  # fmt: skip


class RunTenantStatus(models.TextChoices):
    """What became of a tenant's month in a run."""

    WAITING = "waiting", _("Waiting")
    DRAFTED = "drafted", _("Drafted")
    NOTHING = "nothing", _("Nothing charged")
    INVOICED = "invoiced", _("Invoiced before")
    REFUSED = "refused", _("Refused")
    APPROVED = "approved", _("To be issued")
    ISSUED = "issued", _("Issued")


T = RunTenantStatus

RUN_TENANT = Machine("run_tenant", [
    # verb      from                                          to
    ("draft",   T.WAITING,                                    T.DRAFTED),
    ("skip",    (T.WAITING, T.APPROVED),                      T.NOTHING),
    ("meet",    (T.WAITING, T.APPROVED),                      T.INVOICED),
    ("refuse",  (T.WAITING, T.APPROVED),                      T.REFUSED),
    ("approve", T.DRAFTED,                                    T.APPROVED),
    ("return",  T.APPROVED,                                   T.DRAFTED),
    ("issue",   T.APPROVED,                                   T.ISSUED),
    ("redraft", (T.DRAFTED, T.REFUSED, T.NOTHING),            T.WAITING),
])  # fmt: skip
