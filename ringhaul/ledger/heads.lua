-- Reads what a list needs of many jobs at once.
-- KEYS: ringhaul:jobs   ARGV: pattern of a job's meta key, job, job, ...
-- Returns for each job its state, paused_ms, created_ms, finished_ms, kind and table, in one text
--   separated by the character 31; '' for a job that does not exist, '?' for an unreadable job.
local heads = {}
for i = 2, #ARGV do
  local key = string.format(ARGV[1], ARGV[i])
  -- `pcall`: a key of a wrong type affects its own job only.
  local m = redis.pcall('HMGET', key, 'state', 'paused_ms', 'created_ms', 'finished_ms', 'kind',
    'table')
  if m.err then
    heads[#heads + 1] = '?'
  elseif not m[1] then
    heads[#heads + 1] = redis.call('EXISTS', key) == 1 and '?' or ''
  else
    for field = 1, 6 do
      m[field] = m[field] or ''
    end
    heads[#heads + 1] = table.concat(m, '\31')
  end
end
return heads
