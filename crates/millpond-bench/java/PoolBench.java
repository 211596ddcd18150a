import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.LinkedTransferQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.RejectedExecutionHandler;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;

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
 * <p>The compiler of the JVM needs time: the first order for a WORK and an EXECUTOR does the work
 * before it is measured, until it gets no faster but for no longer than WARM_UP_MILLIS, and the sizing
 * of the harness warms it up further.
 */
public final class PoolBench {
    static final int WORKERS = 2;
    static final int BOUND = 1024;
    static final int MOST_PRODUCERS = 4;
    static final int POOL_WARM_UP = 1_000;
    static final int BATCH = 1_000;
    static final int BURST = 10_000;
    static final long PAUSE_NANOS = 50_000;
    static final long SETTLE_MILLIS = 2;
    /** So many portions of the warm-up in a row that are no faster than the fastest: it is over. */
    static final int STEADY = 5;
    static final long NEAR_NANOS = 200_000;
    static final long LONGEST_SLEEP_NANOS = 20_000_000;
    static final long PATIENCE_NANOS = 5_000_000_000L;

    /** What an order is answered with. */
    record Answer(long operations, long nanos, Usage usage, long[] times) {
        @Override
        public String toString() {
            StringBuilder text = new StringBuilder("done operations=" + operations + " nanos=" + nanos);
            if (usage != null) {
                text.append(" cpu=").append(usage.cpu);
                text.append(" sleeps=").append(usage.sleeps);
                text.append(" preemptions=").append(usage.preemptions);
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

    // Counting: every thread has a line of its own, in the middle of an array so that nothing else
    // shares it. Who has seen the count sees the sum.

    static final int TASKS = 16;
    static final int SUM = 17;
    static final int LINE = 48;
    static final VarHandle COUNT = MethodHandles.arrayElementVarHandle(long[].class);

    interface Counting {
        Seat seat();
    }

    /** Where a thread counts, and its folder in /proc once it runs; null where there is none. */
    static final class Seat {
        final long[] line = new long[LINE];
        volatile String folder;

        void begin() {
            try {
                folder = "/proc/" + Files.readSymbolicLink(Path.of("/proc/thread-self"));
            } catch (IOException | UnsupportedOperationException error) {
                folder = null;
            }
        }

        long tasks() {
            return (long) COUNT.getAcquire(line, TASKS);
        }
    }

    static void count(long number) {
        long[] line = ((Counting) Thread.currentThread()).seat().line;
        line[SUM] += number;
        COUNT.setRelease(line, TASKS, line[TASKS] + 1);
    }

    /** The small task that is brought. */
    record Tiny(long number) implements Runnable {
        @Override
        public void run() {
            count(number);
        }
    }

    /** The small task that is waited for. */
    record TinyCall(long number) implements Callable<Long> {
        @Override
        public Long call() {
            count(number);
            return number;
        }
    }

    static final class Worker extends Thread implements Counting {
        private final Seat seat = new Seat();

        Worker(Runnable body) {
            super(body);
            setDaemon(true);
        }

        @Override
        public void run() {
            seat.begin();
            super.run();
        }

        @Override
        public Seat seat() {
            return seat;
        }
    }

    static final class ForkJoinWorker extends ForkJoinWorkerThread implements Counting {
        private final Seat seat = new Seat();

        ForkJoinWorker(ForkJoinPool pool) {
            super(pool);
        }

        @Override
        protected void onStart() {
            super.onStart();
            seat.begin();
        }

        @Override
        public Seat seat() {
            return seat;
        }
    }

    // What threads used.

    record Usage(long cpu, long sleeps, long preemptions) {
        /** All threads of the JVM: its collector and its compiler work for the tasks too. */
        static Usage ofAll() {
            Thread.yield();
            List<String> folders = new ArrayList<>();
            try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
                threads.forEach(thread -> folders.add(thread.toString()));
            } catch (IOException error) {
                return null;
            }
            return of(folders);
        }

        static Usage of(List<String> folders) {
            long cpu = 0;
            long sleeps = 0;
            long preemptions = 0;
            for (String folder : folders) {
                try {
                    String schedstat = Files.readString(Path.of(folder, "schedstat"));
                    cpu += Long.parseLong(schedstat.trim().split("\\s+")[0]);
                    for (String line : Files.readAllLines(Path.of(folder, "status"))) {
                        if (line.startsWith("voluntary_ctxt_switches:")) {
                            sleeps += number(line);
                        } else if (line.startsWith("nonvoluntary_ctxt_switches:")) {
                            preemptions += number(line);
                        }
                    }
                } catch (IOException | RuntimeException error) {
                    if (Files.exists(Path.of(folder))) {
                        return null;
                    }
                    // The thread has ended meanwhile: it was none of ours, they are still there.
                }
            }
            return new Usage(cpu, sleeps, preemptions);
        }

        private static long number(String line) {
            return Long.parseLong(line.substring(line.indexOf(':') + 1).trim());
        }

        static Usage between(Usage before, Usage after) {
            if (before == null || after == null) {
                return null;
            }
            return new Usage(
                    Math.max(0, after.cpu - before.cpu),
                    Math.max(0, after.sleeps - before.sleeps),
                    Math.max(0, after.preemptions - before.preemptions));
        }

        Usage without(long nanos) {
            return new Usage(Math.max(0, cpu - nanos), sleeps, preemptions);
        }
    }

    // The pool.

    enum WhenFull {
        NEVER,
        WAIT,
        CALLER_RUNS
    }

    /** A pool that is open, warm and idle. */
    static final class Opened {
        final ExecutorService pool;
        private final List<Counting> threads = new CopyOnWriteArrayList<>();
        private final long tasksBefore;
        private final long sumBefore;

        Opened(String executor, WhenFull whenFull) throws Exception {
            pool = executor.equals("fjp") ? forkJoin() : threadPool(queue(executor, whenFull), whenFull);
            wakeAll();
            long before = tasks();
            for (long number = 1; number <= POOL_WARM_UP; number++) {
                pool.execute(new Tiny(number));
            }
            waitUntil(before + POOL_WARM_UP);
            settle();
            tasksBefore = tasks();
            sumBefore = sum();
        }

        private static BlockingQueue<Runnable> queue(String executor, WhenFull whenFull) {
            boolean bounded = whenFull != WhenFull.NEVER;
            return switch (executor) {
                case "tpe-linked" -> bounded ? new LinkedBlockingQueue<>(BOUND) : new LinkedBlockingQueue<>();
                case "tpe-array" -> new ArrayBlockingQueue<>(BOUND);
                case "tpe-transfer" -> new LinkedTransferQueue<>();
                // It holds nothing, whatever is asked for: a task is taken by a worker, or is not in it.
                case "tpe-handoff" -> new SynchronousQueue<>();
                default -> throw new IllegalArgumentException("there is no executor " + executor);
            };
        }

        private ExecutorService threadPool(BlockingQueue<Runnable> queue, WhenFull whenFull) {
            ThreadFactory factory = body -> {
                Worker worker = new Worker(body);
                threads.add(worker);
                return worker;
            };
            RejectedExecutionHandler handler = whenFull == WhenFull.CALLER_RUNS
                    ? new ThreadPoolExecutor.CallerRunsPolicy()
                    : PoolBench::putInstead;
            ThreadPoolExecutor opened = new ThreadPoolExecutor(
                    WORKERS, WORKERS, 0, TimeUnit.SECONDS, queue, factory, handler);
            opened.prestartAllCoreThreads();
            return opened;
        }

        private ExecutorService forkJoin() {
            return new ForkJoinPool(
                    WORKERS,
                    pool -> {
                        ForkJoinWorker worker = new ForkJoinWorker(pool);
                        threads.add(worker);
                        return worker;
                    },
                    null,
                    true);
        }

        private void wakeAll() throws Exception {
            CyclicBarrier all = new CyclicBarrier(WORKERS + 1);
            for (int worker = 0; worker < WORKERS; worker++) {
                Runnable meet = () -> {
                    try {
                        all.await();
                    } catch (Exception error) {
                        throw new IllegalStateException(error);
                    }
                };
                if (pool instanceof ThreadPoolExecutor threadPool) {
                    // Past the policy: the caller must not run it, for it is who the workers meet.
                    threadPool.getQueue().put(meet);
                } else {
                    pool.execute(meet);
                }
            }
            all.await();
        }

        private long tasks() {
            long tasks = 0;
            for (Counting thread : threads) {
                tasks += thread.seat().tasks();
            }
            for (Counting caller : CALLERS) {
                tasks += caller.seat().tasks();
            }
            return tasks;
        }

        private long sum() {
            long sum = 0;
            for (Counting thread : threads) {
                sum += thread.seat().line[SUM];
            }
            for (Counting caller : CALLERS) {
                sum += caller.seat().line[SUM];
            }
            return sum;
        }

        /** Waits until so many tasks have run since it was opened. */
        void waitFor(long tasks) {
            waitUntil(tasksBefore + tasks);
        }

        private void waitUntil(long tasks) {
            long start = System.nanoTime();
            long first = tasks();
            long latest = first;
            long latestAt = start;
            while (true) {
                long done = tasks();
                if (done >= tasks) {
                    return;
                }
                long now = System.nanoTime();
                if (done > latest) {
                    latest = done;
                    latestAt = now;
                } else if (now - latestAt > PATIENCE_NANOS) {
                    return;
                }
                double left = done == first
                        ? 0
                        : (double) (now - start) / (done - first) * (tasks - done);
                if (left > NEAR_NANOS) {
                    LockSupport.parkNanos(Math.min((long) left / 2, LONGEST_SLEEP_NANOS));
                } else {
                    for (int hint = 0; hint < 32; hint++) {
                        Thread.onSpinWait();
                    }
                    Thread.yield();
                }
            }
        }

        /** The folders of its threads; null where there are none. */
        List<String> folders() {
            List<String> folders = new ArrayList<>();
            for (Counting thread : threads) {
                folders.add(thread.seat().folder);
            }
            return folders.contains(null) ? null : folders;
        }

        /** Closes it, and checks that the tasks from 1 to {@code tasks} have run, once each. */
        void close(long tasks) throws InterruptedException {
            pool.shutdown();
            if (!pool.awaitTermination(5, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the pool is closed, and its threads go on");
            }
            for (Counting thread : threads) {
                ((Thread) thread).join(5_000);
            }
            long ran = tasks() - tasksBefore;
            if (ran != tasks) {
                throw new IllegalStateException(tasks + " tasks were submitted and " + ran + " ran");
            }
            if (sum() - sumBefore != tasks * (tasks + 1) / 2) {
                throw new IllegalStateException(
                        tasks + " tasks ran, but they are not the ones that were submitted");
            }
        }
    }

    static void putInstead(Runnable task, ThreadPoolExecutor pool) {
        try {
            pool.getQueue().put(task);
        } catch (InterruptedException error) {
            throw new RejectedExecutionException(error);
        }
    }

    static void settle() throws InterruptedException {
        Thread.sleep(SETTLE_MILLIS);
    }

    // The callers: threads that count too, because where the caller runs a task it is one of them.

    /** The first takes the orders and waits for results, the others are producers. */
    static final List<Worker> CALLERS = new ArrayList<>();

    static final List<SynchronousQueue<Runnable>> PRODUCERS = new ArrayList<>();

    static void startProducers() {
        for (int index = 0; index < MOST_PRODUCERS; index++) {
            SynchronousQueue<Runnable> work = new SynchronousQueue<>();
            Worker producer = new Worker(() -> {
                try {
                    while (true) {
                        work.take().run();
                    }
                } catch (InterruptedException error) {
                    // Nobody interrupts it.
                }
            });
            PRODUCERS.add(work);
            CALLERS.add(producer);
            producer.start();
        }
    }

    /** Has producers begin together, and says how long it was from the first start to the last end. */
    static long crew(int producers, LongConsumer produce) throws InterruptedException {
        AtomicInteger missing = new AtomicInteger(producers);
        CountDownLatch done = new CountDownLatch(producers);
        long[] began = new long[producers];
        long[] ended = new long[producers];
        Throwable[] failed = new Throwable[1];
        for (int producer = 0; producer < producers; producer++) {
            int index = producer;
            PRODUCERS.get(index).put(() -> {
                try {
                    missing.decrementAndGet();
                    while (missing.get() > 0) {
                        Thread.yield();
                    }
                    began[index] = System.nanoTime();
                    produce.accept(index);
                    ended[index] = System.nanoTime();
                } catch (Throwable error) {
                    failed[0] = error;
                }
                done.countDown();
            });
        }
        done.await();
        if (failed[0] != null) {
            throw new IllegalStateException("a producer failed", failed[0]);
        }
        long first = began[0];
        long last = ended[0];
        for (int producer = 1; producer < producers; producer++) {
            // Not min and max: the clock may begin anywhere.
            first = began[producer] - first < 0 ? began[producer] : first;
            last = ended[producer] - last > 0 ? ended[producer] : last;
        }
        return last - first;
    }

    // The workloads.

    static Answer fire(String executor, WhenFull whenFull, int producers, long tasks) throws Exception {
        long share = Math.max(1, (tasks + producers - 1) / producers);
        long all = share * producers;
        Opened opened = new Opened(executor, whenFull);
        ExecutorService pool = opened.pool;
        Usage before = Usage.ofAll();
        long nanos = crew(producers, index -> {
            for (long number = index * share + 1; number <= (index + 1) * share; number++) {
                pool.execute(new Tiny(number));
            }
            if (index == 0) {
                opened.waitFor(all);
            }
        });
        settle();
        Usage usage = Usage.between(before, Usage.ofAll());
        opened.close(all);
        return new Answer(all, nanos, usage, null);
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
        settle();
        Usage usage = Usage.between(before, Usage.ofAll());
        opened.close(all);
        if (sum != all * (all + 1) / 2) {
            throw new IllegalStateException("the tasks did not return what they were given");
        }
        return new Answer(all, nanos, usage, null);
    }

    static Answer trips(String executor, boolean pause, boolean here, long trips) throws Exception {
        Opened opened = new Opened(executor, WhenFull.NEVER);
        long[] times = new long[(int) trips];
        long wrong = 0;
        long paused = 0;
        Usage before = Usage.ofAll();
        for (int trip = 0; trip < trips; trip++) {
            if (pause) {
                paused += workFor(PAUSE_NANOS);
            }
            long number = trip + 1;
            long start = System.nanoTime();
            long result = here ? callHere(opened.pool, number) : call(opened.pool, number);
            times[trip] = System.nanoTime() - start;
            wrong += result == number ? 0 : 1;
        }
        settle();
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
            settle();
            long start = System.nanoTime();
            for (long number = burst * BURST + 1; number <= (burst + 1) * BURST; number++) {
                opened.pool.execute(new Tiny(number));
            }
            opened.waitFor((burst + 1) * BURST);
            nanos += System.nanoTime() - start;
        }
        settle();
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

    static Answer run(String work, String executor, int producers, long operations) throws Exception {
        return switch (work) {
            case "fire" -> fire(executor, WhenFull.NEVER, producers, operations);
            case "blocking" -> fire(executor, WhenFull.WAIT, producers, operations);
            case "caller-runs" -> fire(executor, WhenFull.CALLER_RUNS, producers, operations);
            case "join-all" -> joinAll(executor, operations);
            case "trip" -> trips(executor, false, false, operations);
            case "trip-here" -> trips(executor, false, true, operations);
            case "trip-pause" -> trips(executor, true, false, operations);
            case "burst" -> burst(executor, operations);
            case "idle" -> idle(executor, operations);
            default -> throw new IllegalArgumentException("there is no work " + work);
        };
    }

    static final Set<String> WARM = new HashSet<>();

    static void warmUp(String work, String executor, int producers, long millis) throws Exception {
        if (millis <= 0 || work.equals("idle") || !WARM.add(work + " " + executor + " " + producers)) {
            return;
        }
        long portion = switch (work) {
            case "trip", "trip-here", "trip-pause" -> 500;
            case "burst" -> 2;
            default -> 20_000;
        };
        long most = millis * 1_000_000;
        long start = System.nanoTime();
        double best = Double.MAX_VALUE;
        int noBetter = 0;
        while (true) {
            Answer answer = run(work, executor, producers, portion);
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
            if (producers < 1 || producers > MOST_PRODUCERS) {
                throw new IllegalArgumentException("there are 1 to " + MOST_PRODUCERS + " producers");
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
        CALLERS.add(caller);
        startProducers();
        caller.start();
        System.out.println("ready " + System.getProperty("java.vm.name") + " " + System.getProperty("java.version"));
        System.out.flush();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String order = input.readLine(); order != null; order = input.readLine()) {
            orders.put(order);
        }
        // Whoever ordered is gone, and nobody wants to know the rest.
        Runtime.getRuntime().halt(0);
    }
}
