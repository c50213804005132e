// SPDX-License-Identifier: MIT
// Java: exceptions, null references and deep recursion (both SIGSEGV), threads.
import java.io.File;

public class Runtime {
	static int[] nothing;
	static int fails(int n) { if (n % 2 == 1) throw new IllegalStateException("" + n); return n; }
	static int caught(int n) {
		try { return fails(n); } catch (IllegalStateException e) {
			return -Integer.parseInt(e.getMessage());
		}
	}
	static int isNull(int[] array) {
		try { return array[0]; } catch (NullPointerException e) { return 3; }
	}
	static int endless(int n) { return endless(n + 1) + 1; }
	static long sum() {
		long sum = 0;
		for (int i = 0; i < 200; i++) {
			sum += i * caught(i) + isNull(i % 3 == 0 ? nothing : new int[] { i });
			sum += String.join(",", new String[] { "a" + i, "b" }).length();
		}
		try { endless(0); } catch (StackOverflowError e) { sum += 5; }
		return sum;
	}
	static long round() throws Exception {
		long[] theirs = { 0 };
		Thread thread = new Thread(() -> { theirs[0] = sum(); });
		thread.start();
		long own = sum();
		thread.join();
		System.gc();
		return own + 3 * theirs[0];
	}
	public static void main(String[] arguments) throws Exception {
		boolean looping = arguments.length > 1 && arguments[0].equals("loop");
		System.out.println("ready");
		System.in.read();
		long sum = round();
		for (int n = 1; looping ? !new File(arguments[1]).exists() : n < 10; n++)
			if (round() != sum) { System.out.println("wrong"); System.exit(70); }
		System.out.println("sum " + sum);
	}
}
