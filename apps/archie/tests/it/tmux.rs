//! A real terminal, read back: `tmux`.

use std::fs;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::kit::Workdir;

/// A terminal of its own, with a program in it.
pub(crate) struct Terminal {
    socket: String,
}

impl Terminal {
    pub(crate) fn open(workdir: &Workdir) -> Self {
        let program = workdir.command();
        let program = program.get_program().to_str().unwrap().to_owned();
        Self::open_with(workdir, &[&program])
    }

    /// With another program, as the person of this desk would start it.
    pub(crate) fn open_with(workdir: &Workdir, program: &[&str]) -> Self {
        Self::open_sized(workdir, "tmux", program, [WIDTH, HEIGHT])
    }

    /// With a program, in a terminal of this many columns and rows. Terminals of one folder have different names.
    pub(crate) fn open_sized(
        workdir: &Workdir,
        name: &str,
        program: &[&str],
        [width, height]: [u16; 2],
    ) -> Self {
        let socket = workdir.path(name).display().to_string();
        let terminal = Self { socket };
        let person = workdir.command();
        let variables = person.get_envs().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value?.to_str()?);
            Some(format!("{name}={value}"))
        });
        let mut start = terminal.tmux();
        start.args([
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &width.to_string(),
            "-y",
            &height.to_string(),
            "-c",
        ]);
        start.arg(workdir.path(""));
        start.args(["env", "TERM=screen-256color"]);
        start.args(variables).args(program);
        assert!(start.status().unwrap().success());
        terminal
    }

    pub(crate) fn tmux(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.args(["-S", &self.socket]).env_remove("TMUX");
        tmux
    }

    pub(crate) fn kill_9(&self) {
        let pid = self
            .tmux()
            .args(["display", "-p", "#{pane_pid}"])
            .output()
            .unwrap();
        let pid = String::from_utf8(pid.stdout).unwrap();
        let killed = Command::new("kill")
            .args(["-9", pid.trim()])
            .status()
            .unwrap();
        assert!(killed.success());
        self.until_gone();
    }

    /// The program has ended, and its terminal with it.
    pub(crate) fn until_gone(&self) {
        let begun = Instant::now();
        while self
            .tmux()
            .args(["has-session"])
            .output()
            .unwrap()
            .status
            .success()
        {
            assert!(
                begun.elapsed() < PATIENCE,
                "it is still there:\n{}",
                self.screen()
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Types a line, and waits until it is seen: the prompt before it must not be taken for the next one.
    pub(crate) fn types(&self, line: &str) {
        let before = self.screen();
        let typed = self
            .tmux()
            .args(["send-keys", "-l", "--", line])
            .status()
            .unwrap();
        assert!(typed.success());
        let begun = Instant::now();
        // A secret is never seen.
        while self.screen() == before && begun.elapsed() < ECHO_WITHIN {
            std::thread::sleep(LOOK);
        }
        self.presses("Enter");
    }

    pub(crate) fn presses(&self, key: &str) {
        assert!(
            self.tmux()
                .args(["send-keys", key])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Presses a key so many times, as fast as the terminal takes it.
    pub(crate) fn presses_often(&self, key: &str, times: usize) {
        let mut press = self.tmux();
        press.args(["send-keys", "-N", &times.to_string(), key]);
        assert!(press.status().unwrap().success());
    }

    pub(crate) fn screen(&self) -> String {
        let shown = self
            .tmux()
            .args(["capture-pane", "-p", "-S", "-"])
            .output()
            .unwrap();
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }

    /// Changes the size.
    pub(crate) fn resizes(&self, [width, height]: [u16; 2]) {
        let mut resize = self.tmux();
        resize.args([
            "resize-window",
            "-x",
            &width.to_string(),
            "-y",
            &height.to_string(),
        ]);
        assert!(resize.status().unwrap().success());
    }

    /// Waits until the screen holds this, and returns the screen.
    pub(crate) fn until(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{text:?} does not come:\n{screen}"
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until this is no longer on the screen.
    pub(crate) fn until_without(&self, text: &str) {
        let begun = Instant::now();
        while self.screen().contains(text) {
            assert!(
                begun.elapsed() < PATIENCE,
                "{text:?} stays:\n{}",
                self.screen()
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until the last thing on the screen is this.
    pub(crate) fn shows(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if screen.trim_end().ends_with(text.trim_end()) {
                return screen;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{text:?} does not come:\n{screen}"
            );
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It is gone already where its program has ended.
        let _ = self.tmux().args(["kill-server"]).output();
        // It answers while it ends, and the next terminal of this folder would get into the one that ends.
        let begun = Instant::now();
        while UnixStream::connect(&self.socket).is_ok() && begun.elapsed() < PATIENCE {
            std::thread::sleep(LOOK);
        }
    }
}

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long a program may take to show what is typed.
const ECHO_WITHIN: Duration = Duration::from_secs(3);
pub(crate) const LOOK: Duration = Duration::from_millis(20);
const WIDTH: u16 = 110;
const HEIGHT: u16 = 50;

/// What a terminal got and became while a script ran in it.
#[derive(Debug)]
pub(crate) struct Recording {
    /// Every byte that was written to it.
    pub(crate) raw: String,
    /// What can be read on it.
    pub(crate) screen: String,
    /// Its title, its modes and what was copied, before and after.
    pub(crate) states: [String; 2],
}

/// Runs lines of a shell in a terminal that grants programs everything a terminal can grant; `archie` is the program.
pub(crate) fn record(workdir: &Workdir, script: &str) -> Recording {
    let program = workdir.command();
    let program = program.get_program().to_str().unwrap().to_owned();
    let lines = format!(
        "archie() {{ {program} \"$@\"; }}\nwhile [ ! -e go ]; do sleep 0.02; done\n{script}\necho\necho {END}\nwhile :; do sleep 1; done\n"
    );
    fs::write(workdir.path("script.sh"), lines).unwrap();
    let terminal = Terminal::open_with(workdir, &["sh", "script.sh"]);
    let tmux = |args: &[&str]| {
        let output = terminal.tmux().args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    tmux(&["set", "-s", "set-clipboard", "on"]);
    tmux(&["set", "-g", "allow-rename", "on"]);
    tmux(&["set", "-g", "automatic-rename", "off"]);
    tmux(&["set", "-g", "allow-passthrough", "on"]);
    tmux(&["set", "-g", "history-limit", "100000"]);
    let raw = workdir.path("raw");
    tmux(&["pipe-pane", &format!("cat >'{}'", raw.display())]);
    let state = || {
        let modes = "#{pane_title}|#{window_name}|#{alternate_on}|#{cursor_flag}|#{insert_flag}|#{keypad_flag}|#{keypad_cursor_flag}|#{mouse_any_flag}|#{origin_flag}|#{wrap_flag}|#{scroll_region_upper}|#{scroll_region_lower}|#{pane_tabs}";
        tmux(&["display", "-p", modes]) + &tmux(&["list-buffers"])
    };
    let before = state();
    fs::write(workdir.path("go"), "").unwrap();
    let begun = Instant::now();
    let raw = loop {
        let bytes = fs::read(&raw).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.contains(END) {
            break text;
        }
        assert!(
            begun.elapsed() < 6 * PATIENCE,
            "the script does not end:\n{}",
            terminal.screen()
        );
        std::thread::sleep(LOOK);
    };
    Recording {
        raw,
        screen: terminal.screen(),
        states: [before, state()],
    }
}

const END: &str = "the-script-has-ended";
