import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.LinkedTransferQueue;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.RejectedExecutionHandler;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** What a pool does when its queue is full. */
enum WhenFull {
    NEVER,
    WAIT,
    CALLER_RUNS
}

/** A pool that is open, warm and idle. */
final class Opened {
    static final int WORKERS = 2;
    static final int BOUND = 1024;
    static final int POOL_WARM_UP = 1_000;
    static final long SETTLE_MILLIS = 2;
    static final long NEAR_NANOS = 200_000;
    static final long LONGEST_SLEEP_NANOS = 20_000_000;
    static final long PATIENCE_NANOS = 5_000_000_000L;

    final ExecutorService pool;
    private final List<Counting> threads = new CopyOnWriteArrayList<>();
    private long callersBefore;
    private final long tasksBefore;
    private final long sumBefore;

    Opened(String executor, WhenFull whenFull) throws Exception {
        pool = switch (executor) {
            case "fjp" -> forkJoin();
            case "virtual" -> virtual();
            default -> threadPool(queue(executor, whenFull), whenFull);
        };
        wakeAll();
        long before = tasks();
        for (long number = 1; number <= POOL_WARM_UP; number++) {
            pool.execute(new Tiny(number));
        }
        waitUntil(before + POOL_WARM_UP);
        settle();
        tasksBefore = tasks();
        sumBefore = sum();
        callersBefore = byAllCallers();
    }

    private static BlockingQueue<Runnable> queue(String executor, WhenFull whenFull) {
        boolean bounded = whenFull != WhenFull.NEVER;
        return switch (executor) {
            case "tpe-linked" -> bounded ? new LinkedBlockingQueue<>(BOUND) : new LinkedBlockingQueue<>();
            case "tpe-array" -> new ArrayBlockingQueue<>(BOUND);
            case "tpe-transfer" -> new LinkedTransferQueue<>();
            case "tpe-priority" -> new PriorityBlockingQueue<>(BOUND, Comparator.comparingLong(Opened::rank));
            // It holds nothing, whatever is asked for: a task is taken by a worker, or is not in it.
            case "tpe-handoff" -> new SynchronousQueue<>();
            default -> throw new IllegalArgumentException("there is no executor " + executor);
        };
    }

    /** Four priorities in turn; what is not one of the numbered tasks comes first. */
    private static long rank(Runnable task) {
        return task instanceof Tiny tiny ? tiny.number() % 4 : -1;
    }

    /** A virtual thread for each task. This is compiled for a Java that has none. */
    private static ExecutorService virtual() throws Exception {
        return (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    }

    private ExecutorService threadPool(BlockingQueue<Runnable> queue, WhenFull whenFull) {
        ThreadFactory factory = body -> {
            Worker worker = new Worker(body);
            threads.add(worker);
            return worker;
        };
        RejectedExecutionHandler handler = whenFull == WhenFull.CALLER_RUNS
                ? new ThreadPoolExecutor.CallerRunsPolicy()
                : Opened::putInstead;
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
        for (Counting caller : Callers.ALL) {
            tasks += caller.seat().tasks();
        }
        for (Seat seat : Seat.SHARED) {
            tasks += seat.tasks();
        }
        return tasks;
    }

    private long sum() {
        long sum = 0;
        for (Counting thread : threads) {
            sum += thread.seat().sum();
        }
        for (Counting caller : Callers.ALL) {
            sum += caller.seat().sum();
        }
        for (Seat seat : Seat.SHARED) {
            sum += seat.sum();
        }
        return sum;
    }

    private static long byAllCallers() {
        long tasks = 0;
        for (Counting caller : Callers.ALL) {
            tasks += caller.seat().tasks();
        }
        return tasks;
    }

    /** How many tasks the callers have run themselves since it was opened. */
    long byCallers() {
        return byAllCallers() - callersBefore;
    }

    /** Keeps every worker busy and fills the queue, until the latch is counted down. */
    CountDownLatch fillUp() throws InterruptedException {
        CountDownLatch gate = new CountDownLatch(1);
        Runnable wait = () -> {
            try {
                gate.await();
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        };
        ThreadPoolExecutor filled = (ThreadPoolExecutor) pool;
        while (filled.getActiveCount() < WORKERS || filled.getQueue().remainingCapacity() > 0) {
            // Past the policy: the caller must not wait for itself.
            if (!filled.getQueue().offer(wait)) {
                Thread.yield();
            }
        }
        return gate;
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
}
