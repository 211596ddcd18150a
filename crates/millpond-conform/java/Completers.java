import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CountedCompleter;
import java.util.concurrent.atomic.AtomicLong;

/** Computations with counted completers; src/differential/tree.rs says what a node does. */
final class Completers {
    private Completers() {}

    /** A node as it is written. */
    static final class Node {
        long id;
        char forks;
        char ends;
        final List<Node> parts = new ArrayList<>();

        /** Reads a node, after its bracket. */
        static Node read(Iterator<String> tokens) {
            String word = tokens.next();
            int length = word.length();
            Node node = new Node();
            node.id = Long.parseLong(word.substring(0, length - 2));
            node.forks = word.charAt(length - 2);
            node.ends = word.charAt(length - 1);
            while (tokens.next().equals("(")) {
                node.parts.add(read(tokens));
            }
            return node;
        }

        boolean has(char ends) {
            return this.ends == ends || parts.stream().anyMatch(part -> part.has(ends));
        }
    }

    static long invoke(Node node, Tree.Trace trace) {
        // If the root may end before its parts, their order is not told (DIFF-14).
        boolean isTraced = !node.has('x') && !node.has('q');
        Counted root = new Counted(null, node, isTraced ? trace : new Tree.Trace(false));
        root.invoke();
        return (node.has('q') ? root.found : root.total).get() % Tree.MODULUS;
    }

    private static final class Counted extends CountedCompleter<Void> {
        private final Node node;
        private final Tree.Trace trace;
        final AtomicLong total;
        final AtomicLong found = new AtomicLong();
        private Counted arriving;

        Counted(CountedCompleter<?> parent, Node node, Tree.Trace trace) {
            super(parent);
            this.node = node;
            this.trace = trace;
            total = new AtomicLong(node.id);
        }

        @Override
        public void compute() {
            trace.visit("c" + node.id);
            List<Counted> parts = new ArrayList<>();
            node.parts.forEach(part -> parts.add(new Counted(this, part, trace)));
            int count = parts.size();
            switch (node.forks) {
                case 'f':
                    parts.forEach(part -> {
                        addToPendingCount(1);
                        part.fork();
                    });
                    break;
                case 's':
                    setPendingCount(count);
                    parts.forEach(Counted::fork);
                    break;
                case 'a':
                    addToPendingCount(count);
                    parts.forEach(Counted::fork);
                    break;
                default:
                    setPendingCount(count - 1);
                    parts.subList(0, count - 1).forEach(Counted::fork);
                    parts.get(count - 1).compute();
            }
            end();
        }

        private void end() {
            switch (node.ends) {
                case 't':
                    tryComplete();
                    break;
                case 'p':
                    propagateCompletion();
                    break;
                case 'c':
                    arrive();
                    break;
                case 'x':
                    throw new Tree.Thrown(node.id);
                case 'q':
                    ((Counted) getRoot()).found.compareAndSet(0, node.id);
                    quietlyCompleteRoot();
                    break;
                case 'r':
                    for (Counted next = (Counted) firstComplete();
                            next != null;
                            next = (Counted) next.nextComplete()) {
                        trace.visit("r" + next.node.id);
                        next.addTo((Counted) next.getCompleter());
                    }
                    break;
                default:
            }
        }

        /** Java tells the parent of what was completed this way that it completes itself (DIFF-16). */
        private void arrive() {
            Counted parent = (Counted) getCompleter();
            if (parent != null) {
                parent.arriving = this;
            }
            complete(null);
            if (parent != null) {
                parent.arriving = null;
            }
        }

        private void addTo(Counted parent) {
            if (parent != null) {
                parent.total.addAndGet(total.get());
            }
        }

        @Override
        public void onCompletion(CountedCompleter<?> caller) {
            Counted part = arriving != null ? arriving : (Counted) caller;
            trace.visit("o" + node.id + "<" + part.node.id);
            addTo((Counted) getCompleter());
        }
    }
}
