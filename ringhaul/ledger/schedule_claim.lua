-- Creates the run of a due time, for one beat only.
-- KEYS: ringhaul:schedule:{NAME}:state (hash), and from it :runs (zset) and :records (hash)
-- ARGV: run id, its due time in ms, the `settled_ms` that was decided on ('0': none; '': the
--   run settles nothing), record, token, lease_ms, existing record ('': none), runs to keep, ttl_s,
--   '1': by hand, which ignores a pause and fulfils a wish for a run
-- Returns CLAIMED; BUSY: a run has not ended; PAUSED; MOVED: another beat has settled more;
-- KNOWN: the due time has a run, or a different one than expected.
local BASE = string.sub(KEYS[1], 1, -6)
local RUNS, RECORDS = BASE .. 'runs', BASE .. 'records'
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local state = redis.call('HMGET', KEYS[1], 'settled_ms', 'paused_ms', 'run', 'owner')
if state[3] then
  return (state[3] == ARGV[1] and state[4] == ARGV[5]) and 'CLAIMED' or 'BUSY'
end
if state[2] and ARGV[10] ~= '1' then
  return 'PAUSED'
end
if ARGV[3] ~= '' then
  if (state[1] or '0') ~= ARGV[3] then
    return 'MOVED'
  end
  redis.call('HSET', KEYS[1], 'settled_ms', ARGV[2])
end
if (redis.call('HGET', RECORDS, ARGV[1]) or '') ~= ARGV[7] then
  return 'KNOWN'
end
redis.call('HSET', KEYS[1], 'run', ARGV[1], 'owner', ARGV[5],
  'lease_ms', string.format('%.0f', now + ARGV[6]))
if ARGV[10] == '1' then
  redis.call('HDEL', KEYS[1], 'wanted_ms')
end
redis.call('HSET', RECORDS, ARGV[1], ARGV[4])
redis.call('ZADD', RUNS, string.format('%.0f', now), ARGV[1])
local extra = redis.call('ZCARD', RUNS) - tonumber(ARGV[8])
if extra > 0 then
  local old = redis.call('ZPOPMIN', RUNS, extra)
  for i = 1, #old, 2 do
    redis.call('HDEL', RECORDS, old[i])
  end
end
for _, part in ipairs({ 'state', 'runs', 'records', 'files' }) do
  redis.call('EXPIRE', BASE .. part, ARGV[9])
end
return 'CLAIMED'
