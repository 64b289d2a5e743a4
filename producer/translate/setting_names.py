"""Names of Bulk Loader's settings: the short ones of its command line, and older ones."""

from __future__ import annotations

from collections.abc import Mapping

#: Shortcut -> setting. Shortcuts for connector settings stand for the connector in use.
SHORTCUTS: Mapping[str, str] = {
    "c": "connector.name",
    "url": "connector.*.url",
    "delim": "connector.csv.delimiter",
    "header": "connector.csv.header",
    "quote": "connector.csv.quote",
    "escape": "connector.csv.escape",
    "comment": "connector.csv.comment",
    "encoding": "connector.*.encoding",
    "skipRecords": "connector.*.skipRecords",
    "maxRecords": "connector.*.maxRecords",
    "maxConcurrentFiles": "connector.*.maxConcurrentFiles",
    "newline": "connector.csv.newline",
    "nullValue": "connector.csv.nullValue",
    "k": "schema.keyspace",
    "t": "schema.table",
    "m": "schema.mapping",
    "query": "schema.query",
    "g": "schema.graph",
    "v": "schema.vertex",
    "e": "schema.edge",
    "from": "schema.from",
    "to": "schema.to",
    "timestamp": "schema.preserveTimestamp",
    "ttl": "schema.preserveTtl",
    "nullStrings": "codec.nullStrings",
    "locale": "codec.locale",
    "timeZone": "codec.timeZone",
    "h": "datastax-java-driver.basic.contact-points",
    "port": "datastax-java-driver.basic.default-port",
    "dc": "datastax-java-driver.basic.load-balancing-policy.local-datacenter",
    "cl": "datastax-java-driver.basic.request.consistency",
    "u": "datastax-java-driver.advanced.auth-provider.username",
    "p": "datastax-java-driver.advanced.auth-provider.password",
    "b": "datastax-java-driver.basic.cloud.secure-connect-bundle",
    "maxRetries": "datastax-java-driver.advanced.retry-policy.max-retries",
    "lbp": "datastax-java-driver.basic.load-balancing-policy.class",
    "maxErrors": "log.maxErrors",
    "logDir": "log.directory",
    "verbosity": "log.verbosity",
    "maxConcurrentQueries": "engine.maxConcurrentQueries",
    "dryRun": "engine.dryRun",
    "reportRate": "monitoring.reportRate",
    "jmx": "monitoring.jmx",
    "prometheus": "monitoring.prometheus.pull.enabled",
    "allow": "datastax-java-driver.basic.load-balancing-policy.evaluator.allow",
    "deny": "datastax-java-driver.basic.load-balancing-policy.evaluator.deny",
    "stats": "stats.modes",
    "partitions": "stats.numPartitions",
    "f": "config",
}
ALLOWED = SHORTCUTS["allow"]
DENIED = SHORTCUTS["deny"]
COMPRESSION = "datastax-java-driver.advanced.protocol.compression"
#: Older names and other spellings of settings.
ALIASES: Mapping[str, str] = {
    "datastax-java-driver.basic.load-balancing-policy.filter.allow": ALLOWED,
    "datastax-java-driver.basic.load-balancing-policy.filter.deny": DENIED,
    "driver.hosts": SHORTCUTS["h"],
    "driver.port": SHORTCUTS["port"],
    "driver.auth.username": SHORTCUTS["u"],
    "driver.auth.password": SHORTCUTS["p"],
    "driver.query.consistency": SHORTCUTS["cl"],
    "driver.policy.lbp.dcAwareRoundRobin.localDc": SHORTCUTS["dc"],
    "driver.policy.lbp.name": SHORTCUTS["lbp"],
    "driver.policy.lbp.whiteList.hosts": ALLOWED,
    "driver.policy.maxRetries": SHORTCUTS["maxRetries"],
    "driver.protocol.compression": COMPRESSION,
    "executor.maxConcurrentQueries": SHORTCUTS["maxConcurrentQueries"],
    "schema.nullStrings": "codec.nullStrings",
}
#: Settings of a connector whose value is a map, which a file may spell member by member.
MAPS = frozenset(
    ("parserFeatures", "generatorFeatures", "serializationFeatures", "deserializationFeatures")
)
