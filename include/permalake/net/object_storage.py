"""Object storage: how Iceberg, PyArrow and Hadoop reach a warehouse on ``s3://`` or ``gs://``.

For ``s3://`` all of it comes from the variables that every AWS tool reads: ``AWS_ENDPOINT_URL`` (or
``AWS_ENDPOINT_URL_S3``) for a server other than Amazon's, ``AWS_REGION``, and the usual credentials. For
``gs://``, from those of Google's: ``GOOGLE_APPLICATION_CREDENTIALS`` or the machine's account, and
``STORAGE_EMULATOR_HOST``, which the Hadoop file system does not know. The libraries find credentials
themselves.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow.fs import FileSystem

S3_SCHEMES = ("s3", "s3a")
GS_SCHEME = "gs"
# The end of the year 9999 in milliseconds: an emulator takes any token, Arrow wants to know until when.
_FOR_EVER = "253402300799000"


def is_object_store(location: str) -> bool:
    """Return whether a location lies in object storage."""
    return is_s3(location) or is_gs(location)


def is_s3(location: str) -> bool:
    """Return whether a location is a bucket of S3, or of a server that speaks like it."""
    return urlsplit(location).scheme in S3_SCHEMES


def is_gs(location: str) -> bool:
    """Return whether a location is a bucket of Google Cloud Storage."""
    return urlsplit(location).scheme == GS_SCHEME


def lies_in(location: str, folder: str) -> bool:
    """Return whether a location lies below a folder, by whatever scheme the two name their store."""
    if location.startswith(f"{folder}/"):
        return True
    if (is_s3(location), is_gs(location)) != (is_s3(folder), is_gs(folder)):
        return False
    return inner_path(location).startswith(f"{inner_path(folder)}/")


def endpoint() -> str | None:
    """Return the address of the S3 server; None for Amazon's own."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def region() -> str:
    """Return the region of the bucket."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def file_io() -> dict[str, str]:
    """Return properties of PyIceberg's file access; they change nothing for files on a disk."""
    address = endpoint()
    properties = {"s3.region": region(), **({"s3.endpoint": address} if address else {})}
    if emulator := os.environ.get("STORAGE_EMULATOR_HOST"):
        host = emulator if "://" in emulator else f"http://{emulator}"
        properties |= {
            "gcs.service.host": host,
            "gcs.oauth2.token": "emulator",
            "gcs.oauth2.token-expires-at": _FOR_EVER,
        }
    return properties


def filesystem(location: str) -> FileSystem:
    """Return the file system that holds a location."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    scheme, netloc, _ = PyArrowFileIO.parse_location(location)
    return PyArrowFileIO(file_io()).fs_by_scheme(scheme, netloc)


def inner_path(location: str) -> str:
    """Return a location without its scheme, as its file system and listings name it."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    return PyArrowFileIO.parse_location(location)[2]


def parquet_files(paths: Sequence[str], schema: pa.Schema) -> ds.Dataset:
    """Return the rows of Parquet files, which lie in one place, in their order.

    The dataset can be sent to a task, also that of no files. Columns that a file lacks are null.
    """
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    if not paths:
        return ds.FileSystemDataset([], schema, ds.ParquetFileFormat(), LocalFileSystem())
    return ds.dataset(
        [inner_path(path) for path in paths],
        schema=schema,
        format="parquet",
        filesystem=filesystem(paths[0]),
    )


def spark_catalog(warehouse: str) -> dict[str, str]:
    """Return properties of an Iceberg catalog in Spark, without their prefix.

    None for ``gs://``, which Iceberg reaches through Hadoop: see :func:`hadoop`.
    """
    if not is_s3(warehouse):
        return {}
    address = endpoint()
    properties = {"s3.endpoint": address, "s3.path-style-access": "true"} if address else {}
    return {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "client.region": region(), **properties}


def hadoop(warehouse: str) -> dict[str, str]:
    """Return Spark settings for plain Parquet files and for tables opened by their metadata file."""
    if is_gs(warehouse):
        conf = {
            "fs.gs.impl": "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem",
            "fs.AbstractFileSystem.gs.impl": "org.apache.hadoop.fs.gs.Gs",
            "fs.gs.auth.type": "APPLICATION_DEFAULT",
        }
    else:
        address = endpoint()
        options = {"endpoint": address, "path.style.access": "true"} if address else {}
        conf = {"fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem", "fs.s3a.endpoint.region": region()}
        conf |= {f"fs.s3a.{key}": value for key, value in options.items()}
    return {f"spark.hadoop.{key}": value for key, value in conf.items()}
