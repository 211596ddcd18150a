import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What threads used. */
record Usage(long cpu, long sleeps, long preemptions) {
    /** All threads of the JVM: its collector and its compiler work for the tasks too. */
    static Usage ofAll() {
        Thread.yield();
        List<String> folders = new ArrayList<>();
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            threads.forEach(thread -> folders.add(thread.toString()));
        } catch (IOException error) {
            return null;
        }
        return of(folders);
    }

    static Usage of(List<String> folders) {
        long cpu = 0;
        long sleeps = 0;
        long preemptions = 0;
        for (String folder : folders) {
            try {
                String schedstat = Files.readString(Path.of(folder, "schedstat"));
                cpu += Long.parseLong(schedstat.trim().split("\\s+")[0]);
                for (String line : Files.readAllLines(Path.of(folder, "status"))) {
                    if (line.startsWith("voluntary_ctxt_switches:")) {
                        sleeps += number(line);
                    } else if (line.startsWith("nonvoluntary_ctxt_switches:")) {
                        preemptions += number(line);
                    }
                }
            } catch (IOException | RuntimeException error) {
                if (Files.exists(Path.of(folder))) {
                    return null;
                }
                // The thread has ended meanwhile: it was none of ours, they are still there.
            }
        }
        return new Usage(cpu, sleeps, preemptions);
    }

    private static long number(String line) {
        return Long.parseLong(line.substring(line.indexOf(':') + 1).trim());
    }

    static Usage between(Usage before, Usage after) {
        if (before == null || after == null) {
            return null;
        }
        return new Usage(
                Math.max(0, after.cpu - before.cpu),
                Math.max(0, after.sleeps - before.sleeps),
                Math.max(0, after.preemptions - before.preemptions));
    }

    /** The words of an answer; none if it is not known. */
    static String said(Usage usage) {
        return usage == null
                ? ""
                : " cpu=" + usage.cpu + " sleeps=" + usage.sleeps + " preemptions=" + usage.preemptions;
    }

    Usage without(long nanos) {
        return new Usage(Math.max(0, cpu - nanos), sleeps, preemptions);
    }
}
