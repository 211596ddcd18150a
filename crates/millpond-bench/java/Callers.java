import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;

/** Threads that bring tasks. They count too, because where the caller runs a task it is one of them. */
final class Callers {
    static final int MOST_PRODUCERS = 4;

    /** The first takes the orders and waits for results, the others are producers. */
    static final List<Worker> ALL = new ArrayList<>();

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
            ALL.add(producer);
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

    private Callers() {}
}
