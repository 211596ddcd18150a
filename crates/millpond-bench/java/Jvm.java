import java.lang.management.ManagementFactory;
import java.util.List;

/** What runs this program, in its own words. */
final class Jvm {
    /** The first line of all: the version, and the flags that it was started with. */
    static String greeting() {
        List<String> flags = ManagementFactory.getRuntimeMXBean().getInputArguments();
        String said = flags.isEmpty() ? "no flags" : String.join(" ", flags);
        return "ready " + System.getProperty("java.vm.name") + " " + System.getProperty("java.version")
                + " (" + said + ")";
    }

    private Jvm() {}
}
