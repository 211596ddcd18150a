import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Plays one script on Java's {@code CompletableFuture}. There is one thread, besides the one that times out; so everything is at
 * rest after each step.
 */
final class FuturePlayer implements Plays {
    /** Errors of functions have the number of their node on top of this. */
    private static final int THROWN = 1000;

    private final Map<Integer, Node> nodes = new TreeMap<>();
    private final TreeMap<Integer, List<String>> events = new TreeMap<>();
    private final Map<Integer, Failure> failures = new HashMap<>();
    /** Nodes whose dependents are counted when they are gone (DIFF-20). */
    private final Set<Integer> uncounted = new HashSet<>();
    private int played;

    static final class Failure extends RuntimeException {
        final int number;

        Failure(int number) {
            super(null, null, true, false);
            this.number = number;
        }
    }

    private static final class Node {
        final int number;
        final String verb;
        final int[] names;
        final boolean fails;
        final String place;
        final Deque<Runnable> tasks = new ArrayDeque<>();
        CompletableFuture<Long> future;

        Node(String[] words) {
            verb = words[0];
            number = Integer.parseInt(words[1]);
            String all = "";
            String on = "here";
            boolean throwing = false;
            for (String word : words) {
                if (word.startsWith("of=") || word.startsWith("to=")) {
                    all += "," + word.substring(3);
                } else if (word.startsWith("on=")) {
                    on = word.substring(3);
                }
                throwing |= word.equals("throws");
            }
            names = Arrays.stream(all.split(",")).filter(word -> !word.isEmpty())
                    .mapToInt(Integer::parseInt).toArray();
            fails = throwing;
            place = on;
        }

        Executor executor() {
            switch (place) {
                case "direct":
                    return Runnable::run;
                case "queue":
                    return tasks::add;
                default:
                    return task -> {
                        throw new RejectedExecutionException();
                    };
            }
        }
    }

    @Override
    public String play(String step) throws Exception {
        String[] words = step.split(" ");
        if (words[0].equals("futures")) {
            return "ok; ; nodes=0";
        }
        played++;
        String outcome;
        if (words[0].equals("end")) {
            outcome = "end";
        } else if (nodes.containsKey(Integer.parseInt(words[1]))) {
            outcome = act(words[0], nodes.get(Integer.parseInt(words[1])));
        } else {
            Node node = new Node(words);
            node.future = make(node);
            if (node.verb.equals("all-of") && node.names.length == 1) {
                // The only one is counted twice (DIFF-20).
                Arrays.stream(node.names).forEach(uncounted::add);
            }
            nodes.put(node.number, node);
            outcome = "made";
        }
        List<String> ran = new ArrayList<>();
        synchronized (events) {
            // In the order of the nodes (DIFF-19).
            events.values().forEach(ran::addAll);
            events.clear();
        }
        List<String> readings = new ArrayList<>();
        readings.add("nodes=" + nodes.size());
        for (Node node : nodes.values()) {
            readings.add(reading(node));
        }
        String fates = outcome.equals("end") ? "; " : "";
        return outcome + "; " + String.join(", ", ran) + "; " + fates + String.join(" ", readings);
    }

    private void ran(Node node, String arguments) {
        synchronized (events) {
            events.computeIfAbsent(node.number, key -> new ArrayList<>())
                    .add("ran " + node.number + "(" + arguments + ")");
        }
    }

    private Failure failure(int number) {
        return failures.computeIfAbsent(number, Failure::new);
    }

    private Long end(Node node, Long value) {
        if (node.fails) {
            throw failure(THROWN + node.number);
        }
        return value;
    }

    private static Long next(Node node, long value) {
        return value % 1_000_003 + node.number;
    }

    private static long zero(Long value) {
        return value == null ? 0 : value;
    }

    private String show(Long value, Throwable thrown) {
        return thrown == null ? String.valueOf(value) : show(thrown);
    }

    private String show(Throwable thrown) {
        String wrapped = "";
        if (thrown instanceof CompletionException) {
            wrapped = "~";
            thrown = thrown.getCause();
        }
        if (thrown instanceof Failure) {
            int number = ((Failure) thrown).number;
            return wrapped + "!" + number + (failures.get(number) == thrown ? "" : " (another one)");
        }
        if (thrown instanceof CancellationException) {
            return wrapped + "!cancelled";
        }
        if (thrown instanceof TimeoutException) {
            return wrapped + "!timed-out";
        }
        return wrapped + (thrown instanceof RejectedExecutionException ? "!rejected" : "!" + thrown);
    }

    private Long one(Node node, Long value) {
        ran(node, String.valueOf(value));
        return end(node, next(node, zero(value)));
    }

    private void none(Node node, String arguments) {
        ran(node, arguments);
        end(node, null);
    }

    private Long both(Node node, Long left, Long right) {
        ran(node, left + "," + right);
        return end(node, next(node, zero(left) * 31 + zero(right)));
    }

    private Long handled(Node node, Long value, Throwable thrown) {
        ran(node, show(value, thrown));
        return end(node, next(node, thrown != null ? 5 : zero(value)));
    }

    private Long recovered(Node node, Throwable thrown) {
        ran(node, show(thrown));
        return end(node, next(node, 7));
    }

    private CompletableFuture<Long> composed(Node node, String argument, CompletableFuture<Long> inner) {
        none(node, argument);
        return inner;
    }

    private static CompletableFuture<Long> empty(CompletableFuture<Void> future) {
        // The type is that of no value, and the value is null either way.
        @SuppressWarnings({"unchecked", "rawtypes"})
        CompletableFuture<Long> same = (CompletableFuture<Long>) (CompletableFuture) future;
        return same;
    }

    private CompletableFuture<Long> make(Node node) {
        CompletableFuture<Long> a = node.names.length > 0 ? nodes.get(node.names[0]).future : null;
        CompletableFuture<Long> b = node.names.length > 1 ? nodes.get(node.names[1]).future : null;
        // Ours submits no task to pass a value on (DIFF-23).
        boolean isPassed = node.verb.matches("combine|.*-both") && a.isDone() && b.isDone()
                && (a.isCompletedExceptionally() || b.isCompletedExceptionally());
        boolean here = isPassed || node.place.equals("here");
        Executor of = here ? null : node.executor();
        // The same for the failure that has won a race, and for a value that needs no repair (DIFF-23).
        boolean isRace = node.verb.endsWith("-either");
        boolean isRepair = node.verb.equals("exceptionally");
        Executor on = !isRace && !isRepair ? of : task -> {
            if ((isRepair || a.isDone() ? a : b).isCompletedExceptionally() == isRace) {
                task.run();
            } else {
                of.execute(task);
            }
        };
        switch (node.verb) {
            case "new":
                return new CompletableFuture<>();
            case "completed":
                return CompletableFuture.completedFuture(node.number * 10L);
            case "failed":
                return CompletableFuture.failedFuture(failure(played));
            case "apply":
                return here ? a.thenApply(v -> one(node, v)) : a.thenApplyAsync(v -> one(node, v), on);
            case "accept":
                return empty(here ? a.thenAccept(v -> none(node, "" + v))
                        : a.thenAcceptAsync(v -> none(node, "" + v), on));
            case "run-after":
                return empty(here ? a.thenRun(() -> none(node, ""))
                        : a.thenRunAsync(() -> none(node, ""), on));
            case "handle":
                return here ? a.handle((v, x) -> handled(node, v, x))
                        : a.handleAsync((v, x) -> handled(node, v, x), on);
            case "when-complete":
                return here ? a.whenComplete((v, x) -> none(node, show(v, x)))
                        : a.whenCompleteAsync((v, x) -> none(node, show(v, x)), on);
            case "exceptionally":
                return here ? a.exceptionally(x -> recovered(node, x))
                        : a.exceptionallyAsync(x -> recovered(node, x), on);
            case "compose":
                return here ? a.thenCompose(v -> composed(node, "" + v, b))
                        : a.thenComposeAsync(v -> composed(node, "" + v, b), on);
            case "exceptionally-compose":
                return here ? a.exceptionallyCompose(x -> composed(node, show(x), b))
                        : a.exceptionallyComposeAsync(x -> composed(node, show(x), b), on);
            case "combine":
                return here ? a.thenCombine(b, (v, w) -> both(node, v, w))
                        : a.thenCombineAsync(b, (v, w) -> both(node, v, w), on);
            case "accept-both":
                return empty(here ? a.thenAcceptBoth(b, (v, w) -> none(node, v + "," + w))
                        : a.thenAcceptBothAsync(b, (v, w) -> none(node, v + "," + w), on));
            case "run-after-both":
                return empty(here ? a.runAfterBoth(b, () -> none(node, ""))
                        : a.runAfterBothAsync(b, () -> none(node, ""), on));
            case "apply-to-either":
                return here ? a.applyToEither(b, v -> one(node, v))
                        : a.applyToEitherAsync(b, v -> one(node, v), on);
            case "accept-either":
                return empty(here ? a.acceptEither(b, v -> none(node, "" + v))
                        : a.acceptEitherAsync(b, v -> none(node, "" + v), on));
            case "run-after-either":
                return empty(here ? a.runAfterEither(b, () -> none(node, ""))
                        : a.runAfterEitherAsync(b, () -> none(node, ""), on));
            case "copy":
                return a.copy();
            case "minimal":
                return a.minimalCompletionStage().toCompletableFuture();
            case "all-of":
                return empty(CompletableFuture.allOf(members(node)));
            case "any-of":
                return any(CompletableFuture.anyOf(members(node)));
            default:
                throw new IllegalStateException("no step is called " + node.verb);
        }
    }

    private CompletableFuture<?>[] members(Node node) {
        return Arrays.stream(node.names).mapToObj(name -> nodes.get(name).future)
                .toArray(CompletableFuture<?>[]::new);
    }

    private static CompletableFuture<Long> any(CompletableFuture<Object> future) {
        @SuppressWarnings({"unchecked", "rawtypes"})
        CompletableFuture<Long> same = (CompletableFuture<Long>) (CompletableFuture) future;
        return same;
    }

    private String act(String verb, Node node) throws InterruptedException {
        boolean wasPending = !node.future.isDone();
        if (wasPending && !verb.equals("go")) {
            for (int name : node.names) {
                uncounted.add(name);
            }
        }
        long value = played * 7L;
        switch (verb) {
            case "complete":
                return yes(node.future.complete(value));
            case "fail-with":
                return yes(node.future.completeExceptionally(failure(played)));
            case "cancel-node":
                return yes(node.future.cancel(true));
            case "go":
                Runnable task = node.tasks.poll();
                if (task != null) {
                    task.run();
                }
                return yes(task != null);
            case "or-timeout":
                node.future.orTimeout(1, TimeUnit.HOURS);
                return "ok";
            case "complete-on-timeout":
                node.future.completeOnTimeout(value, 1, TimeUnit.HOURS);
                return "ok";
            case "time-out":
                node.future.orTimeout(1, TimeUnit.NANOSECONDS);
                return timedOut(node);
            case "default-now":
                node.future.completeOnTimeout(value, 1, TimeUnit.NANOSECONDS);
                return timedOut(node);
            default:
                throw new IllegalStateException("no step is called " + verb);
        }
    }

    /** Waits for the timer, and for all that it runs because of it: it has one thread. */
    private static String timedOut(Node node) throws InterruptedException {
        try {
            node.future.get();
        } catch (CancellationException | ExecutionException failed) {
            // It is complete, and that is enough.
        }
        CountDownLatch done = new CountDownLatch(1);
        CompletableFuture.delayedExecutor(1, TimeUnit.NANOSECONDS, Runnable::run).execute(done::countDown);
        done.await();
        return "ok";
    }

    private String reading(Node node) {
        CompletableFuture<Long> future = node.future;
        String state = "pending";
        if (future.isDone()) {
            Throwable[] thrown = new Throwable[1];
            state = future.handle((value, x) -> {
                thrown[0] = x;
                return show(value, x);
            }).join();
            if (node.verb.equals("when-complete") && isSuppressed(thrown[0], THROWN + node.number)) {
                state += "+";
            }
        }
        String flags = (future.isDone() ? "d" : "")
                + (future.isCancelled() ? "c" : "")
                + (future.isCompletedExceptionally() ? "e" : "")
                + (node.tasks.isEmpty() ? "" : "q");
        String dependents = uncounted.contains(node.number)
                ? "*" : Integer.toString(future.getNumberOfDependents());
        String now;
        try {
            now = String.valueOf(future.getNow(-1L));
        } catch (CancellationException cancelled) {
            now = "cancellation";
        } catch (CompletionException failed) {
            now = "completion";
        }
        return node.number + "=" + state + "/" + flags + "/" + dependents + "/" + now;
    }

    private static boolean isSuppressed(Throwable thrown, int number) {
        for (Throwable each = thrown; each != null; each = each.getCause()) {
            for (Throwable suppressed : each.getSuppressed()) {
                if (suppressed instanceof Failure && ((Failure) suppressed).number == number) {
                    return true;
                }
            }
        }
        return false;
    }

    private static String yes(boolean yes) {
        return yes ? "yes" : "no";
    }
}
