import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;

/** A thread that counts the tasks that it runs. */
interface Counting {
    Seat seat();
}

/**
 * Where a thread counts: on a line of its own, in the middle of an array so that nothing else shares it.
 * Who has seen the count sees the sum.
 */
final class Seat {
    static final int TASKS = 16;
    static final int SUM = 17;
    static final int LINE = 48;
    static final VarHandle COUNT = MethodHandles.arrayElementVarHandle(long[].class);

    final long[] line = new long[LINE];
    /** The thread's folder in /proc once it runs; null where there is none. */
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

    /** The sum of the numbers of the tasks. */
    long sum() {
        return line[SUM];
    }

    /** Counts the task with this number, on the thread that runs it. */
    static void count(long number) {
        if (Thread.currentThread() instanceof Counting counting) {
            long[] line = counting.seat().line;
            line[SUM] += number;
            COUNT.setRelease(line, TASKS, line[TASKS] + 1);
        } else {
            // A virtual thread has no seat of its own: they share some.
            long[] line = SHARED[(int) (number % SHARED.length)].line;
            COUNT.getAndAdd(line, SUM, number);
            COUNT.getAndAdd(line, TASKS, 1L);
        }
    }

    /** The seats of virtual threads. */
    static final Seat[] SHARED = new Seat[64];

    static {
        for (int seat = 0; seat < SHARED.length; seat++) {
            SHARED[seat] = new Seat();
        }
    }
}

/** The small task that is brought. */
record Tiny(long number) implements Runnable {
    @Override
    public void run() {
        Seat.count(number);
    }
}

/** The small task that is waited for. */
record TinyCall(long number) implements Callable<Long> {
    @Override
    public Long call() {
        Seat.count(number);
        return number;
    }
}

final class Worker extends Thread implements Counting {
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

final class ForkJoinWorker extends ForkJoinWorkerThread implements Counting {
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
