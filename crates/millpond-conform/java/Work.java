import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;

/** The body of a task of a script: it says that it runs, and stays until the script lets it go. */
final class Work implements Runnable, Callable<Void> {
    /** What became of it. */
    enum Fate {
        /** Given to the pool; nobody knows yet. */
        OFFERED,
        WORKER,
        CALLER,
        REFUSED,
        DISCARDED,
        DROPPED,
        CANCELLED,
        REMOVED,
        RETURNED
    }

    final Stage stage;
    final int number;
    final boolean isStubborn;

    // All guarded by the stage.
    Fate fate = Fate.OFFERED;
    boolean isRunning;
    Strand runner;
    boolean mayGo;
    boolean mustFail;
    boolean wasInterrupted;

    /** The future, if the task was submitted and not merely run. */
    Handle handle;

    Work(Stage stage, int number, boolean isStubborn) {
        this.stage = stage;
        this.number = number;
        this.isStubborn = isStubborn;
    }

    @Override
    public void run() {
        stage.pass(this);
    }

    @Override
    public Void call() {
        stage.pass(this);
        return null;
    }

    /** The future that the pool makes of it. */
    static final class Handle extends FutureTask<Void> {
        final Work work;

        Handle(Work work) {
            super(work);
            this.work = work;
            work.handle = this;
        }
    }

    /** The task behind what the pool has in its queue. */
    static Work of(Runnable queued) {
        return queued instanceof Handle ? ((Handle) queued).work : (Work) queued;
    }
}
