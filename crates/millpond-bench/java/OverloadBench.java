import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;

/**
 * ThreadPoolExecutor with a bounded queue and AbortPolicy, doing the workload of the bench's suite "overload". It does
 * the same as crates/millpond-bench/src/workloads/overload, step by step; what is explained there is not explained
 * again. Orders and answers are lines, as in PoolBench.java. The rate is in the word for the work, the bound in the
 * word for the executor:
 *
 * <pre>
 * run rush-2700 abort-64 1 OPERATIONS 0
 * done operations=5400 nanos=2000000000 ... offered=5400 in_time=3500 late=0 refused=1900 lost=0
 * </pre>
 */
public final class OverloadBench {
    static final int WORKERS = 2;
    static final long WORK_NANOS = 1_000_000;
    static final long SLACK_NANOS = 80_000;
    static final long PATIENCE_NANOS = 50_000_000;
    static final long ENDS_IN_SECONDS = 10;
    static final long SEED = 0x6d696c6c706f6e64L;

    /** A Weyl sequence, well mixed (SplitMix64). */
    private static long state;

    private static double share() {
        state += 0x9e3779b97f4a7c15L;
        long mixed = (state ^ (state >>> 30)) * 0xbf58476d1ce4e5b9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
        mixed ^= mixed >>> 31;
        return (mixed >>> 11) * 0x1.0p-53;
    }

    static long[] plan(double rate, int arrivals) {
        state = SEED;
        long[] plan = new long[arrivals];
        double at = 0;
        for (int number = 0; number < arrivals; number++) {
            at += -Math.log(1 - share()) / rate;
            plan[number] = (long) (at * 1e9);
        }
        return plan;
    }

    /** Waits, to a few microseconds: asleep, but for the last moment. */
    static void work() {
        long until = System.nanoTime() + WORK_NANOS;
        LockSupport.parkNanos(WORK_NANOS - SLACK_NANOS);
        while (System.nanoTime() - until < 0) {
            Thread.yield();
        }
    }

    static void sleepUntil(long time) {
        for (long left = time - System.nanoTime(); left > 0; left = time - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    static String rush(double rate, int bound, int arrivals) throws Exception {
        long[] plan = plan(rate, arrivals);
        AtomicLongArray answers = new AtomicLongArray(arrivals);
        AtomicLong again = new AtomicLong();
        ThreadPoolExecutor pool = new ThreadPoolExecutor(
                WORKERS, WORKERS, 0, TimeUnit.SECONDS, new ArrayBlockingQueue<>(bound),
                new ThreadPoolExecutor.AbortPolicy());
        pool.prestartAllCoreThreads();
        boolean[] refused = new boolean[arrivals];
        Usage before = Usage.ofAll();
        long start = System.nanoTime();
        for (int index = 0; index < arrivals; index++) {
            int number = index;
            long came = start + plan[number];
            sleepUntil(came);
            try {
                pool.execute(() -> {
                    work();
                    // None takes no time: then a second run of the same task shows.
                    if (!answers.compareAndSet(number, 0, Math.max(1, System.nanoTime() - came))) {
                        again.incrementAndGet();
                    }
                });
            } catch (RejectedExecutionException error) {
                refused[number] = true;
            }
        }
        pool.shutdown();
        boolean ended = pool.awaitTermination(ENDS_IN_SECONDS, TimeUnit.SECONDS);
        Usage usage = Usage.between(before, Usage.ofAll());
        if (!ended || again.get() > 0) {
            throw new IllegalStateException(ended ? "a task ran twice" : "the pool is closed, and goes on");
        }
        return settled(plan, answers, refused) + Usage.said(usage);
    }

    /** What became of each task. The time is that until the last came, or was answered in time. */
    static String settled(long[] plan, AtomicLongArray answers, boolean[] refused) {
        long inTime = 0;
        long late = 0;
        long rejected = 0;
        long lost = 0;
        long end = plan[plan.length - 1];
        long[] times = new long[plan.length];
        int answered = 0;
        for (int number = 0; number < plan.length; number++) {
            long took = answers.get(number);
            if (refused[number] && took > 0) {
                throw new IllegalStateException("task " + number + " was rejected, and has run");
            }
            if (refused[number]) {
                rejected++;
            } else if (took == 0) {
                lost++;
            } else {
                times[answered++] = took;
                if (took <= PATIENCE_NANOS) {
                    inTime++;
                    end = Math.max(end, plan[number] + took);
                } else {
                    late++;
                }
            }
        }
        String text = "done operations=" + plan.length + " nanos=" + Math.max(1, end)
                + " offered=" + plan.length + " in_time=" + inTime + " late=" + late
                + " refused=" + rejected + " lost=" + lost;
        if (answered > 0) {
            long[] sorted = Arrays.copyOf(times, answered);
            Arrays.sort(sorted);
            text += " p50=" + perMille(sorted, 500) + " p99=" + perMille(sorted, 990)
                    + " p999=" + perMille(sorted, 999) + " max=" + sorted[answered - 1];
        }
        return text;
    }

    static long perMille(long[] sorted, long perMille) {
        long rank = (sorted.length * perMille + 999) / 1_000;
        return sorted[(int) Math.max(rank, 1) - 1];
    }

    static final String RUSH = "rush-";
    static final String ABORT = "abort-";

    static String answer(String order) {
        try {
            String[] words = order.trim().split("\\s+");
            if (words.length != 6 || !words[0].equals("run")) {
                throw new IllegalArgumentException("not an order: " + order);
            }
            if (!words[1].startsWith(RUSH)) {
                throw new IllegalArgumentException("there is no work " + words[1]);
            }
            if (!words[2].startsWith(ABORT)) {
                throw new IllegalArgumentException("there is no executor " + words[2]);
            }
            double rate = Double.parseDouble(words[1].substring(RUSH.length()));
            int bound = Integer.parseInt(words[2].substring(ABORT.length()));
            return rush(rate, bound, Integer.parseInt(words[4]));
        } catch (Throwable error) {
            String why = error.getMessage() == null ? error.toString() : error.getMessage();
            return "failed " + why.replaceAll("\\s+", " ");
        }
    }

    public static void main(String[] args) throws Exception {
        System.out.println(Jvm.greeting());
        System.out.flush();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String order = input.readLine(); order != null; order = input.readLine()) {
            System.out.println(answer(order));
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }
}
