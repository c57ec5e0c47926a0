"""The catalogue as a document: all or nothing, every row told, nothing lost on the way."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from apps.audit.models import AuditEntry
from apps.catalog import selectors, services
from apps.catalog.errors import BadDocument
from apps.catalog.models import GPUModel, Image, Offering, Price, PriceBook
from apps.core.errors import Invalid

DEMO = Path(__file__).parents[3] / "data" / "catalog.yaml"


def demo() -> dict[str, Any]:
    document: dict[str, Any] = yaml.load(DEMO.read_text(), Loader=yaml.BaseLoader)  # noqa: S506 - our own file
    return document


def load(document: dict[str, Any], **options: Any) -> Any:
    return services.import_catalog(text=yaml.safe_dump(document), actor=None, **options)


def stored() -> tuple[int, ...]:
    return tuple(kind.objects.count() for kind in (GPUModel, Image, Offering, PriceBook, Price))


def test_the_demo_catalogue_is_taken_whole(platform: None) -> None:
    report = services.import_catalog(text=DEMO.read_text(), actor=None)
    assert not report.refused, report.lines()
    assert report.was_applied
    assert stored() == (3, 2, 4, 2, 8)
    assert [o.sku for o in selectors.visible_offerings()] == [
        "bm.h200.8x",
        "bm.h100.8x",
        "bm.l40s.4x",
        "bm.h200.8x.trial",
    ]
    trial = selectors.offering_by_sku("bm.h200.8x.trial")
    assert (trial.resource_class, trial.max_replacements, trial.readiness_seconds) == (
        "gpu.h200.8x.faulty",
        0,
        20,
    )
    first = selectors.offering_by_sku("bm.h200.8x")
    assert [image.code for image in first.images.all()] == ["ubuntu-24.04-gpu", "rocky-9-gpu"]
    assert first.name_ko
    assert first.gpu_model.reported_name == "NVIDIA H200"
    assert AuditEntry.objects.filter(action="catalog.imported").count() == 1


def test_importing_it_again_changes_nothing(platform: None) -> None:
    load(demo())
    report = load(demo())
    assert report.counts == {"created": 0, "changed": 0, "unchanged": 19, "refused": 0}


def test_what_is_exported_can_be_read_back_without_a_change(platform: None) -> None:
    load(demo())
    written = services.export_catalog()
    report = services.import_catalog(text=written, actor=None)
    assert report.counts["unchanged"] == len(report.rows) == 19
    assert "H200 8장" in written


def test_a_dry_run_shows_the_difference_and_keeps_nothing(platform: None) -> None:
    load(demo())
    document = demo()
    document["offerings"][0]["gpus"] = "4"
    report = load(document, dry_run=True)
    (row,) = [row for row in report.rows if row.result == "changed"]
    assert (row.place, row.name, row.changes) == (
        "offerings[1]",
        "bm.h200.8x",
        {"gpus": ("8", "4")},
    )
    assert not report.was_applied
    assert Offering.objects.get(sku="bm.h200.8x").gpus == 8


def test_a_change_of_images_is_shown_and_kept(platform: None) -> None:
    load(demo())
    document = demo()
    document["offerings"][0]["images"] = ["rocky-9-gpu"]
    (row,) = [row for row in load(document).rows if row.result == "changed"]
    assert row.changes == {"images": ("ubuntu-24.04-gpu, rocky-9-gpu", "rocky-9-gpu")}
    first = selectors.offering_by_sku("bm.h200.8x")
    assert [image.code for image in first.images.all()] == ["rocky-9-gpu"]


def _price(document: dict[str, Any], **fields: str) -> dict[str, str]:
    price = {
        "sku": "bm.h200.8x",
        "amount": "1",
        "effective_from": "2026-03-01T00:00:00+09:00",
    } | fields
    document["price_books"][0]["prices"].append(price)
    return price


def _unknown_field(document: dict[str, Any]) -> None:
    document["offerings"][1]["gpu_cuont"] = "8"


def _missing_field(document: dict[str, Any]) -> None:
    del document["offerings"][1]["gpus"]


def _unknown_gpu_model(document: dict[str, Any]) -> None:
    document["offerings"][1]["gpu_model"] = "h300"


def _unknown_image(document: dict[str, Any]) -> None:
    document["offerings"][1]["images"] = ["windows"]


def _no_number(document: dict[str, Any]) -> None:
    document["offerings"][1]["gpus"] = "eight"


def _no_gpus(document: dict[str, Any]) -> None:
    document["offerings"][1]["gpus"] = "0"


def _minus_one(document: dict[str, Any]) -> None:
    document["offerings"][1]["max_replacements"] = "-1"


def _bad_checksum(document: dict[str, Any]) -> None:
    document["images"][0]["checksum"] = "abc"


def _bad_code(document: dict[str, Any]) -> None:
    document["gpu_models"][0]["code"] = "H 200"


def _twice(document: dict[str, Any]) -> None:
    document["images"].append(dict(document["images"][0]))


def _not_a_list(document: dict[str, Any]) -> None:
    document["images"] = "ubuntu"


def _negative_price(document: dict[str, Any]) -> None:
    document["price_books"][0]["prices"][0]["amount"] = "-5400"


def _many_decimals(document: dict[str, Any]) -> None:
    document["price_books"][0]["prices"][0]["amount"] = "1.2345678"


def _no_amount(document: dict[str, Any]) -> None:
    document["price_books"][0]["prices"][0]["amount"] = "5,400"


def _unknown_sku(document: dict[str, Any]) -> None:
    document["price_books"][0]["prices"][0]["sku"] = "bm.h300.8x"


def _unknown_unit(document: dict[str, Any]) -> None:
    document["price_books"][0]["prices"][0]["unit"] = "gpu_day"


def _naive_instant(document: dict[str, Any]) -> None:
    document["price_books"][0]["prices"][0]["effective_from"] = "2026-01-01T00:00:00"


def _half_second(document: dict[str, Any]) -> None:
    document["price_books"][0]["prices"][0]["effective_from"] = "2026-01-01T00:00:00.5+09:00"


def _gap(document: dict[str, Any]) -> None:
    document["price_books"][0]["prices"][0]["effective_to"] = "2026-02-01T00:00:00+09:00"
    _price(document)


def _overlap(document: dict[str, Any]) -> None:
    document["price_books"][0]["prices"][0]["effective_to"] = "2026-04-01T00:00:00+09:00"
    _price(document)


def _same_start(document: dict[str, Any]) -> None:
    _price(document, effective_from="2026-01-01T00:00:00+09:00")


def _ends_before_start(document: dict[str, Any]) -> None:
    document["price_books"][0]["prices"][0]["effective_to"] = "2025-01-01T00:00:00+09:00"


def _unknown_currency(document: dict[str, Any]) -> None:
    document["price_books"][0]["currency"] = "BTC"


def _unknown_tenant(document: dict[str, Any]) -> None:
    document["price_books"][0] |= {"kind": "contract", "tenant": "initech"}


def _contract_of_nobody(document: dict[str, Any]) -> None:
    document["price_books"][0]["kind"] = "contract"


@pytest.mark.parametrize(
    ("spoil", "place", "field", "says"),
    [
        (_unknown_field, "offerings[2]", "gpu_cuont", "not a field here. Remove it"),
        (_missing_field, "offerings[2]", "gpus", "missing"),
        (_unknown_gpu_model, "offerings[2]", "gpu_model", "h100-80gb"),
        (_unknown_image, "offerings[2]", "images", "Known: rocky-9-gpu"),
        (_no_number, "offerings[2]", "gpus", "integer"),
        (_no_gpus, "offerings[2]", "gpus", "greater than or equal to 1"),
        (_minus_one, "offerings[2]", "max_replacements", "greater than or equal to 0"),
        (_bad_checksum, "images[1]", "checksum", "64 hexadecimal"),
        (_bad_code, "gpu_models[1]", "code", "valid value"),
        (_twice, "images[3]", "images[3]", "at images[1]"),
        (_not_a_list, "images", "images", "not a list"),
        (_negative_price, "price_books[1].prices[1]", "amount", "from 0 to"),
        (_many_decimals, "price_books[1].prices[1]", "amount", "at most 6"),
        (_no_amount, "price_books[1].prices[1]", "amount", "plain digits"),
        (_unknown_sku, "price_books[1].prices[1]", "sku", "Known: bm.h100.8x"),
        (_unknown_unit, "price_books[1].prices[1]", "unit", "gpu_hour"),
        (_naive_instant, "price_books[1].prices[1]", "effective_from", "+09:00"),
        (_half_second, "price_books[1].prices[1]", "effective_from", "whole second"),
        (_gap, "price_books[1].prices[5]", "effective_from", "End the earlier version later"),
        (_overlap, "price_books[1].prices[5]", "effective_from", "would both hold"),
        (_same_start, "price_books[1].prices[5]", "price_books[1].prices[5]", "twice"),
        (_ends_before_start, "price_books[1].prices[1]", "effective_to", "after the start"),
        (_unknown_currency, "price_books[1]", "currency", "KRW"),
        (_unknown_tenant, "price_books[1]", "tenant", "acme"),
        (_contract_of_nobody, "price_books[1]", "tenant", "has a tenant"),
    ],
)
def test_one_bad_row_is_named_and_nothing_is_kept(
    platform: None, spoil: Any, place: str, field: str, says: str
) -> None:
    document = demo()
    spoil(document)
    report = load(document)
    row = next(row for row in report.refused if row.place == place)
    assert row.errors[0].field == field
    assert says in row.errors[0].message
    assert not report.was_applied
    assert stored() == (0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gpu_models: [", "cannot be read"),
        ("- a list", "gpu_models, images"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("images: []\nimages: []", "images stands twice"),
        ("x" * 1_000_001, "1000001 characters"),
        ("[" * 5000, "cannot be read"),
        ('offerings:\n- sku: "a\\0b"', "line 2 has characters"),
        ('offerings:\n- sku: "\\ud800"', "line 2 has characters"),
    ],
)
def test_what_is_no_such_document_is_refused(platform: None, text: str, says: str) -> None:
    with pytest.raises(BadDocument, match=says):
        services.import_catalog(text=text, actor=None)


def test_an_unknown_section_is_refused(platform: None) -> None:
    with pytest.raises(Invalid, match="not a field here"):
        services.import_catalog(text="imagse: []", actor=None)


def test_a_version_is_never_changed_by_an_import(platform: None) -> None:
    load(demo())
    document = demo()
    document["price_books"][0]["prices"][0]["amount"] = "5500"
    (row,) = load(document).refused
    assert "exists already with 5400" in row.errors[0].message
    assert Price.objects.get(sku="bm.h200.8x", book__currency="KRW").amount == 5400


def test_versions_of_a_document_follow_each_other_without_ends(platform: None) -> None:
    document = demo()
    _price(document, amount="5000", effective_from="2026-07-01T00:00:00+09:00")
    for _again in range(2):
        assert not load(document).refused
    first, second = Price.objects.filter(sku="bm.h200.8x", book__currency="KRW").order_by(
        "effective_from"
    )
    assert first.effective_to == second.effective_from
    assert second.effective_to is None
    assert (
        services.import_catalog(text=services.export_catalog(), actor=None).counts["unchanged"]
        == 20
    )


def test_the_command_shows_imports_and_refuses(db: None, tmp_path: Path) -> None:
    out = StringIO()
    call_command("import_catalog", str(DEMO), dry_run=True, stdout=out)
    assert "19 created" in out.getvalue()
    assert "nothing was changed" in out.getvalue()
    call_command("import_catalog", str(DEMO), stdout=StringIO())
    bad = tmp_path / "bad.yaml"
    bad.write_text(DEMO.read_text().replace("gpus: 8", "gpu: 8"))
    out = StringIO()
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("import_catalog", str(bad), stdout=out)
    assert "“gpu” is not a field here" in out.getvalue()
    with pytest.raises(CommandError, match="absent"):
        call_command("import_catalog", str(tmp_path / "absent.yaml"))
    out = StringIO()
    call_command("export_catalog", stdout=out)
    assert "bm.h200.8x.trial" in out.getvalue()
