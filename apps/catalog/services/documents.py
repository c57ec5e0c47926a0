"""The catalogue as one YAML document, read all or nothing and told row by row.

What is written can be read back without a change.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import yaml
from django.db import transaction
from django.db.models import Prefetch
from django.utils.translation import gettext as _

from apps.audit import services as audit
from apps.catalog.errors import (
    BadDocument,
    BadValue,
    DuplicateRow,
    MissingField,
    PriceExists,
    UnknownCode,
)
from apps.catalog.models import (
    GPUModel,
    Image,
    Offering,
    OfferingImage,
    Price,
    PriceBook,
    PriceKind,
    Unit,
)
from apps.catalog.reports import (
    CHANGED,
    CREATED,
    REFUSED,
    UNCHANGED,
    ImportReport,
    ImportRow,
    row_errors,
)
from apps.catalog.services.pricing import (
    LARGEST_PRICE,
    Version,
    add_version,
    end_version,
    save_price_book,
)
from apps.catalog.services.rows import (
    GPU_MODEL_FIELDS,
    IMAGE_FIELDS,
    OFFERING_FIELDS,
    Changes,
    refuse_unknown,
    save_gpu_model,
    save_image,
    save_offering_row,
)
from apps.core.errors import AppError
from apps.core.money import PRICE_PLACES, parse_decimal
from apps.tenancy.models import Tenant

LONGEST = 1_000_000
_NOTHING = ("", "null", "~")  # how YAML writes no value
_SECTIONS = ("gpu_models", "images", "offerings", "price_books")
_BOOK_FIELDS = ("code", "name", "currency", "kind", "tenant", "prices")
_PRICE_FIELDS = ("sku", "unit", "amount", "effective_from", "effective_to", "code")


class _Loader(yaml.BaseLoader):
    """Every scalar stays the text it is, so that no price passes through a float."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse aliases: a few lines of them unfold without bound."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError(_("aliases are not allowed"))
        return super().compose_node(parent, index)

    def construct_scalar(self, node: Any) -> Any:
        """Refuse what an escape can write and no column can hold: NUL, half a surrogate pair."""
        text = super().construct_scalar(node)
        if isinstance(text, str) and any(
            sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in text
        ):
            line = node.start_mark.line + 1
            raise yaml.YAMLError(
                _("the text of line {line} has characters that cannot be kept").format(line=line)
            )
        return text

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Refuse a key that stands twice: the last one would win in silence."""
        keys = [self.construct_object(key, deep=True) for key, _value in node.value]
        for key in keys:
            if keys.count(key) > 1:
                line = node.start_mark.line + 1
                raise yaml.YAMLError(
                    _("{key} stands twice in the entry of line {line}").format(key=key, line=line)
                )
        return super().construct_mapping(node, deep=deep)


@dataclass
class _Import:
    """An import under way: what each row became."""

    actor: Any
    rows: list[ImportRow] = field(default_factory=list)
    places: dict[tuple[str, str], str] = field(default_factory=dict)

    def each(
        self,
        section: str,
        entries: Any,
        key: str,
        save: Callable[[Mapping[str, Any]], tuple[str, Changes]],
    ) -> None:
        """Save every entry of a section, each in a savepoint."""
        if not isinstance(entries, list):
            self.refuse(section, "", BadDocument(field=section, problem=_("not a list")))
            return
        for number, values in enumerate(entries, start=1):
            place = f"{section}[{number}]"
            if not isinstance(values, dict):
                self.refuse(place, "", BadDocument(field=place, problem=_("not a mapping")))
                continue
            name = str(values.get(key, ""))
            self.one(place, name, partial(save, values), once=(section, name))

    def one(
        self,
        place: str,
        name: str,
        save: Callable[[], tuple[str, Changes]],
        *,
        once: tuple[str, str],
    ) -> None:
        """Save one row; `once` names what may stand in the document only once."""
        try:
            if once in self.places:
                raise DuplicateRow(field=place, value=name, other=self.places[once])
            self.places[once] = place
            with transaction.atomic():
                result, changes = save()
            self.rows.append(ImportRow(place, name, result, changes))
        except AppError as error:
            self.refuse(place, name, error)

    def refuse(self, place: str, name: str, error: AppError) -> None:
        """Keep why a row was not taken."""
        self.rows.append(ImportRow(place, name, REFUSED, errors=row_errors(error)))


def import_catalog(*, text: str, actor: Any, dry_run: bool = False) -> ImportReport:
    """Make the catalogue what the YAML document says, from GPU models to prices.

    All or nothing: with one refused row, or in a dry run, nothing is kept and `was_applied` is
    False; the report tells every row. What the document does not name stays. Raises BadDocument
    when it is no such document at all.
    """
    document = _document(text)
    run = _Import(actor)
    with transaction.atomic():
        run.each("gpu_models", document.get("gpu_models", []), "code", save_gpu_model)
        run.each("images", document.get("images", []), "code", save_image)
        run.each(
            "offerings",
            document.get("offerings", []),
            "sku",
            lambda values: save_offering_row(values)[1:],
        )
        books = document.get("price_books", [])
        run.each("price_books", books, "code", lambda values: _save_book(values, actor))
        for number, book in enumerate(books if isinstance(books, list) else [], start=1):
            if isinstance(book, dict):
                _import_prices(run, f"price_books[{number}].prices", book)
        is_kept = not dry_run and not any(row.result == REFUSED for row in run.rows)
        report = ImportReport(tuple(run.rows), is_dry_run=dry_run, was_applied=is_kept)
        if is_kept:
            audit.record(
                actor, "catalog.imported", ("catalog", "catalog", "catalog"), after=report.counts
            )
        else:
            transaction.set_rollback(True)
    return report


def export_catalog() -> str:
    """The catalogue on sale as YAML; `import_catalog` of it changes nothing."""
    offerings = list(
        Offering.objects.filter(retired_at=None)
        .select_related("gpu_model")
        .prefetch_related(
            "audience",
            Prefetch("offeringimage_set", OfferingImage.objects.select_related("image")),
        )
        .order_by("position", "sku")
    )
    slugs = dict(Tenant.objects.values_list("id", "slug"))
    on_sale = Price.objects.filter(sku__in=[offering.sku for offering in offerings])
    books = PriceBook.objects.order_by("-kind", "code").prefetch_related(
        Prefetch("prices", on_sale.order_by("sku", "unit", "effective_from"))
    )
    document = {
        "gpu_models": [_written(m, GPU_MODEL_FIELDS) for m in GPUModel.objects.order_by("code")],
        "images": [_written(image, IMAGE_FIELDS) for image in Image.objects.order_by("code")],
        "offerings": [
            _written(offering, OFFERING_FIELDS)
            | {
                "gpu_model": offering.gpu_model.code,
                "images": [link.image.code for link in offering.offeringimage_set.all()],
                "audience": sorted(slugs[row.tenant] for row in offering.audience.all()),
            }
            for offering in offerings
        ],
        "price_books": [
            {
                "code": book.code,
                "name": book.name,
                "currency": book.currency,
                "kind": book.kind,
                **({"tenant": slugs[book.tenant]} if book.tenant else {}),
                "prices": [_written_price(price) for price in book.prices.all()],
            }
            for book in books
        ],
    }
    return yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=100)


def _document(text: str) -> dict[str, Any]:
    if len(text) > LONGEST:
        raise BadDocument(
            field="file",
            problem=_("it has {size} characters, at most {limit} are read").format(
                size=len(text), limit=LONGEST
            ),
        )
    try:
        document = yaml.load(text, Loader=_Loader)  # noqa: S506 - makes text, lists and mappings
    except (yaml.YAMLError, RecursionError) as error:
        raise BadDocument(field="file", problem=" ".join(str(error).split())) from None
    if not isinstance(document, dict):
        raise BadDocument(
            field="file", problem=_("it must have the sections {s}").format(s=", ".join(_SECTIONS))
        )
    refuse_unknown(document, _SECTIONS)
    return document


def _save_book(values: Mapping[str, Any], actor: Any) -> tuple[str, Changes]:
    refuse_unknown(values, _BOOK_FIELDS)
    for name in ("code", "name", "currency"):
        if not values.get(name):
            raise MissingField(field=name, what=name)
    kind = values.get("kind", PriceKind.LIST.value)
    if kind not in PriceKind.values:
        raise UnknownCode(field="kind", what="kind", value=kind, known=", ".join(PriceKind.values))
    tenant = _tenant(values["tenant"]) if values.get("tenant") else None
    before = PriceBook.objects.filter(code=values["code"]).first()
    if before is not None and before.name == values["name"]:
        same = (before.currency, before.kind, before.tenant)
        if same == (values["currency"], kind, tenant):
            return UNCHANGED, {}
    save_price_book(
        code=values["code"],
        name=values["name"],
        currency=values["currency"],
        kind=kind,
        tenant=tenant,
        actor=actor,
    )
    if before is None:
        return CREATED, {}
    return CHANGED, {"name": (before.name, values["name"])}


def _tenant(slug: str) -> UUID:
    found: UUID | None = Tenant.objects.filter(slug=slug).values_list("pk", flat=True).first()
    if found is None:
        known = ", ".join(Tenant.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise UnknownCode(field="tenant", what="tenant", value=slug, known=known)
    return found


def _import_prices(run: _Import, section: str, book_values: Mapping[str, Any]) -> None:
    """Prices in the order of their start.

    One without an end lasts until the next of the document.
    """
    entries = book_values.get("prices", [])
    if not isinstance(entries, list):
        run.refuse(section, "", BadDocument(field=section, problem=_("not a list")))
        return
    book = PriceBook.objects.filter(code=str(book_values.get("code", ""))).first()
    if book is None:
        return  # its own row says why
    read: list[tuple[str, Version]] = []
    for number, values in enumerate(entries, start=1):
        place = f"{section}[{number}]"
        try:
            read.append((place, _version(values)))
        except AppError as error:
            name = str(values.get("sku", "")) if isinstance(values, dict) else ""
            run.refuse(place, name, error)
    known = set(Price.objects.filter(book=book).values_list("sku", "unit").distinct())
    read.sort(key=lambda one: (one[1].sku, one[1].unit, one[1].effective_from))
    for index, (place, version) in enumerate(read):
        following = read[index + 1][1] if index + 1 < len(read) else None
        until = None
        if following is not None and (following.sku, following.unit) == (version.sku, version.unit):
            until = following.effective_from
        name = f"{version.sku} {version.effective_from.isoformat()}"
        run.one(
            place,
            name,
            partial(
                _save_price,
                book,
                version,
                until,
                run.actor,
                is_known=(version.sku, version.unit) in known,
            ),
            once=(section, f"{version.unit} {name}"),
        )


def _save_price(
    book: PriceBook, version: Version, until: datetime | None, actor: Any, *, is_known: bool
) -> tuple[str, Changes]:
    price = Price.objects.filter(
        book=book,
        sku=version.sku,
        unit=version.unit,
        effective_from=version.effective_from,
    ).first()
    if price is None:
        if version.effective_to is None and until != version.effective_from:
            version = replace(version, effective_to=until)
        add_version(book=book, version=version, actor=actor, may_shorten=False, is_known=is_known)
        return CREATED, {}
    is_same = price.amount == version.amount and version.code in ("", price.code)
    if is_same and version.effective_to in (None, price.effective_to):
        return UNCHANGED, {}
    if is_same and price.effective_to is None and version.effective_to is not None:
        end_version(price=price, at=version.effective_to)
        return CHANGED, {"effective_to": ("", version.effective_to.isoformat())}
    raise PriceExists(
        field="amount",
        sku=version.sku,
        effective_from=version.effective_from,
        amount=price.amount,
    )


def _version(values: Any) -> Version:
    if not isinstance(values, dict):
        raise BadDocument(field="prices", problem=_("not a mapping"))
    refuse_unknown(values, _PRICE_FIELDS)
    for name in ("sku", "amount", "effective_from"):
        if not values.get(name):
            raise MissingField(field=name, what=name)
    return Version(
        sku=values["sku"],
        unit=values.get("unit", Unit.GPU_HOUR.value),
        amount=parse_decimal(
            values["amount"], field="amount", places=PRICE_PLACES, maximum=LARGEST_PRICE
        ),
        effective_from=_instant(values, "effective_from"),
        effective_to=(
            None if values.get("effective_to", "") in _NOTHING else _instant(values, "effective_to")
        ),
        code=values.get("code", ""),
    )


def _instant(values: Mapping[str, Any], name: str) -> datetime:
    try:
        instant = datetime.fromisoformat(values[name])
    except (TypeError, ValueError):
        instant = None
    if instant is None or instant.tzinfo is None:
        raise BadValue(
            field=name,
            what=name,
            value=values[name],
            rule=_("give an instant with its offset, such as 2026-01-01T00:00:00+09:00"),
        )
    return instant


def _written(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    relations = ("gpu_model", "images", "audience")
    return {name: getattr(row, name) for name in names if name not in relations}


def _written_price(price: Price) -> dict[str, Any]:
    written = {
        "sku": price.sku,
        "unit": price.unit,
        "amount": f"{price.amount:f}",
        "effective_from": price.effective_from.isoformat(),
        "effective_to": price.effective_to.isoformat() if price.effective_to else None,
        "code": price.code,
    }
    return {name: value for name, value in written.items() if value is not None}
