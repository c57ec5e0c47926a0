"""Call-home: the platform's side, any host."""

from django.urls import path

from apps.provisioning import views

app_name = "provisioning"
urlpatterns = [path("<uuid:run_id>", views.call_home, name="call_home")]
