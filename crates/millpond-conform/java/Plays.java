/** Plays the steps of one script. */
interface Plays {
    /** Plays a step and tells its line. */
    String play(String step) throws Exception;
}
