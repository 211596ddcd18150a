import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;

/**
 * Java's side of the differential test: scripts come in on standard input, lines of log go out on
 * standard output. One process plays all scripts, one after the other.
 *
 * <p>A script is its steps, a line each, as the runner writes them; the step {@code end} is the last.
 * The answer is a line for each step, and a line {@code end}. A step that cannot be played, or after which the pool does not
 * come to rest in time, is answered by a last line that begins with {@code stuck} or
 * {@code impossible}; the rest of the script is then skipped. The argument is the patience for
 * coming to rest, in milliseconds.
 */
final class Differential {
    private Differential() {}

    public static void main(String[] arguments) throws Exception {
        long patience = TimeUnit.MILLISECONDS.toNanos(Long.parseLong(arguments[0]));
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(
                new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)), false, "UTF-8");
        out.println("java " + Runtime.version());
        out.println("end");
        out.flush();
        Plays player = null;
        boolean skips = false;
        for (String step = in.readLine(); step != null; step = in.readLine()) {
            if (player == null) {
                player = step.startsWith("fork-join") ? new ForkJoinPlayer(patience)
                        : step.equals("futures") ? new FuturePlayer() : new Player(patience);
            }
            if (!skips) {
                String line = answer(player, step);
                out.println(line);
                skips = line.startsWith("stuck") || line.startsWith("impossible");
            }
            if (step.equals("end")) {
                out.println("end");
                out.flush();
                player = null;
                skips = false;
            }
        }
    }

    private static String answer(Plays player, String step) {
        try {
            return player.play(step);
        } catch (Throwable broken) {
            broken.printStackTrace();
            return "stuck: " + broken;
        }
    }
}
