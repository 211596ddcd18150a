import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.RunnableFuture;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Java's pool as it is, with counters on its hooks and a factory that can be told to fail. */
final class Pool extends ThreadPoolExecutor {
    final AtomicInteger before = new AtomicInteger();
    final AtomicInteger after = new AtomicInteger();
    final AtomicInteger ended = new AtomicInteger();
    final AtomicInteger started = new AtomicInteger();
    volatile boolean refusesThreads;

    Pool(Stage stage, int core, int max, long keepAlive, BlockingQueue<Runnable> queue) {
        super(core, max, keepAlive, TimeUnit.SECONDS, queue);
        setThreadFactory(
                body -> {
                    if (refusesThreads) {
                        return null;
                    }
                    started.incrementAndGet();
                    return stage.admit(new Strand(stage, true, body));
                });
    }

    @Override
    protected <T> RunnableFuture<T> newTaskFor(Callable<T> body) {
        @SuppressWarnings("unchecked")
        RunnableFuture<T> future = (RunnableFuture<T>) new Work.Handle((Work) body);
        return future;
    }

    @Override
    protected void beforeExecute(Thread thread, Runnable task) {
        before.incrementAndGet();
    }

    @Override
    protected void afterExecute(Runnable task, Throwable thrown) {
        after.incrementAndGet();
    }

    @Override
    protected void terminated() {
        ended.incrementAndGet();
    }
}
