"""One row of what is sold.

Read from plain values, checked field by field, compared with what is stored.
"""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

from apps.catalog.errors import BadValue, MissingField, UnknownCode, UnknownField
from apps.catalog.models import GPUModel, Image, Offering, OfferingAudience, OfferingImage
from apps.catalog.reports import CHANGED, CREATED, UNCHANGED
from apps.core.errors import AppError, Invalid
from apps.tenancy.models import Tenant

Changes = dict[str, tuple[Any, Any]]
GPU_MODEL_FIELDS = ("code", "name", "reported_name", "memory_mib", "trait")
IMAGE_FIELDS = ("code", "name", "source", "checksum", "login", "is_retired")
OFFERING_FIELDS = (
    "sku",
    "name",
    "name_ko",
    "description",
    "description_ko",
    "service_model",
    "billing_basis",
    "gpu_model",
    "gpus",
    "cpus",
    "memory_gib",
    "disk_gb",
    "network",
    "resource_class",
    "traits",
    "images",
    "max_replacements",
    "readiness_seconds",
    "max_quantity",
    "is_for_all",
    "audience",
    "position",
)
_REFERENCES: dict[str, tuple[type[Any], str]] = {
    "gpu_model": (GPUModel, "code"),
    "images": (Image, "code"),
    "audience": (Tenant, "slug"),
}
_AT_LEAST_ONE = ("memory_mib", "gpus", "max_quantity", "readiness_seconds")
_SHA256_DIGITS = 64


def refuse_unknown(values: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Raise UnknownField for the fields nobody reads."""
    unknown = [name for name in values if name not in known]
    if unknown:
        raise Invalid.many(
            UnknownField(field=name, value=name, known=", ".join(known)) for name in unknown
        )


def save_gpu_model(values: Mapping[str, Any]) -> tuple[str, Changes]:
    """Make or change a GPU model by its code."""
    refuse_unknown(values, GPU_MODEL_FIELDS)
    return _save(GPUModel, "code", values)[1:]


def save_image(values: Mapping[str, Any]) -> tuple[str, Changes]:
    """Make or change an image by its code."""
    refuse_unknown(values, IMAGE_FIELDS)
    checksum = str(values.get("checksum", "")).lower()
    if checksum and (
        len(checksum) != _SHA256_DIGITS or not set(checksum) <= set("0123456789abcdef")
    ):
        raise BadValue(
            field="checksum",
            what="checksum",
            value=checksum,
            rule=_("it must be a SHA-256 sum: 64 hexadecimal digits"),
        )
    return _save(Image, "code", values)[1:]


def save_offering_row(values: Mapping[str, Any]) -> tuple[Offering, str, Changes]:
    """Make or change an offering by its SKU, with its images (the first is the default).

    Its audience are the tenants that may see it when it is not for all.
    """
    refuse_unknown(values, OFFERING_FIELDS)
    referred, problems = _references(values)
    for name in ("images", "audience", "traits"):
        if name in values and not _is_list_of_text(values[name]):
            problems.append(
                BadValue(field=name, what=name, value=values[name], rule=_("give a list of names"))
            )
    if problems:
        raise Invalid.many(problems)
    columns = {name: value for name, value in values.items() if name not in _REFERENCES}
    model = {"gpu_model": referred["gpu_model"][0]} if "gpu_model" in referred else {}
    offering, result, changes = _save(Offering, "sku", columns, model)
    if "images" in referred:
        changes |= _set_images(offering, referred["images"])
    if "audience" in referred:
        changes |= _set_audience(offering, referred["audience"])
    if result == CREATED:
        return offering, CREATED, {}
    return offering, CHANGED if changes else UNCHANGED, changes


def _references(values: Mapping[str, Any]) -> tuple[dict[str, list[Any]], list[AppError]]:
    """The rows that are referred to by code, field by field, and what is wrong with the others."""
    found: dict[str, list[Any]] = {}
    problems: list[AppError] = []
    for name, (kind, key) in _REFERENCES.items():
        wanted = [values.get(name)] if name == "gpu_model" else values.get(name)
        if name not in values or not _is_list_of_text(wanted):
            continue
        try:
            found[name] = _referred(kind, name, key, wanted)
        except Invalid as error:
            problems.append(error)
    if "gpu_model" in values and not isinstance(values["gpu_model"], str):
        problems.append(MissingField(field="gpu_model", what="gpu_model"))
    return found, problems


def _save(
    kind: type[Any], key: str, values: Mapping[str, Any], extra: Mapping[str, Any] | None = None
) -> tuple[Any, str, Changes]:
    """Upsert by `key`; the fields given are set, the others stay or take their defaults."""
    extra = extra or {}
    if not str(values.get(key, "")).strip():
        raise MissingField(field=key, what=key)
    row = kind.objects.filter(**{key: values[key]}).first()
    is_new = row is None
    if is_new:
        missing = [name for name in _required(kind) if name not in {**values, **extra}]
        if missing:
            raise Invalid.many(MissingField(field=name, what=name) for name in missing)
        row = kind()
    given = {**values, **extra}
    before = {name: getattr(row, name) for name in given} if not is_new else {}
    for name, value in given.items():
        setattr(row, name, _boolean(kind, name, value))
    _clean(row, values)
    changes = {
        name: (str(old), str(getattr(row, name)))
        for name, old in before.items()
        if getattr(row, name) != old
    }
    if is_new:
        row.save(force_insert=True)
        return row, CREATED, {}
    if changes:
        row.save(update_fields=list(changes))
    return row, CHANGED if changes else UNCHANGED, changes


def _required(kind: type[models.Model]) -> list[str]:
    return [
        field.name
        for field in kind._meta.concrete_fields
        if not (
            field.has_default()
            or field.blank
            or field.null
            or field.has_db_default()
            or field.primary_key
        )
    ]


def _boolean(kind: type[models.Model], name: str, value: Any) -> Any:
    if isinstance(kind._meta.get_field(name), models.BooleanField) and isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), value)
    return value


def _clean(row: models.Model, values: Mapping[str, Any]) -> None:
    skipped = {f.name for f in row._meta.concrete_fields} - set(values)
    problems: list[AppError] = []
    try:
        row.clean_fields(exclude=skipped | {"traits"})
    except ValidationError as error:
        problems = [
            BadValue(
                field=name, what=name, value=values.get(name, ""), rule=messages[0].rstrip(".")
            )
            for name, messages in error.message_dict.items()
        ]
    problems += [
        BadValue(field=name, what=name, value=values[name], rule=_("it must be at least 1"))
        for name in _AT_LEAST_ONE
        if name in values and getattr(row, name) == 0
    ]
    if problems:
        raise Invalid.many(problems)


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _referred(kind: type[Any], name: str, key: str, wanted: Any) -> list[Any]:
    found = {getattr(row, key): row for row in kind.objects.filter(**{f"{key}__in": list(wanted)})}
    for value in wanted:
        if value not in found:
            known = ", ".join(kind.objects.order_by(key).values_list(key, flat=True)[:20]) or "-"
            raise UnknownCode(field=name, what=name, value=value, known=known)
    return [found[value] for value in dict.fromkeys(wanted)]


def _set_images(offering: Offering, images: list[Image]) -> Changes:
    links = OfferingImage.objects.filter(offering=offering)
    before = list(links.order_by("position").values_list("image__code", flat=True))
    after = [image.code for image in images]
    if before == after:
        return {}
    links.delete()
    OfferingImage.objects.bulk_create(
        OfferingImage(offering=offering, image=image, position=place)
        for place, image in enumerate(images, start=1)
    )
    return {"images": (", ".join(before), ", ".join(after))}


def _set_audience(offering: Offering, tenants: list[Tenant]) -> Changes:
    before = set(offering.audience.values_list("tenant", flat=True))
    after = {tenant.pk for tenant in tenants}
    if before == after:
        return {}
    offering.audience.exclude(tenant__in=after).delete()
    OfferingAudience.objects.bulk_create(
        OfferingAudience(offering=offering, tenant=tenant) for tenant in after - before
    )
    return {"audience": (len(before), len(after))}
