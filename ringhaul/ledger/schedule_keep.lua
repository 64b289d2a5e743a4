-- Updates a run: its lease, its record and what is remembered of its files; or ends it.
-- KEYS: ringhaul:schedule:{NAME}:state (hash), and from it :records and :files (hashes)
-- ARGV: run id, token, lease_ms (0: others may take it over at once), record ('': unchanged), the
--   state in which the run ends ('': it goes on), ttl_s, consecutive failed runs that were not their files' fault ('':
--   unchanged), until when none starts after them, (path, what to remember of it)...
-- Returns OK; LOST: another beat has the run, or it is over.
local BASE = string.sub(KEYS[1], 1, -6)
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local state = redis.call('HMGET', KEYS[1], 'run', 'owner')
if state[1] ~= ARGV[1] or state[2] ~= ARGV[2] then
  return 'LOST'
end
if ARGV[4] ~= '' then
  redis.call('HSET', BASE .. 'records', ARGV[1], ARGV[4])
end
for i = 9, #ARGV, 2 do
  redis.call('HSET', BASE .. 'files', ARGV[i], ARGV[i + 1])
end
if #ARGV >= 9 then
  redis.call('EXPIRE', BASE .. 'files', ARGV[6])
end
if ARGV[7] ~= '' then
  redis.call('HSET', KEYS[1], 'troubles', ARGV[7], 'wait_ms', ARGV[8])
end
if ARGV[5] ~= '' then
  redis.call('HDEL', KEYS[1], 'run', 'owner', 'lease_ms')
  -- Kept apart from the history, which due times that were skipped may fill.
  local before = redis.call('HMGET', KEYS[1], 'ended_run', 'ended_state')
  if ARGV[5] == 'DONE' then
    redis.call('HSET', KEYS[1], 'success_ms', string.format('%.0f', now), 'failures', 0)
  elseif ARGV[5] == 'FAILED' and (before[1] ~= ARGV[1] or before[2] == 'DONE') then
    redis.call('HINCRBY', KEYS[1], 'failures', 1)  -- a run that is continued fails once
  end
  if ARGV[5] == 'DONE' or ARGV[5] == 'FAILED' then
    redis.call('HSET', KEYS[1], 'ended_run', ARGV[1], 'ended_state', ARGV[5])
    redis.call('HDEL', KEYS[1], 'acked_run')
  end
else
  redis.call('HSET', KEYS[1], 'lease_ms', string.format('%.0f', now + ARGV[3]))
end
return 'OK'
