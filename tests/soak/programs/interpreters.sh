# Interpreters: each runs a script that does the same work again and again, and prints a line each
# time.

awk_script() {
	cat >"$work/a.awk" <<-'END'
		BEGIN {
			do {
				s = 0
				for (i = 0; i < 20000; i++) {
					a[i % 101] += i
					s += length(sprintf("%d,%s", i, substr("abcdef", i % 6)))
				}
				for (k in a)
					s += a[k]
				delete a
				t = "abbc abbbd"
				gsub(/b+/, "c", t)
				print s, t
				fflush()
			} while ((getline line < stop) < 0)
		}
	END
}
program gawk C gawk
gawk_() {
	subject /usr/bin/gawk
	awk_script
	loop /usr/bin/gawk -v stop="$stop" -f "$work/a.awk"
}

program mawk C mawk
mawk_() {
	subject /usr/bin/mawk
	awk_script
	loop /usr/bin/mawk -v stop="$stop" -f "$work/a.awk"
}

program perl Perl perl-base
perl_() {
	subject /usr/bin/perl
	cat >"$work/a.pl" <<-'END'
		$| = 1;
		do {
			my (%n, @l);
			my $s = "";
			for (1 .. 20000) {
				$n{$_ * 7919 % 1009}++;
				$s .= chr(97 + $_ % 26) if $_ % 7 == 0;
			}
			my $c = () = $s =~ /[aeiou][^aeiou]+/g;
			eval { die { at => $c } };
			@l = sort { $n{$a} <=> $n{$b} || $a <=> $b } keys %n;
			print join(",", $c, $@->{at}, @l[0 .. 5], length join ":", %n), "\n";
		} until -e $ENV{stop};
		exit 3;
	END
	loop /usr/bin/perl "$work/a.pl"
}

program ruby Ruby ruby3.1 libruby3.1
ruby_() {
	subject /usr/bin/ruby3.1 libruby-3.1 libc
	cat >"$work/a.rb" <<-'END'
		$stdout.sync = true
		def fib(n) n < 2 ? n : fib(n - 1) + fib(n - 2) end
		begin
		  h = Hash.new(0)
		  5000.times { |i| h["k#{i * 7919 % 1009}"] += i }
		  t = 4.times.map { |k| Thread.new { catch(:done) { 1000.times { |i| throw :done,
		    i * k if i == 500 } } } }
		  e = begin; raise ArgumentError, "x"; rescue => x; x.message; end
		  f = Fiber.new { Fiber.yield 1; 2 }
		  puts [fib(15), h.values.sum, h.keys.sort.first, t.sum(&:value), e,
		    f.resume + f.resume, (2**300).to_s.sum, "abcabc".gsub(/b/) { "x" }].inspect
		end until File.exist?(ENV["stop"])
		exit 4
	END
	loop /usr/bin/ruby3.1 "$work/a.rb"
}

lua_script() {
	cat >"$work/a.lua" <<-'END'
		io.stdout:setvbuf("line")
		local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
		repeat
		  local t, s = {}, 0
		  for i = 1, 20000 do t[i % 1009] = (t[i % 1009] or 0) + i; s = s +
		    #string.format("%d:%s", i, ("x"):rep(i % 5)) end
		  local c = coroutine.wrap(function() for i = 1, 100 do coroutine.yield(i) end end)
		  for i = 1, 100 do s = s + c() end
		  local ok, e = pcall(error, { code = 7 })
		  local m = 0
		  for w in ("the quick brown fox"):rep(100):gmatch("%a+") do m = m + #w end
		  table.sort(t)
		  print(string.format("%d %d %d %d %d", s, fib(18), e.code, m, t[17]))
		  local f = io.open(os.getenv("stop"))
		until f
	END
}
program lua C lua5.4
lua_() { lua_script; subject /usr/bin/lua5.4; loop /usr/bin/lua5.4 "$work/a.lua"; }
program lua5.1 C lua5.1
lua5.1_() { lua_script; subject /usr/bin/lua5.1; loop /usr/bin/lua5.1 "$work/a.lua"; }
program luajit Lua luajit
luajit_() { lua_script; subject /usr/bin/luajit; loop /usr/bin/luajit "$work/a.lua"; }

program php PHP php8.2-cli
php_() {
	subject /usr/bin/php8.2
	cat >"$work/a.php" <<-'END'
		<?php
		function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
		function numbers() { for ($i = 0; $i < 100; $i++) yield $i; }
		do {
			$a = []; $s = 0;
			for ($i = 0; $i < 10000; $i++) { $a["k" . $i * 7919 % 1009] = $i; }
			ksort($a); foreach (numbers() as $n) $s += $n;
			try { throw new RuntimeException("x"); } catch (Exception $e) { $s +=
			  strlen($e->getMessage()); }
			echo $s, " ", fib(15), " ", md5(json_encode($a)), " ",
			  crc32(preg_replace_callback("/k(\d)/", fn($m) => $m[1] * 2, implode(",",
			  array_keys($a)))), "\n";
		} while (!@fopen(getenv("stop"), "r"));
		exit(5);
	END
	loop /usr/bin/php8.2 -n -d opcache.enable=0 "$work/a.php"
}

program guile Scheme guile-3.0 guile-3.0-libs
guile_() {
	subject /usr/bin/guile libguile-3.0 libc
	cat >"$work/a.scm" <<-'END'
		(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
		(define (round-trip k) (call/cc (lambda (return) (for-each (lambda (i) (if (= i k)
		  (return i))) (iota 1000)))))
		(let loop ()
		  (let ((h (make-hash-table)))
		    (do ((i 0 (+ i 1))) ((= i 5000)) (hash-set! h (modulo (* i 7919) 1009) i))
		    (format #t "~a ~a ~a ~a ~a\n" (fib 18) (hash-fold (lambda (k v s) (+ v s)) 0 h)
		      (round-trip 500)
		      (catch 'x (lambda () (throw 'x 1)) (lambda (k v) v)) (string-length
		        (number->string (expt 3 2000)))))
		  (force-output)
		  (if (not (file-exists? (getenv "stop"))) (loop)))
	END
	loop /usr/bin/guile --no-auto-compile "$work/a.scm"
}

program tcl Tcl tcl8.6 libtcl8.6
tcl_() {
	subject /usr/bin/tclsh8.6 libtcl8.6 libc
	cat >"$work/a.tcl" <<-'END'
		fconfigure stdout -buffering line
		proc fib n { expr {$n < 2 ? $n : [fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]} }
		proc numbers {} { yield; for {set i 0} {$i < 50} {incr i} { yield $i } }
		while 1 {
			unset -nocomplain a
			for {set i 0} {$i < 3000} {incr i} { set a([expr {$i * 7919 % 1009}]) $i; lappend l $i }
			set s 0; foreach k [lsort -integer [array names a]] { incr s $a($k) }
			coroutine next numbers; for {set i 0} {$i < 50} {incr i} { incr s [next] }; rename next ""
			catch { error x } e
			puts "$s [fib 13] $e [string length [regsub -all {1+} [join $l ,] y]] [expr {7 ** 200}]"
			unset l
			if {[file exists $env(stop)]} exit
		}
	END
	loop /usr/bin/tclsh8.6 "$work/a.tcl"
}

program gforth Forth gforth
gforth_() {
	subject /usr/bin/gforth-fast
	cat >"$work/a.fs" <<-'END'
		: fib dup 2 < if else dup 1 - recurse swap 2 - recurse + then ;
		: thrower 7 throw ;
		: there s" STOP" file-status nip 0= ;
		: work begin 20 fib . ['] thrower catch . 0 10000 0 do i i * + loop .
		  pad 100 [char] x fill pad 50 type cr there until ;
		work bye
	END
	sed -i "s,STOP,$stop," "$work/a.fs"
	loop /usr/bin/gforth-fast "$work/a.fs"
}

program bc C bc
bc_() {
	{
		echo 'define f(n) { if (n < 2) { return n; }; return f(n - 1) + f(n - 2); }'
		seq 50 | sed 's/.*/scale = 30; a(&) * e(1) + sqrt(&); f(12)/'
	} >"$work/in"
	subject /usr/bin/bc
	filter "$work/in" /usr/bin/bc -l
}

program dc C dc
dc_() {
	seq 50 | sed 's/.*/30k & v & 7 ^ * p [la 1 + d sa 100 >b]sb 0 sa lb x la p c/' >"$work/in"
	subject /usr/bin/dc
	filter "$work/in" /usr/bin/dc
}
