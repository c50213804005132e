# Further languages, and programs that are seldom traced: each does something for some tenths of a
# second.

program a68g "Algol 68" algol68g
a68g_() {
	cat >"$work/a.a68" <<-'EOF'
		BEGIN
		  INT sum := 0; [1 : 1000] INT a;
		  PROC add = (INT i, x) VOID: (a[i] := a[i] + x; sum +:= a[i] MOD 7);
		  FOR i TO 1000 DO a[i] := 0 OD;
		  FOR k TO 400 DO FOR i TO 1000 DO add (i, i * k MOD 11) OD OD;
		  print ((sum, newline))
		END
	EOF
	subject /usr/bin/a68g
	oneshot /usr/bin/a68g "$work/a.a68"
}

program calc C calc
calc_() {
	subject /usr/bin/calc
	oneshot /usr/bin/calc -d -p \
		'for (s = 0, i = 1; i < 60000; i++) s += fact(i % 90) % (i^7 + 1); print s;'
}

program hevea OCaml hevea
hevea_() {
	{
		echo '\documentclass{article}\begin{document}'
		for i in $(seq 400); do
			echo "\\section{Part $i}\\emph{Words} and \$\\frac{$i}{x^2}\$ \\begin{itemize}\\item a\\item b\\end{itemize}"
		done
		echo '\end{document}'
	} >"$work/a.tex"
	subject /usr/bin/hevea
	made="$work/a.html"
	oneshot /usr/bin/hevea -o "$work/a.html" "$work/a.tex"
}

program mlr Go miller
mlr_() {
	subject /usr/bin/mlr
	filter "$(lines)" /usr/bin/mlr --inidx --ifs ' ' --ojson stats1 -a mean,p50,count -f 1 -g 2
}

program gron Go gron
gron_() {
	{ echo '['; seq 6000 | sed 's/.*/{"n": &, "words": ["a", "b&"], "in": {"x": true}},/'; echo '0]'; } \
		>"$work/a.json"
	subject /usr/bin/gron
	oneshot /usr/bin/gron "$work/a.json"
}

program fish fish fish
fish_() {
	cat >"$work/a.fish" <<-'END'
		set sum 0
		for i in (seq 3000)
		  set sum (math "$sum + $i % 7")
		  string match -rq '^(\d)+$' -- $i; and set last (string replace 1 one $i)
		end
		echo $sum $last
	END
	subject /usr/bin/fish
	oneshot /usr/bin/fish --no-config "$work/a.fish"
}

program zsh zsh zsh
zsh_() {
	cat >"$work/a.zsh" <<-'END'
		typeset -A count
		for i in {1..40000}; do (( count[$((i % 97))] += i )); w=${(U)i/1/one}; done
		print ${#count} $count[7] $w
	END
	subject /usr/bin/zsh
	oneshot /usr/bin/zsh -f "$work/a.zsh"
}

program jsonnet C++ jsonnet
jsonnet_() {
	cat >"$work/a.jsonnet" <<-'END'
		local f(n) = if n < 2 then n else f(n - 1) + f(n - 2);
		{ [std.format('k%d', i)]: { n: f(i % 14), s: std.join(',', std.map(std.toString, std.range(0, i))) }
		  for i in std.range(0, 120) }
	END
	subject /usr/bin/jsonnet
	oneshot /usr/bin/jsonnet "$work/a.jsonnet"
}

program zpaq C++ zpaq
zpaq_() {
	lines 30000 >/dev/null
	made="$work/a.zpaq"
	touch -d 2020-01-01 "$work/lines"
	subject /usr/bin/zpaq
	oneshot /usr/bin/zpaq add "$work/a.zpaq" lines -method 2 -threads 2 -until 20200102000000
}

program newlisp newLISP newlisp
newlisp_() {
	cat >"$work/a.lsp" <<-'END'
		(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
		(println (fib 24) " " (apply + (map (fn (x) (% (* x x) 7)) (sequence 1 50000))))
		(exit)
	END
	subject /usr/bin/newlisp
	oneshot /usr/bin/newlisp "$work/a.lsp"
}

program nickle Nickle nickle
nickle_() {
	cat >"$work/a.5c" <<-'END'
		int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
		int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
		printf("%d %g\n", f(22), fact(90) / 7 ** 20);
	END
	subject /usr/bin/nickle
	oneshot /usr/bin/nickle "$work/a.5c"
}

program picolisp PicoLisp picolisp
picolisp_() {
	cat >"$work/a.l" <<-'END'
		(de fibo (N) (if (> 2 N) 1 (+ (fibo (dec N)) (fibo (- N 2)))))
		(prinl (fibo 26))
		(prinl (apply '* (range 1 90)))
		(bye)
	END
	subject /usr/bin/picolisp
	oneshot /usr/bin/picolisp "$work/a.l"
}

program pike Pike pike8.0-core
pike_() {
	cat >"$work/a.pike" <<-'END'
		class C { int n; void create(int i) { n = i; } int f(int x) { return n * x % 13; } }
		int main() { int s; mapping m = ([]);
		for (int i = 0; i < 60000; i++) { s += C(i)->f(i); m[i % 91] = sprintf("%d", s); }
		write("%d %s\n", s, sort(values(m)) * ","); return 0; }
	END
	subject /usr/bin/pike8.0
	oneshot /usr/bin/pike8.0 "$work/a.pike"
}

program ragel C++ ragel
ragel_() {
	{
		echo '%%{ machine m; main := ('
		for i in $(seq 700); do echo "'word$i' digit+ @{ n += $i; } |"; done
		echo "'end')*; }%% %% write data;"
		echo 'int run(const char *p, const char *pe) { int cs, n = 0; %% write init;'
		echo '%% write exec;'
		echo 'return n; }'
	} >"$work/a.rl"
	made="$work/a.c"
	subject /usr/bin/ragel
	oneshot /usr/bin/ragel -G2 -o "$work/a.c" "$work/a.rl"
}

program rexx REXX regina-rexx
rexx_() {
	cat >"$work/a.rexx" <<-'END'
		sum = 0
		do i = 1 to 60000
		  sum = sum + length(translate(i, 'abc', '123')) * (i // 7)
		  w.i = word('a b c d', i // 4 + 1)
		end
		say sum w.77 left(2 ** 70, 30)
	END
	subject /usr/bin/rexx
	oneshot /usr/bin/rexx "$work/a.rexx"
}

program yabasic BASIC yabasic
yabasic_() {
	cat >"$work/a.bas" <<-'END'
		dim a(1000)
		for k = 1 to 400
		for i = 1 to 1000: a(i) = a(i) + mod(i * k, 11): s = s + a(i): next i
		t$ = mid$(str$(s), 1, 3) + upper$("abc")
		next k
		print s, " ", t$
	END
	subject /usr/bin/yabasic
	oneshot /usr/bin/yabasic "$work/a.bas"
}

program icon Icon icont iconx
icon_() {
	cat >"$work/a.icn" <<-'END'
		procedure main()
		  t := table(0); s := 0
		  every i := 1 to 500000 do { t[i % 97] +:= i; s +:= *("abc" || i) }
		  "the quick brown" ? while tab(upto(&letters)) do s +:= *tab(many(&letters))
		  write(s, " ", t[5], " ", *sort(t))
		end
	END
	icont -s -o "$work/a.u" "$work/a.icn"
	subject /usr/bin/iconx
	oneshot /usr/bin/iconx "$work/a.u"
}

program wasm-interp WebAssembly wabt
wasm-interp_() {
	cat >"$work/a.wat" <<-'END'
		(module (func $f (param i32) (result i32)
		  (if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0))
		    (else (i32.add (call $f (i32.sub (local.get 0) (i32.const 1)))
		                   (call $f (i32.sub (local.get 0) (i32.const 2)))))))
		  (func (export "run") (result i32) (call $f (i32.const 26))))
	END
	wat2wasm -o "$work/a.wasm" "$work/a.wat"
	subject /usr/bin/wasm-interp
	oneshot /usr/bin/wasm-interp --run-all-exports "$work/a.wasm"
}

program tex Pascal texlive-binaries texlive-plain-generic
tex_() {
	{
		for i in $(seq 1500); do
			echo "\\centerline{\\bf Part $i} The words of a paragraph, which are broken into lines \$x_{$i} = \\sqrt{\\alpha \\over 2}\$, again and again; \\hfil"
		done
		echo '\bye'
	} >"$work/a.tex"
	made="$work/a.dvi"
	export SOURCE_DATE_EPOCH=0 FORCE_SOURCE_DATE=1
	subject /usr/bin/tex
	oneshot /usr/bin/tex "$work/a.tex"
}

program ptop Pascal fp-utils-3.2.2
ptop_() {
	{
		echo 'program a; var n: integer; begin'
		for i in $(seq 20000); do echo "if n<$i then begin n:=n+$i; writeln('x',n) end else n:=0;"; done
		echo 'end.'
	} >"$work/a.pas"
	made="$work/b.pas"
	subject /usr/bin/ptop-3.2.2
	oneshot /usr/bin/ptop-3.2.2 "$work/a.pas" "$work/b.pas"
}

program hledger Haskell hledger
hledger_() {
	for i in $(seq 1200); do printf '2020-01-%02d shop\n  food:n%d  %d EUR\n  cash\n\n' \
		$((i % 28 + 1)) $((i % 17)) "$i"; done >"$work/a.journal"
	subject /usr/bin/hledger
	oneshot /usr/bin/hledger -f "$work/a.journal" balance
}

program exa Rust exa
exa_() {
	mkdir -p "$work/tree"
	for i in $(seq 150); do mkdir -p "$work/tree/$i"; touch "$work/tree/$i/"{a,b,c}{1..20}.txt; done
	subject /usr/bin/exa
	oneshot /usr/bin/exa --tree --color=never "$work/tree"
}

program cppcheck C++ cppcheck
cppcheck_() {
	for i in $(seq 150); do
		echo "int f$i(int n) { int a[4]; a[$i] = 0; int *p = n > $i ? a : 0; for (int i = 0; i < n; i++) p[i & 3] = i; return *p; }"
	done >"$work/a.c"
	made="$work/found"
	subject /usr/bin/cppcheck
	oneshot /usr/bin/cppcheck -q --enable=style --output-file="$work/found" "$work/a.c"
}

program m4 C m4
m4_() {
	cat >"$work/a.m4" <<-'END'
		define(`fib', `ifelse(eval($1 < 2), 1, $1, `eval(fib(decr($1)) + fib(decr(decr($1))))')')dnl
		fib(20) translit(format(`%05d', 42), `0-9', `a-j')
	END
	subject /usr/bin/m4
	oneshot /usr/bin/m4 "$work/a.m4"
}
