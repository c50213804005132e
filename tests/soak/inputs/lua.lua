-- What the interpreter of tests/soak/sources.sh runs: a little of every library.
local out = {}
local function say(...)
	local words = { ... }
	for i = 1, select("#", ...) do words[i] = type(words[i]) == "number" and words[i] or
	type(words[i]) end
	out[#out + 1] = table.concat(words, " ")
end
local Shape = {}
Shape.__index = Shape
Shape.__add = function(a, b) return setmetatable({ w = a.w + b.w, h = a.h }, Shape) end
Shape.__eq = function(a, b) return a.w == b.w end
Shape.__lt = function(a, b) return a.w < b.w end
Shape.__le = function(a, b) return a.w <= b.w end
Shape.__call = function(self, n) return self.w * n end
Shape.__len = function(self) return self.w end
Shape.__concat = function(a, b) return "shape" end
Shape.__close = function() say("closed") end
Shape.__gc = function() end
function Shape.new(w, h) return setmetatable({ w = w, h = h }, Shape) end
for i = 1, 300 do
	local a, b <close> = Shape.new(i, 2), Shape.new(i % 7, 3)
	if (a + b)(2) > 50 or a == b or a < b or a <= b then say(#a, a .. b) end
end
local words, seed = {}, 7
for i = 1, 2000 do
	seed = (seed * 1103515245 + 12345) & 0x7fffffff
	words[i] = string.format("w%05d-%x", seed % 10007, seed % 255)
end
table.sort(words)
table.sort(words, function(a, b) return a:sub(-2) .. a < b:sub(-2) .. b end)
say(words[1], words[1000], #table.concat(words, ","))
local text = table.concat(words, " ")
say(select(2, text:gsub("(%w+)%-(%x+)", "%2=%1")), text:find("w0%d+", 100), text:match("()w9"))
for w in text:sub(1, 3000):gmatch("%f[%w]%w+") do say(w:upper():reverse():lower():rep(2, "+")) end
say(text:byte(1, 3), string.char(65, 66), ("x"):len(), ("%q %5.2f %g %i %s"):format("a\nb",
	3.14159, 1e20, 7, true))
say(string.pack("<i4 z s1 d", 7, "zero", "one", 2.5):byte(1, -1))
say(string.unpack("<i4", string.pack("<i4", -9)))
say(utf8.char(228, 8364, 128512), utf8.len("äöü"), utf8.codepoint("ä", 1), utf8.offset("äöü", 2))
for p, c in utf8.codes("aä€") do say(p, c) end
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
say(fib(17), math.floor(3.7), math.ceil(3.2), math.max(1, 5, 3), math.fmod(7, 3),
	math.tointeger(3.0))
say(7 // 2, -7 // 2, 7 % -3, 2 ^ 10, 7.5 // 2, 1 << 5, ~5, 5 & 3, 5 | 3, 5 ~ 3, 256 >> 4, 10 / 4)
local gen = coroutine.wrap(function(n) for i = 1, n do coroutine.yield(i) end end)
for _ = 1, 50 do say(gen(50)) end
local co = coroutine.create(function() error({ code = 3 }) end)
say(tostring(coroutine.resume(co)), coroutine.status(co), tostring(coroutine.isyieldable()))
say(tostring(pcall(error, "x")), select("#", pcall(function() local a = nil; return a.b end)))
say(select(2, xpcall(function() return #5 end, function(m) return "h:" .. m end)))
say(select(2, load("x = = 1", "=chunk")) or "")
local chunk = string.dump(function(a) local t = { a, a * 2, [a] = "k" }; return #t end)
say(load(chunk, "b", "b")(5))
for i = 1, 30 do
	say(load(("local a, b, c = %d, {...}, 'k' for i = 1, a do b[i] = i .. c end " ..
		"while #b > 3 do b[#b] = nil end repeat a = a - 1 until a < 0 goto done " ..
		"do return 1 end ::done:: return #b, " ..
		"function(x) return x and a or b end"):format(i))())
end
local weak, t = setmetatable({}, { __mode = "k" }), {}
for i = 1, 500 do t[i], t["k" .. i] = i, i; weak[{}] = i end
for k, v in pairs(t) do if v % 3 == 0 then t[k] = nil end end
for i, v in ipairs({ 1, 2, 3, nil, 5 }) do say(i, v) end
table.move(t, 1, 10, 20)
table.insert(t, 1, "first")
say(table.remove(t), table.unpack({ 1, 2, 3 }), rawlen({ 1 }), tostring(rawequal(t, t)),
	next({}) or "none")
collectgarbage()
collectgarbage("generational")
for i = 1, 200 do t[i] = { tostring(i), i / 3 } end
collectgarbage("step")
collectgarbage("incremental")
collectgarbage()
say(tonumber("0x1p4"), tonumber("12", 5), tonumber("  7e2  "), tostring(tonumber("z")),
	#tostring(1 / 3))
say(os.time({ year = 2020, month = 1, day = 1, hour = 12 }) > 0 and "time" or "", os.date("!%Y",
	0), type(os.clock()))
say(debug.traceback("here", 1):sub(1, 4), debug.getinfo(1, "Sl").currentline, debug.getlocal(1, 1))
local file = io.tmpfile()
file:write("one 1\n", "two 2\n", 3.5, "\n")
file:seek("set")
say(file:read("l", "n", "L", "n", "a"))
file:close()
print(#out, table.concat(out, " "):len())
