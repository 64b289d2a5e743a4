-- Records that a worker is alive, and removes those whose heartbeat has expired.
-- KEYS: ringhaul:workers (zset)   ARGV: "host:pid:slots:queues", ttl_ms
-- Returns how many were removed.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local gone = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[1])
return gone
