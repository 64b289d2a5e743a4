-- Gives a unit back unfinished; it will be issued again. The attempt does not count as a start.
-- ARGV: unit, token, reason or '', blamed 0|1, delay_ms, fatal 0|1, cause or '' (see causes.py; not
--   from older versions)
-- Returns OK; LOST: the lease is not (or no longer) this attempt's.
-- A unit given back with blame more than `fails_max` times fails the job with the last reason; a
-- fatal release fails it at once.
local unit, token, reason, blamed, delay_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], int(ARGV[5])
if redis.call('HGET', OWNER, unit) ~= token then
  return 'LOST'
end
local m = redis.call('HMGET', META, 'state', 'fails_max', 'units', 'left', 'paused_ms')
if m[1] == 'RUNNING' and ARGV[6] == '1' then
  finish('FAILED', reason, { by = host_of(token), unit = unit, cause = ARGV[7] })
  m[1] = 'FAILED'
end
if m[1] ~= 'RUNNING' then
  -- A resume puts the unit back; until then its progress stays visible.
  end_lease(unit)
  return 'OK'
end
if redis.call('HINCRBY', STARTS, unit, -1) <= 0 then
  redis.call('HDEL', STARTS, unit)
end
take_out(unit)
put_back(unit, now + delay_ms)
if reason ~= '' then
  local done = tonumber(m[3]) - tonumber(m[4]) - redis.call('HLEN', BAD)
  redis.call('HSET', META, 'last_error', reason, 'error_ms', text(now), 'error_done', text(done))
end
if blamed == '1' then
  add_total('failed', 1)
end
if blamed == '1' and redis.call('HINCRBY', FAILS, unit, 1) > tonumber(m[2]) then
  finish('FAILED', reason, { by = host_of(token), unit = unit, cause = ARGV[7] })
elseif blamed == '1' then
  note_event('unit retried', reason, host_of(token), unit)
elseif not m[5] then -- each unit is given back at a pause, which is an event itself
  note_event('unit released', reason, host_of(token), unit)
end
return 'OK'
