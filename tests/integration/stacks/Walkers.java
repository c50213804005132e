import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

/** Works until its input ends: garbage, exceptions with stacks, threads, native methods, compression, deoptimisation. Says whether all was right. */
public class Walkers {
	static volatile int wrong;
	static volatile boolean ended;
	static volatile Object sink;
	interface Shape { int area(int x); }
	static class One implements Shape { public int area(int x) { return x; } }
	static class Two implements Shape { public int area(int x) { return 2 * x; } }
	static int deep(int n) { if (n == 0) throw new IllegalStateException("deep"); return deep(n - 1) + 1; }
	static int endless(int n) { return endless(n + 1) + 1; }
	static int twice(int x) { return 2 * x; }

	static synchronized void round(int r) throws Exception {
		List<String> list = new ArrayList<>();
		for (int i = 0; i < 1000; i++) list.add("x" + (i * 7919 % 1000));
		Collections.sort(list);
		if (!list.get(0).equals("x0")) wrong++;
		try { deep(60); wrong++; } catch (IllegalStateException e) { if (e.getStackTrace().length < 50) wrong++; }
		byte[] text = new byte[20000], packed = new byte[1000], back = new byte[20000];
		Arrays.fill(text, (byte)'a');
		Deflater deflater = new Deflater();
		deflater.setInput(text);
		deflater.finish();
		int n = deflater.deflate(packed);
		deflater.end();
		Inflater inflater = new Inflater();
		inflater.setInput(packed, 0, n);
		if (inflater.inflate(back) != 20000 || !Arrays.equals(text, back)) wrong++;
		inflater.end();
		if (Files.readAllBytes(Paths.get("/proc/self/stat")).length == 0 || !new File("/").isDirectory()) wrong++;
		Shape shape = r % 5 == 4 ? new Two() : new One();
		int sum = 0;
		for (int i = 0; i < 1000; i++) sum += shape.area(1);
		if (sum != (r % 5 == 4 ? 2000 : 1000)) wrong++;
		byte[][] garbage = new byte[50][];
		for (int i = 0; i < 50; i++) garbage[i] = new byte[20000];
		sink = garbage;
		if (r % 20 == 0) System.gc();
		if (r % 50 == 0) try { endless(0); wrong++; } catch (StackOverflowError e) { }
		if (!Walkers.class.getDeclaredMethod("twice", int.class).invoke(null, 21).equals(42)) wrong++;
		if (Math.abs(Math.sin(1.0) - 0.8414709848078965) > 1e-15 || System.nanoTime() == 0) wrong++;
	}

	public static void main(String[] arguments) throws Exception {
		System.out.println("ready");
		ExecutorService pool = Executors.newFixedThreadPool(2);
		List<Future<?>> all = new ArrayList<>();
		for (int t = 0; t < 2; t++) all.add(pool.submit(() -> { int r = 0; while (!ended) { round(r++); Thread.sleep(1); } return r; }));
		while (System.in.read() >= 0) { }
		ended = true;
		for (Future<?> one : all) one.get();
		pool.shutdown();
		System.out.println("wrong " + wrong);
	}
}
