import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;

/**
 * Java's own queues, which also tell the stage who waits in them and which task they lose.
 *
 * <p>The pool takes with {@code take} and timed {@code poll}; plain {@code poll} is what the
 * discard-oldest policy calls, and nobody else.
 */
final class Queues {
    private Queues() {}

    /** A wait this long is never seen to end in a script. */
    private static final long LONG = TimeUnit.SECONDS.toNanos(10);

    private interface Taking {
        Runnable now() throws InterruptedException;
    }

    private static Runnable noted(Stage stage, Strand.Place place, Taking taking)
            throws InterruptedException {
        Strand here = (Strand) Thread.currentThread();
        stage.enter(here, place);
        try {
            return taking.now();
        } finally {
            stage.enter(here, Strand.Place.MOVING);
        }
    }

    private static Strand.Place place(long time, TimeUnit unit) {
        return unit.toNanos(time) < LONG ? Strand.Place.BRIEF : Strand.Place.QUEUE;
    }

    private static Runnable dropped(Stage stage, Runnable oldest) {
        if (oldest != null) {
            Work work = Work.of(oldest);
            stage.settle(work, Work.Fate.DROPPED);
            stage.say("dropped " + work.number);
            Player.finish(work);
        }
        return oldest;
    }

    /**
     * The linked queue with a bound that can change (DIFF-7). Java's own bound is fixed; the bound of this
     * one is asked in {@code offer}, as those do who change it in the field.
     */
    static final class Linked extends LinkedBlockingQueue<Runnable> {
        private final transient Stage stage;
        volatile int bound;

        Linked(Stage stage, int bound) {
            this.stage = stage;
            this.bound = bound;
        }

        @Override
        public boolean offer(Runnable task) {
            return size() < bound && super.offer(task);
        }

        @Override
        public Runnable take() throws InterruptedException {
            return noted(stage, Strand.Place.QUEUE, super::take);
        }

        @Override
        public Runnable poll(long time, TimeUnit unit) throws InterruptedException {
            return noted(stage, place(time, unit), () -> super.poll(time, unit));
        }

        @Override
        public Runnable poll() {
            return dropped(stage, super.poll());
        }
    }

    /** The array queue; its capacity is fixed. */
    static final class Array extends ArrayBlockingQueue<Runnable> {
        private final transient Stage stage;

        Array(Stage stage, int capacity) {
            super(capacity);
            this.stage = stage;
        }

        @Override
        public Runnable take() throws InterruptedException {
            return noted(stage, Strand.Place.QUEUE, super::take);
        }

        @Override
        public Runnable poll(long time, TimeUnit unit) throws InterruptedException {
            return noted(stage, place(time, unit), () -> super.poll(time, unit));
        }

        @Override
        public Runnable poll() {
            return dropped(stage, super.poll());
        }
    }

    /** The hand-off. */
    static final class HandOff extends SynchronousQueue<Runnable> {
        private final transient Stage stage;

        HandOff(Stage stage) {
            this.stage = stage;
        }

        @Override
        public Runnable take() throws InterruptedException {
            return noted(stage, Strand.Place.QUEUE, super::take);
        }

        @Override
        public Runnable poll(long time, TimeUnit unit) throws InterruptedException {
            return noted(stage, place(time, unit), () -> super.poll(time, unit));
        }
    }

    /** The queue that a script names: {@code linked:2}, {@code array:2}, {@code unbounded}, {@code hand-off}. */
    static BlockingQueue<Runnable> named(Stage stage, String name) {
        String[] parts = name.split(":");
        switch (parts[0]) {
            case "linked":
                return new Linked(stage, Integer.parseInt(parts[1]));
            case "array":
                return new Array(stage, Integer.parseInt(parts[1]));
            case "unbounded":
                return new Linked(stage, Integer.MAX_VALUE);
            case "hand-off":
                return new HandOff(stage);
            default:
                throw new IllegalStateException("no queue is called " + name);
        }
    }

    /** The capacity of such a queue, as a word. */
    static String capacity(BlockingQueue<Runnable> queue) {
        if (queue instanceof HandOff) {
            return "0";
        }
        int bound =
                queue instanceof Linked
                        ? ((Linked) queue).bound
                        : queue.size() + queue.remainingCapacity();
        return bound == Integer.MAX_VALUE ? "none" : Integer.toString(bound);
    }
}
