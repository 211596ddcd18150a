import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;

/** What timers hold and use while they wait. Each of these orders has a JVM of its own. */
final class Waiting {
    static final int WAVES = 3;

    /** A collection may leave behind what the next one takes. */
    static final int COLLECTIONS = 3;

    static String memory(String executor, long count) throws Exception {
        ScheduledBench.Far far = new ScheduledBench.Far(ScheduledBench.open(executor));
        List<Future<?>> handles = new ArrayList<>();
        long empty = residentWhenClean();
        long start = System.nanoTime();
        fill(far, handles, count);
        long first = residentWhenClean();
        for (int wave = 0; wave < WAVES; wave++) {
            for (Future<?> timer : handles) {
                timer.cancel(false);
            }
            handles.clear();
            residentWhenClean();
            fill(far, handles, count);
        }
        long last = residentWhenClean();
        long nanos = System.nanoTime() - start;
        if (handles.size() != count) {
            throw new IllegalStateException("the handles are gone");
        }
        far.close();
        return "done operations=" + count + " nanos=" + nanos
                + " resident=" + Math.max(0, first - empty) + " kept=" + Math.max(0, last - first) / WAVES;
    }

    private static void fill(ScheduledBench.Far far, List<Future<?>> handles, long count) {
        for (long timer = 0; timer < count; timer++) {
            handles.add(far.schedule());
        }
    }

    /** What the process has when all that nobody needs is collected, in bytes. */
    private static long residentWhenClean() throws IOException {
        for (int collection = 0; collection < COLLECTIONS; collection++) {
            System.gc();
        }
        for (String line : Files.readAllLines(Path.of("/proc/self/smaps_rollup"))) {
            String[] words = line.trim().split("\\s+");
            if (words[0].equals("Rss:")) {
                return Long.parseLong(words[1]) * 1024;
            }
        }
        throw new IOException("/proc/self/smaps_rollup does not say what is resident");
    }

    /** It waits until this process ends, and whoever ordered it looks on. */
    static String hour(String executor, long timers) {
        long start = System.nanoTime();
        new ScheduledBench.Far(ScheduledBench.open(executor)).schedule();
        return "done operations=" + timers + " nanos=" + (System.nanoTime() - start);
    }

    private Waiting() {}
}
