-- Ends a running job if one unfinished unit alone has more rejects than the job allows.
-- ARGV: unit, token, "rows,rejected,bytes" of this attempt, extra
-- Returns OK; LOST: the lease is not (or no longer) this attempt's, and nothing changed.
--
-- The unit is not done and its figures are in no total: a resume runs it again from its beginning.
-- Until then its extra is kept beside the committed units' extras, for inspection.
local unit = ARGV[1]
if redis.call('HGET', OWNER, unit) ~= ARGV[2] then
  return 'LOST'
end
local state = redis.call('HGET', META, 'state')
if not state then
  return 'LOST' -- Redis lost the job: do not recreate any of its keys
end
redis.call('HSET', LIVE, unit, ARGV[3])
note_kept(redis.call('HSET', EXTRAS, unit, ARGV[4]))
end_lease(unit)
if state == 'RUNNING' then
  finish('STOPPED', nil, { text = TOO_MANY, by = host_of(ARGV[2]), unit = unit })
else
  keep_for_a_while(LIVE)
  keep_for_a_while(EXTRAS)
end
return 'OK'
