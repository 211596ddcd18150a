import java.util.concurrent.Callable;
import java.util.concurrent.RejectedExecutionHandler;
import java.util.concurrent.ThreadPoolExecutor;

/** Java's four policies. Those that drop a task in silence tell the stage so. */
final class Policies {
    private Policies() {}

    static RejectedExecutionHandler named(Stage stage, String name) {
        switch (name) {
            case "abort":
                return new ThreadPoolExecutor.AbortPolicy();
            case "caller-runs":
                return noting(stage, new ThreadPoolExecutor.CallerRunsPolicy(), Work.Fate.REFUSED);
            case "discard":
                return noting(stage, new ThreadPoolExecutor.DiscardPolicy(), Work.Fate.DISCARDED);
            case "discard-oldest":
                return noting(
                        stage, new ThreadPoolExecutor.DiscardOldestPolicy(), Work.Fate.DISCARDED);
            default:
                throw new IllegalStateException("no policy is called " + name);
        }
    }

    /**
     * The policy, and what a task becomes that it drops. Caller-runs drops once the pool is shut
     * down; ours refuses then (DIFF-3), so the fate of such a task here is "refused".
     */
    private static RejectedExecutionHandler noting(
            Stage stage, RejectedExecutionHandler real, Work.Fate whenDropped) {
        return (task, pool) -> {
            boolean drops =
                    real instanceof ThreadPoolExecutor.DiscardPolicy || pool.isShutdown();
            real.rejectedExecution(task, pool);
            if (drops) {
                Work work = Work.of(task);
                stage.settle(work, whenDropped);
                Player.finish(work);
            }
        };
    }

    /** Tells what a call threw, in the words of a log. */
    static String validity(Callable<Void> change) throws Exception {
        try {
            change.call();
            return "ok";
        } catch (IllegalArgumentException refused) {
            return "invalid";
        }
    }
}
