-- Returns the state of a schedule. A beat that first sees it, or its timing, starts it: earlier due
-- times do not count. A timing that no beat looks at, while some look at another, is
-- forgotten, and starts again if it returns; while no beat looks at all, none is forgotten. Two
-- beats may have two timings.
-- KEYS: ringhaul:schedule:{NAME}:state (hash): for each timing since:TIMING, when it started, and
--   seen:TIMING, when it was last looked at
-- ARGV: timing ('': start nothing), ttl_s, seen_every_ms, unseen_max_ms, '1' to change nothing
-- Returns {now in ms, settled_ms, since, paused_ms, run, lease_ms, wanted_ms}, '' for what does not
-- exist.
local clock = redis.call('TIME')
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
local now = string.format('%.0f', now_ms)
local since, seen = 'since:' .. ARGV[1], 'seen:' .. ARGV[1]
if ARGV[1] ~= '' and ARGV[5] ~= '1' then
  redis.call('HSETNX', KEYS[1], 'settled_ms', now)
  redis.call('HSETNX', KEYS[1], since, now)
  -- Not at every look: looks are frequent, and this is a write.
  if tonumber(redis.call('HGET', KEYS[1], seen) or 0) + ARGV[3] <= now_ms then
    redis.call('HSET', KEYS[1], seen, now)
    redis.call('EXPIRE', KEYS[1], ARGV[2])
    for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
      local timing = string.match(field, '^since:(.*)$')
      if timing then
        local last_ms = tonumber(redis.call('HGET', KEYS[1], 'seen:' .. timing) or 0)
        if last_ms + ARGV[4] <= now_ms then
          redis.call('HDEL', KEYS[1], field, 'seen:' .. timing)
        end
      end
    end
  end
end
local state = redis.call('HMGET', KEYS[1], 'settled_ms', since, 'paused_ms', 'run', 'lease_ms',
  'wanted_ms')
local answer = { now }
for i = 1, 6 do
  answer[i + 1] = state[i] or ''
end
return answer
