-- SPDX-License-Identifier: MIT
-- pcall and error, which is a longjmp, and coroutines, in a loop: foreign_jumps.sh. Says how often
-- error() was called, by itself or by the library. With "loop" until the file that is named exists.
local mode, stop = arg[1], arg[2]
local errors = 0
local function fails(x)
  if x % 2 == 1 then
    errors = errors + 1
    error({ x })
  end
  return x
end
local function sorts(x)
  local list = { 3, 1, 2, x }
  table.sort(list, function(a, b) return fails(x) and a < b end)
  return #list
end
local function producer(n)
  for i = 1, n do coroutine.yield(i) end
  errors = errors + 1
  error("end")
end
local function round()
  local sum = 0
  for i = 1, 100 do
    local ok, e = pcall(fails, i)
    sum = sum + (ok and e or -e[1])
    ok, e = pcall(sorts, i)
    sum = sum + (ok and e or -e[1])
    ok, e = pcall(string.rep) -- an error of the library's own
    errors = errors + 1
    sum = sum + #e
  end
  local thread = coroutine.create(producer)
  for i = 1, 20 do
    local _, value = coroutine.resume(thread, 10)
    sum = sum + (type(value) == "number" and value or 0)
  end
  collectgarbage()
  return sum
end
io.write("ready\n")
io.flush()
io.read("l")
local sum, rounds = round(), 1
local function goes_on()
  if mode ~= "loop" then return rounds < 20 end
  local file = io.open(stop)
  if file then file:close() end
  return not file
end
while goes_on() do
  if round() ~= sum then io.write("wrong\n") os.exit(70) end
  rounds = rounds + 1
end
io.write("sum ", sum, "\ntally ", errors, " 0 ", errors, "\n")
