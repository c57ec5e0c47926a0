"""URLs."""

from django.urls import URLPattern

app_name = "provisioning"
urlpatterns: list[URLPattern] = []
