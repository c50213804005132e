# Compilers, each of a source that takes it a while.

c_source() { # $work/many.i
	for i in $(seq "$1"); do echo \
		"struct s$i { int a[$i]; long b; }; static int f$i(struct s$i *s, int n) { int t = 0; for (int i = 0; i < $i && i < n; i++) switch (s->a[i] % 7) { case 0: t += i; break;
		case 1: t -= s->b; break; case 2: t *= 3; break; case 3: t ^= i; break; case 5: t = s->a[t & 3]; break; default: t++; } return t; } int g$i(void *p) { return f$i(p, 7) + f$i(p, $i); }"; done \
		>"$work/many.i"
}
program cc1 C++ cpp-12
cc1_() {
	c_source 80
	subject "$(gcc -print-prog-name=cc1)"
	oneshot "$exe" -quiet -fpreprocessed -O2 "$work/many.i" -o -
}
program cc1plus C++ g++-12
cc1plus_() {
	{ echo '#include <map>'; echo '#include <string>'; echo '#include <algorithm>';
		echo '#include <vector>'; for i in $(seq 8); do
		echo \
		"struct s$i { int n; bool operator<(const s$i &o) const { return n < o.n; } }; int f$i() { std::map<s$i, std::string> m; m[s$i{$i}] = \"x\"; std::vector<s$i> v(9); std::sort(v.begin(), v.end()); return m.size(); }"; done; } \
		>"$work/many.cc"
	g++ -E "$work/many.cc" -o "$work/many.ii"
	subject "$(gcc -print-prog-name=cc1plus)"
	oneshot "$exe" -quiet -fpreprocessed -O1 "$work/many.ii" -o -
}
program as C binutils
as_() {
	c_source 800
	gcc -O2 -S "$work/many.i" -o "$work/many.s"
	made="$work/many.o"
	subject /usr/bin/x86_64-linux-gnu-as "$(basename "$(readlink -f /usr/bin/as)")" \
		libbfd-2.40-system libc
	oneshot "$exe" "$work/many.s" -o "$work/many.o"
}
program tcc C tcc
tcc_() { c_source 2000; subject /usr/bin/tcc; filter "$work/many.i" /usr/bin/tcc -E -; }
program nasm C nasm
nasm_() {
	{ echo "bits 64"; for i in $(seq 30000); do echo "l$i: mov rax, [rbx + $i * 4]";
		echo "add rax, $i"; echo "jnz l$i"; done; } >"$work/many.asm"
	made="$work/many.o"
	subject /usr/bin/nasm
	oneshot /usr/bin/nasm -O1 -f elf64 "$work/many.asm" -o "$work/many.o"
}
program valac Vala valac-bin
valac_() {
	for i in $(seq 300); do echo \
		"class Cl$i : Object { public int n { get; set; } public virtual int f (int x)  { int s = 0; foreach (var i in new int[] {1, 2, $i}) s += i * x; return s; } }"; done \
		>"$work/many.vala"
	subject "$(readlink -f /usr/bin/valac)" "$(basename "$(readlink -f /usr/bin/valac)")" \
		libvala-0.56 libc
	made="$work/many.c"
	oneshot "$exe" -q -C many.vala
}
program coqc OCaml coq
coqc_() {
	{ echo "Require Import Arith Lia."; for i in $(seq 60); do
		echo \
		"Lemma l$i : forall a b c : nat, a <= b -> b <= c + $i -> a * 2 <= 2 * c + 2 * $i. Proof. intros. lia. Qed."; done; } \
		>"$work/many.v"
	subject "$(readlink -f /usr/bin/coqc)"
	made="$work/many.vo"
	oneshot "$exe" -q "$work/many.v"
}
program crystal Crystal crystal
crystal_() {
	for i in $(seq 4000); do echo \
		"def f$i(x) x.to_s.each_char.map { |c| c.ord * $i }.sum end; puts f$i($i)";
		done >"$work/many.cr"
	export CRYSTAL_CACHE_DIR=$work/cache
	subject /usr/bin/crystal crystal libc
	oneshot /usr/bin/crystal tool hierarchy --no-color "$work/many.cr"
}
program minisat C++ minisat
minisat_() {
	awk \
		'BEGIN { srand(7); n = 220; m = 935; print "p cnf", n, m; for (i = 0; i < m; i++) {
			s = ""; for (k = 0; k < 3; k++) {
			seed = (seed * 1103515245 + 12345) % 2147483648;
			v = int(seed / 65536) % n + 1;
			seed = (seed * 1103515245 + 12345) % 2147483648;
			s = s (int(seed / 65536) % 2 ? v : -v) " " } print s 0 } }' \
		>"$work/in.cnf"
	made="$work/out.cnf"
	subject /usr/bin/minisat
	oneshot /usr/bin/minisat -verb=0 "$work/in.cnf" "$work/out.cnf"
}
program cmake C++ cmake
cmake_() {
	{ echo 'set(s 0)'; echo 'foreach(i RANGE 20000)'; echo ' message(STATUS "${s} ${h}")';
		echo ' math(EXPR s "(${s} * 7 + ${i}) % 1009")';
		echo ' string(SHA1 h "${s}${i}")'; echo ' list(APPEND l ${s})';
		echo ' list(LENGTH l n)'; echo ' if(n GREATER 50)'; echo '  set(l)';
		echo ' endif()'; echo 'endforeach()'; echo 'message(STATUS "${h} ${l}")';
		} >"$work/a.cmake"
	subject /usr/bin/cmake
	oneshot /usr/bin/cmake -P "$work/a.cmake"
}
program make C make
make_() {
	{ echo 'l := $(shell echo 1)'; for i in $(seq 2000); do
		echo \
		"v$i := \$(foreach n,a b c d e f,\$(patsubst %b,%c,\$(sort \$(n)b z \$(n)b $i)))";
		echo "t$i: t$((i + 1)) ; @:"; done; echo "t2001: ; @echo \$(v1) \$(v2000)";
		} >"$work/Makefile"
	subject /usr/bin/make
	oneshot /usr/bin/make -C "$work" t1
}
program ninja C++ ninja-build
ninja_() {
	{ echo 'rule r'; echo ' command = true'; for i in $(seq 60000); do
		echo "build o$i: r i$((i % 7)) | o$((i - 1))"; done; echo 'build o0: phony';
		for i in $(seq 0 6); do echo "build i$i: phony"; done; } >"$work/build.ninja"
	subject /usr/bin/ninja
	oneshot /usr/bin/ninja -C "$work" -t query o60000
}
