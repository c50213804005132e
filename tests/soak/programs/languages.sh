# Programs compiled from, or run by systems of, other languages.

program swipl Prolog swi-prolog-nox
swipl_() {
	subject /usr/bin/swipl libswipl libc
	cat >"$work/a.pl" <<-'END'
		nrev([], []).
		nrev([H|T], R) :- nrev(T, S), append(S, [H], R).
		work :- numlist(1, 200, L), nrev(L, R), sum_list(R, S), catch(throw(x(S)), x(Y),
		  true),
			findall(X-Z, (member(X, R), X mod 7 =:= 3, Z is X * X), P), length(P, N),
			A is 3 ** 500 mod 1000007, atom_length('abc', K), format("~w ~w ~w ~w~n",
			  [Y, N, A, K]), flush_output.
		main :- repeat, work, getenv(stop, F), exists_file(F), !, halt(3).
	END
	loop /usr/bin/swipl -q -g main "$work/a.pl"
}

program sbcl Lisp sbcl
sbcl_() {
	subject /usr/bin/sbcl
	cat >"$work/a.lisp" <<-'END'
		(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
		(loop
		  (let ((h (make-hash-table :test 'equal)) (s 0))
		    (dotimes (i 20000) (setf (gethash (format nil "k~d" (mod (* i 7919) 1009)) h)
		      i))
		    (maphash (lambda (k v) (incf s (+ v (length k)))) h)
		    (incf s (handler-case (error "x") (error () 7)))
		    (incf s (catch 'done (dotimes (i 100) (if (= i 50) (throw 'done i)))))
		    (format t "~d ~d ~d~%" s (fib 22) (mod (expt 3 5000) 1000007)) (force-output)
		    (gc)
		    (when (probe-file (sb-posix:getenv "stop")) (sb-ext:exit :code 3))))
	END
	sed -i 's/sb-posix:getenv/sb-ext:posix-getenv/' "$work/a.lisp"
	loop /usr/bin/sbcl --script "$work/a.lisp"
}
lisp() {
	cat >"$work/a.lisp" <<-'END'
		(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
		(loop
		  (let ((h (make-hash-table :test 'equal)) (s 0))
		    (dotimes (i 3000) (setf (gethash (format nil "k~d" (mod (* i 7919) 1009)) h) i))
		    (maphash (lambda (k v) (incf s (+ v (length k)))) h)
		    (incf s (handler-case (error "x") (error () 7)))
		    (incf s (catch 'done (dotimes (i 100) (if (= i 50) (throw 'done i)))))
		    (format t "~d ~d ~d~%" s (fib 14) (mod (expt 3 2000) 1000007)) (finish-output)
		    (when (probe-file "STOP") (return))))
	END
	sed -i "s,STOP,$stop," "$work/a.lisp"
}
program clisp Lisp clisp
clisp_() {
	lisp
	dir=$(echo /usr/lib/clisp-*/base)
	subject "$dir/lisp.run" lisp.run libc
	loop "$exe" -B "${dir%/*}" -M "$dir/lispinit.mem" -N /usr/share/locale -norc -q -q \
		"$work/a.lisp"
}
program ecl Lisp ecl libecl21.2
ecl_() {
	lisp
	subject /usr/bin/ecl libecl libc
	loop /usr/bin/ecl --norc --load "$work/a.lisp" --eval '(ext:quit 0)'
}

program chicken Scheme chicken-bin libchicken11
chicken_() {
	subject /usr/bin/csi libchicken libc
	cat >"$work/a.scm" <<-'END'
		(import (chicken file) (chicken process-context) (chicken condition))
		(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
		(let loop ()
		  (let ((k (call/cc (lambda (return) (for-each (lambda (i) (if (= i 5) (return i)))
		    '(1 2 3 4 5 6)) 0))))
		    (print (fib 17) " " k " " (string-length (number->string (expt 3 2000))) " "
		      (handle-exceptions e 7 (car 1)))
		    (flush-output)
		    (if (not (file-exists? (get-environment-variable "stop"))) (loop))))
	END
	loop /usr/bin/csi -q -s "$work/a.scm"
}

program racket Racket racket
racket_() {
	subject /usr/bin/racket
	cat >"$work/a.rkt" <<-'END'
		#lang racket/base
		(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
		(let loop ()
		  (define h (make-hash))
		  (for ([i 20000]) (hash-set! h (number->string (modulo (* i 7919) 1009)) i))
		  (printf "~a ~a ~a ~a\n" (fib 22) (for/sum ([(k v) h]) (+ v (string-length k)))
		    (with-handlers ([exn:fail? (lambda (e) 7)]) (error "x")) (let/ec k (for ([i 10])
		      (when (= i 5) (k i)))))
		  (flush-output) (collect-garbage 'minor)
		  (unless (file-exists? (getenv "stop")) (loop)))
	END
	loop /usr/bin/racket "$work/a.rkt"
}

program erlang Erlang erlang-base
erlang_() {
	export ROOTDIR=/usr/lib/erlang PROGNAME=erl EMU=beam
	export BINDIR=$(ls -d $ROOTDIR/erts-*/bin)
	cat >"$work/a.erl" <<-'END'
		-module(a).
		-export([main/0]).
		fib(N) when N < 2 -> N;
		fib(N) -> fib(N - 1) + fib(N - 2).
		main() ->
		    Self = self(),
		    Ps = [spawn(fun() -> Self ! {K, fib(15) + K} end) || K <- lists:seq(1, 20)],
		    S = lists:sum([receive {K, V} -> V end || K <- lists:seq(1, length(Ps))]),
		    T = ets:new(t, []),
		    [ets:insert(T, {I * 7919 rem 1009, I}) || I <- lists:seq(1, 5000)],
		    N = ets:foldl(fun({_, V}, A) -> A + V end, 0, T),
		    ets:delete(T),
		    E = try throw(x) catch throw:X -> X end,
		    B = erlang:crc32(term_to_binary(lists:seq(1, 2000))),
		    M = byte_size(integer_to_binary(lists:foldl(fun(I, A) -> I * A end, 1,
		      lists:seq(1, 300)))),
		    io:format("~p ~p ~p ~p ~p~n", [S, N, E, B, M]),
		    case filelib:is_regular(os:getenv("stop")) of true -> halt(3);
		      false -> main() end.
	END
	(cd "$work" && erlc a.erl)
	subject "$BINDIR/beam.smp"
	loop "$BINDIR/beam.smp" -S 2:2 -- -root $ROOTDIR -bindir $BINDIR -progname erl -- -home \
		"$work" -- -noshell -noinput -pa "$work" -s a main
}

program mono C# mono-runtime mono-mcs libmono-system-core4.0-cil
mono_() {
	cat >"$work/a.cs" <<-'END'
		using System; using System.IO; using System.Linq; using System.Text; using
		  System.Collections.Generic; using System.Threading;
		class A {
			static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }
			static int Main() {
				do {
					var d = new Dictionary<string, int>();
					for (int i = 0; i < 20000; i++) d["k" + i * 7919L % 1009] =
					  i;
					int s = 0;
					foreach (var v in d.Values) s += v;
					try { throw new InvalidOperationException("x"); } catch
					  (Exception e) { s += e.Message.Length; }
					int[] r = new int[4];
					var t = Enumerable.Range(0, 4).Select(k => new Thread(() =>
					  r[k] = Fib(15) + k)).ToList();
					t.ForEach(x => x.Start()); t.ForEach(x => x.Join());
					Console.WriteLine("{0} {1} {2} {3}", s, Fib(20), r.Sum(),
					  string.Join(",", d.Keys.OrderBy(x => x,
					  StringComparer.Ordinal).Take(3)));
					GC.Collect(0);
				} while (!File.Exists(Environment.GetEnvironmentVariable("stop")));
				return 3;
			}
		}
	END
	(cd "$work" && mcs -out:a.exe a.cs) >"$work/build" 2>&1
	subject /usr/bin/mono
	loop /usr/bin/mono "$work/a.exe"
}

program R R r-base-core
R_() {
	export R_HOME=/usr/lib/R LD_LIBRARY_PATH=/usr/lib/R/lib R_SHARE_DIR=/usr/share/R/share \
		R_INCLUDE_DIR=/usr/share/R/include R_DOC_DIR=/usr/share/R/doc
	cat >"$work/a.R" <<-'END'
		fib <- function(n) if (n < 2) n else fib(n - 1) + fib(n - 2)
		repeat {
		  set.seed(1); x <- matrix((1:2500 * 7919) %% 1009, 50); q <- sum(diag(x %*% t(x)))
		  e <- tryCatch(stop("x"), error = function(e) nchar(conditionMessage(e)))
		  m <- lm(y ~ z, data.frame(z = 1:100, y = (1:100 * 7919) %% 101))
		  cat(q, e, fib(14), format(coef(m)[[2]], digits = 6), paste(sort(c("b", "a")),
		    collapse = ""), nchar(gsub("1", "xx", paste(1:500, collapse = ","))), "\n")
		  if (file.exists(Sys.getenv("stop"))) break
		}
		quit(status = 3)
	END
	subject /usr/lib/R/bin/exec/R libR libc
	loop /usr/lib/R/bin/exec/R --no-echo --no-restore --vanilla --file="$work/a.R"
}

program octave C++ octave
octave_() {
	cat >"$work/a.m" <<-'END'
		1;
		function r = fib(n) if n < 2 r = n; else r = fib(n - 1) + fib(n - 2); end, end
		do
		  x = reshape(mod((1:900) * 7919, 1009), 30, 30);
		  try error("x:y", "z"); catch e, end
		  c = cellfun(@(s) numel(s), {"a", "bb", "ccc"});
		  printf("%d %d %s %d %.6f\n", trace(x * x'), fib(10), e.identifier, sum(c),
		    norm(inv(x + 2000 * eye(30))));
		  fflush(stdout);
		until exist(getenv("stop"), "file")
		exit(3)
	END
	subject /usr/bin/octave-cli liboctinterp libc
	loop $(ls /usr/lib/x86_64-linux-gnu/octave/*/exec/x86_64-pc-linux-gnu/octave-cli \
		2>/dev/null || echo /usr/bin/octave-cli) --norc --quiet "$work/a.m"
}

# compiled NAME COMMAND...: what was built as $work/NAME
compile() { (cd "$work" && "$@") >"$work/build" 2>&1 || { cat "$work/build" >&2;
	fail "it does not compile"; }; }

program ocaml OCaml ocaml-nox
ocaml_() {
	cat >"$work/prog.ml" <<-'END'
		let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
		exception Found of int
		let () =
		  let again = ref true in
		  while !again do
		    let h = Hashtbl.create 17 in
		    for i = 0 to 20000 do Hashtbl.replace h (Printf.sprintf "k%d" (i * 7919 mod
		      1009)) i done;
		    let s = Hashtbl.fold (fun k v s -> s + v + String.length k) h 0 in
		    let f = try List.iter (fun i -> if i = 50 then raise (Found i)) (List.init 100
		      Fun.id); 0 with Found i -> i in
		    Printf.printf "%d %d %d %s\n%!" s (fib 22) f (Digest.to_hex (Digest.string
		      (String.concat "," (List.map string_of_int (List.sort compare (List.init 2000
		      (fun i -> i * 7919 mod 1009)))))));
		    if Sys.file_exists (Sys.getenv "stop") then again := false
		  done; exit 3
	END
	compile ocamlopt -o prog prog.ml
	subject "$work/prog" prog libc
	loop "$work/prog"
}
program ocamlopt OCaml ocaml-nox
ocamlopt_() {
	{ for i in $(seq 400); do echo \
		"let f$i x = match x with | 0 -> $i | n when n > $i -> List.fold_left (+) n [1; 2; x] | n -> (fun y -> y * n) $i"; done; echo \
		"let () = print_int (f1 2)"; } >"$work/many.ml"
	made="$work/many.o $work/many.cmx"
	subject "$(readlink -f /usr/bin/ocamlopt.opt)" "$(basename "$(readlink -f \
		/usr/bin/ocamlopt.opt)")" libc
	oneshot "$exe" -c -inline 50 "$work/many.ml"
}

program haskell Haskell ghc
haskell_() {
	cat >"$work/prog.hs" <<-'END'
		import qualified Data.Map.Strict as M
		import Control.Concurrent
		import Control.Exception
		import Control.Monad
		import System.Directory
		import System.Environment
		import System.Exit
		import System.IO
		fib :: Int -> Int
		fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
		main :: IO ()
		main = do
		  hSetBuffering stdout LineBuffering
		  stop <- getEnv "stop"
		  let go = do
		        let m = M.fromListWith (+) [(show (i * 7919 `mod` 1009),
		                i) | i <- [1 .. 20000 :: Int]]
		        vs <- forM [1 .. 8] $ \k -> do { v <- newEmptyMVar;
		                _ <- forkIO (putMVar v $! fib 15 + k); return v }
		        s <- sum <$> mapM takeMVar vs
		        e <- try (evaluate (1 `div` (0 :: Int))) :: IO (Either ArithException Int)
		        putStrLn (unwords [show (sum (M.elems m)), show s, show e,
		                show (length (show (3 ^ (2000 :: Int) :: Integer)))])
		        done <- doesFileExist stop
		        if done then exitWith (ExitFailure 3) else go
		  go
	END
	compile ghc -O1 -threaded -package containers -package directory -o prog prog.hs
	subject "$work/prog" prog libc
	loop "$work/prog"
}
program shellcheck Haskell shellcheck
shellcheck_() {
	for i in $(seq 200); do echo \
		"if [ \$a$i == \"b\" ]; then for f in \$(ls *.$i); do echo \$f; cat \$f | grep x; done; fi"; done \
		>"$work/a.sh"
	subject /usr/bin/shellcheck
	oneshot /usr/bin/shellcheck -s bash -f gcc "$work/a.sh"
}
program pandoc Haskell pandoc
pandoc_() {
	for i in $(seq 200); do printf \
		'# Head %d\n\nText *with* **marks** and [a link](http://x/%d).\n\n- one\n- two\n\n| a | b |\n|---|---|\n| %d | 2 |\n\n' \
		"$i" "$i" "$i"; done >"$work/a.md"
	subject /usr/bin/pandoc
	oneshot /usr/bin/pandoc -f markdown -t html "$work/a.md"
}

program pascal Pascal fp-compiler fp-units-rtl
pascal_() {
	cat >"$work/prog.pas" <<-'END'
		{$mode objfpc}
		uses sysutils, classes;
		function fib(n: integer): integer; begin if n < 2 then fib := n else fib := fib(n -
		  1) + fib(n - 2); end;
		var l: TStringList; i, s: integer; 
		begin
		  repeat
		    l := TStringList.Create; l.Sorted := true; l.Duplicates := dupIgnore;
		    for i := 1 to 3000 do l.Add(format('k%d', [i * 7919 mod 1009]));
		    s := 0;
		    for i := 0 to l.Count - 1 do s := s + length(l[i]) * i mod 7;
		    try raise Exception.Create('x'); except on e: Exception do s := s +
		      length(e.Message); end;
		    l.Free;
		    writeln(s, ' ', fib(20), ' ', formatfloat('0.0000', sqrt(s)));
		    flush(output);
		  until fileexists(GetEnvironmentVariable('stop'));
		  halt(3);
		end.
	END
	compile fpc -O2 -Xs- prog.pas
	subject "$work/prog" prog
	loop "$work/prog"
}
program d D gdc libgphobos3
d_() {
	cat >"$work/prog.d" <<-'END'
		import std.stdio, std.file, std.algorithm, std.array, std.conv, std.process,
		  std.digest.md, core.thread, core.memory;
		int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
		int main() {
			do {
				int[string] a;
				foreach (i; 0 .. 10000) a["k" ~ to!string(i * 7919 % 1009)] = i;
				int s = 0;
				try throw new Exception("x"); catch (Exception e) s += e.msg.length;
				int r; auto f = new Fiber({ foreach (i; 0 .. 10) { r += i;
				  Fiber.yield(); } });
				while (f.state != Fiber.State.TERM) f.call();
				auto t = new Thread({ r += fib(15); }); t.start(); t.join();
				writeln(a.values.sum, " ", fib(20), " ", s, " ", r, " ",
				  toHexString(md5Of(a.keys.sort.join(",")))); stdout.flush();
				GC.collect();
			} while (!exists(environment["stop"]));
			return 3;
		}
	END
	compile gdc -O2 -o prog prog.d
	subject "$work/prog" prog libgphobos libc
	loop "$work/prog"
}
program ldc2 D ldc
ldc2_() {
	{ echo "module many;"; for i in $(seq 30); do
		echo \
		"int f$i(T)(T x) { import std.algorithm; return cast(int) ([$i, 2, 3].map!(y => y * x).sum % 1009); } int g$i(int x) { return f$i(x) + f$i(cast(short) x); }"; done; } \
		>"$work/many.d"
	made="$work/many.o"
	subject /usr/bin/ldc2
	oneshot /usr/bin/ldc2 -O1 -c "-of=$work/many.o" "$work/many.d"
}

program ada Ada gnat libgnat-12
ada_() {
	cat >"$work/prog.adb" <<-'END'
		with Ada.Text_IO; use Ada.Text_IO;
		with Ada.Containers.Indefinite_Ordered_Maps;
		with Ada.Directories; with Ada.Environment_Variables; with Ada.Command_Line;
		procedure Prog is
		   package Maps is new Ada.Containers.Indefinite_Ordered_Maps (String, Integer);
		   function Fib (N : Integer) return Integer is (if N < 2 then N else Fib (N - 1) +
		     Fib (N - 2));
		   Bad : exception;
		   S : Integer;
		begin
		   loop
		      declare
		         M : Maps.Map;
		         task type Worker is entry Get (R : out Integer); end Worker;
		         task body Worker is begin accept Get (R : out Integer) do R := Fib (15);
		           end Get; end Worker;
		         W : array (1 .. 3) of Worker;
		         R : Integer;
		      begin
		         S := 0;
		         for I in 1 .. 5000 loop M.Include ("k" & Integer'Image (I * 7919 mod 1009),
		           I); end loop;
		         for E of M loop S := (S + E) mod 1000003; end loop;
		         begin raise Bad with "x"; exception when Bad => S := S + 7; end;
		         for I in W'Range loop W (I).Get (R); S := S + R; end loop;
		         Put_Line (Integer'Image (S) & Integer'Image (Fib (20)) & Float'Image (Float
		           (S) / 3.0)); Flush;
		      end;
		      exit when Ada.Directories.Exists (Ada.Environment_Variables.Value ("stop"));
		   end loop;
		   Ada.Command_Line.Set_Exit_Status (3);
		end Prog;
	END
	compile gnatmake -O2 prog.adb -bargs -shared
	subject "$work/prog" prog libgnat-12 libgnarl-12 libc
	loop "$work/prog"
}
program gnat1 Ada gnat
gnat1_() {
	{ echo "package body Many is"; for i in $(seq 100); do
		echo \
		"function F$i (X : Integer) return Integer is S : Integer := 0; begin for I in 1 .. X loop S := S + I * $i / (I + 1); end loop; return (if S > $i then S else X); end F$i;"; done; echo \
		"end Many;"; } >"$work/many.adb"
	{ echo "package Many is"; for i in $(seq 100); do
		echo "function F$i (X : Integer) return Integer;"; done; echo "end Many;";
		} >"$work/many.ads"
	made="$work/many.s"
	subject "$(gcc -print-prog-name=gnat1)" gnat1 libc
	oneshot "$exe" -quiet -O2 "-I$work" "-I/usr/lib/gcc/x86_64-linux-gnu/12/adainclude" -gnatO \
		"$work/many.o" -o "$work/many.s" "$work/many.adb"
}

program cobol COBOL gnucobol3
cobol_() {
	cat >"$work/prog.cob" <<-'END'
		identification division.
		program-id. prog.
		environment division.
		input-output section.
		file-control.
		  select stopper assign to "STOP" organization line sequential file status st.
		data division.
		file section.
		fd stopper.
		01 stop-line pic x(80).
		working-storage section.
		01 st pic xx.
		01 i pic 9(6).
		01 s pic 9(12).
		01 t pic x(20).
		01 d pic 9(8)v9(4).
		procedure division.
		main-loop.
		  move 0 to s
		  perform varying i from 1 by 1 until i > 20000
		    compute s = s + function mod(i * 7919 1009)
		    move i to t
		    inspect t replacing all "1" by "2"
		    add function length(function trim(t)) to s
		  end-perform
		  compute d = function sqrt(s)
		  display s " " d " " t
		  open input stopper
		  if st = "00" close stopper move 3 to return-code goback end-if
		  go to main-loop.
	END
	sed -i "s,STOP,$stop," "$work/prog.cob"
	compile cobc -x -free -o prog prog.cob
	subject "$work/prog" prog libcob libc
	loop "$work/prog"
}

program nim Nim nim
nim_() {
	for i in $(seq 2500); do echo "proc f$i*(x: int): int = (if x > $i: x * $i else: x + $i)";
		done >"$work/many.nim"
	echo 'echo f1(f2(f2500(3)))' >>"$work/many.nim"
	made="$work/cache/@mmany.nim.c"
	subject /usr/bin/nim
	oneshot /usr/bin/nim c --hints:off --compileOnly -f --nimcache:"$work/cache" \
		"$work/many.nim"
}
program poly SML polyml
poly_() {
	cat >"$work/a.sml" <<-'END'
		fun fib n = if n < 2 then n else fib (n - 1) + fib (n - 2);
		exception Found of int;
		fun there f = (OS.FileSys.fileSize f; true) handle OS.SysErr _ => false;
		fun work (): unit = let
		  val l = List.tabulate (5000, fn i => i * 7919 mod 1009)
		  val s = foldl op+ 0 (map (fn x => size (Int.toString x)) l)
		  val f = (List.app (fn i => if i = 500 then raise Found i else ()) l; 0) handle
		    Found i => i
		  val b = IntInf.toString (IntInf.pow (3, 1000))
		in print (String.concatWith " " [Int.toString s, Int.toString (fib 20), Int.toString
		  f, Int.toString (size b)] ^ "\n"); TextIO.flushOut TextIO.stdOut; PolyML.fullGC
		  ();
		  if there (valOf (OS.Process.getEnv "stop")) then () else work () end;
		work ();
		OS.Process.exit OS.Process.success;
	END
	subject /usr/bin/poly libpolyml libc
	loop /usr/bin/poly -q --error-exit --use "$work/a.sml"
}
program gap GAP gap-core
gap_() {
	subject /usr/lib/x86_64-linux-gnu/gap/gap gap libc
	cat >"$work/a.g" <<-'END'
		repeat g := SymmetricGroup(5); Print(Size(g), " ", Length(ConjugacyClasses(g)), " ",
		  Factors(2^61+1), "\n"); until IsExistingFile(GAPInfo.SystemEnvironment.stop);
		QUIT_GAP(3);
	END
	loop "$exe" -q -l /usr/share/gap "$work/a.g"
}
