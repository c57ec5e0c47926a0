"""What acts are called: recorded as a code once, shown in the reader's language."""

from django.utils.translation import gettext_lazy as _

from apps.core import show

ACTIONS = {
    "access_key.created": _("Access key made"),
    "access_key.revoked": _("Access key revoked"),
    "address_pool.saved": _("Address pool saved"),
    "approval.approved": _("Approved"),
    "approval.asked": _("Approval asked for"),
    "approval.expired": _("Approval expired"),
    "approval.refused": _("Approval refused"),
    "catalog.imported": _("Catalogue imported"),
    "credit_note.issued": _("Credit note issued"),
    "finding.accepted": _("Finding accepted"),
    "finding.fix_asked": _("Fix of a finding asked for"),
    "finding.fix_done": _("Finding fixed"),
    "finding.fix_failed": _("Fix of a finding failed"),
    "finding.fixed": _("Finding fixed"),
    "finding.gone": _("Finding gone"),
    "finding.opened": _("Finding opened"),
    "fix_policy.set": _("Policy of fixes set"),
    "invoice.drafted": _("Invoice drafted"),
    "invoice.issued": _("Invoice issued"),
    "invoice.rated_again": _("Invoice rated again"),
    "journal.account_changed": _("Account of the journal changed"),
    "node.admit": _("Node admitted to the pool"),
    "node.allocate": _("Node allocated"),
    "node.quarantine": _("Node quarantined"),
    "node.recycle": _("Node back in the pool"),
    "node.release": _("Node released"),
    "node.restore": _("Node restored"),
    "node.retire": _("Node retired"),
    "node.service": _("Node in maintenance"),
    "nodes.imported": _("Nodes imported"),
    "offering.changed": _("Offering changed"),
    "offering.created": _("Offering made"),
    "offering.retired": _("Offering retired"),
    "offering.unchanged": _("Offering saved unchanged"),
    "order.accepted": _("Order accepted"),
    "order.cancelled": _("Order cancelled"),
    "order.expired": _("Order expired"),
    "order.placed": _("Order placed"),
    "order.refused": _("Order refused"),
    "order.rescheduled": _("Order rescheduled"),
    "order_policy.changed": _("Order rules changed"),
    "person.created": _("Person added"),
    "person.deactivated": _("Person shut out"),
    "person.grant_refused": _("Giving a role refused"),
    "person.language_set": _("Language chosen"),
    "person.locked_out": _("Locked out after wrong passwords"),
    "person.password_changed": _("Password changed"),
    "person.reactivated": _("Person let in again"),
    "person.role_changed": _("Role changed"),
    "person.sign_in_failed": _("Sign-in failed"),
    "person.signed_in": _("Signed in"),
    "person.signed_out": _("Signed out"),
    "price.set": _("Price set"),
    "price_book.saved": _("Price book saved"),
    "project.archived": _("Project archived"),
    "project.created": _("Project made"),
    "project.limit_changed": _("Project limit changed"),
    "project.member_added": _("Member added to the project"),
    "project.member_removed": _("Member removed from the project"),
    "run.retried": _("Run tried again"),
    "run.undone": _("Run being undone"),
    "seller.changed": _("Seller changed"),
    "service.console_opened": _("Console opened"),
    "service.degraded": _("Service degraded"),
    "service.end_changed": _("End of the service changed"),
    "service.ended_as_agreed": _("Service ended as agreed"),
    "service.failed": _("Service failed"),
    "service.power_cycle": _("Power cycle asked for"),
    "service.power_cycle_failed": _("Power cycle failed"),
    "service.power_off": _("Power off asked for"),
    "service.power_off_failed": _("Power off failed"),
    "service.power_on": _("Power on asked for"),
    "service.power_on_failed": _("Power on failed"),
    "service.protection_changed": _("Protection changed"),
    "service.ready": _("Service ready"),
    "service.reboot": _("Reboot asked for"),
    "service.reboot_failed": _("Reboot failed"),
    "service.recovered": _("Service recovered"),
    "service.reinstall": _("Reinstallation asked for"),
    "service.reinstall_failed": _("Reinstallation failed"),
    "service.renamed": _("Service renamed"),
    "service.replace_host": _("Another host asked for"),
    "service.rescue": _("Rescue system asked for"),
    "service.rescue_failed": _("Rescue system failed"),
    "service.resumed": _("Service resumed"),
    "service.suspended": _("Service suspended"),
    "service.suspension_ended": _("Suspension ended the service"),
    "service.tagged": _("Tags changed"),
    "service.terminated": _("Service terminated"),
    "service.unrescue": _("Rescue system left asked for"),
    "service.unrescue_failed": _("Rescue system left failed"),
    "site.added": _("Site added"),
    "site.changed": _("Site changed"),
    "site.look_asked": _("Comparison of the site asked for"),
    "site.paused": _("Site paused"),
    "site.resumed": _("Site resumed"),
    "site.validated": _("Site validated"),
    "ssh_key.added": _("SSH key added"),
    "ssh_key.removed": _("SSH key removed"),
    "staff.looked": _("Staff looked"),
    "tenant.created": _("Tenant made"),
    "tenant.limit_changed": _("Limits of the tenant changed"),
    "ticket.closed": _("Ticket closed"),
}
RESULTS = {"done": _("done"), "refused": _("refused")}
SIDES = {"platform": _("operator staff"), "tenant": _("customer"), "system": _("by itself")}


def action(code: str) -> object:
    """An act in words, with its code, by which the trail is searched, beneath."""
    words = ACTIONS.get(code)
    return show.stacked(words, show.code(code)) if words else show.code(code)


def result(code: str) -> str:
    """How an act ended."""
    return str(RESULTS.get(code, code))


def side(code: str) -> str:
    """Who the actor belongs to."""
    return str(SIDES.get(code, code))
