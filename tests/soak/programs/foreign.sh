# Programs of further languages and trades that no test had met before: shells, engines of scripts,
# Prolog and Logo's kin, solvers, genomes, hardware, documents.

program gprolog Prolog gprolog
gprolog_() {
	cat >"$work/a.pro" <<-'END'
		app([], L, L).
		app([H|T], L, [H|R]) :- app(T, L, R).
		nrev([], []).
		nrev([H|T], R) :- nrev(T, S), app(S, [H], R).
		rng(N, N, [N]) :- !.
		rng(I, N, [I|T]) :- I < N, J is I + 1, rng(J, N, T).
		step :- rng(1, 30, L), nrev(L, _), catch(throw(x), _, true).
		loop(0) :- !.
		loop(N) :- \+ \+ step, M is N - 1, loop(M).
		:- initialization((loop(60000), write(done), nl, halt)).
	END
	gplc --no-top-level "$work/a.pro" -o "$work/a.out"
	subject "$work/a.out"
	oneshot "$work/a.out"
}

program gsi Scheme gambc
gsi_() {
	cat >"$work/a.scm" <<-'END'
		(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
		(println (fib 31))
		(with-exception-catcher (lambda (e) (println "caught")) (lambda () (car 5)))
	END
	subject /usr/bin/gsi
	oneshot /usr/bin/gsi "$work/a.scm"
}

program jimsh Tcl jimsh
jimsh_() {
	cat >"$work/a.tcl" <<-'END'
		proc fib n {if {$n<2} {return $n}; expr {[fib [expr {$n-1}]]+[fib [expr {$n-2}]]}}
		puts [fib 24]
		for {set i 0} {$i<200000} {incr i} {catch {error x$i} m; lappend l $m}
		puts [llength $l]
	END
	subject /usr/bin/jimsh
	oneshot /usr/bin/jimsh "$work/a.tcl"
}

scripted() { # FILE: for mujs and duk
	cat >"$1" <<-'END'
		function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
		print(fib(27));
		var n = 0;
		for (var i = 0; i < 200000; i++) {
		  try { throw new Error("x" + i); } catch (e) { n += e.message.length; }
		}
		print(n, "abc".replace(/b/g, "x"));
	END
}
program mujs JavaScript mujs
mujs_() {
	scripted "$work/a.js"
	subject /usr/bin/mujs
	oneshot /usr/bin/mujs "$work/a.js"
}
program duk JavaScript duktape
duk_() {
	scripted "$work/a.js"
	subject /usr/bin/duk
	oneshot /usr/bin/duk "$work/a.js"
}

# Commands that fork for each step, and handle SIGCHLD: signals meet probes at all places.
program tcsh tcsh tcsh
tcsh_() {
	printf '%s\n' 'set s=0' 'foreach i (`seq 3000`)' '@ s += $i % 7' 'set x=`echo $i`' end \
		'echo $s $x' >"$work/a.csh"
	subject "$(readlink -f /usr/bin/tcsh)"
	oneshot "$exe" -f "$work/a.csh"
}
program yash yash yash
yash_() {
	subject /usr/bin/yash
	oneshot /usr/bin/yash -c 's=0 i=0
		while [ $i -lt 4000 ]; do s=$((s+i%7)) i=$((i+1)); x=$(echo $i); done; echo $s $x'
}
program ksh ksh "ksh93u+m"
ksh_() {
	subject /usr/bin/ksh93
	oneshot /usr/bin/ksh93 -c 's=0
		for ((i = 0; i < 100000; i++)); do ((s += i % 7)); x=$(echo $i); done; echo $s $x'
}

program nawk awk original-awk
nawk_() {
	subject /usr/bin/original-awk
	filter "$(lines)" /usr/bin/original-awk '{ c[$1]++; gsub(/o+/, "x"); s += length($0) }
		END { for (k in c) n += c[k]; print n, s }'
}

program cadical C++ cadical
cadical_() {
	awk 'BEGIN { srand(3); print "p cnf 200 850"
		for (i = 0; i < 850; i++) {
			for (k = 0; k < 3; k++)
				printf "%d ", (rand() < 0.5 ? -1 : 1) * (1 + int(rand() * 200))
			print 0
		} }' >"$work/a.cnf"
	subject /usr/bin/cadical
	oneshot /usr/bin/cadical -q "$work/a.cnf"
}
program gringo C++ gringo
gringo_() {
	echo 'n(1..250). e(X,Y):-n(X),n(Y),X<Y,(X*Y)\7==1. p(X,Z):-e(X,Y),e(Y,Z).' >"$work/a.lp"
	subject /usr/bin/gringo
	oneshot /usr/bin/gringo "$work/a.lp"
}

program samtools C samtools
samtools_() {
	{
		printf '@HD\tVN:1.6\n@SQ\tSN:c\tLN:100000\n'
		seq 400000 | awk '{ printf "r%d\t0\tc\t%d\t60\t10M\t*\t0\t0\tACGTACGTAC\tIIIIIIIIII\n",
			$1, $1 * 7919 % 90000 + 1 }'
	} >"$work/a.sam"
	subject /usr/bin/samtools samtools libhts libc
	oneshot /usr/bin/samtools sort --no-PG -O sam "$work/a.sam"
}
program bedtools C++ bedtools
bedtools_() {
	seq 20000 | awk '{ printf "c1\t%d\t%d\n", $1 * 37 % 100000, $1 * 37 % 100000 + 50 }' \
		>"$work/a.bed"
	seq 900 | awk '{ printf "c1\t%d\t%d\n", $1 * 90, $1 * 90 + 30 }' >"$work/b.bed"
	subject /usr/bin/bedtools
	oneshot /usr/bin/bedtools intersect -a "$work/a.bed" -b "$work/b.bed"
}

program mandoc C mandoc
mandoc_() {
	subject /usr/bin/mandoc
	oneshot /usr/bin/mandoc -T utf8 $(yes "$root/docs/man/fay.1" | head -600)
}
program byacc C byacc
byacc_() {
	{
		printf '%%token A B\n%%%%\ns: r0;\n'
		seq 0 1499 | awk '{ printf "r%d: A r%d B | B r%d | A;\n", $1, $1 + 1, $1 + 1 }'
		echo 'r1500: A;'
	} >"$work/a.y"
	subject /usr/bin/byacc
	oneshot /usr/bin/byacc -o /dev/stdout "$work/a.y"
}
program yorick Yorick yorick
yorick_() {
	echo 's=0.; for(i=1;i<=400000;i++){ x=span(0,1,50); s+=sum(sin(x*i)); }; print,s; quit;' \
		>"$work/a.i"
	subject /usr/lib/yorick/bin/yorick
	oneshot /usr/lib/yorick/bin/yorick -batch "$work/a.i"
}
