-- Takes over a run whose beat let its lease expire.
-- KEYS: ringhaul:schedule:{NAME}:state (hash), and from it :records (hash)
-- ARGV: token, lease_ms
-- Returns the record; '' if there is no run, or its lease has not expired.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local state = redis.call('HMGET', KEYS[1], 'run', 'owner', 'lease_ms')
if not state[1] or (state[2] ~= ARGV[1] and tonumber(state[3]) > now) then
  return ''
end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'lease_ms', string.format('%.0f', now + ARGV[2]))
return redis.call('HGET', string.sub(KEYS[1], 1, -6) .. 'records', state[1])
