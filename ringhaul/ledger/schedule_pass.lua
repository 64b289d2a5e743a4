-- Settles due times that get no run, and adds the last of them to the history.
-- KEYS: ringhaul:schedule:{NAME}:state (hash), and from it :runs (zset) and :records (hash)
-- ARGV: run id, its due time in ms, the `settled_ms` that the decision is based on, record, runs to
--   keep, run to remove from the history for it ('': none), TTL in s of a schedule's keys
-- Returns 1; 0: another beat has settled more, nothing was done.
local BASE = string.sub(KEYS[1], 1, -6)
local RUNS, RECORDS = BASE .. 'runs', BASE .. 'records'
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if redis.call('HGET', KEYS[1], 'settled_ms') ~= ARGV[3] then
  return 0
end
redis.call('HSET', KEYS[1], 'settled_ms', ARGV[2])
redis.call('ZREM', RUNS, ARGV[6])
redis.call('HDEL', RECORDS, ARGV[6])
if redis.call('HSETNX', RECORDS, ARGV[1], ARGV[4]) == 1 then
  redis.call('ZADD', RUNS, string.format('%.0f', now), ARGV[1])
  -- A run that has not ended stays in the history, however many due times are skipped.
  local extra = redis.call('ZCARD', RUNS) - tonumber(ARGV[5])
  local running = redis.call('HGET', KEYS[1], 'run')
  if extra > 0 then
    for _, old in ipairs(redis.call('ZRANGE', RUNS, 0, extra)) do
      if extra > 0 and old ~= running then
        redis.call('ZREM', RUNS, old)
        redis.call('HDEL', RECORDS, old)
        extra = extra - 1
      end
    end
  end
end
for _, part in ipairs({ 'state', 'runs', 'records' }) do
  redis.call('EXPIRE', BASE .. part, ARGV[7])
end
return 1
