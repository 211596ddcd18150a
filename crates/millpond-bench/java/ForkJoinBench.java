import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveAction;
import java.util.function.LongSupplier;

/**
 * Java's fork-join pool, doing the workloads of the bench's suite "forkjoin". It does the same as
 * crates/millpond-bench/src/workloads/forkjoin, step by step; what is explained there is not explained
 * again. Orders and answers are those of PoolBench; PRODUCERS is the number of threads that compute.
 *
 * <p>Results are in fields of the actions and not boxed, as in the benchmarks of Java's own authors.
 */
public final class ForkJoinBench {
    static final int MOST_FIB = 32;
    static final long SMALL_TREE = 1_023;
    static final int SMALL_PIECE = 64;
    static final int LEAF = 1_024;
    static final int HASHES = 8;
    static final long ROOT = 0x6d69_6c6cL;

    /** A node of a tree. */
    static final class Node {
        final long value;
        Node left;
        Node right;

        Node(long value) {
            this.value = value;
        }
    }

    // The computations.

    static final class Fib extends RecursiveAction {
        final int index;
        long result;

        Fib(int index) {
            this.index = index;
        }

        @Override
        protected void compute() {
            if (index < 2) {
                result = index;
                return;
            }
            Fib second = new Fib(index - 2);
            second.fork();
            Fib first = new Fib(index - 1);
            first.compute();
            second.join();
            result = first.result + second.result;
        }
    }

    static final class Sum extends RecursiveAction {
        final Node node;
        long result;

        Sum(Node node) {
            this.node = node;
        }

        @Override
        protected void compute() {
            if (node.left == null) {
                result = node.value;
                return;
            }
            Sum right = new Sum(node.right);
            right.fork();
            Sum left = new Sum(node.left);
            left.compute();
            right.join();
            result = node.value + left.result + right.result;
        }
    }

    static final class Walk extends RecursiveAction {
        final long nodes;
        final long given;
        long result;

        Walk(long nodes, long hash) {
            this.nodes = nodes;
            this.given = hash;
        }

        @Override
        protected void compute() {
            if (nodes == 0) {
                return;
            }
            long hash = given;
            for (long round = 0; round < HASHES; round++) {
                hash = (hash ^ round) * 0xbf58476d1ce4e5b9L;
                hash ^= hash >>> 29;
            }
            long rest = nodes - 1;
            if (rest == 0) {
                result = 1;
                return;
            }
            long share = (hash >>> 8 & 0xff) + 1;
            long few = (rest * (share * share * share)) >>> 25;
            boolean isLeft = (hash & 1) == 0;
            Walk right = new Walk(isLeft ? rest - few : few, hash ^ 2);
            right.fork();
            Walk left = new Walk(isLeft ? few : rest - few, hash ^ 1);
            left.compute();
            right.join();
            result = 1 + left.result + right.result;
        }
    }

    static final class Quicksort extends RecursiveAction {
        final long[] items;
        final int from;
        final int to;

        Quicksort(long[] items, int from, int to) {
            this.items = items;
            this.from = from;
            this.to = to;
        }

        private void order(int a, int b) {
            if (items[a] > items[b]) {
                swap(a, b);
            }
        }

        private void swap(int a, int b) {
            long item = items[a];
            items[a] = items[b];
            items[b] = item;
        }

        @Override
        protected void compute() {
            if (to - from <= SMALL_PIECE) {
                Arrays.sort(items, from, to);
                return;
            }
            int last = to - 1;
            int middle = from + (to - from) / 2;
            order(from, middle);
            order(from, last);
            order(middle, last);
            swap(middle, last);
            long pivot = items[last];
            int smaller = from;
            for (int each = from; each < last; each++) {
                long item = items[each];
                items[each] = items[smaller];
                items[smaller] = item;
                smaller += item < pivot ? 1 : 0;
            }
            swap(smaller, last);
            Quicksort right = new Quicksort(items, smaller + 1, to);
            right.fork();
            new Quicksort(items, from, smaller).compute();
            right.join();
        }
    }

    static final class SumOf extends RecursiveAction {
        final long[] items;
        final int from;
        final int to;
        long result;

        SumOf(long[] items, int from, int to) {
            this.items = items;
            this.from = from;
            this.to = to;
        }

        @Override
        protected void compute() {
            if (to - from <= LEAF) {
                long sum = 0;
                for (int each = from; each < to; each++) {
                    sum += items[each];
                }
                result = sum;
                return;
            }
            int middle = from + (to - from) / 2;
            SumOf right = new SumOf(items, middle, to);
            right.fork();
            SumOf left = new SumOf(items, from, middle);
            left.compute();
            right.join();
            result = left.result + right.result;
        }
    }

    // Inputs: the last one is kept.

    static String keptFor = "";
    static Object kept;

    static Node full(int levels, long[] next) {
        Node node = new Node(next[0]++);
        if (levels > 1) {
            node.left = full(levels - 1, next);
            node.right = full(levels - 1, next);
        }
        return node;
    }

    static int levels(long nodes) {
        int levels = 1;
        while ((1L << levels) - 1 < nodes) {
            levels++;
        }
        return levels;
    }

    static Object input(String what, long size) {
        String wanted = what + " " + size;
        if (!keptFor.equals(wanted)) {
            kept = null;
            keptFor = wanted;
            kept = switch (what) {
                case "tree" -> full(levels(size), new long[] {1});
                case "range" -> {
                    long[] range = new long[(int) size];
                    Arrays.setAll(range, index -> index);
                    yield range;
                }
                default -> {
                    SplittableRandom random = new SplittableRandom(1);
                    long[] numbers = new long[(int) size];
                    Arrays.setAll(numbers, index -> random.nextLong() >>> 11);
                    yield numbers;
                }
            };
        }
        return kept;
    }

    // The workloads.

    /** A computation: how many operations it has, and its result, which must be as expected. */
    record Work(long operations, long expected, LongSupplier compute, LongSupplier result) {
        Work(long operations, long expected, LongSupplier compute) {
            this(operations, expected, compute, null);
        }
    }

    static Work fib(long joins) {
        int index = 1;
        long now = 1;
        long next = 1;
        while (index < MOST_FIB && next - 1 < joins) {
            long sum = now + next;
            now = next;
            next = sum;
            index++;
        }
        long each = Math.max(next - 1, 1);
        long times = Math.max(1, (joins + each - 1) / each);
        int last = index;
        return new Work(times * (next - 1), times * now, () -> {
            long sum = 0;
            for (long time = 0; time < times; time++) {
                Fib fib = new Fib(last);
                fib.compute();
                sum += fib.result;
            }
            return sum;
        });
    }

    static Work tree(long nodes, long times) {
        long all = (1L << levels(nodes)) - 1;
        Node tree = (Node) input("tree", all);
        return new Work(times * all, times * (all * (all + 1) / 2), () -> {
            long total = 0;
            for (long time = 0; time < times; time++) {
                Sum sum = new Sum(tree);
                sum.compute();
                total += sum.result;
            }
            return total;
        });
    }

    static Work uneven(long nodes) {
        return new Work(nodes, nodes, () -> {
            Walk walk = new Walk(nodes, ROOT);
            walk.compute();
            return walk.result;
        });
    }

    static Work sort(long items, boolean isOwn) {
        long[] numbers = ((long[]) input("numbers", items)).clone();
        LongSupplier compute = () -> {
            if (isOwn) {
                new Quicksort(numbers, 0, numbers.length).compute();
            } else {
                Arrays.parallelSort(numbers);
            }
            return 0;
        };
        LongSupplier result = () -> {
            for (int each = 1; each < numbers.length; each++) {
                if (numbers[each - 1] > numbers[each]) {
                    throw new IllegalStateException("the items are not in order");
                }
            }
            return Arrays.stream(numbers).sum();
        };
        return new Work(items, Arrays.stream(numbers).sum(), compute, result);
    }

    static Work sum(long items) {
        long[] range = (long[]) input("range", items);
        return new Work(items, items * (items - 1) / 2, () -> {
            SumOf sum = new SumOf(range, 0, range.length);
            sum.compute();
            return sum.result;
        });
    }

    static Work work(String work, long operations) {
        return switch (work) {
            case "fib" -> fib(operations);
            case "small-tree" -> tree(SMALL_TREE, Math.max(1, (operations + SMALL_TREE - 1) / SMALL_TREE));
            case "large-tree" -> tree(operations, 1);
            case "uneven" -> uneven(operations);
            case "quicksort" -> sort(operations, true);
            case "sort" -> sort(operations, false);
            case "sum" -> sum(operations);
            default -> throw new IllegalArgumentException("there is no work " + work);
        };
    }

    static ForkJoinPool pool;
    static int poolThreads;

    static String run(String word, int threads, long operations) throws Exception {
        if (poolThreads != threads) {
            if (pool != null) {
                pool.shutdown();
            }
            pool = new ForkJoinPool(threads);
            poolThreads = threads;
        }
        Work work = work(word, operations);
        Usage before = Usage.ofAll();
        long[] nanos = new long[1];
        long result = pool.submit(() -> {
            long start = System.nanoTime();
            long computed = work.compute.getAsLong();
            nanos[0] = System.nanoTime() - start;
            return computed;
        }).get();
        Thread.sleep(2);
        Usage usage = Usage.between(before, Usage.ofAll());
        if (work.result != null) {
            result = work.result.getAsLong();
        }
        if (result != work.expected) {
            throw new IllegalStateException("the result is " + result + " instead of " + work.expected);
        }
        return "done operations=" + work.operations + " nanos=" + nanos[0] + Usage.said(usage);
    }

    // Orders and answers.

    static final Set<String> WARM = new HashSet<>();

    static void warmUp(String word, int threads, long millis) throws Exception {
        if (millis <= 0 || !WARM.add(word + " " + threads)) {
            return;
        }
        long end = System.nanoTime() + millis * 1_000_000;
        do {
            run(word, threads, 100_000);
        } while (System.nanoTime() < end);
    }

    static String answer(String order) {
        try {
            String[] words = order.trim().split("\\s+");
            if (words.length != 6 || !words[0].equals("run")) {
                throw new IllegalArgumentException("not an order: " + order);
            }
            if (!words[2].equals("fjp")) {
                throw new IllegalArgumentException("there is no executor " + words[2]);
            }
            int threads = Integer.parseInt(words[3]);
            warmUp(words[1], threads, Long.parseLong(words[5]));
            return run(words[1], threads, Long.parseLong(words[4]));
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
