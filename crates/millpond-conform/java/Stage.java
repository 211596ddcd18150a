import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;

/**
 * Who is where, and when everybody is at rest.
 *
 * <p>One monitor guards all of it; whoever changes something tells everybody. Nobody calls the pool
 * while holding it, because the pool interrupts its workers while holding its own lock.
 *
 * <p>Everybody is at rest when
 * <ol>
 *   <li>each strand waits in a closed gate or for work, or is gone, and none has an interrupt on its
 *       way;
 *   <li>each task that was taken in and has not begun is in the queue: none is in somebody's hands;
 *   <li>if somebody waits for work, there is none;
 *   <li>with hand-off, whoever waits for work has really parked: until then an offer would not find
 *       it. No other queue can tell the difference.
 * </ol>
 * From there nothing moves unless the script moves it. Nothing is guessed from time.
 */
final class Stage {
    private final List<Strand> strands = new ArrayList<>();
    private final TreeSet<String> events = new TreeSet<>();
    final TreeMap<Integer, Work> works = new TreeMap<>();
    private BlockingQueue<Runnable> queue;
    private boolean isHandOff;
    private boolean isOpen;

    synchronized void begin(BlockingQueue<Runnable> queue, boolean isHandOff) {
        this.queue = queue;
        this.isHandOff = isHandOff;
    }

    /** Knows a strand from before its start. */
    synchronized Strand admit(Strand strand) {
        strands.add(strand);
        return strand;
    }

    /** The strand, which calls this itself, has come to a place. */
    synchronized void enter(Strand strand, Strand.Place place) {
        strand.place = place;
        strand.isNudged = strand.isInterrupted();
        if (place == Strand.Place.GONE) {
            strands.remove(strand);
        }
        notifyAll();
    }

    /** The body of a task: it stays here until the script lets it go, or it is interrupted. */
    void pass(Work work) {
        Strand here = (Strand) Thread.currentThread();
        synchronized (this) {
            work.isRunning = true;
            work.runner = here;
            work.fate = here.isWorker ? Work.Fate.WORKER : Work.Fate.CALLER;
            say("started " + work.number + "@" + (here.isWorker ? "worker" : "caller"));
            enter(here, Strand.Place.GATE);
            while (!work.mayGo && !isOpen && (!work.wasInterrupted || work.isStubborn)) {
                try {
                    wait();
                } catch (InterruptedException interrupted) {
                    here.isNudged = false;
                    work.wasInterrupted = true;
                    notifyAll();
                }
            }
            work.wasInterrupted |= Thread.interrupted();
            work.isRunning = false;
            say((work.mustFail ? "failed " : "ended ") + work.number
                    + (work.wasInterrupted ? "!" : ""));
            enter(here, Strand.Place.MOVING);
        }
        if (work.mustFail) {
            throw new Strand.Failure();
        }
    }

    /** Lets a running body go on; false if it does not run. */
    synchronized boolean release(Work work, boolean mustFail) {
        if (!work.isRunning) {
            return false;
        }
        work.mayGo = true;
        work.mustFail = mustFail;
        notifyAll();
        return true;
    }

    /** Interrupts a body that runs. */
    synchronized void interrupt(Work work) {
        if (work.isRunning) {
            work.runner.interrupt();
        }
    }

    /** Lets all bodies go on, those to come included. */
    synchronized void openAll() {
        isOpen = true;
        notifyAll();
    }

    /** The task will never run, for this reason. */
    synchronized void settle(Work work, Work.Fate fate) {
        work.fate = fate;
    }

    synchronized void say(String event) {
        events.add(event);
    }

    /** What has happened since this was asked last, sorted: the order of threads is nobody's. */
    synchronized String events() {
        String all = String.join(", ", events);
        events.clear();
        return all;
    }

    /** Waits until everybody is at rest; false if that does not come in time. */
    boolean awaitRest(long patienceNanos) throws InterruptedException {
        long end = System.nanoTime() + patienceNanos;
        while (true) {
            synchronized (this) {
                while (!isQuiet()) {
                    long left = (end - System.nanoTime()) / 1_000_000;
                    if (left <= 0) {
                        return false;
                    }
                    wait(left);
                }
                if (!isHandOff || haveParked()) {
                    return true;
                }
            }
            if (System.nanoTime() > end) {
                return false;
            }
            // Between the announcement and the park there is nothing to be told of.
            Thread.yield();
        }
    }

    private boolean isQuiet() {
        boolean isSomebodyIdle = false;
        for (Strand strand : strands) {
            boolean waits =
                    strand.place == Strand.Place.QUEUE || strand.place == Strand.Place.GATE;
            if (!waits || strand.isNudged) {
                return false;
            }
            isSomebodyIdle |= strand.place == Strand.Place.QUEUE;
        }
        int offered = 0;
        for (Work work : works.values()) {
            if (work.isRunning && (work.mayGo || isOpen)) {
                return false;
            }
            offered += work.fate == Work.Fate.OFFERED ? 1 : 0;
        }
        int queued = queue.size();
        return offered == queued && (queued == 0 || !isSomebodyIdle);
    }

    private boolean haveParked() {
        for (Strand strand : strands) {
            Thread.State state = strand.getState();
            boolean parked =
                    state == Thread.State.WAITING || state == Thread.State.TIMED_WAITING;
            if (strand.place == Strand.Place.QUEUE && !parked) {
                return false;
            }
        }
        return true;
    }

    /** What keeps the stage from being at rest, for a person to read. */
    synchronized String complaint() {
        StringBuilder text = new StringBuilder();
        for (Strand strand : strands) {
            text.append(strand.isWorker ? "worker " : "caller ").append(strand.place);
            text.append(strand.isNudged ? " interrupted, " : ", ");
        }
        for (Work work : works.values()) {
            text.append(work.number).append(' ').append(work.fate).append(", ");
        }
        return text.append("queued ").append(queue.size()).toString();
    }
}
