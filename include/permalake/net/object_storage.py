"""Object storage: how Iceberg, PyArrow and Hadoop reach an ``s3://`` warehouse.

All of it comes from the variables that every AWS tool reads: ``AWS_ENDPOINT_URL`` (or
``AWS_ENDPOINT_URL_S3``) for a server other than Amazon's, ``AWS_REGION``, and the usual credentials, which
the libraries find themselves.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

SCHEMES = ("s3://", "s3a://")


def is_object_store(location: str) -> bool:
    """Return whether a location lies in object storage."""
    return location.startswith(SCHEMES)


def endpoint() -> str | None:
    """Return the address of the server; None for Amazon's own."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def region() -> str:
    """Return the region of the bucket."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def file_io() -> dict[str, str]:
    """Return properties of PyIceberg's file access; they change nothing for files on a disk."""
    address = endpoint()
    return {"s3.region": region(), **({"s3.endpoint": address} if address else {})}


def filesystem(location: str) -> FileSystem:
    """Return the file system that holds a location."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    scheme, netloc, _ = PyArrowFileIO.parse_location(location)
    return PyArrowFileIO(file_io()).fs_by_scheme(scheme, netloc)


def inner_path(location: str) -> str:
    """Return a location without its scheme, as its file system and listings name it."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    return PyArrowFileIO.parse_location(location)[2]


def spark_catalog() -> dict[str, str]:
    """Return properties of an Iceberg catalog in Spark, without their prefix."""
    address = endpoint()
    own = {"s3.endpoint": address, "s3.path-style-access": "true"} if address else {}
    return {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "client.region": region(), **own}


def hadoop() -> dict[str, str]:
    """Return Spark settings for plain Parquet files and for tables opened by their metadata file."""
    address = endpoint()
    own = {"endpoint": address, "path.style.access": "true"} if address else {}
    conf = {"fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem", "fs.s3a.endpoint.region": region()}
    conf |= {f"fs.s3a.{key}": value for key, value in own.items()}
    return {f"spark.hadoop.{key}": value for key, value in conf.items()}
