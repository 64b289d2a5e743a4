-- Returns how far the takers of a rate limit wait for each other, in draws (0 while the limit is
-- not reached), and how many units are enough to reach it.
-- Each taker draws DRAW_S seconds' worth and waits until that is paid for, so the debt of the bucket is
-- the number of takers less the number that the rate needs.
-- Both count as of the last draw. Takers that go on have drawn again a second after it was paid.
local function turns(rate_key)
  local clock = redis.call('TIME')
  local now_us = clock[1] * 1000000 + clock[2]
  local most, enough = 0, 0
  for _, name in ipairs({ 'rows', 'bytes' }) do
    -- `pcall`: a key of a wrong type affects its own job only.
    local b = redis.pcall('HMGET', rate_key, name, name .. ':at_us', name .. ':per_s', name .. ':takers')
    local level, at_us, per_s = tonumber(b[1]), tonumber(b[2]), tonumber(b[3])
    if level and at_us and per_s and level < 0 and per_s > 0 then
      local debt_s = -level / per_s
      local waits = debt_s / DRAW_S
      if (now_us - at_us) / 1000000 < debt_s + 1 and waits > most then
        most = waits
        enough = math.max(1, math.ceil((tonumber(b[4]) or 1) - waits + TURNS_ENOUGH))
        if enough > 1 then
          enough = enough + 1 -- for the gaps between units, which would cost a part of the rate
        end
      end
    end
  end
  return most, enough
end
