-- The history of a job: events and samples, see history.py. Follows common.lua in every script about
-- a job. Most calls of most scripts need none of it, so its functions are made when they are needed.
--
-- The history never keeps a script from its work: a key that Redis lost or that has another type
-- costs history only. So it is written with `pcall`.

local function history()
  local SAMPLES, SAMPLING, EVENTS = JOB .. 'samples', JOB .. 'sampling', JOB .. 'events'

  -- Sets the TTL of a key of the history. While the job runs, that is JOB_TTL_S from now, because a
  -- worker of an older version, which knows no history, may end the job: nothing outlives `meta`.
  local function keep_history(key)
    local at = redis.call('PEXPIRETIME', META)
    if at > 0 then
      redis.call('PEXPIREAT', key, text(at))
    else
      redis.call('EXPIRE', key, JOB_TTL_S)
    end
  end

  -- Shortens a reason, at the end of a character of UTF-8.
  local function brief(words)
    local cut = EVENT_TEXT_BYTES_MAX
    if #words <= cut then
      return words
    end
    while cut > 0 and math.floor(string.byte(words, cut + 1) / 64) == 2 do
      cut = cut - 1
    end
    return string.sub(words, 1, cut)
  end

  -- Events that a job may have any number of: equal ones that follow closely are counted in one.
  local REPEATED = { ['unit retried'] = true, ['unit released'] = true, ['window shrunk'] = true,
    ['node left alone'] = true, ['node lacks rows'] = true }

  -- Counts the event with an equal one of the last few. Returns whether there is one. No event of
  -- another kind may be in between: the order of events stays true.
  local function count_with_last(kind, words, by, unit)
    local last = redis.call('LRANGE', EVENTS, -EVENTS_COMPARED, -1)
    for i = #last, 1, -1 do
      local readable, event = pcall(cjson.decode, last[i])
      if not readable or not REPEATED[event.kind] then
        return false
      end
      if event.kind == kind and (event.text == words or kind == 'window shrunk') then
        event.count, event.last_ms, event.text = (event.count or 1) + 1, now, words
        if event.unit ~= unit then
          event.unit = nil -- several
        end
        if event.by ~= by then
          event.by = ''
        end
        redis.call('LSET', EVENTS, i - #last - 1, cjson.encode(event))
        return true
      end
    end
    return false
  end

  local function append_event(kind, words, by, unit)
    words, by, unit = brief(words or ''), brief(by or ''), tonumber(unit)
    if not (REPEATED[kind] and count_with_last(kind, words, by, unit)) then
      local event = cjson.encode({ at_ms = now, kind = kind, text = words, by = by, unit = unit })
      local last = kind == 'ended' and redis.call('LINDEX', EVENTS, -1)
      if last and string.find(last, '"kind":"ended"', 1, true)
        and string.find(last, '"at_ms":' .. text(now), 1, true) then
        redis.call('LSET', EVENTS, -1, event) -- this script ends the job for a graver reason
      elseif redis.call('RPUSH', EVENTS, event) > EVENTS_MAX then
        redis.call('LSET', EVENTS, EVENTS_FIRST, '')
        redis.call('LREM', EVENTS, 1, '')
      end
    end
    keep_history(EVENTS)
  end

  -- Returns the p50 and p99 in ms, or nil, of the requests in `lat` but not in `before`; and `lat`
  -- in that form: "bucket:requests,...". The same as latency.percentile_ms.
  local function latencies_since(before)
    local known, all, since, total = {}, {}, {}, 0
    for index, requests in string.gmatch(before, '(%d+):(%d+)') do
      known[index] = tonumber(requests)
    end
    local counts = redis.call('HGETALL', LAT)
    for i = 1, #counts, 2 do
      all[#all + 1] = counts[i] .. ':' .. counts[i + 1]
      local more = tonumber(counts[i + 1]) - (known[counts[i]] or 0)
      if more > 0 then
        since[#since + 1] = { tonumber(counts[i]), more }
        total = total + more
      end
    end
    table.sort(since, function(a, b) return a[1] < b[1] end)

    local function percentile(share)
      local seen = 0
      for _, entry in ipairs(since) do
        seen = seen + entry[2]
        if seen >= share * total then
          local index = entry[1]
          if index < 16 then
            return index / 1000
          end
          return ((index % 8 + 9) * 2 ^ (math.floor(index / 8) - 1) - 1) / 1000
        end
      end
    end

    return percentile(0.5), percentile(0.99), table.concat(all, ',')
  end

  -- Keeps every second sample of a full list, and doubles the pause between two.
  local function thin_samples()
    if redis.call('LLEN', SAMPLES) < SAMPLES_MAX then
      return
    end
    local all, kept = redis.call('LRANGE', SAMPLES, 0, -1), {}
    for i = 1, #all, 2 do
      kept[#kept + 1] = all[i]
    end
    redis.call('DEL', SAMPLES)
    redis.call('RPUSH', SAMPLES, unpack(kept))
    local every_ms = tonumber(redis.call('HGET', SAMPLING, 'every_ms') or SAMPLE_EVERY_MS)
    redis.call('HSET', SAMPLING, 'every_ms', text(every_ms * 2))
  end

  -- Returns the figures of a sample, from `rows` on, in the order of history.Sample.
  local function figures(p50, p99)
    local m = redis.call('HMGET', META, 'state', 'units', 'left')
    local sums, in_flight = { 0, 0, 0 }, 0
    if m[1] == 'RUNNING' then -- afterwards, figures of unfinished units are of no total
      for _, live in ipairs(redis.call('HVALS', LIVE)) do
        local i = 0
        for figure in string.gmatch(live, '%d+') do
          i = i + 1
          if i < 4 then
            sums[i] = sums[i] + tonumber(figure)
          elseif i == 4 then -- older workers do not send it
            in_flight = in_flight + tonumber(figure)
          end
        end
      end
    end
    local t = redis.call('HMGET', TOT, 'rows', 'rejected', 'bytes', 'retries')
    local leased = redis.call('ZCARD', LEASE)
    local workers = redis.call('HMGET', SAMPLING, 'workers', 'hosts')
    local values = {}
    for i = 1, 3 do
      values[i] = text(tonumber(t[i] or '0') + sums[i])
    end
    values[4] = t[4] or '0'
    values[5] = m[2]
    values[6] = text(tonumber(m[2]) - tonumber(m[3]) - redis.call('HLEN', BAD))
    values[7], values[8] = text(leased), text(in_flight)
    values[9] = p50 and string.format('%.3f', p50) or 'null'
    values[10] = p99 and string.format('%.3f', p99) or 'null'
    for i = 1, 2 do -- before a keeper has looked, at least the one with the lease
      values[10 + i] = text(math.max(tonumber(workers[i] or '0'), math.min(leased, 1)))
    end
    return table.concat(values, ',')
  end

  local function append_sample()
    local p50, p99, lat = latencies_since(redis.call('HGET', SAMPLING, 'lat') or '')
    local body = figures(p50, p99)
    local sample = '[' .. text(now) .. ',' .. body .. ']'
    local last = redis.call('LRANGE', SAMPLES, -2, -1)
    local still, at_ms = 0, -1
    for _, earlier in ipairs(last) do
      local time, rest = string.match(earlier, '^%[(%d+),(.*)%]$')
      at_ms, still = tonumber(time), rest == body and still + 1 or 0
    end
    local ended_ms = tonumber(redis.call('HGET', META, 'finished_ms') or math.huge)
    if #last > 0 and (still == 2 or at_ms == now or at_ms >= ended_ms) then
      redis.call('LSET', SAMPLES, -1, sample) -- a standstill is two samples, the end one
    else
      thin_samples()
      redis.call('RPUSH', SAMPLES, sample)
    end
    local workers, hosts = string.match(body, '(%d+),(%d+)$')
    redis.call('HSET', SAMPLING, 'at_ms', text(now), 'lat', lat, 'workers', workers, 'hosts', hosts)
    keep_history(SAMPLES)
    keep_history(SAMPLING)
  end

  return append_event, append_sample, keep_history
end

note_event = function(kind, words, by, unit)
  local append_event = history()
  pcall(append_event, kind, words, by, unit)
end

take_sample = function()
  local _, append_sample = history()
  pcall(append_sample)
end
