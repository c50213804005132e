-- SPDX-License-Identifier: MIT
-- luajit kernels.lua KERNEL INPUT   the kernels of this folder in Lua, with LuaJIT's ffi. For each
-- line read: the nanoseconds of one call, and its result.
local ffi, bit = require 'ffi', require 'bit'
local band, bor, bxor, bnot = bit.band, bit.bor, bit.bxor, bit.bnot
local shl, shr, rol, tobit, swap = bit.lshift, bit.rshift, bit.rol, bit.tobit, bit.bswap
ffi.cdef [[
	struct timespec { long seconds, nanoseconds; };
	int clock_gettime(int clock, struct timespec *time);
]]
local kernels = {}
local state = ffi.new('uint32_t[16384]')

-- the low word of a product; b is not negative
local function multiply(a, b)
	return tobit(band(a, 0xffff) * b + shl(band(shr(a, 16) * b % 65536, 0xffff), 16))
end

local function word(data, at)
	return bor(data[at], shl(data[at + 1], 8), shl(data[at + 2], 16), shl(data[at + 3], 24))
end

function kernels.crc32(data, size)
	local table, crc = state, -1
	if table[255] == 0 then
		for i = 0, 255 do
			local c = i
			for _ = 1, 8 do
				c = band(c, 1) ~= 0 and bxor(0xedb88320, shr(c, 1)) or shr(c, 1)
			end
			table[i] = c % 2 ^ 32
		end
	end
	for i = 0, size - 1 do
		crc = bxor(shr(crc, 8), tobit(table[band(bxor(crc, data[i]), 255)]))
	end
	return bnot(crc)
end

-- from the cube roots of the first 64 primes, and the square roots of the first 8
local constant, first = ffi.new('int32_t[64]'), {}
local function fraction(n, power)
	-- its first 32 bits
	local root = n ^ (1 / power)
	return tobit(math.floor((root - math.floor(root)) * 2 ^ 32))
end
do
	local count, n = 0, 2
	while count < 64 do
		local prime = true
		for d = 2, math.floor(math.sqrt(n)) do
			prime = prime and n % d ~= 0
		end
		if prime then
			constant[count] = fraction(n, 3)
			if count < 8 then first[count] = fraction(n, 2) end
			count = count + 1
		end
		n = n + 1
	end
end
local w = ffi.new('int32_t[64]')

local function block(hash, data, at)
	local a, b, c, d = hash[0], hash[1], hash[2], hash[3]
	local e, f, g, h = hash[4], hash[5], hash[6], hash[7]
	for i = 0, 15 do
		w[i] = swap(word(data, at + 4 * i))
	end
	for i = 16, 63 do
		local x, y = w[i - 15], w[i - 2]
		w[i] = tobit(w[i - 16] + w[i - 7] + bxor(rol(x, 25), rol(x, 14), shr(x, 3)) +
			bxor(rol(y, 15), rol(y, 13), shr(y, 10)))
	end
	for i = 0, 63 do
		local t = h + bxor(rol(e, 26), rol(e, 21), rol(e, 7)) +
			bxor(band(e, f), band(bnot(e), g)) + constant[i] + w[i]
		local u = bxor(rol(a, 30), rol(a, 19), rol(a, 10)) +
			bxor(band(a, b), band(a, c), band(b, c))
		h, g, f, e, d, c, b, a = g, f, e, tobit(d + t), c, b, a, tobit(t + u)
	end
	hash[0], hash[1], hash[2], hash[3] = hash[0] + a, hash[1] + b, hash[2] + c, hash[3] + d
	hash[4], hash[5], hash[6], hash[7] = hash[4] + e, hash[5] + f, hash[6] + g, hash[7] + h
	for k = 0, 7 do
		hash[k] = tobit(hash[k])
	end
end

function kernels.sha256(data, size, out)
	local hash, last, at = {}, ffi.new('uint8_t[128]'), 0
	for k = 0, 7 do
		hash[k] = first[k]
	end
	while at + 64 <= size do
		block(hash, data, at)
		at = at + 64
	end
	ffi.copy(last, data + at, size - at)
	last[size - at] = 0x80
	local length = size - at > 55 and 128 or 64
	for k = 0, 7 do
		last[length - 1 - k] = math.floor(size * 8 / 256 ^ k) % 256
	end
	for k = 0, length - 1, 64 do
		block(hash, last, k)
	end
	for k = 0, 7 do
		ffi.cast('int32_t *', out)[k] = swap(hash[k])
	end
	return hash[0]
end

function kernels.xxhash(data, size)
	local P1, P2, P3, P4, P5 = 0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f, 0x165667b1
	local a, b, c, d, i, hash = tobit(P1 + P2), tobit(P2), 0, tobit(-P1), 0, P5
	while i + 16 <= size do
		a = multiply(rol(tobit(a + multiply(word(data, i), P2)), 13), P1)
		b = multiply(rol(tobit(b + multiply(word(data, i + 4), P2)), 13), P1)
		c = multiply(rol(tobit(c + multiply(word(data, i + 8), P2)), 13), P1)
		d = multiply(rol(tobit(d + multiply(word(data, i + 12), P2)), 13), P1)
		i = i + 16
	end
	if i > 0 then
		hash = tobit(rol(a, 1) + rol(b, 7) + rol(c, 12) + rol(d, 18))
	end
	hash = tobit(hash + size)
	while i + 4 <= size do
		hash = multiply(rol(tobit(hash + multiply(word(data, i), P3)), 17), P4)
		i = i + 4
	end
	while i < size do
		hash = multiply(rol(tobit(hash + multiply(data[i], P5)), 11), P1)
		i = i + 1
	end
	hash = multiply(bxor(hash, shr(hash, 15)), P2)
	hash = multiply(bxor(hash, shr(hash, 13)), P3)
	return bxor(hash, shr(hash, 16))
end

local next = ffi.new('uint8_t[33]', {
	1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0, 4, 5, 0, 6, 0, 0, 7, 0, 0, 1, 8, 0, 9, 0, 0, 10, 0,
		0, 1, 0, 0,
})
function kernels.dfa(data, size)
	local found, at = 0, 0
	for i = 0, size - 1 do
		local c = data[i]
		at = next[3 * at + (c >= 48 and c < 58 and 0 or c == 45 and 1 or 2)]
		if at == 10 then found = found + 1 end
	end
	return found
end

function kernels.utf8(data, size)
	local i, characters = 0, 0
	local function follows(at)
		return at < size and band(data[at], 0xc0) == 0x80
	end
	while i < size do
		local c = data[i]
		if c < 0x80 then
			i = i + 1
		elseif c >= 0xc2 and c < 0xe0 and follows(i + 1) then
			i = i + 2
		elseif band(c, 0xf0) == 0xe0 and follows(i + 1) and follows(i + 2) and
			(c ~= 0xe0 or data[i + 1] >= 0xa0) and (c ~= 0xed or data[i +
				1] < 0xa0) then
			i = i + 3
		elseif c >= 0xf0 and c < 0xf5 and follows(i + 1) and follows(i + 2) and
			follows(i + 3) and
			(c ~= 0xf0 or data[i + 1] >= 0x90) and (c ~= 0xf4 or data[i +
				1] < 0x90) then
			i = i + 4
		else
			return 2 ^ 32 + i
		end
		characters = characters + 1
	end
	return characters
end

function kernels.json(data, size)
	local sum, number, inside, high, low = 0, 0, false, 0, 0
	for i = 0, size - 1 do
		local c = data[i]
		if inside and c >= 48 and c < 58 then
			number = (number * 10 + c - 48) % 2 ^ 32
		elseif inside then
			sum, number, inside = (sum + number) % 2 ^ 32, 0, false
		end
		-- the last eight bytes, of which seven count: "size":
		high = bor(shl(high, 8), shr(low, 24))
		low = bor(shl(low, 8), c)
		inside = inside or band(high, 0xffffff) == 0x227369 and low == 0x7a65223a
	end
	return sum
end

local digits = ffi.new('char[65]',
	'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')
function kernels.base64(data, size, out, room)
	local i, to = 0, 0
	while i + 3 <= size and to + 4 <= room do
		local x = bor(shl(data[i], 16), shl(data[i + 1], 8), data[i + 2])
		out[to], out[to + 1] = digits[shr(x, 18)], digits[band(shr(x, 12), 63)]
		out[to + 2], out[to + 3] = digits[band(shr(x, 6), 63)], digits[band(x, 63)]
		i, to = i + 3, to + 4
	end
	if i < size and to + 4 <= room then
		local two = i + 2 <= size
		local second = two and data[i + 1] or 0
		out[to] = digits[shr(data[i], 2)]
		out[to + 1] = digits[bor(shl(band(data[i], 3), 4), shr(second, 4))]
		out[to + 2] = two and digits[shl(band(second, 15), 2)] or 61
		out[to + 3] = 61
		to = to + 4
	end
	return to
end

function kernels.lz4(data, size, out, room)
	local i, to = 0, 0
	local function more(n)
		while i < size do
			i = i + 1
			n = n + data[i - 1]
			if data[i - 1] ~= 255 then break end
		end
		return n
	end
	while i < size do
		local token = data[i]
		local n = shr(token, 4)
		i = i + 1
		if n == 15 then n = more(n) end
		while n > 0 and i < size and to < room do
			out[to] = data[i]
			n, i, to = n - 1, i + 1, to + 1
		end
		if n > 0 or i + 2 > size then break end
		local from = data[i] + 256 * data[i + 1]
		i = i + 2
		if from == 0 or from > to then break end
		from = to - from
		n = band(token, 15) + 4
		if n == 19 then n = more(n) end
		while n > 0 and to < room do
			out[to] = out[from]
			n, from, to = n - 1, from + 1, to + 1
		end
		if n > 0 then break end
	end
	return to
end

local function be16(data, at)
	return 256 * data[at] + data[at + 1]
end
local function classify(data, at, stop)
	if at + 18 > stop then return 0 end
	local kind = be16(data, at + 12)
	at = at + 14
	if kind == 0x8100 then
		kind = be16(data, at + 2)
		at = at + 4
	end
	if kind == 0x0806 then return 1 end
	if kind ~= 0x0800 or at + 20 > stop or shr(data[at], 4) ~= 4 then return 0 end
	local protocol = data[at + 9]
	at = at + 4 * band(data[at], 15)
	if protocol == 1 then return 2 end
	if protocol == 6 then return 3 end
	if protocol ~= 17 or at + 8 > stop then return 0 end
	return (be16(data, at) == 53 or be16(data, at + 2) == 53) and 5 or 4
end
function kernels.packet(data, size, out)
	local i, packets, counts = 0, 0, ffi.cast('uint32_t *', out)
	ffi.fill(out, 24)
	while i + 2 <= size do
		local stop = i + 2 + be16(data, i)
		if stop > size then break end
		local class = classify(data, i + 2, stop)
		counts[class] = counts[class] + 1
		packets, i = packets + 1, stop
	end
	return packets
end

function kernels.kmeans(data, size, out)
	local x, y = ffi.new('int32_t[8]'), ffi.new('int32_t[8]')
	local count, sum_x, sum_y = ffi.new('uint32_t[8]'), ffi.new('uint32_t[8]'),
		ffi.new('uint32_t[8]')
	local moved = 0
	if size < 16 then return 0 end
	for k = 0, 7 do
		x[k], y[k] = data[2 * k], data[2 * k + 1]
	end
	for i = 0, size - 2, 2 do
		local least, nearest = 2 ^ 32, 0
		for k = 0, 7 do
			local dx, dy = data[i] - x[k], data[i + 1] - y[k]
			local distance = dx * dx + dy * dy
			if distance < least then least, nearest = distance, k end
		end
		count[nearest] = count[nearest] + 1
		sum_x[nearest] = sum_x[nearest] + data[i]
		sum_y[nearest] = sum_y[nearest] + data[i + 1]
	end
	for k = 0, 7 do
		local n = math.max(count[k], 1)
		out[2 * k], out[2 * k + 1] = math.floor(sum_x[k] / n), math.floor(sum_y[k] / n)
		if out[2 * k] ~= data[2 * k] or out[2 * k + 1] ~= data[2 * k + 1] then
			moved = moved + 1 end
	end
	return moved
end

function kernels.convolve(data, size, out, room)
	local sum, i = 0, 0
	while i + 259 <= size and i < room do
		local v = data[i] + 2 * data[i + 1] + data[i + 2] + 2 * data[i + 128] +
			4 * data[i + 129] +
			2 * data[i + 130] + data[i + 256] + 2 * data[i + 257] + data[i + 258]
		v = shr(v, 4)
		out[i] = v
		sum = sum + v
		i = i + 1
	end
	return sum % 2 ^ 32
end

local gaps = { 701, 301, 132, 57, 23, 10, 4, 1 }
function kernels.sort(data, size)
	local n, sum = 0, 0
	while 4 * n + 4 <= size and n < 4096 do
		state[n] = ffi.cast('const uint32_t *', data)[n]
		n = n + 1
	end
	for _, gap in ipairs(gaps) do
		for i = gap, n - 1 do
			local v, j = state[i], i
			while j >= gap and state[j - gap] > v do
				state[j] = state[j - gap]
				j = j - gap
			end
			state[j] = v
		end
	end
	for i = 0, n - 1 do
		sum = (sum * 31 + state[i]) % 2 ^ 32
	end
	return sum
end

local file = assert(io.open(arg[2], 'rb'))
local text = file:read('*a')
local data, out = ffi.new('uint8_t[?]', #text + 8), ffi.new('uint8_t[?]', 2 ^ 20)
local time = ffi.new('struct timespec[2]')
ffi.copy(data, text, #text)
io.stdout:setvbuf('no')
for _ in io.lines() do
	ffi.C.clock_gettime(1, time)
	local result = kernels[arg[1]](data, #text, out, 2 ^ 20 - 64)
	ffi.C.clock_gettime(1, time + 1)
	local ns = (time[1].seconds - time[0].seconds) * 1000000000LL +
		time[1].nanoseconds - time[0].nanoseconds
	if result < 0 then result = result + 2 ^ 32 end
	print(string.format('%d %.0f', tonumber(ns), result))
end
