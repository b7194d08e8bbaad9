"""Python workers on this machine."""

from __future__ import annotations

import pyarrow as pa


def test_a_worker_has_no_archive_in_its_import_path(spark) -> None:
    """It would read the archive's list of files again at the start of each task."""

    def known(batches):
        import sys
        import zipimport

        for _ in batches:
            places = sys.path_importer_cache.items()
            archives = [place for place, finder in places if isinstance(finder, zipimport.zipimporter)]
            archives += [place for place in sys.path if place.endswith(".jar")]
            yield pa.record_batch({"archive": pa.array(archives, pa.string())})

    assert spark.range(1).mapInArrow(known, "archive string").collect() == []
