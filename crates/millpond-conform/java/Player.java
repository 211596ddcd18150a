import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * Plays one script on Java's pool and tells a line for each step. The words of the lines are those of
 * docs/differential.md; {@code DIFF-1} and so on are the decisions listed in src/differential/decisions.md.
 */
final class Player implements Plays {
    private final Stage stage = new Stage();
    private final long patience;
    private Pool pool;
    private String policy;
    private boolean hasDied;

    Player(long patienceNanos) {
        this.patience = patienceNanos;
    }

    /** Plays a step; null means that the script cannot go on. */
    @Override
    public String play(String step) throws Exception {
        String outcome = act(step.split(" "));
        if (outcome.equals("impossible")) {
            return outcome;
        }
        boolean isOver = step.equals("end");
        if (!stage.awaitRest(patience) || isOver && !pool.isTerminated()) {
            return "stuck: " + stage.complaint() + ", " + pool;
        }
        if (outcome.equals("call")) {
            outcome = call(stage.works.lastEntry().getValue());
        }
        return outcome + "; " + stage.events() + "; " + (isOver ? fates() + "; " : "") + readings();
    }

    private String act(String[] words) throws Exception {
        switch (words[0]) {
            case "pool":
                return build(words);
            case "submit":
            case "run":
                return bring(words);
            case "release":
            case "fail":
                return release(words);
            case "cancel":
            case "interrupt":
                return cancel(work(words[1]), words[0].equals("interrupt"));
            case "remove":
                return remove(work(words[1]));
            case "core":
                return Policies.validity(() -> set(() -> pool.setCorePoolSize(number(words))));
            case "max":
                return Policies.validity(() -> set(() -> pool.setMaximumPoolSize(number(words))));
            case "keep-alive":
                return Policies.validity(
                        () -> set(() -> pool.setKeepAliveTime(number(words), TimeUnit.SECONDS)));
            case "core-may-time-out":
                return Policies.validity(
                        () -> set(() -> pool.allowCoreThreadTimeOut(words[1].equals("yes"))));
            case "capacity":
                ((Queues.Linked) pool.getQueue()).bound = number(words);
                return "ok";
            case "policy":
                policy = words[1];
                pool.setRejectedExecutionHandler(Policies.named(stage, policy));
                return "ok";
            case "prestart":
                return pool.prestartCoreThread() ? "yes" : "no";
            case "prestart-all":
                return Integer.toString(pool.prestartAllCoreThreads());
            case "threads":
                pool.refusesThreads = words[1].equals("fail");
                return "ok";
            case "idle-out":
                return idleOut();
            case "shutdown":
                pool.shutdown();
                return "ok";
            case "shutdown-now":
                return shutdownNow();
            case "end":
                pool.refusesThreads = false;
                stage.openAll();
                pool.shutdown();
                return "end";
            default:
                throw new IllegalStateException("no step is called " + words[0]);
        }
    }

    private String build(String[] words) {
        Settings settings = new Settings(words);
        var queue = Queues.named(stage, settings.word("queue"));
        stage.begin(queue, queue instanceof Queues.HandOff);
        try {
            pool = new Pool(stage, settings.number("core"), settings.number("max"),
                    settings.number("keep-alive"), queue);
            pool.allowCoreThreadTimeOut(settings.word("core-may-time-out").equals("yes"));
        } catch (IllegalArgumentException refused) {
            return "impossible";
        }
        policy = settings.word("policy");
        pool.setRejectedExecutionHandler(Policies.named(stage, policy));
        return "ok";
    }

    /** With caller-runs the call may stay for as long as the task does, so it has a thread of its own. */
    private String bring(String[] words) {
        Work work = new Work(stage, number(words), words[words.length - 1].equals("stubborn"));
        synchronized (stage) {
            stage.works.put(work.number, work);
        }
        Runnable bringing = () -> bring(work, words[0].equals("submit"));
        if (policy.equals("caller-runs")) {
            stage.admit(new Strand(stage, false, bringing)).start();
        } else {
            bringing.run();
        }
        return "call";
    }

    private void bring(Work work, boolean hasHandle) {
        try {
            if (hasHandle) {
                pool.submit((java.util.concurrent.Callable<Void>) work);
            } else {
                pool.execute(work);
            }
        } catch (RejectedExecutionException refused) {
            stage.settle(work, Work.Fate.REFUSED);
        }
    }

    /** What the call that brought a task came to, once everybody is at rest. */
    private String call(Work work) {
        synchronized (stage) {
            switch (work.fate) {
                case REFUSED:
                    // A refused task leaves no handle behind: there was none to be had (DIFF-2).
                    work.handle = null;
                    return "refused";
                case DISCARDED:
                    return "discarded";
                case CALLER:
                    return "caller";
                default:
                    return "taken";
            }
        }
    }

    private String release(String[] words) {
        boolean mustFail = words[0].equals("fail");
        List<String> answers = new ArrayList<>();
        // All or none at a time, as far as the bodies can tell.
        synchronized (stage) {
            for (int i = 1; i < words.length; i++) {
                Work work = work(words[i]);
                boolean released = stage.release(work, mustFail);
                hasDied |= released && mustFail && work.handle == null;
                answers.add(released ? "yes" : "no");
            }
        }
        return String.join(" ", answers);
    }

    private String cancel(Work work, boolean mayInterrupt) {
        if (work.handle == null) {
            return "no-handle";
        }
        boolean done = work.handle.cancel(mayInterrupt);
        if (mayInterrupt && !done && work.handle.isCancelled()) {
            // It was cancelled before and may run on; ours asks it to stop all the same (DIFF-9).
            stage.interrupt(work);
        }
        // Ours gives the place in the queue back at once (DIFF-1).
        boolean wasQueued = pool.getQueue().contains(work.handle);
        pool.purge();
        if (wasQueued) {
            stage.settle(work, Work.Fate.CANCELLED);
        }
        return done ? "yes" : "no";
    }

    private String remove(Work work) {
        if (work.handle == null) {
            return "no-handle";
        }
        boolean removed = pool.remove(work.handle);
        if (removed) {
            stage.settle(work, Work.Fate.REMOVED);
            finish(work);
        }
        return removed ? "yes" : "no";
    }

    /** Whoever is idle and may leave has waited long enough. */
    private String idleOut() {
        long keepAlive = pool.getKeepAliveTime(TimeUnit.NANOSECONDS);
        if (keepAlive > 0) {
            pool.setKeepAliveTime(1, TimeUnit.NANOSECONDS);
            boolean settled;
            try {
                settled = stage.awaitRest(patience);
            } catch (InterruptedException impossible) {
                throw new IllegalStateException(impossible);
            }
            pool.setKeepAliveTime(keepAlive, TimeUnit.NANOSECONDS);
            return settled ? "ok" : "unsettled";
        }
        return "ok";
    }

    private String shutdownNow() {
        StringBuilder returned = new StringBuilder("returned");
        for (Runnable task : pool.shutdownNow()) {
            Work work = Work.of(task);
            stage.settle(work, Work.Fate.RETURNED);
            finish(work);
            returned.append(' ').append(work.number);
        }
        return returned.toString();
    }

    /** Java's futures of tasks that will never run stay open for ever; ours never do (DIFF-2). */
    static void finish(Work work) {
        if (work.handle != null) {
            work.handle.cancel(false);
        }
    }

    private String readings() {
        List<String> queue = new ArrayList<>();
        pool.getQueue().forEach(task -> queue.add(Integer.toString(Work.of(task).number)));
        String state =
                pool.isTerminated() ? "terminated" : pool.isShutdown() ? "shut-down" : "running";
        return "size=" + pool.getPoolSize()
                + " active=" + pool.getActiveCount()
                + " queued=" + pool.getQueue().size()
                + " queue=[" + String.join(",", queue) + "]"
                + " completed=" + pool.getCompletedTaskCount()
                + " largest=" + pool.getLargestPoolSize()
                + " tasks=" + pool.getTaskCount()
                + " core=" + pool.getCorePoolSize()
                + " max=" + pool.getMaximumPoolSize()
                + " capacity=" + Queues.capacity(pool.getQueue())
                + " keep-alive=" + pool.getKeepAliveTime(TimeUnit.SECONDS)
                + " core-may-time-out=" + (pool.allowsCoreThreadTimeOut() ? "yes" : "no")
                + " state=" + state
                // A worker that dies of its task is replaced; ours does not die (DIFF-5).
                + " threads=" + (hasDied ? "*" : pool.started.get())
                + " before=" + pool.before.get()
                + " after=" + pool.after.get()
                + " terminated=" + pool.ended.get();
    }

    private String fates() {
        List<String> fates = new ArrayList<>();
        synchronized (stage) {
            stage.works.values().forEach(
                    work -> fates.add(work.number + "=" + work.fate.name().toLowerCase()));
        }
        return String.join(" ", fates);
    }

    private Work work(String number) {
        return stage.works.get(Integer.parseInt(number));
    }

    private static int number(String[] words) {
        return Integer.parseInt(words[1]);
    }

    private static Void set(Runnable change) {
        change.run();
        return null;
    }

    /** The words {@code key=value} of a line. */
    private static final class Settings {
        private final String[] words;

        Settings(String[] words) {
            this.words = words;
        }

        String word(String key) {
            for (String word : words) {
                if (word.startsWith(key + "=")) {
                    return word.substring(key.length() + 1);
                }
            }
            throw new IllegalStateException("the pool has no " + key);
        }

        int number(String key) {
            return Integer.parseInt(word(key));
        }
    }
}
