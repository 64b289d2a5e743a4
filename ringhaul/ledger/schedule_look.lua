-- Where a schedule stands. A beat that sees it, or its timing, for the first time begins it: due times
-- before now are none.
-- KEYS: ringhaul:schedule:{NAME}:state (hash)   ARGV: timing ('': nothing is begun), ttl_s
-- Answers {now in ms, settled_ms, since, paused_ms, run, lease_ms}, '' for what is not there.
local clock = redis.call('TIME')
local now = string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))
local since = 'since:' .. ARGV[1]
local state = redis.call('HMGET', KEYS[1], 'settled_ms', since, 'paused_ms', 'run', 'lease_ms')
if ARGV[1] ~= '' and not (state[1] and state[2]) then
  redis.call('HSETNX', KEYS[1], 'settled_ms', now)
  redis.call('HSETNX', KEYS[1], since, now)
  redis.call('EXPIRE', KEYS[1], ARGV[2])
  state = redis.call('HMGET', KEYS[1], 'settled_ms', since, 'paused_ms', 'run', 'lease_ms')
end
local answer = { now }
for i = 1, 5 do
  answer[i + 1] = state[i] or ''
end
return answer
