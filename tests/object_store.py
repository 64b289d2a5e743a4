"""An object store that speaks S3 over real HTTP: moto's server, in a separate process."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from producer.local.ports import choose_port
from tests.acceptance.command import wait_until

#: Moto accepts any credentials, because it does not check them.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    # Do not query a metadata service of the machine that runs the tests.
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


@dataclass(frozen=True)
class ObjectStore:
    """A store with one bucket."""

    endpoint_url: str
    log: Path
    bucket: str = "acme"

    @property
    def env(self) -> dict[str, str]:
        """Environment of a host that uses it: its credentials, and the endpoint as a setting."""
        return CREDENTIALS | {"RINGHAUL_STORAGE_S3_ENDPOINT_URL": self.endpoint_url}

    def url(self, key: str = "") -> str:
        return f"s3://{self.bucket}/{key}"

    def client(self) -> Any:
        """An S3 client for the tests themselves."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint_url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}),
        )

    def put(self, key: str, data: bytes) -> str:
        """Write an object and return its URL."""
        self.client().put_object(Bucket=self.bucket, Key=key, Body=data)
        return self.url(key)

    def get(self, key: str) -> bytes:
        data: bytes = self.client().get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return data

    def keys(self, prefix: str) -> list[str]:
        """Names below a prefix, without it, sorted."""
        pages = self.client().get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=self.bucket, Prefix=prefix)
        names = [entry["Key"] for page in found for entry in page.get("Contents", ())]
        return sorted(name.removeprefix(prefix) for name in names)

    def uploads(self) -> list[str]:
        """Keys whose upload in parts was neither finished nor given up."""
        found = self.client().list_multipart_uploads(Bucket=self.bucket)
        return [upload["Key"] for upload in found.get("Uploads", ())]

    def requests(self) -> list[tuple[str, str, int]]:
        """(method, path, status) of each request so far, from the server's own log."""
        line = re.compile(r'"([A-Z]+) (\S+) HTTP/1\.[01]" (\d+)')
        text = re.sub(r"\x1b\[[0-9;]*m", "", self.log.read_text())
        return [(m[1], m[2], int(m[3])) for m in line.finditer(text)]


@contextmanager
def running_object_store(
    folder: Path, address: str = "127.0.0.1", port: int = 0, **env: str
) -> Iterator[ObjectStore]:
    """Run a store during the block. `port`: 0 for any free one."""
    port = port or choose_port([address])
    log = folder / "object-store.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", address, "-p", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=os.environ | env,
        )
        try:
            store = ObjectStore(f"http://{address}:{port}", log)

            def is_up() -> bool:
                assert process.poll() is None, log.read_text()
                try:
                    socket.create_connection((address, port), 1).close()
                except OSError:
                    return False
                return True

            wait_until(is_up, f"the object store; see {log}")
            store.client().create_bucket(Bucket=store.bucket)
            yield store
        finally:
            process.kill()
            process.wait()
