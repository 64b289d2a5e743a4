-- Reads what Redis holds of a job, at one moment: audit.py checks whether it is consistent.
-- Changes nothing. Returns {'', existing part...} if there is no meta, else {state, units, left,
--   kept, sum_tot, sum_lat, counted, epoch, kept_epoch, parts of a wrong type separated by blanks,
--   unit specs, results, whether there is a spec, bits in done, units in bad, fields of extras,
--   fields of live, values of tot, values of lat}; '' for what does not exist.
local wrong = {}

-- Returns the response to a command on a key of the job, `other` if the key has another type.
local function look(part, other, command, ...)
  local answer = redis.pcall(command, JOB .. part, ...)
  if type(answer) == 'table' and answer.err then
    wrong[#wrong + 1] = part
    return other
  end
  return answer
end

local m = look('meta', false, 'HMGET', 'state', 'units', 'left', 'kept', 'sum_tot', 'sum_lat',
  'counted', 'epoch', 'kept_epoch')
if not m then
  return { '', 'meta' }
end
if not m[1] then
  local answer = { '' }
  for _, part in ipairs(SINGLE_KEYS) do
    if not is_aside(part) and redis.call('EXISTS', JOB .. part) == 1 then
      answer[#answer + 1] = part
    end
  end
  for _, part in ipairs(BUCKETED_KEYS) do
    if redis.call('EXISTS', bucket(part, 0)) == 1 then
      answer[#answer + 1] = part .. ':0'
    end
  end
  return answer
end

local answer = {}
for i = 1, 9 do
  answer[i] = m[i] or ''
end
local counts = { units = 0, results = 0 }
for unit = 0, (tonumber(m[2]) or 0) - 1, UNITS_PER_BUCKET do
  for _, part in ipairs(BUCKETED_KEYS) do
    local number = text(math.floor(unit / UNITS_PER_BUCKET))
    counts[part] = counts[part] + look(part .. ':' .. number, 0, 'HLEN')
  end
end
local facts = {
  counts.units,
  counts.results,
  look('spec', 0, 'STRLEN') > 0 and 1 or 0,
  look('done', 0, 'BITCOUNT'),
  look('bad', 0, 'HLEN'),
  look('extras', 0, 'HLEN'),
  look('live', 0, 'HLEN'),
  look('tot', {}, 'HVALS'),
  look('lat', {}, 'HVALS'),
}
look('cursors', 0, 'HLEN')
look('limited', 0, 'HLEN')
for _, part in ipairs({ 'starts', 'fails', 'owner', 'losses' }) do
  look(part, 0, 'HLEN')
end
for _, part in ipairs({ 'issued', 'due', 'lease', 'begun', 'suspects' }) do
  look(part, 0, 'ZCARD')
end
look('ends', 0, 'STRLEN')
look('sampling', 0, 'HLEN')
for _, part in ipairs({ 'samples', 'events' }) do
  look(part, 0, 'LLEN')
end
answer[10] = table.concat(wrong, ' ')
for i, fact in ipairs(facts) do
  answer[10 + i] = fact
end
return answer
