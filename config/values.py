"""Types of settings' values: sizes, lists, limits, URLs, paths.

Each parser takes a value from a TOML file or an environment variable and raises `ValueError` with
what it expected. The message never repeats the value, which may hold a password: the caller shows
it masked.
"""

import re
import shlex
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field

_SIZE_UNITS = {
    "": 1,
    "b": 1,
    # A bare letter is binary, as in the JVM's heap sizes and in dd.
    "k": 2**10,
    "m": 2**20,
    "g": 2**30,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}
#: Sizes are used as signed 64-bit numbers.
_BYTES_END = 2.0**63
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
#: Duplicated in `ringhaul/ledger/limits.py`, which config must not import; a test compares them.
MAX_ERRORS = re.compile(r"-1|[0-9]{1,15}|(100(?:\.0{1,4})?|[0-9]{1,2}(?:\.[0-9]{1,4})?) ?%")


def parse_bytes(value: Any) -> Any:
    """Return the bytes in a size such as `"64 KiB"`, `"16M"` (MiB) or `"1.5 MB"`; numbers pass."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None or match[2].lower() not in _SIZE_UNITS:
        raise ValueError('expected a size such as 65536, "64 KiB" or "1.5 MB"')
    size = float(match[1]) * _SIZE_UNITS[match[2].lower()]
    if size >= _BYTES_END:
        raise ValueError('expected a size such as 65536, "64 KiB" or "1.5 MB", below 8 EiB')
    return int(size)


def parse_max_errors(value: Any) -> str:
    """Return an error limit as text: `"1000"` records, `"0.5%"` of them, or `"-1"` for no limit.

    A number has up to 15 digits, a share up to four decimals.
    """
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not MAX_ERRORS.fullmatch(text.strip()):
        raise ValueError(
            'expected a number of records such as 1000, a share such as "0.5%", or -1 for no limit'
            " (at most 15 digits, four decimals)"
        )
    return text


def check_broker_url(url: str) -> str:
    """Return `url` if it is empty, or `redis://` or `rediss://` with a host; a password and a
    database, a number below a billion, are optional."""
    if not url:
        return url
    expected = "expected redis://host:port/database, or rediss:// for TLS"
    try:
        parts = urlsplit(url)
        # redis-py and Celery know the schemes in lower case only.
        usable = url.startswith(("redis://", "rediss://")) and parts.hostname and parts.port != 0
    except ValueError:
        raise ValueError(expected) from None
    if not usable or not re.fullmatch(r"/?[0-9]{0,9}", parts.path) or parts.query or parts.fragment:
        raise ValueError(expected)
    return url


def check_contact_points(points: tuple[str, ...]) -> tuple[str, ...]:
    """Return `points` if all are host names or addresses. A single colon means a port, which is
    refused (IPv6 addresses have two or more)."""
    for point in points:
        if not point or re.search(r"[\s/@]", point) or point.count(":") == 1:
            raise ValueError(
                "expected host names or addresses separated by commas, without a port"
                " (cluster.port is the port of all of them)"
            )
    return points


def check_host_ids(host_ids: tuple[str, ...]) -> tuple[str, ...]:
    """Return the UUIDs in the spelling that nodes use."""
    try:
        return tuple(str(UUID(host_id)) for host_id in host_ids)
    except ValueError:
        raise ValueError(
            "expected host ids separated by commas, as `nodetool info` shows them"
        ) from None


def check_networks(networks: tuple[str, ...]) -> tuple[str, ...]:
    """Return `networks` if all are addresses of nodes, or networks of them."""
    for network in networks:
        try:
            ip_network(network, strict=False)
        except ValueError:
            raise ValueError(
                "expected addresses of nodes, or networks such as 10.0.1.0/24, separated by commas"
            ) from None
    return networks


def check_roots(roots: tuple[str, ...]) -> tuple[str, ...]:
    """Return `roots` if all are absolute folders or URL prefixes without user, query or dots."""
    for root in roots:
        url = "://" in root
        parts = root.partition("://")[2].split("/") if url else root.split("/")
        if not (url or root.startswith("/")) or {"@", "?"} & set(root) or {".", ".."} & set(parts):
            raise ValueError(
                "expected absolute folders and URL prefixes separated by commas, such as"
                " /data,s3://bucket/in"
            )
    return roots


def check_schemes(schemes: tuple[str, ...]) -> tuple[str, ...]:
    """Return `schemes` if all are URL schemes, without `://`."""
    for scheme in schemes:
        if not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme):
            raise ValueError("expected URL schemes separated by commas, such as s3,https")
    return schemes


def check_endpoint_url(url: str) -> str:
    """Return `url` if it is empty, or `http://` or `https://` with a host and without a user."""
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username):
        raise ValueError("expected http://host:port or https://host:port")
    return url


def check_host_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return `names` in lower case if all are names of hosts, without a scheme or a port."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?", name):
            raise ValueError(
                "expected names of hosts separated by commas, such as etl.example.com, without a"
                " scheme or a port"
            )
    return tuple(name.lower() for name in names)


def check_transform_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return `names` if all are patterns of functions, in which * stands for any part of a name."""
    for name in names:
        if not re.fullmatch(r"[\w.*]+:[\w*]+", name):
            raise ValueError(
                "expected functions as module:function, separated by commas, such as"
                " etl:mask,etl:split"
            )
    return names


def check_words(text: str) -> str:
    """Return `text` if a shell could cut it into words."""
    try:
        shlex.split(text)
    except ValueError:
        raise ValueError("expected words as in a shell, with balanced quotes") from None
    return text


def _split_commas(value: Any) -> Any:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _none_if_empty(value: Any) -> Any:
    return None if value == "" else value


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


#: Python treats `true` as 1, so number types must refuse it explicitly.
Count = Annotated[int, BeforeValidator(_no_bool)]
Bytes = Annotated[int, BeforeValidator(_no_bool), BeforeValidator(parse_bytes)]
Seconds = Annotated[float, BeforeValidator(_no_bool), Field(allow_inf_nan=False)]
OptionalBool = Annotated[bool | None, BeforeValidator(_none_if_empty)]
OptionalPath = Annotated[Path | None, BeforeValidator(_none_if_empty)]
MaxErrors = Annotated[str, BeforeValidator(parse_max_errors)]
BrokerUrl = Annotated[str, AfterValidator(check_broker_url)]
ContactPoints = Annotated[
    tuple[str, ...], BeforeValidator(_split_commas), AfterValidator(check_contact_points)
]
HostIds = Annotated[tuple[str, ...], BeforeValidator(_split_commas), AfterValidator(check_host_ids)]
HostNames = Annotated[
    tuple[str, ...], BeforeValidator(_split_commas), AfterValidator(check_host_names)
]
Networks = Annotated[
    tuple[str, ...], BeforeValidator(_split_commas), AfterValidator(check_networks)
]
Roots = Annotated[tuple[str, ...], BeforeValidator(_split_commas), AfterValidator(check_roots)]
UrlSchemes = Annotated[
    tuple[str, ...], BeforeValidator(_split_commas), AfterValidator(check_schemes)
]
Words = Annotated[str, AfterValidator(check_words)]
EndpointUrl = Annotated[str, AfterValidator(check_endpoint_url)]
TransformNames = Annotated[
    tuple[str, ...], BeforeValidator(_split_commas), AfterValidator(check_transform_names)
]
Consistency = Annotated[
    Literal[
        "ANY", "ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "LOCAL_ONE"
    ],
    BeforeValidator(_upper),
]
Strategy = Annotated[Literal["pipeline", "single", "token-batch"], BeforeValidator(_lower)]
Compression = Annotated[Literal["none", "lz4"], BeforeValidator(_lower)]
Authentication = Annotated[Literal["flower", "proxy"], BeforeValidator(_lower)]
LogLevel = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_upper)]
LogFormat = Annotated[Literal["auto", "console", "json"], BeforeValidator(_lower)]
