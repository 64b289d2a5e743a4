"""The configuration of one Cassandra node, as text. `cassandra.py` writes it.

Everything not set here has Cassandra's default, including batch size warnings, so that a load
behaves as it would against an untuned cluster.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from producer.local.java import Java

#: How long a starting node waits for gossip. A single node has no peers; with several, 100 ms is
#: too short for the second to reach the seed.
RING_DELAY_ONE_MS = 100
RING_DELAY_SEVERAL_MS = 3000

_EXPORTS = (
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/java.lang.ref",
    "java.base/java.lang.reflect",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.unsupported/sun.misc",
)
_OPENS = (
    "java.base/java.lang.module",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.reflect",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.nio",
    "java.base/sun.security.ssl",
    "jdk.management/com.sun.management.internal",
    "java.rmi/sun.rmi.transport.tcp",
)

_LOGBACK = """\
<configuration>
  <appender name="FILE" class="ch.qos.logback.core.rolling.RollingFileAppender">
    <file>{log}</file>
    <rollingPolicy class="ch.qos.logback.core.rolling.FixedWindowRollingPolicy">
      <fileNamePattern>{log}.%i</fileNamePattern>
      <minIndex>1</minIndex><maxIndex>3</maxIndex>
    </rollingPolicy>
    <triggeringPolicy class="ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy">
      <maxFileSize>20MB</maxFileSize>
    </triggeringPolicy>
    <encoder><pattern>%date{{ISO8601}} %-5level [%thread] %logger{{0}} - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="FILE"/></root>
</configuration>
"""

#: Folder of a node's temporary files, in its own.
TEMPORARY = "tmp"

#: The options of Cassandra's conf/jvm-server.options and jvm17-server.options that affect speed, so
#: that a local node is as fast as an installed one, and options needed without its shell scripts.
#: Left out: the size of G1's regions, which is for large heaps, and assertions.
_JVM_OPTIONS = (
    "-XX:+UseG1GC",
    "-XX:+ParallelRefProcEnabled",
    "-XX:MaxTenuringThreshold=1",
    "-XX:G1RSetUpdatingPauseTimePercent=5",
    "-XX:MaxGCPauseMillis=300",
    "-XX:InitiatingHeapOccupancyPercent=70",
    "-XX:+AlwaysPreTouch",
    "-Xss256k",
    # Otherwise Netty has no caches for Cassandra's own threads, which encode all responses.
    "-Dio.netty.allocator.useCacheForAllThreads=true",
    "-Dio.netty.allocator.maxOrder=11",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-Djdk.attach.allowAttachSelf=true",
    "-Djava.awt.headless=true",
)


def cassandra_yaml(
    folder: Path,
    address: str,
    *,
    cql_port: int,
    storage_port: int,
    seed: str,
    auth: bool,
    extra: Mapping[str, object],
) -> str:
    """Return a `cassandra.yaml` (JSON is YAML) for a node whose data lives in `folder`.

    `extra`: settings that override or extend those written here.
    """
    settings: dict[str, object] = {
        "cluster_name": "ringhaul local",
        "num_tokens": 16,
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "SimpleSnitch",
        "listen_address": address,
        "rpc_address": address,
        "native_transport_port": cql_port,
        "storage_port": storage_port,
        "seed_provider": [
            {
                "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                "parameters": [{"seeds": f"{seed}:{storage_port}"}],
            }
        ],
        "commitlog_sync": "periodic",
        "commitlog_sync_period": "10000ms",
        # A local stack is for experiments: a dropped table frees its disk space at once.
        "auto_snapshot": False,
        "data_file_directories": [str(folder / "data")],
        "commitlog_directory": str(folder / "commitlog"),
        "hints_directory": str(folder / "hints"),
        "saved_caches_directory": str(folder / "saved_caches"),
        "cdc_raw_directory": str(folder / "cdc_raw"),
    }
    if auth:
        settings["authenticator"] = "PasswordAuthenticator"
        settings["role_manager"] = "CassandraRoleManager"
    return json.dumps({**settings, **extra}, indent=2) + "\n"


def logback_xml(log: Path) -> str:
    """Return the logging configuration: INFO to `log`, at most 80 MB with three rotated files."""
    return _LOGBACK.format(log=log)


def node_command(
    java: Java, jars: Sequence[Path], folder: Path, *, heap: str, nodes_count: int
) -> list[str]:
    """Return the command line of a node. `heap` in Java's notation, such as "1G"."""
    jamm = next(jar for jar in jars if "jamm" in jar.name)
    ring_delay_ms = RING_DELAY_ONE_MS if nodes_count == 1 else RING_DELAY_SEVERAL_MS
    return [
        str(java.path),
        f"-Xms{heap}",
        f"-Xmx{heap}",
        *_JVM_OPTIONS,
        *(f"--add-exports={module}=ALL-UNNAMED" for module in _EXPORTS),
        *(f"--add-opens={module}=ALL-UNNAMED" for module in _OPENS),
        f"-javaagent:{jamm}",
        "-Dcassandra-foreground=yes",
        f"-Dcassandra.config={(folder / 'cassandra.yaml').as_uri()}",
        f"-Dlogback.configurationFile={(folder / 'logback.xml').as_uri()}",
        storage_argument(folder),
        # A killed node leaves libraries there that it has unpacked: in its own folder, one start's.
        f"-Djava.io.tmpdir={folder / TEMPORARY}",
        # 0: do not wait for gossip to settle; the ring is at most a few nodes on one machine.
        "-Dcassandra.skip_wait_for_gossip_to_settle=0",
        f"-Dcassandra.ring_delay_ms={ring_delay_ms}",
        "-Dcassandra.superuser_setup_delay_ms=100",
        "-cp",
        ":".join(str(jar) for jar in jars),
        "org.apache.cassandra.service.CassandraDaemon",
    ]


def storage_argument(folder: Path) -> str:
    """Return the argument that identifies the node of this folder among all processes."""
    return f"-Dcassandra.storagedir={folder}"
