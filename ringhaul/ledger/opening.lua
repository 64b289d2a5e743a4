-- Acquires one of the places for opening a session at the same time.
-- KEYS: ringhaul:openings:<name> (zset token -> ms)   ARGV: token, places, ttl_ms
-- Returns 1: the token has a place (again, if it had one); 0: all places are taken.
-- A place expires after ttl_ms, so a process that died while opening does not hold it forever.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
if not redis.call('ZSCORE', KEYS[1], ARGV[1])
  and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  return 0
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[3]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
