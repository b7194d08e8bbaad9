"""What a step tells OpenLineage."""

from __future__ import annotations

import pytest

from permalake.config import load_settings
from permalake.iota.day import IOTA
from permalake.orchestrate import lineage


def test_datasets_lead_from_source_over_tables_to_stores(settings, tmp_path, monkeypatch, config) -> None:
    warehouse = f"file:{tmp_path}/warehouse"
    source = IOTA.inputs(settings, "shimmer").dataset
    assert source == ("file", str(tmp_path / "shimmer"))
    assert lineage.tables(settings, "shimmer", ["messages"]) == [(warehouse, "shimmer.messages")]
    monkeypatch.setenv("PERMALAKE_CASSANDRA__CONTACT_POINTS", '["10.0.0.5"]')
    (store,) = IOTA.configured_stores(load_settings(config))
    written = store.dataset(load_settings(config), "shimmer-testnet")
    assert written == ("cassandra://10.0.0.5:9042", "shimmer_testnet")
    sent = lineage.lineage([source], [written])
    assert [(one.namespace, one.name) for one in (*sent.inputs, *sent.outputs)] == [source, written]


@pytest.mark.parametrize(
    "address", ["https://user:secret@node.example/api?key=secret", "https://node.example/api"]
)
def test_an_address_is_reported_without_its_secrets(config, monkeypatch, address) -> None:
    monkeypatch.setenv("PERMALAKE_NETWORKS__SHIMMER__SOURCE", "node")
    monkeypatch.setenv("PERMALAKE_NETWORKS__SHIMMER__URL", address)
    live = load_settings(config)
    network = live.network("shimmer").model_copy(update={"path": None})
    settings = live.model_copy(update={"networks": {"shimmer": network}})
    assert IOTA.inputs(settings, "shimmer").dataset == ("https://node.example", "shimmer")
