"""What is sent and shown when a running service is worked on."""

from rest_framework import serializers

from apps.api.serializers.base import Shown, Strict
from apps.api.serializers.orders import Reason


class Reinstall(Reason):
    """A new installation; what is left out is as it was last."""

    image = serializers.CharField(max_length=60, required=False)
    ssh_keys = serializers.ListField(
        child=serializers.UUIDField(), source="ssh_key_ids", max_length=50, required=False
    )
    ssh_public_keys = serializers.ListField(
        child=serializers.CharField(max_length=8000), max_length=50, required=False
    )


class Rescue(Reason):
    """The rescue system's password; it is passed on and kept nowhere."""

    password = serializers.CharField(min_length=12, max_length=72, trim_whitespace=False)


class Name(Strict):
    """A host name."""

    name = serializers.CharField(max_length=60)


class Tags(Strict):
    """All tags of a service; those left out are gone."""

    tags = serializers.DictField(child=serializers.CharField(max_length=80, allow_blank=True))


class ConsoleSerializer(Shown):
    """Where a server's screen is."""

    kind = serializers.CharField()
    url = serializers.CharField()
