"""The lock file of the page assets."""

from lab.install import ASSETS, NODE_LOCK, ROOT, SOURCE_MAP


def test_the_lock_file_names_no_address_to_fetch_from():
    assert '"resolved"' not in NODE_LOCK.read_text()


def test_every_asset_belongs_to_a_declared_package():
    declared = (ROOT / "package.json").read_text()

    for source in ASSETS.values():
        parts = source.split("/")
        assert f'"{"/".join(parts[:2]) if parts[0].startswith("@") else parts[0]}"' in declared


def test_references_to_maps_that_are_not_shipped_are_cut_off():
    assert SOURCE_MAP.sub("", "a()\n//# sourceMappingURL=a.js.map\n") == "a()"
    assert SOURCE_MAP.sub("", "a{}\n/*# sourceMappingURL=a.css.map */") == "a{}"
