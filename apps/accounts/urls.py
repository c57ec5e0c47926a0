"""URLs: signing in and out, and passwords. Nobody signs up, so that page only says so."""

from allauth.account import views as sign_in
from django.urls import path, re_path

from apps.accounts import views

urlpatterns = [
    path("account/login/", sign_in.login, name="account_login"),
    path("account/logout/", sign_in.logout, name="account_logout"),
    path("account/inactive/", sign_in.account_inactive, name="account_inactive"),
    path("account/signup/", sign_in.signup, name="account_signup"),
    path("account/email/", views.closed, name="account_email"),
    path("account/password/change/", sign_in.password_change, name="account_change_password"),
    path("account/password/set/", sign_in.password_set, name="account_set_password"),
    path("account/password/reset/", sign_in.password_reset, name="account_reset_password"),
    path(
        "account/password/reset/done/",
        sign_in.password_reset_done,
        name="account_reset_password_done",
    ),
    re_path(
        r"^account/password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        sign_in.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "account/password/reset/key/done/",
        sign_in.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
]
