-- Pauses a running job. Queued units are refused when they are claimed, and attempts learn of it
-- when they renew their lease. A repeated call changes nothing.
-- ARGV: by whom
-- Returns the job's state, '' if there is no such job; only a running job is paused now.
local state = redis.call('HGET', META, 'state')
if state == 'RUNNING' and redis.call('HSETNX', META, 'paused_ms', text(now)) == 1 then
  for _, unit in ipairs(redis.call('ZRANGE', ISSUED, 0, -1)) do
    take_out(unit)
    put_back(unit, now)
  end
  note_event('paused', '', ARGV[1])
end
return state or ''
