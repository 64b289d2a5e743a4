"""The settings: one class per section of `ringhaul.toml`, with types, bounds and defaults.

The name of a setting has three spellings: `broker.url` in messages, `url` under `[broker]` in the
file, `RINGHAUL_BROKER_URL` in the environment. Names end in their unit. An empty text means "not
given" wherever that makes sense, so that every default can be written in TOML.
`config/ringhaul.example.toml` explains each setting to users.
"""

import os
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from config.errors import ConfigError
from config.layers import Layer, all_layers, find_file
from config.names import ENV_PREFIX, setting_fields
from config.section import Section
from config.sstable_sections import (
    ImportSettings,
    SSTableSettings,
    StreamingSettings,
)
from config.values import (
    Authentication,
    BrokerUrl,
    Bytes,
    Compression,
    Consistency,
    ContactPoints,
    Count,
    EndpointUrl,
    HostIds,
    HostNames,
    LogFormat,
    LogLevel,
    MaxErrors,
    Networks,
    OptionalBool,
    OptionalPath,
    Roots,
    Seconds,
    Strategy,
    TransformNames,
    UrlSchemes,
)


class ClusterSettings(Section):
    """How to reach Cassandra."""

    contact_points: ContactPoints = Field(default=("127.0.0.1",), min_length=1)
    port: Count = Field(default=9042, ge=1, le=65535)
    #: Zip file of a managed cluster, instead of contact points, port and TLS files.
    secure_connect_bundle: OptionalPath = None
    #: Empty: the data centre of the first contact point that answers.
    local_dc: str = ""
    #: Empty: any cluster. Otherwise only a cluster that has one of these nodes is accepted.
    host_ids: HostIds = ()
    #: Addresses and networks. Empty: all nodes of the local data centre are allowed, none denied.
    allowed_nodes: Networks = ()
    denied_nodes: Networks = ()
    user: str = ""
    password_file: OptionalPath = None
    tls: bool = False
    tls_ca: OptionalPath = None
    tls_cert: OptionalPath = None
    tls_key: OptionalPath = None
    tls_verify_hostname: bool = True
    #: Compression of requests and answers: saves network traffic, costs clients and nodes CPU time.
    compression: Compression = "none"
    consistency: Consistency = "LOCAL_QUORUM"
    connect_timeout_s: Seconds = Field(default=10.0, gt=0, le=600)
    #: By default the server reports a write timeout after 2 s; 12 s (cqlsh: 10) leaves room for a
    #: queue at the server, and bounds how long a silent node can block a window.
    request_timeout_s: Seconds = Field(default=12.0, gt=0, le=600)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.user and self.password_file is None:
            raise ValueError(
                "cluster.user needs cluster.password_file, or -p, which asks for the password"
            )
        if self.password_file is not None and not self.user:
            raise ValueError("cluster.password_file needs cluster.user")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("cluster.tls_cert and cluster.tls_key go together: give both or none")
        if not self.tls and (self.tls_ca is not None or self.tls_cert is not None):
            raise ValueError("cluster.tls_ca, tls_cert and tls_key need cluster.tls = true")
        if self.secure_connect_bundle is not None and self.tls:
            raise ValueError(
                "cluster.secure_connect_bundle has the certificates: leave out cluster.tls"
            )
        if self.secure_connect_bundle is not None and (self.allowed_nodes or self.denied_nodes):
            raise ValueError(
                "cluster.allowed_nodes and denied_nodes have no effect on nodes behind the proxy"
                " of cluster.secure_connect_bundle: leave them out"
            )
        return self


class BrokerSettings(Section):
    """The Redis (7.2 or later) or Valkey that carries messages and holds the ledger."""

    #: Empty: embedded, a private Valkey for the length of the job.
    url: BrokerUrl = ""
    password_file: OptionalPath = None
    tls_ca: OptionalPath = None
    tls_cert: OptionalPath = None
    tls_key: OptionalPath = None
    #: A message not acknowledged for this long is delivered again, even if its unit still runs.
    #: No unit takes six hours; the ledger's sweep finds a lost message in seconds.
    visibility_timeout_s: Count = Field(default=21600, ge=60)
    #: Prefix of every key of Celery's messages. The ledger's own keys start with `ringhaul:`.
    key_prefix: str = "ringhaul:mq:"

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("broker.tls_cert and broker.tls_key go together: give both or none")
        tls_files = self.tls_ca is not None or self.tls_cert is not None
        if tls_files and not self.url.startswith("rediss://"):
            raise ValueError("broker.tls_ca, tls_cert and tls_key need a broker.url with rediss://")
        if self.password_file is not None and not self.url:
            raise ValueError("broker.password_file needs broker.url")
        return self


class LoadSettings(Section):
    """How files are split into units and written."""

    #: 0: total / (4 x slots), at least 1 MiB and at most 64 MiB.
    unit_bytes: Bytes = Field(default=0, ge=0)
    #: How much a worker holds and encodes at a time: a unit is read block by block.
    #: A row of 1 kB costs 5.0 us in blocks of 1 MiB (only a thousand rows), and 4.6 us in blocks of
    #: 2 or 4 MiB. Encoding 2 MiB of small rows takes about 16 ms: less than the requests in flight
    #: last, so that the server does not wait for the next block.
    block_bytes: Bytes = Field(default=2**21, ge=64 * 2**10, le=256 * 2**20)
    strategy: Strategy = "pipeline"
    #: Per worker process. 0: the default of the strategy, see `ringhaul.load.write.base`.
    in_flight_requests_max: Count = Field(default=0, ge=0, le=32768)
    in_flight_bytes_max: Bytes = Field(default=8 * 2**20, ge=64 * 2**10)
    #: Rows in one request. 0: as many as the server takes without a warning.
    batch_rows_max: Count = Field(default=0, ge=0, le=100)
    #: Per request, after timeouts, unavailability and overload, with backoff and jitter.
    retries_max: Count = Field(default=10, ge=0, le=1000)
    max_errors: MaxErrors = "1000"


class QuerySettings(Section):
    """How the partial results of a query's units are collected."""

    #: A larger partial result of a unit goes to a file and not into Redis's memory.
    partial_bytes_max: Bytes = Field(default=4 * 2**20, ge=2**10, le=64 * 2**20)
    #: Folder of those files; every worker and the command must reach it. Empty: `spill` in the
    #: command's state folder, which suffices for workers of the same user on the same host.
    spill_dir: OptionalPath = None


class StorageSettings(Section):
    """Which files and URLs this host opens for submitted jobs, with its own permissions."""

    #: URL schemes of inputs and outputs. Others that fsspec knows can be added.
    schemes: UrlSchemes = ("s3", "s3a", "gs", "gcs", "http", "https", "file")
    #: URL of an S3-compatible store. Empty: the URL in the host's AWS configuration.
    s3_endpoint_url: EndpointUrl = ""
    #: Whether http:// and https:// may resolve to loopback and private addresses.
    private_addresses: bool = False
    #: Folders and URL prefixes. Empty: no limit but the permissions of the user.
    allowed_roots: Roots = ()


class TransformSettings(Section):
    """Which user code this host runs for submitted jobs."""

    #: `module:function` patterns; other functions are refused.
    allowed: TransformNames = ()
    #: Folder searched first for their modules. Empty: installed packages only.
    path: OptionalPath = None


class WorkerSettings(Section):
    """The worker processes of one host, and the leases on the units that they claim."""

    #: 0: one for each core that the process may use, see `config.cores`.
    concurrency: Count = Field(default=0, ge=0, le=1024)
    lease_s: Seconds = Field(default=60.0, ge=1)
    sweep_s: Seconds = Field(default=5.0, ge=0.1)
    unclaimed_s: Seconds = Field(default=30.0, ge=1)
    #: Concurrent openings over all hosts: opening sessions costs the cluster more than using them.
    session_openings_max: Count = Field(default=4, ge=1)
    session_jitter_s: Seconds = Field(default=1.0, ge=0, le=60)
    max_tasks_per_child: Count = Field(default=500, ge=1)
    #: Most stand-ins for processes that only wait for a rate limit; never more than the worker
    #: has slots.
    stand_ins_max: Count = Field(default=1024, ge=0, le=1024)
    time_limit_soft_s: Count = Field(default=1500, ge=10)
    time_limit_hard_s: Count = Field(default=1800, ge=11)
    #: Touched every `sweep_s` while Redis answers, for probes: pinging a worker is expensive.
    heartbeat_file: OptionalPath = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.time_limit_soft_s >= self.time_limit_hard_s:
            raise ValueError("worker.time_limit_soft_s must be below worker.time_limit_hard_s")
        if self.sweep_s >= self.lease_s:
            raise ValueError("worker.sweep_s must be below worker.lease_s")
        return self


class ScheduleSettings(Section):
    """What `ringhaul beat` starts, and how beats share it."""

    #: Empty: `config/schedule.toml` below the current folder, else the user's own.
    file: OptionalPath = None
    #: A run whose beat has been silent for this long is continued by another beat. Renewed every
    #: third of it. Longer than the 15 s that detecting a half-open connection to Redis may take.
    lease_s: Seconds = Field(default=30.0, ge=1)
    #: Concurrent runs of one beat. Each is a process of about 150 MB; further due times wait.
    runs_max: Count = Field(default=8, ge=1, le=100)


class WebSettings(Section):
    """Who may see and do what in `ringhaul flower`."""

    #: Whether its pages change nothing: neither jobs nor schedules.
    read_only: bool = True
    #: Whether pages show data of rows: samples of rejects. None: only on loopback.
    show_data: OptionalBool = None
    #: Names, besides `localhost` and this host's own, under which browsers and proxies reach it.
    hosts: HostNames = ()
    #: What requires a log-in if it listens beyond loopback: Flower, or something in front of it.
    authentication: Authentication = "flower"
    #: Lines `user:password` for Flower's log-in.
    basic_auth_file: OptionalPath = None


class MetricsSettings(Section):
    """What the metrics for Prometheus tell."""

    #: Each new job is a new value of a label, which Prometheus keeps as long as its data.
    jobs: bool = False


class TracingSettings(Section):
    """Where the spans of jobs and units go."""

    #: Collector of OpenTelemetry (OTLP over HTTP), such as http://collector:4318. Empty: none.
    endpoint: EndpointUrl = ""


class LoggingSettings(Section):
    """What is logged, and in which format. Logs go to stderr."""

    level: LogLevel = "INFO"
    #: auto: console on a terminal, JSON lines otherwise.
    format: LogFormat = "auto"


def state_dir_default() -> Path:
    """Return `$XDG_STATE_HOME/ringhaul`, else `~/.local/state/ringhaul`."""
    return _xdg_dir("XDG_STATE_HOME", ".local/state", "state_dir")


def cache_dir_default() -> Path:
    """Return `$XDG_CACHE_HOME/ringhaul`, else `~/.cache/ringhaul`."""
    return _xdg_dir("XDG_CACHE_HOME", ".cache", "cache_dir")


def _xdg_dir(variable: str, under_home: str, key: str) -> Path:
    base = os.environ.get(variable, "")
    if os.path.isabs(base):  # the XDG specification says to ignore a relative one
        return Path(base, "ringhaul")
    try:
        return Path.home() / under_home / "ringhaul"
    except RuntimeError as error:
        raise ConfigError(
            f"{key} has no default because this user has no home folder:"
            f" set {key} or RINGHAUL_{key.upper()}"
        ) from error


class Settings(BaseSettings):
    """All settings, read layer by layer: arguments, environment, file, local stack.

    `config.settings.load_settings` reads the same layers, but also records where each value came
    from and raises errors written for users.
    """

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        validate_default=True,
        hide_input_in_errors=True,  # it may be a URL with a password
        case_sensitive=True,  # except for variables, see `config.layers.Environment`
        env_prefix=ENV_PREFIX,
        # RINGHAUL_BROKER_KEY_PREFIX is broker.key_prefix: only the first `_` ends a section.
        env_nested_delimiter="_",
        env_nested_max_split=1,
        env_ignore_empty=True,
        enable_decoding=False,  # lists are separated by commas, not JSON
    )

    cluster: ClusterSettings = ClusterSettings()
    broker: BrokerSettings = BrokerSettings()
    load: LoadSettings = LoadSettings()
    sstables: SSTableSettings = SSTableSettings()
    streaming: StreamingSettings = StreamingSettings()
    imports: ImportSettings = ImportSettings()
    query: QuerySettings = QuerySettings()
    storage: StorageSettings = StorageSettings()
    transform: TransformSettings = TransformSettings()
    worker: WorkerSettings = WorkerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    web: WebSettings = WebSettings()
    metrics: MetricsSettings = MetricsSettings()
    tracing: TracingSettings = TracingSettings()
    logging: LoggingSettings = LoggingSettings()
    #: Jobs' files, the embedded Valkey's data, the local stack. Created with mode 0700 if needed.
    state_dir: Path = Field(default_factory=state_dir_default)
    #: What can be fetched again, such as Cassandra's jars.
    cache_dir: Path = Field(default_factory=cache_dir_default)

    def __init__(self, *, layers: tuple[Layer, ...] = (), **given: Any) -> None:
        """`layers`: read only these; if empty, all layers, overridden by the values `given`."""
        super().__init__(layers=layers, **given)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the layers, highest precedence first. The library adds the defaults."""
        given = dict(init_settings())  # the arguments of `__init__`
        layers: tuple[Layer, ...] = given.pop("layers")
        return layers or all_layers(settings_cls, given, find_file(None), {})

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.broker.visibility_timeout_s <= self.worker.time_limit_hard_s:
            raise ValueError(
                "broker.visibility_timeout_s must be above worker.time_limit_hard_s:"
                " Redis would deliver a running unit's message again"
            )
        return self


def setting_keys() -> dict[str, FieldInfo]:
    """Return all settings by dotted key, in order."""
    return setting_fields(Settings)
