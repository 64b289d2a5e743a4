-- Records that a worker, or a beat, is alive, and removes those whose heartbeat has expired.
-- KEYS: ringhaul:workers (zset)   ARGV: "host:pid:slots:queues", ttl_ms, ringhaul:slots (string),
--   ringhaul:keepers (zset), most keepers
-- (a beat: ringhaul:beats, its own name, ttl_ms)
-- Returns {how many were removed, 1 if the worker is one of the keepers else 0, how many are alive}.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local until_ms = string.format('%.0f', now + ARGV[2])
local gone = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
local come = redis.call('ZADD', KEYS[1], until_ms, ARGV[1])
if not ARGV[3] then
  return { gone, 0, 0 }
end
if come + gone > 0 then
  redis.call('DEL', ARGV[3]) -- see fleet.lua
end
local alive = redis.call('ZCARD', KEYS[1])
-- A keeper stays one while it lives, so that the looks of abandoned_jobs.py follow each other.
local KEEPERS = ARGV[4]
redis.call('ZREMRANGEBYSCORE', KEEPERS, '-inf', string.format('%.0f', now))
if not redis.call('ZSCORE', KEEPERS, ARGV[1]) and redis.call('ZCARD', KEEPERS) >= tonumber(ARGV[5])
then
  return { gone, 0, alive }
end
redis.call('ZADD', KEEPERS, until_ms, ARGV[1])
return { gone, 1, alive }
