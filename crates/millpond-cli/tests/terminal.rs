//! The demo in a real terminal: tmux has one that can be looked at and typed into.
//!
//! Without tmux these tests are skipped, and say so; with `MILLPOND_NO_SKIP=1`, as `cargo xtask test` runs
//! them, that is a failure.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use millpond::interrupt;
use millpond::time::Clock;

/// How long anything may take; it is only ever waited for if something is wrong.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A terminal with a program in it. It is gone, and the program with it, when this is dropped.
struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// `None` if there is no tmux here. What is run may use `$MILLPOND`.
    fn open(name: &str, size: (u16, u16), script: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            let is_needed = std::env::var_os("MILLPOND_NO_SKIP").is_some();
            assert!(!is_needed, "tmux is not here: apt-get install tmux");
            // Past the harness, which shows what is printed only if a test fails.
            let line = "SKIPPED: tmux is not here, so the demo was not tried in a terminal\n";
            let _ = std::io::stderr().write_all(line.as_bytes());
            return None;
        }
        // In a short path: that of a socket may not be long.
        let name = format!("millpond-{}-{name}", std::process::id());
        let terminal = Terminal {
            socket: std::env::temp_dir().join(name),
        };
        // The screen stays when the program has ended, and tells how.
        let script = format!("{script}; echo \"exit code $?\"; stty -a; exec cat");
        let (width, height) = (size.0.to_string(), size.1.to_string());
        let size = ["-x", &width, "-y", &height];
        let started = terminal
            .command(&["new-session", "-d"])
            .args(size)
            .args(["sh", "-c", &script])
            .env("MILLPOND", env!("CARGO_BIN_EXE_millpond"))
            .env_remove("NO_COLOR")
            .output();
        let started = started.expect("tmux starts");
        assert!(started.status.success(), "{started:?}");
        Some(terminal)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        // Whatever the user has configured, and even inside of a tmux.
        command.env_remove("TMUX").args(["-f", "/dev/null", "-S"]);
        command.arg(&self.socket).args(arguments);
        command
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let output: Output = self.command(arguments).output().expect("tmux answers");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("a screen is text")
    }

    fn screen(&self) -> String {
        self.ask(&["capture-pane", "-p"])
    }

    fn press(&self, keys: &[&str]) {
        self.ask(&[&["send-keys"], keys].concat());
    }

    fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        self.ask(&["resize-window", "-x", &width, "-y", &height]);
    }

    /// Looks at the screen until it holds. Returns what was seen then.
    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let clock = Clock::system();
        let deadline = clock.deadline(TIMEOUT);
        loop {
            let screen = self.screen();
            if holds(&screen) {
                return screen;
            }
            assert!(
                !deadline.has_passed(clock.now()),
                "waited in vain until {what}; the screen:\n{screen}"
            );
            // Between two looks: nothing depends on how long it is.
            interrupt::sleep(Duration::from_millis(30)).unwrap();
        }
    }

    fn until_shown(&self, text: &str) -> String {
        self.until(&format!("`{text}` is shown"), |screen| {
            screen.contains(text)
        })
    }

    /// The program has ended well, said what became of all tasks, and left the terminal as it was.
    fn assert_restored(&self) {
        let screen = self.until_shown("icanon");
        assert!(screen.contains("exit code 0"), "{screen}");
        assert!(
            screen.contains("Nothing was lost. The books balance"),
            "{screen}"
        );
        assert!(
            !screen.contains("-icanon") && !screen.contains("-echo "),
            "{screen}"
        );
        let flags = self.ask(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
        assert_eq!(flags.trim(), "0 1", "the cursor shows on the usual screen");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // If it never started there is nothing to end.
        let _ = self.command(&["kill-server"]).output();
        let _ = std::fs::remove_file(&self.socket);
    }
}

#[test]
fn the_demo_can_be_watched_and_changed_and_ends_in_order() {
    let Some(terminal) = Terminal::open("keys", (80, 40), "$MILLPOND --seed 7") else {
        return;
    };
    terminal.until("all pools have tasks", |screen| {
        let pools = [
            "1 orders  core 2  max 6",
            "2 images  core 1",
            "3 mails  core 1",
        ];
        let has_all = pools.iter().all(|pool| screen.contains(pool));
        let tasks = ["check stock", "thumbnail", "receipt"];
        has_all && tasks.iter().any(|task| screen.contains(task))
    });

    terminal.press(&["c"]);
    terminal.until_shown("1 orders  core 3  max 6");
    terminal.press(&["Tab", "c"]);
    terminal.until_shown("core 2 is above max 1: raise max");
    terminal.press(&["m", "c", "x"]);
    terminal.until_shown("2 images  core 2  max 2  queue 24");
    terminal.press(&["3", "r"]);
    terminal.until_shown("policy caller runs");
    terminal.press(&["+"]);
    terminal.until_shown("load 125 %");
    terminal.press(&["p"]);
    terminal.until_shown("PAUSED");
    terminal.press(&["p"]);
    terminal.until("it goes on", |screen| !screen.contains("PAUSED"));

    terminal.press(&["e"]);
    terminal.until_shown("mails is running");
    terminal.press(&["?"]);
    terminal.until_shown("choose a pool: the keys below");
    terminal.press(&["Escape"]);
    terminal.until("the help is gone", |screen| {
        !screen.contains("choose a pool")
    });

    terminal.resize(50, 12);
    terminal.until_shown("2 images ");
    terminal.until("it is compact", |screen| !screen.contains("threads "));
    terminal.resize(30, 5);
    terminal.until_shown("Too small: this is 30 x 5");
    terminal.resize(120, 50);
    terminal.until_shown("mails in sentences");

    terminal.press(&["q"]);
    terminal.assert_restored();
}

#[test]
fn it_ends_by_itself_when_its_time_is_over() {
    let Some(terminal) = Terminal::open("time", (80, 24), "$MILLPOND demo --seconds 4") else {
        return;
    };
    terminal.until_shown("of 0:04");
    terminal.assert_restored();
}

#[test]
fn being_told_to_end_by_a_signal_is_as_good_as_a_key() {
    let script = "sh -c 'echo $$ > $PID; exec $MILLPOND'";
    let file = std::env::temp_dir().join(format!("millpond-{}.pid", std::process::id()));
    let script = format!("PID={} {script}", file.display());
    let Some(terminal) = Terminal::open("signal", (80, 24), &script) else {
        return;
    };
    terminal.until_shown("1 orders  core 2");
    let child = std::fs::read_to_string(&file).expect("the shell has written its number");
    std::fs::remove_file(&file).expect("nobody else removes it");
    let killed = Command::new("kill").args(["-TERM", child.trim()]).status();
    assert!(killed.expect("kill can be run").success());
    terminal.assert_restored();
}

/// Whether anything but the terminal's own colours is on the screen.
fn has_colours(terminal: &Terminal) -> bool {
    let painted = terminal.ask(&["capture-pane", "-p", "-e"]);
    let codes = painted.split("\x1b[").skip(1);
    codes
        .filter_map(|rest| rest.split_once('m'))
        .flat_map(|(codes, _)| codes.split(';'))
        // Of the sixteen, or of others.
        .any(|code| matches!(code, "31" | "32" | "33" | "34" | "35" | "36" | "38"))
}

#[test]
fn it_has_colours_unless_they_are_not_wanted() {
    for (name, script, wanted) in [
        ("paint", "$MILLPOND", true),
        ("plain", "NO_COLOR=1 $MILLPOND", false),
    ] {
        let Some(terminal) = Terminal::open(name, (80, 24), script) else {
            return;
        };
        terminal.until_shown("1 orders  core 2");
        assert_eq!(has_colours(&terminal), wanted, "{script}");
        terminal.press(&["C-c"]);
        terminal.assert_restored();
    }
}
