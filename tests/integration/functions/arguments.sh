#!/usr/bin/env bash
# Arguments and results by name and type, from debug information: exact values in C and C++ programs
# of several compilers, at several levels.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
# query WHAT EXPECTED QUERY: the CSV rows of the program $target, sorted
query() {
	exits "$1 ($target)" 0 "$FAY" trace --csv "$3" -- "$work/$target"
	equal "$1 ($target)" "$2" "$(tail -n +2 "$work/out" | sort | tr '\n' ' ' | sed 's/ $//')"
}
refused() { # WHAT TEXT QUERY
	local code=0
	"$FAY" explain "$3" -- "$work/$target" >"$work/out" 2>"$work/err" || code=$?
	[ "$code" != 0 ] || fail "$1: accepted"
	contains "$1" "$work/err" "$2"
}
# What the compilers may tell in different ways.
c_core() {
	query "numbers and enumerations" \
		"OPERATION_NONE,-1,200,100 OPERATION_NONE,0,200,100 OPERATION_NONE,1,200,100 OPERATION_NONE,2,200,100 OPERATION_NONE,3,200,100 OPERATION_READ,-1,200,100 OPERATION_READ,0,200,100 OPERATION_READ,1,200,100 OPERATION_READ,2,200,100 OPERATION_READ,3,200,100" \
		"from e in cluster.Function(\"$target!handle\") group e by new { e.operation, e.fd,
			e.small } into g select new { g.Key, n = g.Count() }"
	query "arguments of calls that end" "-1,200 0,200 1,200 2,200 3,200" \
		"from r in cluster.Return(\"$target!handle\") where r.request == 0
			|| r.request->buf->len >= 0 group r by r.fd into g
			select new { g.Key, n = g.Count() }"
	query "through pointers" \
		"-7,5,100,-3,78187493520,1094861636,67,-2,OPERATION_WRITE,true,6,30,99,900" \
		"from e in cluster.Function(\"$target!handle\") where e.request != 0
			let b = e.request->buf
		group e by new { b->in[1].x, b->in[1].low, b->in[1].middle, b->in[1].negative,
		b->in[1].wide, b->number.whole, byte = b->number.bytes[1], b->unnamed, b->operation,
		b->full, grid = b->grid[1][2], n3 = b->numbers[2], next = b->next->len } into g
		select new { g.Key, n = g.Count() }"
	query "widths: signs" "-499500,64970964,-499500,4290671829204" \
		"from e in cluster.Function(\"$target!widths\") group e by 1 into g
			select new { c = g.Sum(x => x.c), b = g.Sum(x => x.b), e = g.Sum(x => x.e),
			d = g.Sum(x => x.d) }"
	query "widths: a byte, a bool" "-812,334" \
		"from e in cluster.Function(\"$target!widths\") group e by 1 into g
			select new { a = g.Sum(x => x.a), f = g.Count(x => x.f) }"
	query "a result that is an enumeration" "OPERATION_NONE,500 OPERATION_WRITE,500" \
		"from r in cluster.Return(\"$target!classify\") group r by r.ReturnValue into g
			select new { g.Key, n = g.Count() }"
	query "constants by name" \
		"STATUS_LAST,BALANCE_BELOW,LEVEL_LOW,DEPTH_ABOVE,250 STATUS_LAST,BALANCE_WORD,LEVEL_LOW,DEPTH_ABOVE,250 STATUS_OK,BALANCE_BYTE,LEVEL_HIGH,DEPTH_BELOW,500" \
		"from e in cluster.Function(\"$target!answer\") group e by new { e.status,
			e.balance, e.level, e.depth } into g select new { g.Key, n = g.Count() }"
	query "constants as numbers" 500 \
		"cluster.Function(\"$target!answer\").Count(e => e.status == \"STATUS_OK\" &&
			e.status == 200 && e.balance == \"BALANCE_BYTE\" && e.balance == 128 &&
			e.level == \"LEVEL_HIGH\" && e.level == 128 && e.depth == \"DEPTH_BELOW\" &&
			e.depth == -128)"
	query "behind floating-point arguments" "499500" \
		"cluster.Function(\"$target!find\").Sum(e => e.n)"
}
c_rest() {
	query "long strings in conditions" "250,1000" \
		"from e in cluster.Function(\"$target!handle\") let t = e.extra->title
			group e by 1 into g select new { n = g.Count(x => x.extra->title ==
				\"a title of more than 15 bytes\" && x.path == \"/edge\"),
				m = g.Count(x => x.extra->title.EndsWith(\"more than 15 bytes\")) }"
	query "strings" \
		"first,a title of more than 15 bytes,/edge,second,250 first,a title of more than 15 bytes,/srv/file,second,750" \
		"from e in cluster.Function(\"$target!handle\") let b = e.extra
			group e by new { b->name, b->title, e.path, n2 = b->next->name } into g
			select new { g.Key, n = g.Count() }"
	query "arrays of characters without a zero" \
		"RIFF,12345678,123456789,123456789abcdef,123456789abcdefg,1000" \
		"from e in cluster.Function(\"$target!answer\") where e.chunk->kind == \"RIFF\" &&
			e.chunk->nine.EndsWith(\"89\") && e.chunk->eight.Length == 8 &&
			e.chunk->kind[3] == 70 let c = e.chunk
		group e by new { c->kind, c->eight, c->nine, c->fifteen, c->sixteen } into g
		select new { g.Key, n = g.Count() }"
	query "behind a null pointer" "0,\"\",100 4096,first,900" \
		"from e in cluster.Function(\"$target!handle\")
			group e by new { e.request->buf->len, e.request->buf->name } into g
			select new { g.Key, n = g.Count() }"
	query "a structure that another file describes" "17,1000" \
		"from e in cluster.Function(\"$target!handle\")
			group e by new { e.extra->hidden->value } into g
			select new { g.Key, n = g.Count() }"
	query "in conditions" 500 \
		"cluster.Function(\"$target!handle\").Count(e => e.operation == \"OPERATION_NONE\"
			&& e.request == 0 || e.operation == \"OPERATION_READ\" && e.request->fd == 3
			&& e.path.StartsWith(\"/srv\") && e.fd < 3)"
	query "a large enumerator" "FLAG_HIGH,500 FLAG_LOW,500" \
		"from e in cluster.Function(\"$target!classify\") group e by e.flags into g
			select new { g.Key, n = g.Count() }"
	query "a result's width and sign" "-499500" \
		"cluster.Return(\"$target!widths\").Sum(r => r.ReturnValue)"
	exits "a result is saved with its width and sign" 0 "$FAY" trace --save "$work/widths.fay" \
		"from r in cluster.Return(\"$target!widths\")
			select new { r.time, r.ReturnValue }" -- "$work/$target"
	exits "a saved result" 0 "$FAY" trace \
		--csv "file(\"$work/widths.fay\").Sum(r => r.ReturnValue)"
	equal "a saved result" "-499500" "$(tail -n 1 "$work/out")"
	query "a result that is followed" "0,250 99,750" \
		"from r in cluster.Return(\"$target!find\") group r by r.ReturnValue->len into g
			select new { g.Key, n = g.Count() }"
	query "a result that is a bool" 500 \
		"cluster.Return(\"$target!odd\").Count(r => r.ReturnValue)"
	query "a result that is a string" '"",250 odd or even,750' \
		"from r in cluster.Return(\"$target!name_of\") group r by r.ReturnValue into g
			select new { g.Key, n = g.Count() }"
	query "a null pointer is no string" 250 \
		"cluster.Return(\"$target!name_of\").Count(r => r.ReturnValue == 0 && !(0
			!= r.ReturnValue))"
	query "a result, of functions by a pattern" 1000 \
		"cluster.Return(\"$target!wid[e]\").Count(r => r.ReturnValue == 0)"
	query "behind a large structure" "499500" \
		"cluster.Function(\"$target!by_value\").Sum(e => e.behind)"
}
refusals() {
	refused "an unknown argument" \
		'unknown field `opperation` of event `e`; did you mean `operation`? `handle` has the arguments `request`, `fd`,' \
		"cluster.Function(\"$target!handle\").Count(e => e.opperation == 1)"
	refused "near an event's own field" \
		'unknown field `tme` of event `e`; did you mean `time`? `handle` has the arguments `request`, `fd`,' \
		"cluster.Function(\"$target!handle\").Count(e => e.tme == 1)"
	refused "the list of arguments" \
		'`handle` has the arguments `request`, `fd`, `small`, `operation`, `path`, `extra`, `seventh`, `real`' \
		"cluster.Function(\"$target!handle\").Count(e => e.zzz == 1)"
	refused "an unknown member" '`struct buffer` has no member `length`' \
		"cluster.Function(\"$target!handle\").Count(e => e.extra->length == 1)"
	refused "an unknown constant" \
		'`enum operation` has no constant `OPERATION_REED`; did you mean `OPERATION_READ`?' \
		"cluster.Function(\"$target!handle\").Count(e => e.operation == \"OPERATION_REED\")"
	refused "past an array's end" "the array has 4 elements, 0 to 3" \
		"cluster.Function(\"$target!handle\").Count(e => e.extra->in[4].x == 1)"
	refused "a floating-point argument" \
		'argument `real` of `handle` is a floating-point number' \
		"cluster.Function(\"$target!handle\").Count(e => e.real == 1)"
	refused "a floating-point member" '`real` is a floating-point number' \
		"cluster.Function(\"$target!handle\").Count(e => e.extra->real == 1)"
	refused "a beginning that is longer than what is compared" \
		'a prefix may have at most 64 bytes' \
		"cluster.Function(\"$target!handle\").Count(e =>
			e.path.StartsWith(\"$(printf '/srv/www%.0s' $(seq 9))\"))"
	refused "several functions" "functions match, and names are known for one at a time" \
		"cluster.Function(\"$target!*\").Count(e => e.fd == 1)"
	refused "a structure on the stack" \
		'argument `large` of `by_value` is a structure on the stack' \
		"cluster.Function(\"$target!by_value\").Count(e => e.large.a[0] == 1)"
	refused "a result of nothing" '`nothing` returns nothing' \
		"cluster.Return(\"$target!nothing\").Sum(r => r.ReturnValue)"
	refused "a floating-point result" '`ReturnValue` is a floating-point number' \
		"cluster.Return(\"$target!real\").Sum(r => r.ReturnValue)"
	refused "a structure as the result" '`ReturnValue` is a structure passed by value' \
		"cluster.Return(\"$target!two\").Sum(r => r.ReturnValue)"
	refused "a result of two words" '`ReturnValue` is an integer of more than 64 bits' \
		"cluster.Return(\"$target!wide\").Sum(r => r.ReturnValue)"
	refused "a structure in registers" 'argument `small` of `two_words`' \
		"cluster.Function(\"$target!two_words\").Count(e => e.small.a == 1)"
}
cc_core() {
	query "a method, its object, base classes" \
		"ada,wages,euro,1001,1,euro,500 grace,wages,yen,1002,2,yen,500" \
		"from e in cluster.Function(\"$target!*Account*deposit*\")
			group e by new { owner = e.this->name._M_dataplus._M_p,
			why = e.reason->_M_dataplus._M_p, e.this->currency, e.this->id,
			len = e.this->name._M_string_length - 2 + (e.this->id - 1001) * -1, e.in }
			into g select new { g.Key, n = g.Count() }"
	query "behind an object handed over by its address" "124750" \
		"cluster.Function(\"$target!*take*unique_ptr*\").Sum(e => e.behind)"
}
cc_rest() {
	query "what a method returns" "0" \
		"cluster.Return(\"$target!*Account*deposit*\").Sum(r => r.ReturnValue)"
	query "a template" "-3,1000,500" \
		"from e in cluster.Function(\"$target!*sum*\") group e by new { e.pair->first,
			e.pair->second } into g select new { g.Key, n = g.Count() }"
	query "an object handed over by its address" "249500" \
		"cluster.Function(\"$target!*give*\").Sum(e => e.named.id)"
}

for how in "gcc -O2 -gdwarf-3" "clang-19 -O2 -gdwarf-4" "gcc -O0 -gdwarf-5"; do
	target=arguments_$(tr -dc '[:alnum:]' <<<"$how")
	# shellcheck disable=SC2086
	$how -o "$work/$target" "$here/arguments_target.c" "$here/arguments_hidden.c"
	c_core
done
c_rest
refusals
for how in "g++ -O2" "clang++-19 -O2" "g++ -O0"; do
	target=arguments_$(tr -dc '[:alnum:]' <<<"$how")
	# shellcheck disable=SC2086
	$how -gdwarf-5 -std=c++17 -o "$work/$target" "$here/arguments_target.cc"
	cc_core
done
cc_rest

# Debug information in a file of its own: beside the program by name, and below a folder by build
# ID.
target=arguments_gccO0gdwarf5
left="cluster.Function(\"$target!handle\").Count(e => e.request->buf->len == 4096)"
objcopy --only-keep-debug "$work/$target" "$work/$target.split"
strip --strip-debug "$work/$target"
refused "no debug information" "$target has no debug information" "$left"
(cd "$work" && objcopy --add-gnu-debuglink="$target.split" "$target")
query "beside the program" 900 "$left"
objcopy --remove-section .gnu_debuglink "$work/$target"
id=$(readelf -n "$work/$target" | sed -n 's/.*Build ID: //p')
mkdir -p "$work/debug/.build-id/${id:0:2}"
mv "$work/$target.split" "$work/debug/.build-id/${id:0:2}/${id:2}.debug"
export FAY_DEBUG_DIR=$work/debug
query "by build ID" 900 "$left"
objcopy --only-keep-debug "$work/arguments_gccO2gdwarf3" \
	"$work/debug/.build-id/${id:0:2}/${id:2}.debug"
refused "of another build" "$target has no debug information" "$left"
unset FAY_DEBUG_DIR

# A process that runs; and one that runs another build than the one that was found first.
target=arguments_gccO2gdwarf3
cp "$work/$target" "$work/same_name"
"$work/same_name" wait &
one=$!
own "$one"
runs "$one" same_name
trace --every 50ms -p "$one" \
	"from e in cluster.Function(\"same_name!handle\") group e by new { e.operation,
		e.extra->name, e.fd } into g select new { g.Key, n = g.Count() }"
wait_for "$work/trace.json" OPERATION_WRITE
end_trace
equal "of a process that runs" '"OPERATION_WRITE" "first" 4' \
	"$(jq -r 'select(.type == "row" and .final) | .values |
		"\(.operation | tojson) \(.name | tojson) \(.fd)"' "$work/trace.json")"
exits "a query that names its process" 0 "$FAY" trace --csv --for 300ms \
	"process($one).Function(\"same_name!handle\").All(e => e.fd == 4 && e.path.EndsWith(\"ile\")
		&& e.extra->name.Contains(\"irs\") && e.extra->name.Length == 5)"
equal "a query that names its process" "All true" "$(tr '\n' ' ' <"$work/out" | sed 's/ $//')"
trace --every 50ms "process(\"same_name\").Function(\"same_name!handle\").Any(e => e.fd == 4)"
wait_for "$work/trace.json" '"Any":true'
end_trace
exits "named twice" 2 "$FAY" trace --for 300ms -p "$one" \
	"process($one).Function(\"same_name!handle\").Count()"
mkdir "$work/other"
cp "$work/arguments_clang19O2gdwarf4" "$work/other/same_name"
"$work/other/same_name" wait &
two=$!
own "$two"
runs "$two" same_name
exits "two builds" 0 "$FAY" trace --for 200ms -p "$one" -p "$two" \
	"cluster.Function(\"same_name!handle\").Count(e => e.fd == 4)"
contains "the other build is not traced" "$work/err" \
	"process $two runs another build of same_name!handle"

# A library that nobody here built, with Debian's debug information.
if readelf -S /lib/x86_64-linux-gnu/libc.so.6 | grep -q debug_info || find /usr/lib/debug \
	-name '*.debug' \
	-path "*$(readelf -n /lib/x86_64-linux-gnu/libc.so.6 | sed -n 's/.*Build ID: ..//p')*" |
	grep -q .; then
	exits "Debian's C library" 0 "$FAY" trace \
		--csv 'from e in cluster.Function("libc!read") where e.nbytes == 1234
			group e by e.fd into g select new { g.Key, n = g.Count() }' -- dd \
			if=/dev/zero of=/dev/null bs=1234 count=10 status=none
	equal "reads of libc by name" 0,10 "$(tail -n 1 "$work/out")"
fi

# In a join, of each side.
target=arguments_gccO2gdwarf3
exits "in a join" 0 "$FAY" trace \
	--csv "from e in cluster.Function(\"$target!handle\")
		join c in cluster.Return(\"$target!classify\") on e.tid equals c.tid within 1s
	group e by new { e.operation, c.ReturnValue, e.extra->in[1].x } into g
	select new { g.Key, n = g.Count() }" -- "$work/$target"
equal "in a join: names of both sides" "operation,ReturnValue,x,n" "$(head -n 1 "$work/out")"
equal "in a join: values" \
	"OPERATION_NONE,OPERATION_NONE,-7 OPERATION_NONE,OPERATION_WRITE,-7 OPERATION_READ,OPERATION_NONE,-7 OPERATION_READ,OPERATION_WRITE,-7" \
	"$(tail -n +2 "$work/out" | cut -d, -f1-3 | sort | tr '\n' ' ' | sed 's/ $//')"
