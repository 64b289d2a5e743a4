-- Records that a worker, or a beat, is alive, and removes those whose heartbeat has expired.
-- KEYS: ringhaul:workers (zset)   ARGV: "host:pid:slots:queues", ttl_ms, ringhaul:slots (string)
-- (a beat: ringhaul:beats, its own name, ttl_ms)
-- Returns how many were removed.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local gone = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
local come = redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[1])
if come + gone > 0 and ARGV[3] then
  redis.call('DEL', ARGV[3]) -- see fleet.lua
end
return gone
