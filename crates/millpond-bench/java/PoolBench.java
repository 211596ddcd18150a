import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Function;

/**
 * The pools of java.util.concurrent, doing the workloads of the bench's suite "pool". It does the
 * same as crates/millpond-bench/src/workloads/pool, step by step; what is explained there is not
 * explained again.
 *
 * <p>It is started once and takes its turns among the other candidates. On standard input come
 * orders, a line each:
 *
 * <pre>run WORK EXECUTOR PRODUCERS OPERATIONS WARM_UP_MILLIS</pre>
 *
 * and on standard output goes one line for each, nanoseconds and counts:
 *
 * <pre>
 * done operations=1000 nanos=52000 cpu=81000 sleeps=3 preemptions=0 p50=40 p99=300 p999=900 max=4000
 * failed 1000 tasks were submitted and 999 ran
 * </pre>
 *
 * What is not known is left out. The first line of all is {@code ready} and the version. The
 * process ends with its standard input.
 *
 * <p>Each executor has a JVM of its own, so that no other one's types spoil what is compiled for it.
 *
 * <p>The compiler of the JVM needs time: the first order for a WORK and an EXECUTOR does the work
 * before it is measured, until it gets no faster but for no longer than WARM_UP_MILLIS, and the sizing
 * of the harness warms it up further.
 */
public final class PoolBench {
    static final int BATCH = 1_000;
    static final int BURST = 10_000;
    /** So many portions of the warm-up in a row that are no faster than the fastest: it is over. */
    static final int STEADY = 5;

    /** What an order is answered with. */
    record Answer(long operations, long nanos, Usage usage, long[] times, long byWorkers) {
        Answer(long operations, long nanos, Usage usage, long[] times) {
            this(operations, nanos, usage, times, -1);
        }

        @Override
        public String toString() {
            StringBuilder text = new StringBuilder("done operations=" + operations + " nanos=" + nanos);
            text.append(Usage.said(usage));
            if (byWorkers >= 0) {
                text.append(" by_workers=").append(byWorkers);
            }
            if (times != null && times.length > 0) {
                Arrays.sort(times);
                text.append(" p50=").append(share(500)).append(" p99=").append(share(990));
                text.append(" p999=").append(share(999)).append(" max=").append(share(1_000));
            }
            return text.toString();
        }

        /** The smallest that is no less than so many thousandths of all. */
        private long share(long thousandths) {
            long rank = (times.length * thousandths + 999) / 1_000;
            return times[(int) Math.max(rank, 1) - 1];
        }
    }

    // The workloads.

    static Answer fire(String executor, WhenFull whenFull, int producers, long tasks) throws Exception {
        long share = Math.max(1, (tasks + producers - 1) / producers);
        long all = share * producers;
        Opened opened = new Opened(executor, whenFull);
        ExecutorService pool = opened.pool;
        Usage before = Usage.ofAll();
        long nanos = Callers.crew(producers, index -> {
            for (long number = index * share + 1; number <= (index + 1) * share; number++) {
                pool.execute(new Tiny(number));
            }
            if (index == 0) {
                opened.waitFor(all);
            }
        });
        Opened.settle();
        Usage usage = Usage.between(before, Usage.ofAll());
        long byWorkers = all - opened.byCallers();
        opened.close(all);
        return new Answer(all, nanos, usage, null, whenFull == WhenFull.CALLER_RUNS ? byWorkers : -1);
    }

    /** Every worker is kept busy and the queue is full, so the caller runs every task. */
    static Answer callerRunsAll(String executor, long tasks) throws Exception {
        Opened opened = new Opened(executor, WhenFull.CALLER_RUNS);
        CountDownLatch gate = opened.fillUp();
        Usage before = Usage.ofAll();
        long start = System.nanoTime();
        for (long number = 1; number <= tasks; number++) {
            opened.pool.execute(new Tiny(number));
        }
        long nanos = System.nanoTime() - start;
        Usage usage = Usage.between(before, Usage.ofAll());
        long byWorkers = tasks - opened.byCallers();
        gate.countDown();
        opened.close(tasks);
        return new Answer(tasks, nanos, usage, null, byWorkers);
    }

    /** A task brings all the others. */
    static Answer inside(String executor, long tasks) throws Exception {
        return fromInside(executor, tasks, pool -> () -> {
            for (long number = 2; number <= tasks; number++) {
                pool.execute(new Tiny(number));
            }
            Seat.count(1);
        });
    }

    /** Every task brings two. They are numbered as in a heap, so that each number comes once. */
    record Node(ExecutorService pool, long number, long last) implements Runnable {
        @Override
        public void run() {
            for (long child = 2 * number; child <= Math.min(2 * number + 1, last); child++) {
                pool.execute(new Node(pool, child, last));
            }
            Seat.count(number);
        }
    }

    static Answer fromInside(String executor, long tasks, Function<ExecutorService, Runnable> first)
            throws Exception {
        Opened opened = new Opened(executor, WhenFull.NEVER);
        Usage before = Usage.ofAll();
        long start = System.nanoTime();
        opened.pool.execute(first.apply(opened.pool));
        opened.waitFor(tasks);
        long nanos = System.nanoTime() - start;
        Opened.settle();
        Usage usage = Usage.between(before, Usage.ofAll());
        opened.close(tasks);
        return new Answer(tasks, nanos, usage, null);
    }

    static Answer joinAll(String executor, long tasks) throws Exception {
        long batches = Math.max(1, (tasks + BATCH - 1) / BATCH);
        long all = batches * BATCH;
        Opened opened = new Opened(executor, WhenFull.NEVER);
        List<Future<Long>> handles = new ArrayList<>(BATCH);
        Usage before = Usage.ofAll();
        long sum = 0;
        long start = System.nanoTime();
        for (long batch = 0; batch < batches; batch++) {
            for (long number = batch * BATCH + 1; number <= (batch + 1) * BATCH; number++) {
                handles.add(opened.pool.submit(new TinyCall(number)));
            }
            for (Future<Long> handle : handles) {
                sum += handle.get();
            }
            handles.clear();
        }
        long nanos = System.nanoTime() - start;
        Opened.settle();
        Usage usage = Usage.between(before, Usage.ofAll());
        opened.close(all);
        if (sum != all * (all + 1) / 2) {
            throw new IllegalStateException("the tasks did not return what they were given");
        }
        return new Answer(all, nanos, usage, null);
    }

    static Answer trips(String executor, long pauseNanos, boolean here, long trips) throws Exception {
        Opened opened = new Opened(executor, WhenFull.NEVER);
        long[] times = new long[(int) trips];
        long wrong = 0;
        long paused = 0;
        Usage before = Usage.ofAll();
        for (int trip = 0; trip < trips; trip++) {
            if (pauseNanos > 0) {
                paused += workFor(pauseNanos);
            }
            long number = trip + 1;
            long start = System.nanoTime();
            long result = here ? callHere(opened.pool, number) : call(opened.pool, number);
            times[trip] = System.nanoTime() - start;
            wrong += result == number ? 0 : 1;
        }
        Opened.settle();
        Usage usage = Usage.between(before, Usage.ofAll());
        opened.close(trips);
        if (wrong > 0) {
            throw new IllegalStateException(wrong + " of " + trips + " results are wrong");
        }
        usage = usage == null ? null : usage.without(paused);
        return new Answer(trips, Arrays.stream(times).sum(), usage, times);
    }

    static long call(ExecutorService pool, long number) throws Exception {
        return pool.submit(new TinyCall(number)).get();
    }

    /** A task of java.util.concurrent belongs to whoever runs it first. */
    static long callHere(ExecutorService pool, long number) throws Exception {
        FutureTask<Long> task = new FutureTask<>(new TinyCall(number));
        pool.execute(task);
        task.run();
        return task.get();
    }

    static long workFor(long nanos) {
        long start = System.nanoTime();
        while (true) {
            long elapsed = System.nanoTime() - start;
            if (elapsed >= nanos) {
                return elapsed;
            }
            Thread.onSpinWait();
        }
    }

    static Answer burst(String executor, long bursts) throws Exception {
        Opened opened = new Opened(executor, WhenFull.NEVER);
        Usage before = Usage.ofAll();
        long nanos = 0;
        for (long burst = 0; burst < bursts; burst++) {
            Opened.settle();
            long start = System.nanoTime();
            for (long number = burst * BURST + 1; number <= (burst + 1) * BURST; number++) {
                opened.pool.execute(new Tiny(number));
            }
            opened.waitFor((burst + 1) * BURST);
            nanos += System.nanoTime() - start;
        }
        Opened.settle();
        Usage usage = Usage.between(before, Usage.ofAll());
        opened.close(bursts * BURST);
        return new Answer(bursts, nanos, usage, null);
    }

    /** Only the pool's own threads count: the JVM's have other things to do. */
    static Answer idle(String executor, long millis) throws Exception {
        Opened opened = new Opened(executor, WhenFull.NEVER);
        List<String> folders = opened.folders();
        Usage before = folders == null ? null : Usage.of(folders);
        long start = System.nanoTime();
        Thread.sleep(millis);
        long nanos = System.nanoTime() - start;
        Usage usage = folders == null ? null : Usage.between(before, Usage.of(folders));
        opened.close(0);
        return new Answer(millis, nanos, usage, null);
    }

    // Orders and answers.

    static final String PAUSE = "trip-pause-";

    static Answer run(String work, String executor, int producers, long operations) throws Exception {
        if (work.startsWith(PAUSE)) {
            long micros = Long.parseLong(work.substring(PAUSE.length()));
            return trips(executor, micros * 1_000, false, operations);
        }
        return switch (work) {
            case "fire" -> fire(executor, WhenFull.NEVER, producers, operations);
            case "blocking" -> fire(executor, WhenFull.WAIT, producers, operations);
            case "caller-runs" -> fire(executor, WhenFull.CALLER_RUNS, producers, operations);
            case "inside" -> inside(executor, operations);
            case "tree" -> fromInside(executor, operations, pool -> new Node(pool, 1, operations));
            case "join-all" -> joinAll(executor, operations);
            case "caller-runs-all" -> callerRunsAll(executor, operations);
            case "trip" -> trips(executor, 0, false, operations);
            case "trip-here" -> trips(executor, 0, true, operations);
            case "burst" -> burst(executor, operations);
            case "idle" -> idle(executor, operations);
            default -> throw new IllegalArgumentException("there is no work " + work);
        };
    }

    static final Set<String> WARM = new HashSet<>();

    static void warmUp(String work, String executor, int producers, long millis) throws Exception {
        // The pauses are the same trips: what is compiled for the shortest is compiled for all.
        String warmed = work.startsWith(PAUSE) ? PAUSE + "10" : work;
        if (millis <= 0 || work.equals("idle") || !WARM.add(warmed + " " + executor + " " + producers)) {
            return;
        }
        long portion = switch (warmed) {
            case "trip", "trip-here", PAUSE + "10" -> 500;
            case "burst" -> 2;
            default -> 20_000;
        };
        long most = millis * 1_000_000;
        long start = System.nanoTime();
        double best = Double.MAX_VALUE;
        int noBetter = 0;
        while (true) {
            Answer answer = run(warmed, executor, producers, portion);
            double each = (double) answer.nanos / answer.operations;
            noBetter = each < best * 0.97 ? 0 : noBetter + 1;
            best = Math.min(best, each);
            long elapsed = System.nanoTime() - start;
            if (elapsed >= most || elapsed >= most / 5 && noBetter >= STEADY) {
                return;
            }
        }
    }

    static String answer(String order) {
        try {
            String[] words = order.trim().split("\\s+");
            if (words.length != 6 || !words[0].equals("run")) {
                throw new IllegalArgumentException("not an order: " + order);
            }
            int producers = Integer.parseInt(words[3]);
            if (producers < 1 || producers > Callers.MOST_PRODUCERS) {
                throw new IllegalArgumentException("there are 1 to " + Callers.MOST_PRODUCERS + " producers");
            }
            warmUp(words[1], words[2], producers, Long.parseLong(words[5]));
            return run(words[1], words[2], producers, Long.parseLong(words[4])).toString();
        } catch (Throwable error) {
            String why = error.getMessage() == null ? error.toString() : error.getMessage();
            return "failed " + why.replaceAll("\\s+", " ");
        }
    }

    public static void main(String[] args) throws Exception {
        BlockingQueue<String> orders = new LinkedBlockingQueue<>();
        Worker caller = new Worker(() -> {
            try {
                while (true) {
                    System.out.println(answer(orders.take()));
                    System.out.flush();
                }
            } catch (InterruptedException error) {
                // Nobody interrupts it.
            }
        });
        Callers.ALL.add(caller);
        Callers.startProducers();
        caller.start();
        System.out.println(Jvm.greeting());
        System.out.flush();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String order = input.readLine(); order != null; order = input.readLine()) {
            orders.put(order);
        }
        // Whoever ordered is gone, and nobody wants to know the rest.
        Runtime.getRuntime().halt(0);
    }
}
