//! Pictures of the real program for the README: it runs in a terminal, keys are typed, and what is on the screen is drawn.
//!
//! A scene fails, and its picture stays as it was, if nothing changed on the screen for more than two seconds while a person
//! waited, if a line was wider than the terminal, or if a folder of this machine was to be seen.

mod checks;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use harness::workspace::{cargo, output_of, root};

use self::checks::{StillTime, lines_with_folders, wide_lines, with_home};

/// Takes the pictures with these names again; every one if there are none.
pub(crate) fn run(names: &[String]) -> anyhow::Result<()> {
    let is_scene = |name: &String| SCENES.iter().any(|scene| scene.name == name);
    if let Some(unknown) = names.iter().find(|name| !is_scene(name)) {
        let scenes: Vec<_> = SCENES.iter().map(|scene| scene.name).collect();
        bail!(
            "no picture is called `{unknown}`; there are {}",
            scenes.join(", ")
        );
    }
    let mut build = cargo();
    // As the tests are built: any other selection of packages has other features, and would build the world again.
    output_of(build.args(["build", "--quiet", "--workspace", "--tests"]))?;
    let pictures = root().join("docs/pictures");
    fs::create_dir_all(&pictures)?;
    let wanted = |scene: &&Scene| names.is_empty() || names.iter().any(|name| name == scene.name);
    let mut problems = Vec::new();
    for scene in SCENES.iter().filter(wanted) {
        let mut terminal = Terminal::open(scene)?;
        terminal.perform(&Ends("$"))?;
        for act in scene.acts {
            terminal.perform(act)?;
        }
        terminal.look()?;
        if !terminal.problems.is_empty() {
            let found = terminal.problems.join("\n  ");
            problems.push(format!("{}:\n  {found}", scene.name));
            continue;
        }
        let picture = match scene.shows {
            Shows::Last => still(&terminal.screen()?, scene.size),
            Shows::Ends => recording(&terminal.ends, scene.size),
            Shows::Everything => recording(&terminal.frames, scene.size),
        };
        fs::write(pictures.join(format!("{}.svg", scene.name)), picture)?;
        eprintln!("docs/pictures/{}.svg", scene.name);
    }
    if !problems.is_empty() {
        bail!("these pictures were not taken:\n{}", problems.join("\n"));
    }
    Ok(())
}

/// What a picture shows.
struct Scene {
    name: &'static str,
    /// Columns and rows.
    size: [u16; 2],
    shows: Shows,
    /// Model that the program uses; none to let the person choose one.
    model: &'static str,
    acts: &'static [Act],
}

/// Which screens a picture shows, one after the other.
#[derive(Debug, Clone, Copy)]
enum Shows {
    Last,
    /// What each thing led to that was typed.
    Ends,
    Everything,
}

/// Something that is done at the terminal.
enum Act {
    /// Types a line. `{1}` stands for the first thread id at the beginning of a line on the screen, `{2}` for the second.
    Line(&'static str),
    Key(&'static str),
    /// Waits until the screen holds this.
    Until(&'static str),
    /// Waits until the screen ends with this.
    Ends(&'static str),
    /// Kills the program with `kill -9`.
    Kill,
}

use Act::{Ends, Key, Kill, Line, Until};

const SCENES: &[Scene] = &[
    Scene {
        name: "doctor",
        size: [80, 24],
        shows: Shows::Last,
        model: SCRIPT,
        acts: &[Line("archie doctor"), Ends("$")],
    },
    Scene {
        name: "first-agent",
        size: [104, 12],
        shows: Shows::Last,
        model: SCRIPT,
        acts: &[Line("approve_before_send"), Ends("$")],
    },
    Scene {
        name: "first-graph",
        size: [104, 16],
        shows: Shows::Last,
        model: SCRIPT,
        acts: &[Line("hello_graph"), Ends("$")],
    },
    Scene {
        name: "analyze",
        size: [100, 60],
        shows: Shows::Last,
        model: SCRIPT,
        acts: &[
            Line("archie"),
            Ends("archie>"),
            Line("analyze --query \"Choose a queue\" --inputs ./notes"),
            Ends("response:"),
            Line("yes, per customer"),
            Ends("response:"),
            Line("SOLUTION APPROVED"),
            Ends("archie>"),
        ],
    },
    Scene {
        name: "inbox",
        size: [100, 30],
        shows: Shows::Last,
        model: SCRIPT,
        acts: &[
            Line("archie analyze --query \"Choose a queue\" --inputs ./notes"),
            Ends("response:"),
            Key("C-d"),
            Ends("$"),
            Line("archie mail ingest ./mbox"),
            Ends("$"),
            Line("archie inbox"),
            Until("open questions"),
            Key("j"),
            Until("read in full"),
        ],
    },
    Scene {
        name: "kill-and-resume",
        size: [80, 24],
        shows: Shows::Everything,
        model: SCRIPT,
        acts: &[
            Line("archie mail ingest ./mbox   # a model writes an answer"),
            Until("mail 1 of 1"),
            Kill,
            Ends("$"),
            Line("archie mail ingest ./mbox   # the triage is not done again"),
            Ends("$"),
            Line("archie inbox                # nothing is sent unseen"),
            Until("1 open question"),
            Key("Space"),
            Until("read in full"),
            Key("a"),
            Until("accept?"),
            Key("Enter"),
            Until("Done"),
            Key("q"),
            Ends("$"),
        ],
    },
    Scene {
        name: "first-minutes-80",
        size: [80, 24],
        shows: Shows::Ends,
        model: "",
        acts: TOUR,
    },
    Scene {
        name: "first-minutes-120",
        size: [120, 40],
        shows: Shows::Ends,
        model: "",
        acts: TOUR,
    },
];

const SCRIPT: &str = "script:script.json";

/// The first ten minutes of a person who has a local model.
const TOUR: &[Act] = &[
    Line("archie --version   # installed with: cargo install --path apps/archie"),
    Ends("$"),
    Line("archie demo --no-pause"),
    Until("/studio"),
    Key("C-c"),
    Ends("$"),
    Line("archie setup --yes"),
    Ends("$"),
    Line("archie doctor"),
    Ends("$"),
    Line("archie"),
    Ends("archie>"),
    Line("what is a queue?"),
    Ends("archie>"),
    Line("exit"),
    Ends("$"),
    Line("export ARCHIE_MODEL=script:script.json"),
    Line("archie analyze --query \"Choose a queue\" --inputs ./notes"),
    Ends("response:"),
    Line("yes, per customer"),
    Ends("response:"),
    Line("SOLUTION APPROVED"),
    Ends("$"),
    Line("archie mail ingest ./mbox"),
    Ends("$"),
    Line("archie inbox"),
    Until("1 open question"),
    Key("Space"),
    Until("read in full"),
    Key("?"),
    Until("any key: back"),
    Key("Escape"),
    Until("read in full"),
    Key("a"),
    Until("accept?"),
    Key("Enter"),
    Until("Done"),
    Key("q"),
    Ends("$"),
    Line("clear"),
    Ends("$"),
    Line("archie threads --agent analyze"),
    Ends("$"),
    Line("archie history {1}"),
    Ends("$"),
    Line("clear"),
    Ends("$"),
    Line("archie threads --agent analyze"),
    Ends("$"),
    Line("archie fork {1} --at 6 --answer \"No: we do need Kafka\""),
    Ends("$"),
    Line("clear"),
    Ends("$"),
    Line("archie threads --agent analyze"),
    Ends("$"),
    Line("archie diff {2} {1}"),
    Until("q: stop"),
    Line("q"),
    Ends("$"),
];

/// A terminal with a shell in it, in a folder with notes, a mailbox and a script.
struct Terminal {
    socket: String,
    /// What was on the screen, and for how long.
    frames: Vec<(String, Duration)>,
    /// What was on the screen when it showed what was waited for.
    ends: Vec<(String, Duration)>,
    columns: u16,
    /// What was typed last.
    typed: String,
    still: StillTime,
    /// What a person should not see, each once.
    problems: Vec<String>,
    folder: Folder,
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it is in the temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Terminal {
    fn open(scene: &Scene) -> anyhow::Result<Self> {
        // Lines break where they would with a home whose name is short.
        let folder = std::env::temp_dir().join(format!("archie{}", std::process::id()));
        fs::create_dir_all(folder.join("notes"))?;
        fs::create_dir_all(folder.join("tmp"))?;
        for (file, text) in FILES {
            fs::write(folder.join(file), text)?;
        }
        let terminal = Self {
            socket: folder.join("tmux").display().to_string(),
            frames: Vec::new(),
            ends: Vec::new(),
            columns: scene.size[0],
            typed: String::new(),
            still: StillTime::start(Instant::now()),
            problems: Vec::new(),
            folder: Folder(folder.clone()),
        };
        let [width, height] = scene.size.map(|number| number.to_string());
        let mut start = terminal.tmux();
        start.args(["-f", "/dev/null", "new-session", "-d"]);
        start.args(["-x", &width, "-y", &height, "-c"]).arg(&folder);
        let programs = program()?;
        let programs = programs.parent().context("archie lies in no folder")?;
        start.args(["env", "-i", "TERM=screen-256color", "LANG=C.UTF-8"]);
        start.args(["PS1=$ ", "ARCHIE_PERSON=you"]);
        match scene.model {
            "" => {
                let server = services::address("model")?;
                start.arg(format!("OPENAI_BASE_URL={}", server.trim()))
            }
            model => start.arg(format!("ARCHIE_MODEL={model}")),
        };
        start.arg(format!("PATH={}:/usr/bin:/bin", programs.display()));
        // Otherwise the demo installs one, which takes a minute.
        if let Ok(python) = std::env::var("ARCHIE_PYTHON") {
            start.arg(format!("ARCHIE_PYTHON={python}"));
        }
        start.arg(format!("HOME={}", folder.display()));
        start.arg(format!("TMPDIR={}", folder.join("tmp").display()));
        output_of(start.args(["bash", "--norc", "--noprofile"]))?;
        Ok(terminal)
    }

    fn tmux(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.args(["-S", &self.socket]).env_remove("TMUX");
        tmux
    }

    fn perform(&mut self, act: &Act) -> anyhow::Result<()> {
        match act {
            Line(line) => {
                let mut line = (*line).to_owned();
                for (number, id) in self.thread_ids()?.iter().enumerate() {
                    line = line.replace(&format!("{{{}}}", number + 1), id);
                }
                for letter in line.chars() {
                    output_of(
                        self.tmux()
                            .args(["send-keys", "-l", "--", &letter.to_string()]),
                    )?;
                    self.look()?;
                }
                self.press("Enter", &line)
            }
            Key(key) => self.press(key, key),
            Until(text) => self.until(text, |screen| screen.contains(text)),
            Ends(text) => self.until(text, |screen| screen.trim_end().ends_with(text)),
            Kill => {
                sleep(READ);
                let shell = output_of(self.tmux().args(["display", "-p", "#{pane_pid}"]))?;
                output_of(Command::new("pkill").args(["-9", "-P", shell.trim()]))?;
                "kill -9".clone_into(&mut self.typed);
                self.still = StillTime::start(Instant::now());
                Ok(())
            }
        }
    }

    /// Returns the beginnings of lines on the screen that look like the id of a thread.
    fn thread_ids(&self) -> anyhow::Result<Vec<String>> {
        let screen = output_of(self.tmux().args(["capture-pane", "-p"]))?;
        let words = screen
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        let ids = words.filter(|word| {
            word.len() >= 8 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
        });
        Ok(ids.map(str::to_owned).collect())
    }

    /// Presses a key after what was typed. From now on, a person waits.
    fn press(&mut self, key: &str, typed: &str) -> anyhow::Result<()> {
        typed.clone_into(&mut self.typed);
        output_of(self.tmux().args(["send-keys", key]))?;
        self.still = StillTime::start(Instant::now());
        self.look()
    }

    /// With the codes of its colours.
    fn screen(&self) -> anyhow::Result<String> {
        let screen = output_of(self.tmux().args(["capture-pane", "-p", "-e"]))?;
        Ok(with_home(&screen, &self.folder.0))
    }

    /// Notes what is on the screen.
    fn look(&mut self) -> anyhow::Result<()> {
        sleep(LOOK);
        let screen = self.screen()?;
        let has_changed = self.frames.last().is_none_or(|(last, _)| *last != screen);
        self.still.look(has_changed, Instant::now());
        match self.frames.last_mut() {
            Some((_, shown)) if !has_changed => *shown += LOOK,
            _ => self.frames.push((screen, LOOK)),
        }
        Ok(())
    }

    /// Notes what is wrong with the screen, and with the wait that ended with `text`.
    fn check(&mut self, text: &str) -> anyhow::Result<()> {
        let mut found = Vec::new();
        if let Some(still) = self.still.too_long() {
            found.push(format!(
                "after `{}` and before `{text}`, nothing changed on the screen for {:.1} s",
                self.typed,
                still.as_secs_f64()
            ));
        }
        // Lines as they were written, however many rows they take.
        let joined = output_of(self.tmux().args(["capture-pane", "-p", "-J"]))?;
        for line in wide_lines(&joined, self.columns) {
            found.push(format!("wider than {} columns: {line}", self.columns));
        }
        let screen = output_of(self.tmux().args(["capture-pane", "-p"]))?;
        let screen = with_home(&screen, &self.folder.0);
        for line in lines_with_folders(&screen, &[&std::env::temp_dir(), root()]) {
            found.push(format!("a folder of this machine: {}", line.trim()));
        }
        for problem in found {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        Ok(())
    }

    fn until(&mut self, text: &str, is_there: impl Fn(&str) -> bool) -> anyhow::Result<()> {
        let begun = Instant::now();
        // Whatever was typed is on its way for a moment.
        for _ in 0..5 {
            self.look()?;
        }
        loop {
            self.look()?;
            let screen = output_of(self.tmux().args(["capture-pane", "-p"]))?;
            if is_there(&screen) {
                break;
            }
            if begun.elapsed() > PATIENCE {
                bail!("`{text}` does not come:\n{screen}");
            }
        }
        self.check(text)?;
        // What happens while a person reads is no wait.
        self.still = StillTime::start(Instant::now());
        // Time to read it.
        if let Some((screen, shown)) = self.frames.last_mut() {
            *shown += READ;
            self.ends.push((screen.clone(), SHOWN_MAX));
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It ends with its shell at the latest.
        let _ = self.tmux().arg("kill-server").output();
    }
}

fn program() -> anyhow::Result<PathBuf> {
    let us = std::env::current_exe()?;
    let folder = us.parent().context("this program lies in no folder")?;
    Ok(folder.join("archie"))
}

/// A screen as a picture that any page can show, as high as what is on it.
fn still(screen: &str, [columns, _]: [u16; 2]) -> String {
    let rows = screen.trim_end().lines().count();
    format!(
        "{}{}</svg>\n",
        frame_of([usize::from(columns), rows]),
        text_of(screen)
    )
}

/// Screens as a picture that moves. Whoever wants no motion sees the last one.
fn recording(frames: &[(String, Duration)], size: [u16; 2]) -> String {
    let shown = |frame: &(String, Duration)| frame.1.min(SHOWN_MAX).as_secs_f64();
    let total = frames.iter().map(shown).sum::<f64>() + END.as_secs_f64();
    let mut svg = frame_of(size.map(usize::from));
    let (mut style, mut body, mut begin) = (String::new(), String::new(), 0.0);
    for (number, frame) in frames.iter().enumerate() {
        let is_last = number + 1 == frames.len();
        let end = if is_last { total } else { begin + shown(frame) };
        let [from, to] = [begin, end].map(|second| second / total * 100.0);
        let after = if is_last { "" } else { "visibility:hidden" };
        style.push_str(&format!(
            "@keyframes f{number}{{0%{{visibility:hidden}}{from:.3}%{{visibility:visible}}{to:.3}%{{{after}}}}}\n#f{number}{{animation-name:f{number}}}\n"
        ));
        body.push_str(&format!(
            "<g id=\"f{number}\" class=\"f\">\n{}</g>\n",
            text_of(&frame.0)
        ));
        begin = end;
    }
    let last = frames.len().saturating_sub(1);
    svg.push_str(&format!(
        "<style>\n.f{{visibility:hidden;animation:{total:.2}s step-end infinite}}\n{style}\
         @media (prefers-reduced-motion: reduce){{.f{{animation:none}}#f{last}{{visibility:visible}}}}\n</style>\n"
    ));
    svg + &body + "</svg>\n"
}

/// The window around a screen of this many columns and rows.
fn frame_of([columns, rows]: [usize; 2]) -> String {
    let (width, height) = (
        columns as f64 * CHAR_WIDTH + 40.0,
        rows as f64 * LINE_HEIGHT + 60.0,
    );
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <circle cx=\"22\" cy=\"20\" r=\"6\" fill=\"#e06c75\"/><circle cx=\"42\" cy=\"20\" r=\"6\" fill=\"#e5c07b\"/><circle cx=\"62\" cy=\"20\" r=\"6\" fill=\"#98c379\"/>\n"
    )
}

fn text_of(screen: &str) -> String {
    let mut svg = String::new();
    for (number, line) in screen.trim_end().lines().enumerate() {
        let y = number as f64 * LINE_HEIGHT + 52.0;
        let mut column = 0;
        for (look, text) in pieces(line) {
            let x = 20.0 + column as f64 * CHAR_WIDTH;
            let columns = text.chars().count();
            column += columns;
            if look.reversed {
                svg.push_str(&format!(
                    "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{LINE_HEIGHT:.1}\" fill=\"{}\"/>\n",
                    y - 14.0,
                    columns as f64 * CHAR_WIDTH,
                    look.colour
                ));
            }
            if text.trim().is_empty() {
                continue;
            }
            let weight = if look.bold {
                " font-weight=\"bold\""
            } else {
                ""
            };
            let colour = if look.reversed {
                BACKGROUND
            } else {
                look.colour
            };
            let text = text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
            svg.push_str(&format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\"{weight} xml:space=\"preserve\">{text}</text>\n"
            ));
        }
    }
    svg
}

/// How a piece of a line looks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    bold: bool,
    /// Whether the colours of the letters and of what is behind them change places.
    reversed: bool,
    colour: &'static str,
}

const PLAIN: Look = Look {
    bold: false,
    reversed: false,
    colour: "#d7dae0",
};

/// A line in pieces that look alike.
fn pieces(line: &str) -> Vec<(Look, String)> {
    let (mut pieces, mut look) = (Vec::new(), PLAIN);
    for (number, part) in line.split("\u{1b}[").enumerate() {
        let text = match number {
            0 => part,
            _ => match part.split_once('m') {
                Some((codes, text)) => {
                    look = colour_codes(codes).fold(look, changed);
                    text
                }
                None => part,
            },
        };
        if !text.is_empty() {
            pieces.push((look, text.to_owned()));
        }
    }
    pieces
}

/// Returns the codes of a sequence. One of the first sixteen colours of 256 is the code of that colour.
fn colour_codes(codes: &str) -> impl Iterator<Item = String> {
    let mut codes = codes.split(';').map(str::to_owned);
    std::iter::from_fn(move || {
        let code = codes.next()?;
        if code != "38" && code != "48" {
            return Some(code);
        }
        codes.next();
        let number: u8 = codes.next()?.parse().ok()?;
        Some(match (code.as_str(), number) {
            ("38", 0..8) => (30 + number).to_string(),
            ("38", 8..16) => (82 + number).to_string(),
            // Other colours, and colours behind letters, are not drawn.
            _ => "10".to_owned(),
        })
    })
}

fn changed(look: Look, code: String) -> Look {
    let colour = match code.as_str() {
        "" | "0" => return PLAIN,
        // What is underlined is a heading.
        "1" | "4" => return Look { bold: true, ..look },
        "2" => "#7f848e",
        "7" => {
            return Look {
                reversed: true,
                ..look
            };
        }
        "27" => {
            return Look {
                reversed: false,
                ..look
            };
        }
        "22" => {
            return Look {
                bold: false,
                ..look
            };
        }
        "31" | "91" => "#e06c75",
        "32" | "92" => "#98c379",
        "33" | "93" => "#e5c07b",
        "34" | "94" => "#61afef",
        "35" | "95" => "#c678dd",
        "36" | "96" => "#56b6c2",
        "39" => PLAIN.colour,
        _ => look.colour,
    };
    Look { colour, ..look }
}

/// What lies in the folder.
const FILES: [(&str, &str); 4] = [
    (
        "notes/orders.md",
        "# Orders\n\nTen thousand orders a day.\nOrders of one customer must stay in order.\n",
    ),
    (
        "notes/machines.txt",
        "Kafka was proposed, but nobody here has run Kafka.\nWe have one machine.\n",
    ),
    (
        "mbox",
        "From bob@example.com Mon Jan  6 10:00:00 2025\nFrom: Bob <bob@example.com>\nTo: alice@example.com\nSubject: Q4 report?\nMessage-ID: <q4@example.com>\nDate: Mon, 6 Jan 2025 10:00:00 +0000\n\nHi Alice, when is the Q4 report ready?\n",
    ),
    ("script.json", include_str!("pictures/script.json")),
];

const CHAR_WIDTH: f64 = 8.43;
const LINE_HEIGHT: f64 = 19.0;
const BACKGROUND: &str = "#16181d";
/// How often the screen is looked at.
const LOOK: Duration = Duration::from_millis(40);
/// How long a person looks at what came.
const READ: Duration = Duration::from_millis(1_200);
/// How long one screen is shown at most, and the last one.
const SHOWN_MAX: Duration = Duration::from_millis(2_000);
const END: Duration = Duration::from_secs(4);
/// A small model on a busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(90);

#[test]
fn colours_and_weights_are_read_off_the_codes() {
    let shown = pieces("a\u{1b}[1;32mb\u{1b}[0mc");
    let green = Look {
        bold: true,
        colour: "#98c379",
        ..PLAIN
    };
    let wanted = [(PLAIN, "a"), (green, "b"), (PLAIN, "c")];
    assert_eq!(shown, wanted.map(|(look, text)| (look, text.to_owned())));
    let shown = pieces("\u{1b}[1m\u{1b}[38;5;10mb");
    let bright = (
        Look {
            bold: true,
            ..green
        },
        "b".to_owned(),
    );
    assert_eq!(shown, [bright]);
    assert!(still("a < b & c", [80, 24]).contains("a &lt; b &amp; c"));
}

#[test]
fn every_picture_has_a_scene_and_every_scene_a_picture() {
    use std::collections::BTreeSet;

    let scenes: BTreeSet<String> = SCENES
        .iter()
        .map(|scene| format!("{}.svg", scene.name))
        .collect();
    let pictures = fs::read_dir(root().join("docs/pictures")).unwrap();
    let pictures: BTreeSet<String> = pictures
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(pictures, scenes);
}

#[test]
fn a_recording_shows_each_screen_after_the_one_before() {
    let second = Duration::from_secs(1);
    let frames = [("one".to_owned(), second), ("two".to_owned(), second)];
    let svg = recording(&frames, [80, 24]);
    // One second, then one second and the end.
    assert!(svg.contains("6.00s step-end infinite"), "{svg}");
    assert!(svg.contains("@keyframes f0{0%{visibility:hidden}0.000%{visibility:visible}16.667%{visibility:hidden}}"), "{svg}");
    assert!(
        svg.contains("16.667%{visibility:visible}100.000%{}"),
        "{svg}"
    );
}
