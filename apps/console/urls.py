"""Addresses of the console."""

from django.urls import path

from apps.console.views import (
    audit,
    capacity,
    home,
    nodes,
    notices,
    offerings,
    orders,
    runs,
    search,
    sites,
    tenants,
)

app_name = "console"
urlpatterns = [
    path("", home.home, name="home"),
    path("capacity/", capacity.capacity, name="capacity"),
    path("orders/", orders.order_list, name="order_list"),
    path("orders/<uuid:order_id>/", orders.order_detail, name="order_detail"),
    path("runs/", runs.run_list, name="run_list"),
    path("runs/<uuid:run_id>/", runs.run_detail, name="run_detail"),
    path("runs/<uuid:run_id>/<slug:verb>/", runs.run_act, name="run_act"),
    path("nodes/", nodes.node_list, name="node_list"),
    path("nodes/map/", nodes.node_map, name="node_map"),
    path("nodes/<uuid:node_id>/", nodes.node_detail, name="node_detail"),
    path("nodes/<uuid:node_id>/<slug:verb>/", nodes.node_act, name="node_act"),
    path("tickets/<uuid:ticket_id>/close/", nodes.ticket_close, name="ticket_close"),
    path("sites/", sites.site_list, name="site_list"),
    path("sites/<uuid:site_id>/", sites.site_detail, name="site_detail"),
    path("sites/<uuid:site_id>/import/", sites.site_import, name="site_import"),
    path("sites/<uuid:site_id>/validate/", sites.site_validate, name="site_validate"),
    path("sites/<uuid:site_id>/<slug:verb>/", sites.site_act, name="site_act"),
    path("tenants/", tenants.tenant_list, name="tenant_list"),
    path("tenants/new/", tenants.tenant_create, name="tenant_create"),
    path("tenants/<uuid:tenant_id>/", tenants.tenant_detail, name="tenant_detail"),
    path("tenants/<uuid:tenant_id>/limits/", tenants.tenant_limits, name="tenant_limits"),
    path("offerings/", offerings.offering_list, name="offering_list"),
    path("offerings/import/", offerings.offering_import, name="offering_import"),
    path("offerings/export/", offerings.offering_export, name="offering_export"),
    path("search/", search.search, name="search"),
    path("audit/", audit.audit_list, name="audit"),
    path("notices/", notices.notice_list, name="notices"),
    path("notices/<uuid:notice_id>/read/", notices.notice_read, name="notice_read"),
]
