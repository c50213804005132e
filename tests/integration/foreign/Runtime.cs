// SPDX-License-Identifier: MIT
// Mono: exceptions, null references (which are SIGSEGV), threads, garbage: foreign_runtimes.sh.
using System;
using System.IO;
using System.Threading;

class Runtime {
	class Node { public Node next; public int value; }
	static int Fails(int n) { if (n % 2 == 1) throw new InvalidOperationException("" + n); return n; }
	static int Caught(int n) {
		try { return Fails(n); } catch (InvalidOperationException e) { return -int.Parse(e.Message); }
	}
	static int Null(Node node) {
		try { return node.value; } catch (NullReferenceException) { return 3; }
	}
	static long Sum() {
		long sum = 0;
		for (int i = 0; i < 100; i++) {
			Node list = null;
			for (int j = 0; j < 50; j++) list = new Node { next = list, value = j };
			sum += i * Caught(i) + Null(i % 3 == 0 ? null : list);
		}
		return sum;
	}
	static long Round() {
		long theirs = 0;
		var thread = new Thread(() => { theirs = Sum(); });
		thread.Start();
		long own = Sum();
		thread.Join();
		GC.Collect();
		return own + 3 * theirs;
	}
	static int Main(string[] arguments) {
		bool looping = arguments.Length > 1 && arguments[0] == "loop";
		Console.WriteLine("ready");
		Console.Out.Flush();
		Console.In.Read();
		long sum = Round();
		for (int n = 1; looping ? !File.Exists(arguments[1]) : n < 20; n++)
			if (Round() != sum) { Console.WriteLine("wrong"); return 70; }
		Console.WriteLine("sum " + sum);
		return 0;
	}
}
