/**
 * A thread of which the stage always knows where it is: a worker of the pool, or a caller.
 *
 * <p>An interrupt is noted before it is sent, and under the stage's monitor. So between the moment
 * somebody interrupts a waiting thread and the moment that thread has left its wait, the stage does
 * not take it for one at rest.
 */
final class Strand extends Thread {
    /** Where a strand can be. */
    enum Place {
        /** On its way from one of the others to the next. */
        MOVING,
        /** Waits for work, for ever or for so long that nobody here will see the end. */
        QUEUE,
        /** Waits for work, and will give up soon. */
        BRIEF,
        /** In the body of a task, until the script lets it go on. */
        GATE,
        /** Ended. */
        GONE
    }

    private final Stage stage;
    final boolean isWorker;

    /** Where it is; guarded by the stage. */
    Place place = Place.MOVING;

    /** It has been interrupted and has not noticed yet; guarded by the stage. */
    boolean isNudged;

    Strand(Stage stage, boolean isWorker, Runnable body) {
        super(body);
        this.stage = stage;
        this.isWorker = isWorker;
        setDaemon(true);
    }

    @Override
    public void run() {
        try {
            super.run();
        } catch (Failure expected) {
            // A task without a handle failed: Java's worker dies of it, and that is all.
        } finally {
            stage.enter(this, Place.GONE);
        }
    }

    @Override
    public void interrupt() {
        synchronized (stage) {
            isNudged = true;
            super.interrupt();
        }
    }

    /** What a task throws when the script says so. */
    static final class Failure extends RuntimeException {
        Failure() {
            super("as the script says", null, false, false);
        }
    }
}
