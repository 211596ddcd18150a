import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;

/**
 * Java's CompletableFuture, doing the workloads of the bench's suite "future". It does the same as
 * crates/millpond-bench/src/workloads/future, step by step; what is explained there is not explained
 * again. Orders and answers are those of PoolBench; the executor is the word of the work, so that each
 * work has a JVM of its own.
 */
public final class FutureBench {
    static final int WORKERS = 2;
    static final int STAGES = 1_000;
    static final int GROUP = 10_000;
    static final int MEMBERS = 10;
    static final int PARTS = 8;
    static final int IN_FLIGHT = 64;
    static final int BATCH = 1_000;

    static final ForkJoinPool POOL =
            new ForkJoinPool(WORKERS, ForkJoinPool.defaultForkJoinWorkerThreadFactory, null, true);

    /** Does a number of operations, or a few more, and says how many. */
    interface Work {
        long run(long operations) throws Exception;
    }

    static void check(long is, long should) {
        if (is != should) {
            throw new IllegalStateException("the result is " + is + " instead of " + should);
        }
    }

    static long rounded(long operations, long unit) {
        return Math.max(1, (operations + unit - 1) / unit);
    }

    // On one thread.

    static CompletableFuture<Long> chain(CompletableFuture<Long> source) {
        CompletableFuture<Long> last = source;
        for (int stage = 0; stage < STAGES; stage++) {
            last = last.thenApply(value -> value + 1);
        }
        return last;
    }

    static long chainDone(long stages) {
        long chains = rounded(stages, STAGES);
        for (long number = 0; number < chains; number++) {
            check(chain(CompletableFuture.completedFuture(number)).join(), number + STAGES);
        }
        return chains * STAGES;
    }

    static long chainPending(long stages) {
        long chains = rounded(stages, STAGES);
        for (long number = 0; number < chains; number++) {
            CompletableFuture<Long> source = new CompletableFuture<>();
            CompletableFuture<Long> last = chain(source);
            source.complete(number);
            check(last.join(), number + STAGES);
        }
        return chains * STAGES;
    }

    static long any(long operations) {
        for (long number = 0; number < operations; number++) {
            @SuppressWarnings("unchecked")
            CompletableFuture<Long>[] members = new CompletableFuture[MEMBERS];
            for (int each = 0; each < MEMBERS; each++) {
                members[each] = new CompletableFuture<>();
            }
            CompletableFuture<Object> first = CompletableFuture.anyOf(members);
            members[(int) (number % MEMBERS)].complete(number);
            check((Long) first.join(), number);
        }
        return operations;
    }

    static long race(long operations) {
        CompletableFuture<Long> never = new CompletableFuture<>();
        for (long number = 0; number < operations; number++) {
            CompletableFuture<Long> source = new CompletableFuture<>();
            CompletableFuture<Long> first = never.applyToEither(source, value -> value);
            source.complete(number);
            check(first.join(), number);
        }
        return operations;
    }

    static long timeout(long operations) {
        for (long number = 0; number < operations; number++) {
            CompletableFuture<Long> source = new CompletableFuture<>();
            CompletableFuture<Long> limited = source.orTimeout(1, TimeUnit.HOURS);
            source.complete(number);
            check(limited.join(), number);
        }
        return operations;
    }

    static long timeouts(long operations) {
        long batches = rounded(operations, BATCH);
        @SuppressWarnings("unchecked")
        CompletableFuture<Long>[] limited = new CompletableFuture[BATCH];
        for (long batch = 0; batch < batches; batch++) {
            for (int each = 0; each < BATCH; each++) {
                limited[each] = new CompletableFuture<Long>().orTimeout(1, TimeUnit.HOURS);
            }
            for (int each = 0; each < BATCH; each++) {
                limited[each].complete(batch + each);
                check(limited[each].join(), batch + each);
            }
        }
        return batches * BATCH;
    }

    // In a pool.

    static long all(long tasks) {
        long groups = rounded(tasks, GROUP);
        for (long group = 0; group < groups; group++) {
            @SuppressWarnings("unchecked")
            CompletableFuture<Long>[] members = new CompletableFuture[GROUP];
            for (int each = 0; each < GROUP; each++) {
                long number = group + each;
                members[each] = CompletableFuture.supplyAsync(() -> number, POOL);
            }
            CompletableFuture.allOf(members).join();
            long sum = 0;
            for (CompletableFuture<Long> member : members) {
                sum += member.join();
            }
            check(sum, group * GROUP + (long) GROUP * (GROUP - 1) / 2);
        }
        return groups * GROUP;
    }

    static CompletableFuture<Long> request(long number) {
        CompletableFuture<Long> source = CompletableFuture.supplyAsync(() -> number, POOL);
        @SuppressWarnings("unchecked")
        CompletableFuture<Long>[] parts = new CompletableFuture[PARTS];
        for (int each = 0; each < PARTS; each++) {
            long factor = each + 1;
            parts[each] = source.thenApplyAsync(value -> value * factor, POOL);
        }
        return CompletableFuture.allOf(parts).thenApplyAsync(none -> {
            long sum = 0;
            for (CompletableFuture<Long> part : parts) {
                sum += part.join();
            }
            return sum;
        }, POOL);
    }

    static long fan(long requests) {
        long batches = rounded(requests, IN_FLIGHT);
        @SuppressWarnings("unchecked")
        CompletableFuture<Long>[] results = new CompletableFuture[IN_FLIGHT];
        for (long batch = 0; batch < batches; batch++) {
            for (int each = 0; each < IN_FLIGHT; each++) {
                results[each] = request(batch + each);
            }
            for (int each = 0; each < IN_FLIGHT; each++) {
                check(results[each].join(), (batch + each) * (PARTS * (PARTS + 1) / 2));
            }
        }
        return batches * IN_FLIGHT;
    }

    static Work work(String word) {
        return switch (word) {
            case "chain-done" -> FutureBench::chainDone;
            case "chain-pending" -> FutureBench::chainPending;
            case "all" -> FutureBench::all;
            case "any" -> FutureBench::any;
            case "race" -> FutureBench::race;
            case "fan" -> FutureBench::fan;
            case "timeout" -> FutureBench::timeout;
            case "timeouts" -> FutureBench::timeouts;
            default -> throw new IllegalArgumentException("there is no work " + word);
        };
    }

    static String run(String word, long operations) throws Exception {
        Work work = work(word);
        Usage before = Usage.ofAll();
        long start = System.nanoTime();
        long done = work.run(operations);
        long nanos = System.nanoTime() - start;
        Thread.sleep(2);
        Usage usage = Usage.between(before, Usage.ofAll());
        return "done operations=" + done + " nanos=" + nanos + Usage.said(usage);
    }

    // Orders and answers.

    static final Set<String> WARM = new HashSet<>();

    static void warmUp(String word, long millis) throws Exception {
        if (millis <= 0 || !WARM.add(word)) {
            return;
        }
        long end = System.nanoTime() + millis * 1_000_000;
        do {
            run(word, 10_000);
        } while (System.nanoTime() < end);
    }

    static String answer(String order) {
        try {
            String[] words = order.trim().split("\\s+");
            if (words.length != 6 || !words[0].equals("run")) {
                throw new IllegalArgumentException("not an order: " + order);
            }
            warmUp(words[1], Long.parseLong(words[5]));
            return run(words[1], Long.parseLong(words[4]));
        } catch (Throwable error) {
            String why = error.getMessage() == null ? error.toString() : error.getMessage();
            return "failed " + why.replaceAll("\\s+", " ");
        }
    }

    public static void main(String[] args) throws Exception {
        System.out.println(Jvm.greeting());
        System.out.flush();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String order = input.readLine(); order != null; order = input.readLine()) {
            System.out.println(answer(order));
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }
}
