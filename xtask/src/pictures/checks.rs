//! What a recording must not show: a screen on which nothing happens for long, a line that is wider than the terminal, and the
//! folders of the machine that it was made on.

use std::path::Path;
use std::time::{Duration, Instant};

/// The longest time that a screen did not change.
#[derive(Debug)]
pub(super) struct StillTime {
    since: Instant,
    longest: Duration,
}

impl StillTime {
    /// Begins to measure, for instance when Enter was pressed.
    pub(super) fn start(now: Instant) -> Self {
        Self {
            since: now,
            longest: Duration::ZERO,
        }
    }

    /// Takes note of a look at the screen.
    pub(super) fn look(&mut self, has_changed: bool, now: Instant) {
        self.longest = self.longest.max(now.duration_since(self.since));
        if has_changed {
            self.since = now;
        }
    }

    /// Returns the longest time, if it is too long for a person who does not know whether anything happens.
    pub(super) fn too_long(&self) -> Option<Duration> {
        (self.longest > STILL_MAX).then_some(self.longest)
    }
}

/// Returns the lines that are wider than the terminal. `screen` has each line as the program wrote it. What a person types may
/// go on in the next row, and so may a word that is longer than a row.
pub(super) fn wide_lines(screen: &str, columns: u16) -> Vec<String> {
    let is_typed = |line: &str| PROMPTS.iter().any(|prompt| line.starts_with(prompt));
    // What a shell says of a program that was killed is behind the line that the program was drawing.
    let lines = screen
        .lines()
        .map(|line| line.strip_suffix("Killed").unwrap_or(line));
    let wide = lines.map(str::trim_end).filter(|line| {
        let is_wide = line.chars().count() > usize::from(columns);
        is_wide && line.trim().contains(' ') && !is_typed(line)
    });
    wide.map(str::to_owned).collect()
}

/// Writes the person's home as `~`.
pub(super) fn with_home(screen: &str, home: &Path) -> String {
    screen.replace(&home.display().to_string(), "~")
}

/// Returns the lines that name one of these folders.
pub(super) fn lines_with_folders<'s>(screen: &'s str, folders: &[&Path]) -> Vec<&'s str> {
    let folders: Vec<_> = folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    // `~/tmp` is a folder of the person, although `/tmp` is in it.
    let names = |line: &str, folder: &String| {
        let mut found = line.match_indices(folder.as_str());
        found.any(|(at, _)| !line[..at].ends_with('~'))
    };
    let lines = screen.lines();
    lines
        .filter(|line| folders.iter().any(|folder| names(line, folder)))
        .collect()
}

const PROMPTS: [&str; 2] = ["$ ", "archie> "];
/// A person waits so long without a sign of life.
const STILL_MAX: Duration = Duration::from_secs(2);

#[test]
fn a_screen_that_does_not_change_for_long_is_noticed() {
    let begun = Instant::now();
    let at = |ms| begun + Duration::from_millis(ms);
    let mut still = StillTime::start(begun);
    still.look(false, at(1_500));
    still.look(true, at(1_900));
    still.look(false, at(3_800));
    assert_eq!(still.too_long(), None);
    // The change that ends the wait comes too late.
    still.look(true, at(4_000));
    assert_eq!(still.too_long(), Some(Duration::from_millis(2_100)));
}

#[test]
fn only_lines_of_the_program_that_could_be_broken_are_wide() {
    let screen = "$ archie analyze --query x\n0123456789 and more\n0123456789abcdef\nshort\n";
    assert_eq!(wide_lines(screen, 10), ["0123456789 and more"]);
    assert!(wide_lines(screen, 19).is_empty());
    assert!(wide_lines("mail 1 of 1    Killed\n", 15).is_empty());
}

#[test]
fn folders_of_the_machine_are_found_and_the_home_is_named() {
    let home = Path::new("/tmp/archie7");
    let screen = "saved /tmp/archie7/tmp/a.md\nsee /tmp/other\n";
    let named = with_home(screen, home);
    assert_eq!(named, "saved ~/tmp/a.md\nsee /tmp/other\n");
    let found = lines_with_folders(&named, &[Path::new("/tmp"), home]);
    assert_eq!(found, ["see /tmp/other"]);
}
