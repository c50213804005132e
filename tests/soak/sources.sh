#!/usr/bin/env bash
# sources.sh DIRECTORY: three programs from Debian's sources (lua5.4 and sqlite3 in C, minisat2 in
# C++), each built below the directory three times: NAME at -O2 -g, NAME.O2 likewise with counters
# of its own (gcov), NAME.O0 with counters and without optimisation. NAME.in is what each reads,
# NAME.src the sources that are looked at. What is there already stays.
#
# Needs gcc, g++, tclsh and a mirror with source packages; the machine's lists of packages are not
# touched. Lua's strings are hashed by a constant, so that each run does the same.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
mkdir -p "$1"
cd "$1"
[ ! -f complete ] || exit 0
if [ ! -d source ]; then
	mkdir -p apt/parts apt/lists/partial apt/cache/archives/partial source
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ ! -f "$file" ] || sed -n 's/^deb /deb-src /p' "$file" >"apt/parts/${file##*/}"
	done
	for file in /etc/apt/sources.list.d/*.sources; do
		[ ! -f "$file" ] ||
			sed 's/^Types:.*/Types: deb-src/' "$file" >"apt/parts/${file##*/}"
	done
	apt=(apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$PWD/apt/parts"
		-o Dir::State::lists="$PWD/apt/lists" -o Dir::Cache="$PWD/apt/cache"
		-o APT::Sandbox::User=root)
	"${apt[@]}" update >apt/log
	(cd source && "${apt[@]}" source lua5.4 sqlite3 minisat2 >../apt/log 2>&1) ||
		{ tail -n 3 apt/log >&2; rm -rf source; exit 1; }
fi
lua=$(echo "$PWD"/source/lua5.4-*/src) minisat=$(echo "$PWD"/source/minisat2-*/)
sqlite=$(echo "$PWD"/source/sqlite3-*/)
[ -f "$sqlite/shell.c" ] ||
	(cd "$sqlite" && ./configure -q && make -s sqlite3.c shell.c) >make.log 2>&1

# build NAME COMPILER ARGUMENT...: in all three ways
build() {
	local name=$1
	shift
	[ ! -f "$name.O0" ] || return 0
	"$@" -O2 -g -o "$name"
	"$@" -O2 -g --coverage -o "$name.O2"
	"$@" -O0 -g --coverage -o "$name.O0"
}
build sqlite3 gcc -w -I"$sqlite" -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION \
	-DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_RTREE "$sqlite/shell.c" "$sqlite/sqlite3.c" -lm &
echo '#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"' >lua5.4-deb-multiarch.h
build lua gcc -I. -w -std=gnu99 -DLUA_USE_POSIX '-Dluai_makeseed(L)=5' \
	$(ls "$lua"/*.c | grep -v /luac.c) -lm
build minisat g++ -w -I"$minisat" -D__STDC_LIMIT_MACROS -D__STDC_FORMAT_MACROS \
	"$minisat"/minisat/simp/*.cc "$minisat"/minisat/core/Solver.cc \
	"$minisat"/minisat/utils/{Options,System}.cc -lz
wait $!
cp "$here/inputs/lua.lua" lua.in
cp "$here/inputs/sqlite3.sql" sqlite3.in
awk 'BEGIN { # clauses of three variables
	print "p cnf 140 620"
	for (i = 0; i < 620; i++) {
		line = ""
		for (k = 0; k < 3; k++) {
			seed = (seed * 16807 + 11) % 2147483647
			line = line (seed % 7 < 3 ? "-" : "") 1 + int(seed / 7) % 140 " "
		}
		print line 0
	}
}' >minisat.in
echo "$lua" >lua.src
echo "$sqlite" >sqlite3.src
echo "$minisat" >minisat.src
touch complete
