import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * ScheduledThreadPoolExecutor, doing the workloads of the bench's suite "scheduled". It does the same
 * as crates/millpond-bench/src/workloads/scheduled, step by step; what is explained there is not
 * explained again. Orders and answers are lines, as in PoolBench.java:
 *
 * <pre>
 * run WORK EXECUTOR 1 TIMERS WARM_UP_MILLIS
 * done operations=1000 nanos=52000 p50=40 p99=300 p999=900 max=2000
 * failed 1000 timers were scheduled and 999 fired
 * </pre>
 */
public final class ScheduledBench {
    static final int WORKERS = 2;
    static final int LATER = 1_000;
    static final int SHARE = 10;
    static final long FAR_NANOS = 3_600_000_000_000L;
    static final long NEAREST_NANOS = 1_000_000_000;
    static final long FARTHEST_NANOS = 1_000_000_000_000L;
    static final long LEAD_NANOS = 250_000_000;
    static final long LEAST_LEAD_NANOS = 20_000_000;
    static final long LEAD_NANOS_EACH = 5_000;
    static final long PATIENCE_NANOS = 5_000_000_000L;
    static final long SEED = 0x66697265;

    /** A Weyl sequence, well mixed (SplitMix64). */
    static final class Random {
        private long state = SEED;

        /** From 0 to just below 1. */
        double share() {
            state += 0x9e3779b97f4a7c15L;
            long mixed = (state ^ (state >>> 30)) * 0xbf58476d1ce4e5b9L;
            mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
            mixed ^= mixed >>> 31;
            return (mixed >>> 11) * 0x1.0p-53;
        }
    }

    static ScheduledThreadPoolExecutor open(String executor) {
        ScheduledThreadPoolExecutor timers = new ScheduledThreadPoolExecutor(WORKERS);
        switch (executor) {
            case "marks" -> { }
            case "removes" -> timers.setRemoveOnCancelPolicy(true);
            default -> throw new IllegalArgumentException("there is no executor " + executor);
        }
        timers.prestartAllCoreThreads();
        return timers;
    }

    static void close(ScheduledThreadPoolExecutor timers) throws InterruptedException {
        timers.shutdownNow();
        if (!timers.awaitTermination(5, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the timers are closed, and their threads go on");
        }
    }

    /** Timers that are due in an hour or two, in no order. None of them may run. */
    static final class Far {
        private final ScheduledThreadPoolExecutor timers;
        private final Random random = new Random();
        private final AtomicLong ran = new AtomicLong();
        private long number;

        Far(ScheduledThreadPoolExecutor timers) {
            this.timers = timers;
        }

        Future<?> schedule() {
            long own = ++number;
            long delay = FAR_NANOS + (long) (FAR_NANOS * random.share());
            return timers.schedule(() -> ran.addAndGet(own), delay, TimeUnit.NANOSECONDS);
        }

        void close() throws InterruptedException {
            ScheduledBench.close(timers);
            if (ran.get() != 0) {
                throw new IllegalStateException("timers fired that were not due");
            }
        }
    }

    static String pending(String executor, long pending) throws Exception {
        Far far = new Far(open(executor));
        for (long timer = 0; timer < pending; timer++) {
            far.schedule();
        }
        ArrayDeque<Future<?>> recent = new ArrayDeque<>(LATER + 1);
        for (int timer = 0; timer < LATER; timer++) {
            recent.addLast(far.schedule());
        }
        long operations = Math.max(1, pending / SHARE);
        Usage before = Usage.ofAll();
        long start = System.nanoTime();
        for (long operation = 0; operation < operations; operation++) {
            recent.addLast(far.schedule());
            recent.removeFirst().cancel(false);
        }
        long nanos = System.nanoTime() - start;
        Usage usage = Usage.between(before, Usage.ofAll());
        far.close();
        return "done operations=" + operations + " nanos=" + nanos + Usage.said(usage);
    }

    static String filling(String executor, boolean isFillingTimed, int timers) throws Exception {
        Random random = new Random();
        long[] delays = new long[timers];
        for (int timer = 0; timer < timers; timer++) {
            delays[timer] = NEAREST_NANOS + (long) ((FARTHEST_NANOS - NEAREST_NANOS) * random.share());
        }
        Future<?>[] handles = new Future<?>[timers];
        ScheduledThreadPoolExecutor pool = open(executor);
        AtomicLong ran = new AtomicLong();
        Usage empty = Usage.ofAll();
        long start = System.nanoTime();
        for (int timer = 0; timer < timers; timer++) {
            long own = timer;
            handles[timer] = pool.schedule(() -> {
                ran.incrementAndGet();
                return own;
            }, delays[timer], TimeUnit.NANOSECONDS);
        }
        long filled = System.nanoTime() - start;
        Usage full = Usage.ofAll();
        long from = System.nanoTime();
        for (int timer = 0; timer < timers; timer++) {
            handles[timer].cancel(false);
            handles[timer] = null;
        }
        long cancelled = System.nanoTime() - from;
        Usage last = Usage.ofAll();
        close(pool);
        long lasted = System.nanoTime() - start;
        long due = Arrays.stream(delays).filter(delay -> delay <= lasted).count();
        if (ran.get() > due) {
            throw new IllegalStateException(ran.get() + " timers fired, and " + due + " were due");
        }
        return isFillingTimed
                ? "done operations=" + timers + " nanos=" + filled + Usage.said(Usage.between(empty, full))
                : "done operations=" + timers + " nanos=" + cancelled + Usage.said(Usage.between(full, last));
    }

    static String firing(String executor, double perSecond, long tasks) throws Exception {
        long lead = Math.min(LEAD_NANOS, LEAST_LEAD_NANOS + tasks * LEAD_NANOS_EACH);
        ScheduledThreadPoolExecutor timers = open(executor);
        Usage before = Usage.ofAll();
        Random random = new Random();
        AtomicLongArray late = new AtomicLongArray((int) tasks);
        AtomicLong ran = new AtomicLong();
        AtomicLong early = new AtomicLong();
        AtomicLong again = new AtomicLong();
        long start = System.nanoTime() + lead;
        double at = 0;
        for (int task = 0; task < tasks; task++) {
            at += -Math.log(1 - random.share()) / perSecond * 1e9;
            long due = start + (long) at;
            int number = task;
            timers.schedule(() -> {
                long lateness = System.nanoTime() - due;
                if (lateness < 0) {
                    early.incrementAndGet();
                }
                // None is late by nothing: then a second run of the same task shows.
                if (!late.compareAndSet(number, 0, Math.max(1, lateness))) {
                    again.incrementAndGet();
                }
                ran.incrementAndGet();
            }, due - System.nanoTime(), TimeUnit.NANOSECONDS);
        }
        TimeUnit.NANOSECONDS.sleep(start + (long) at - System.nanoTime());
        long latest = System.nanoTime();
        for (long seen = ran.get(); seen < tasks && System.nanoTime() - latest < PATIENCE_NANOS; ) {
            Thread.sleep(1);
            if (ran.get() > seen) {
                seen = ran.get();
                latest = System.nanoTime();
            }
        }
        long nanos = System.nanoTime() - start;
        Usage usage = Usage.between(before, Usage.ofAll());
        close(timers);
        if (ran.get() != tasks || again.get() != 0) {
            throw new IllegalStateException(tasks + " timers were scheduled and " + ran.get() + " fired");
        }
        if (early.get() != 0) {
            throw new IllegalStateException(early.get() + " timers fired before they were due");
        }
        long[] times = new long[(int) tasks];
        for (int task = 0; task < tasks; task++) {
            times[task] = late.get(task);
        }
        Arrays.sort(times);
        return "done operations=" + tasks + " nanos=" + nanos + Usage.said(usage)
                + " p50=" + perMille(times, 500) + " p99=" + perMille(times, 990)
                + " p999=" + perMille(times, 999) + " max=" + times[times.length - 1];
    }

    static long perMille(long[] sorted, long perMille) {
        long rank = (sorted.length * perMille + 999) / 1_000;
        return sorted[(int) Math.max(rank, 1) - 1];
    }

    // Orders and answers.

    static final String FIRING = "firing-";

    static String run(String work, String executor, long timers) throws Exception {
        if (work.startsWith(FIRING)) {
            return firing(executor, Double.parseDouble(work.substring(FIRING.length())), timers);
        }
        return switch (work) {
            case "fill" -> filling(executor, true, (int) timers);
            case "cancel-all" -> filling(executor, false, (int) timers);
            case "pending" -> pending(executor, timers);
            case "memory" -> Waiting.memory(executor, timers);
            case "hour" -> Waiting.hour(executor, timers);
            default -> throw new IllegalArgumentException("there is no work " + work);
        };
    }

    static final Set<String> WARM = new HashSet<>();

    static void warmUp(String work, String executor, long millis) throws Exception {
        // Timers at any rate are the same timers: what is compiled for the highest is compiled for all.
        String warmed = work.startsWith(FIRING) ? FIRING + "20000" : work;
        boolean hasMany = work.equals("pending") || work.equals("fill") || work.equals("cancel-all");
        boolean isTimed = hasMany || work.startsWith(FIRING);
        if (millis <= 0 || !isTimed || !WARM.add(warmed + " " + executor)) {
            return;
        }
        long timers = hasMany ? 20_000 : 2_000;
        long end = System.nanoTime() + millis * 1_000_000;
        do {
            run(warmed, executor, timers);
        } while (System.nanoTime() < end);
    }

    static String answer(String order) {
        try {
            String[] words = order.trim().split("\\s+");
            if (words.length != 6 || !words[0].equals("run")) {
                throw new IllegalArgumentException("not an order: " + order);
            }
            warmUp(words[1], words[2], Long.parseLong(words[5]));
            return run(words[1], words[2], Long.parseLong(words[4]));
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
        // Timers may still wait, and nobody wants to know.
        Runtime.getRuntime().halt(0);
    }
}
