import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.RecursiveTask;

/** A computation of a fork-join script; src/differential/tree.rs has its grammar. */
final class Tree extends RecursiveTask<Long> {
    static final long MODULUS = 1_000_003;
    /** The code of the error that a cancelled task is. */
    static final long CANCELLED = -1;

    /** What a computation throws. It cannot be copied, so it comes out of a join as it went in. */
    static final class Thrown extends RuntimeException {
        final long code;

        Thrown(long code) {
            super("as the script says", null, false, false);
            this.code = code;
        }
    }

    private final String verb;
    private final long number;
    private final int[] order;
    private final List<Tree> parts = new ArrayList<>();
    private Completers.Node completers;
    private Trace trace;

    private Tree(String word) {
        int colon = word.indexOf(':');
        verb = colon < 0 ? word : word.substring(0, colon);
        number = 0;
        order = colon < 0
                ? new int[0]
                : word.substring(colon + 1).chars().map(digit -> digit - '0').toArray();
    }

    private Tree(String verb, long number) {
        this.verb = verb;
        this.number = number;
        this.order = new int[0];
    }

    static Tree read(String text, Trace trace) {
        String spaced = text.replace("(", " ( ").replace(")", " ) ").strip();
        Tree tree = read(List.of(spaced.split(" +")).iterator());
        tree.tell(trace);
        return tree;
    }

    private void tell(Trace trace) {
        this.trace = trace;
        parts.forEach(part -> part.tell(trace));
    }

    private static Tree read(Iterator<String> tokens) {
        return read(tokens.next(), tokens);
    }

    private static Tree read(String first, Iterator<String> tokens) {
        if (first.startsWith("!")) {
            return new Tree("!", Long.parseLong(first.substring(1)));
        }
        if (!first.equals("(")) {
            return new Tree("value", Long.parseLong(first));
        }
        String word = tokens.next();
        Tree tree = new Tree(word);
        if (word.equals("parts")) {
            tokens.next();
            tree.completers = Completers.Node.read(tokens);
            tokens.next();
            return tree;
        }
        for (String next = tokens.next(); !next.equals(")"); next = tokens.next()) {
            tree.parts.add(read(next, tokens));
        }
        return tree;
    }

    /** What came of a task, as a value or as the code of an error. */
    static final class Outcome {
        final long value;
        final boolean isError;

        Outcome(long value, boolean isError) {
            this.value = value;
            this.isError = isError;
        }
    }

    static Outcome joined(ForkJoinTask<Long> task) {
        try {
            return new Outcome(task.join(), false);
        } catch (Thrown thrown) {
            return new Outcome(thrown.code, true);
        } catch (CancellationException cancelled) {
            return new Outcome(CANCELLED, true);
        }
    }

    private static long sum(List<Long> values) {
        long sum = 0;
        for (int i = 0; i < values.size(); i++) {
            sum = (sum + (i + 1) * values.get(i)) % MODULUS;
        }
        return sum;
    }

    /** All values, or the first error. */
    private static long allOf(List<Outcome> outcomes) {
        List<Long> values = new ArrayList<>();
        for (Outcome outcome : outcomes) {
            if (outcome.isError) {
                throw new Thrown(outcome.value);
            }
            values.add(outcome.value);
        }
        return sum(values);
    }

    private List<Long> results() {
        List<Long> values = new ArrayList<>();
        parts.forEach(part -> values.add(part.getRawResult()));
        return values;
    }

    @Override
    protected Long compute() {
        List<Outcome> outcomes = new ArrayList<>();
        switch (verb) {
            case "value":
                trace.visit(Long.toString(number));
                return number;
            case "!":
                trace.visit("!" + number);
                throw new Thrown(number);
            case "parts":
                return Completers.invoke(completers, trace);
            case "two":
                invokeAll(parts.get(0), parts.get(1));
                return sum(results());
            case "all":
                invokeAll(parts);
                return sum(results());
            case "fork":
                parts.forEach(Tree::fork);
                for (int index : order) {
                    outcomes.add(joined(parts.get(index)));
                }
                return allOf(outcomes);
            case "early":
                parts.forEach(Tree::fork);
                for (int index : order) {
                    Outcome outcome = joined(parts.get(index));
                    outcomes.add(outcome);
                    if (outcome.isError) {
                        break;
                    }
                }
                return allOf(outcomes);
            case "try":
                try {
                    return parts.get(0).compute();
                } catch (Thrown thrown) {
                    return 7 * thrown.code;
                }
            case "detach":
                parts.forEach(Tree::fork);
                return 0L;
            case "cancel":
                parts.get(0).fork();
                parts.get(0).cancel(false);
                outcomes.add(joined(parts.get(0)));
                return allOf(outcomes);
            case "quiesce":
                parts.forEach(Tree::fork);
                helpQuiesce();
                parts.forEach(part -> outcomes.add(joined(part)));
                return allOf(outcomes);
            default:
                throw new IllegalStateException("no computation is called " + verb);
        }
    }

    /** Where parts say that they run. */
    static final class Trace {
        private final List<String> visited = new ArrayList<>();
        private final boolean isOn;

        Trace(boolean isOn) {
            this.isOn = isOn;
        }

        synchronized void visit(String what) {
            if (isOn) {
                visited.add(what);
            }
        }

        synchronized List<String> take() {
            List<String> all = new ArrayList<>(visited);
            visited.clear();
            return all;
        }
    }
}
