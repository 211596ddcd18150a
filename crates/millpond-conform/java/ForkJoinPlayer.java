import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.RecursiveAction;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * Plays one script on Java's fork-join pool and tells a line for each step. The words of the lines are those of
 * docs/differential.md; {@code DIFF-10} and so on are the decisions listed in src/differential/decisions.md.
 *
 * <p>Rest is known from outside of the pool: every body says when it begins, waits and ends. Nothing moves any more when
 * all workers wait in bodies, or when all tasks that were accepted are over or wait in bodies, nothing is queued, and the
 * pool counts no worker as active besides.
 */
final class ForkJoinPlayer implements Plays {
    private final long patience;
    private ForkJoinPool pool;
    private int parallelism;
    /** It then calls itself quiescent, whatever still runs (DIFF-17). */
    private boolean isStopped;
    private final Tree.Trace trace = new Tree.Trace(true);
    private final Tree.Trace untold = new Tree.Trace(false);

    // Guarded by this.
    private final TreeMap<Integer, Work> works = new TreeMap<>();
    private final TreeSet<String> events = new TreeSet<>();
    private boolean isOpen;

    ForkJoinPlayer(long patienceNanos) {
        this.patience = patienceNanos;
    }

    /** A task of the script: one that waits in its body, or a computation. */
    private static final class Work {
        ForkJoinTask<?> task;
        boolean hasHandle;
        boolean isGated;
        String fate = "offered";
        boolean isRunning;
        boolean mayGo;
        boolean mustFail;
        boolean isTold;
        boolean isStubborn;
        /** It was interrupted, and will obey. */
        boolean isMoving;
    }

    @Override
    public String play(String step) throws Exception {
        String outcome = act(step, step.split(" "));
        boolean isOver = step.equals("end");
        if (!awaitRest(isOver)) {
            return "stuck: " + pool;
        }
        if (step.equals("quiescence")) {
            // Its caller helps while it waits, and may run into a gate; so only a pool that is quiescent is waited for.
            boolean is = pool.isQuiescent() && pool.awaitQuiescence(patience, TimeUnit.NANOSECONDS);
            outcome = isStopped ? "*" : is ? "yes" : "no";
        }
        return outcome + "; " + events() + "; " + (isOver ? fates() + "; " : "") + readings();
    }

    private String act(String step, String[] words) throws InterruptedException {
        switch (words[0]) {
            case "fork-join":
                parallelism = Integer.parseInt(words[1].substring("parallelism=".length()));
                pool = new ForkJoinPool(parallelism, ForkJoinPool.defaultForkJoinWorkerThreadFactory,
                        (thread, thrown) -> {}, words[2].equals("fifo=yes"));
                return "ok";
            case "submit":
            case "run":
                return submit(words);
            case "compute":
            case "trace":
                return compute(step, words);
            case "release":
            case "fail":
                return release(words);
            case "cancel":
                return cancel(words[1]);
            case "quiescence":
                return "";
            case "shutdown":
                pool.shutdown();
                return "ok";
            case "shutdown-now":
                // It returns nothing, and cancels (DIFF-10).
                synchronized (this) {
                    works.values().forEach(work -> work.isMoving |= work.isRunning && !work.isStubborn);
                }
                isStopped = true;
                pool.shutdownNow();
                return "ok";
            case "end":
                synchronized (this) {
                    isOpen = true;
                    notifyAll();
                }
                awaitRest(false); // DIFF-13
                pool.shutdown();
                return "end";
            default:
                throw new IllegalStateException("no step is called " + words[0]);
        }
    }

    private String submit(String[] words) {
        Work work = new Work();
        int number = Integer.parseInt(words[1]);
        String last = words[words.length - 1];
        int forks = last.startsWith("forks=") ? Integer.parseInt(last.substring(6)) : 0;
        work.isStubborn = words.length > 2 && words[2].equals("stubborn");
        work.isGated = true;
        work.hasHandle = words[0].equals("submit");
        work.task = new RecursiveAction() {
            @Override
            protected void compute() {
                for (int i = 0; i < forks; i++) {
                    String name = number + "." + i;
                    ForkJoinTask.adapt(() -> trace.visit(name)).fork();
                }
                pass(work, number);
            }
        };
        synchronized (this) {
            works.put(number, work);
        }
        return bring(work);
    }

    private String compute(String step, String[] words) {
        Work work = new Work();
        String text = step.substring(words[0].length() + words[1].length() + 2);
        work.hasHandle = true;
        work.task = Tree.read(text, words[0].equals("trace") ? trace : untold);
        synchronized (this) {
            works.put(Integer.parseInt(words[1]), work);
        }
        return bring(work);
    }

    private String bring(Work work) {
        try {
            if (work.hasHandle) {
                pool.submit(work.task);
            } else {
                pool.execute(work.task);
            }
            return "taken";
        } catch (RejectedExecutionException refused) {
            synchronized (this) {
                work.fate = "refused";
                work.hasHandle = false;
                work.isTold = true;
            }
            return "refused";
        }
    }

    /** The body of a task that waits. */
    private void pass(Work work, int number) {
        boolean fails;
        synchronized (this) {
            work.isRunning = true;
            work.fate = "worker";
            events.add("started " + number + "@worker");
            boolean interrupted = false;
            while (!work.mayGo && !isOpen && (work.isStubborn || !interrupted)) {
                try {
                    wait();
                } catch (InterruptedException interrupt) {
                    interrupted = true;
                }
            }
            interrupted |= Thread.interrupted();
            work.isRunning = false;
            fails = work.mustFail && work.mayGo;
            events.add((fails ? "failed " : "ended ") + number + (interrupted ? "!" : ""));
        }
        if (fails) {
            throw new Tree.Thrown(0);
        }
    }

    private synchronized String release(String[] words) {
        List<String> answers = new ArrayList<>();
        for (int i = 1; i < words.length; i++) {
            Work work = works.get(Integer.parseInt(words[i]));
            boolean released = work.isGated && work.isRunning;
            if (released) {
                work.mayGo = true;
                work.mustFail = words[0].equals("fail");
            }
            answers.add(released ? "yes" : "no");
        }
        notifyAll();
        return String.join(" ", answers);
    }

    private synchronized String cancel(String word) {
        Work work = works.get(Integer.parseInt(word));
        if (!work.hasHandle) {
            return "no-handle";
        }
        // Java says yes each time, ours once (DIFF-11).
        boolean isFirst = !work.task.isCancelled();
        boolean done = work.task.cancel(false);
        if (done && work.fate.equals("offered")) {
            work.fate = "cancelled";
        }
        return done && isFirst ? "yes" : "no";
    }

    private boolean awaitRest(boolean isOver) throws InterruptedException {
        long end = System.nanoTime() + patience;
        int looks = 0;
        while (!isAtRest(isOver)) {
            if (System.nanoTime() > end) {
                return false;
            }
            if (++looks > 50) {
                Thread.sleep(0, 50_000);
            } else {
                Thread.onSpinWait();
            }
        }
        return true;
    }

    private synchronized boolean isAtRest(boolean isOver) {
        if (isOver || pool.isShutdown() && waiting() == 0) {
            return pool.isTerminated();
        }
        int waiting = waiting();
        if (works.values().stream().anyMatch(work -> work.isRunning && (isOpen || work.mayGo || work.isMoving))) {
            return false;
        }
        if (waiting == parallelism) {
            return true;
        }
        return pool.getActiveThreadCount() == waiting
                && pool.getQueuedSubmissionCount() == 0
                && pool.getQueuedTaskCount() == 0
                && works.values().stream().allMatch(
                        work -> work.isRunning || work.fate.equals("refused") || work.task.isDone());
    }

    private int waiting() {
        return (int) works.values().stream().filter(work -> work.isRunning).count();
    }

    private synchronized String events() {
        List<String> all = new ArrayList<>(events);
        events.clear();
        works.forEach((number, work) -> {
            if (work.isGated) {
                // What a stop cancels does not begin (DIFF-10).
                if (work.fate.equals("offered") && work.task.isCancelled()) {
                    work.fate = "cancelled";
                }
            } else if (!work.isTold && work.task.isDone()) {
                work.isTold = true;
                if (work.task.isCompletedNormally()) {
                    all.add("value " + number + " " + work.task.getRawResult());
                } else {
                    Throwable thrown = work.task.getException();
                    long code = thrown instanceof Tree.Thrown ? ((Tree.Thrown) thrown).code
                            : work.task.isCancelled() ? Tree.CANCELLED : Long.MAX_VALUE;
                    all.add("error " + number + " " + code);
                }
            }
        });
        List<String> visited = trace.take();
        if (parallelism > 1) {
            // Neither the order is determined, nor which part is the last of a node.
            visited.replaceAll(name -> name.split("<")[0]);
            visited.sort(null);
        }
        if (!visited.isEmpty()) {
            all.add("visited " + String.join(" ", visited));
        }
        return String.join(", ", all);
    }

    private String readings() {
        String state =
                pool.isTerminated() ? "terminated" : pool.isShutdown() ? "shut-down" : "running";
        return "parallelism=" + pool.getParallelism()
                // With several workers it depends on chance how many were started.
                + " size=" + (parallelism == 1 ? pool.getPoolSize() : "*")
                + " active=" + pool.getActiveThreadCount()
                + " queued=" + pool.getQueuedSubmissionCount()
                + " inside=" + pool.getQueuedTaskCount()
                + " quiescent=" + (isStopped ? "*" : pool.isQuiescent() ? "yes" : "no")
                + " state=" + state;
    }

    private synchronized String fates() {
        List<String> fates = new ArrayList<>();
        works.forEach((number, work) -> {
            if (work.isGated) {
                fates.add(number + "=" + work.fate);
            }
        });
        return String.join(" ", fates);
    }
}
