//! Pictures of the real program for the README: it runs in a terminal, keys are typed, and what is on the screen is drawn.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use harness::workspace::{cargo, output_of, root};

/// Takes every picture again.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut build = cargo();
    output_of(build.args(["build", "--quiet", "--package", "superstep-archie"]))?;
    let pictures = root().join("docs/pictures");
    fs::create_dir_all(&pictures)?;
    for scene in SCENES {
        let terminal = Terminal::open(scene.name)?;
        for line in scene.typed {
            let (keys, until) = line;
            if !keys.is_empty() {
                match keys.contains(ITEM) {
                    true => terminal.types(&keys.replace(ITEM, &terminal.item()?))?,
                    false => terminal.types(keys)?,
                }
            }
            terminal.shows(until)?;
        }
        let path = pictures.join(format!("{}.svg", scene.name));
        fs::write(&path, drawn(&terminal.screen()?))?;
        eprintln!("docs/pictures/{}.svg", scene.name);
    }
    Ok(())
}

/// What is typed, and what the screen ends with then.
struct Scene {
    name: &'static str,
    typed: &'static [(&'static str, &'static str)],
}

/// Stands for the id of an inbox item in what is typed.
const ITEM: &str = "ITEM";

const SCENES: &[Scene] = &[
    Scene {
        name: "analyze",
        typed: &[
            ("", "archie>"),
            (
                "analyze --query \"Choose a queue\" --inputs ./notes",
                "response:",
            ),
            ("yes, per customer", "response:"),
            ("SOLUTION APPROVED", "archie>"),
        ],
    },
    Scene {
        name: "inbox",
        typed: &[
            ("", "archie>"),
            (
                "analyze --query \"Choose a queue\" --inputs ./notes",
                "response:",
            ),
            ("C-d", "archie>"),
            ("inbox", "archie>"),
            ("inbox ITEM \"yes, per customer\"", "archie>"),
            ("inbox --all", "archie>"),
            ("graph analyze", "archie>"),
        ],
    },
];

/// A terminal with the shell of archie in it, in a folder with notes and a script.
struct Terminal {
    socket: String,
    _folder: Folder,
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it is in the temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Terminal {
    fn open(name: &str) -> anyhow::Result<Self> {
        let folder =
            std::env::temp_dir().join(format!("archie-picture-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("notes"))?;
        for (file, text) in FILES {
            fs::write(folder.join(file), text)?;
        }
        let terminal = Self {
            socket: folder.join("tmux").display().to_string(),
            _folder: Folder(folder.clone()),
        };
        let mut start = terminal.tmux();
        start.args([
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "60",
            "-c",
        ]);
        start.arg(&folder);
        start.args([
            "env",
            "-i",
            "TERM=screen-256color",
            "PATH=/usr/bin:/bin",
            "ARCHIE_PERSON=you",
        ]);
        start.arg(format!("ARCHIE_HOME={}", folder.join("home").display()));
        start
            .arg(program()?)
            .args(["--model", "script:script.json"]);
        output_of(&mut start)?;
        Ok(terminal)
    }

    fn tmux(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.args(["-S", &self.socket]).env_remove("TMUX");
        tmux
    }

    fn types(&self, keys: &str) -> anyhow::Result<()> {
        if keys == "C-d" {
            output_of(self.tmux().args(["send-keys", keys]))?;
            return Ok(());
        }
        output_of(self.tmux().args(["send-keys", "-l", "--", keys]))?;
        output_of(self.tmux().args(["send-keys", "Enter"]))?;
        Ok(())
    }

    /// Returns the id of the last inbox item on the screen.
    fn item(&self) -> anyhow::Result<String> {
        let screen = output_of(self.tmux().args(["capture-pane", "-p"]))?;
        let mut listed = screen.lines().filter(|line| line.contains("  thread "));
        let item = listed.next_back().and_then(|line| line.split(' ').next());
        Ok(item.context("no inbox item is on the screen")?.to_owned())
    }

    /// With the codes of its colours.
    fn screen(&self) -> anyhow::Result<String> {
        output_of(self.tmux().args(["capture-pane", "-p", "-e"]))
    }

    fn shows(&self, text: &str) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            // Whatever was typed is on its way for a moment.
            sleep(Duration::from_millis(300));
            let screen = output_of(self.tmux().args(["capture-pane", "-p"]))?;
            if screen.trim_end().ends_with(text) {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                bail!("`{text}` does not come:\n{screen}");
            }
        }
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

/// The screen as a picture that any page can show.
fn drawn(screen: &str) -> String {
    let lines: Vec<&str> = screen.trim_end().lines().collect();
    let (width, height) = (
        100.0 * CHAR_WIDTH + 40.0,
        lines.len() as f64 * LINE_HEIGHT + 60.0,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n\
         <circle cx=\"22\" cy=\"20\" r=\"6\" fill=\"#e06c75\"/><circle cx=\"42\" cy=\"20\" r=\"6\" fill=\"#e5c07b\"/><circle cx=\"62\" cy=\"20\" r=\"6\" fill=\"#98c379\"/>\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = number as f64 * LINE_HEIGHT + 52.0;
        let mut column = 0;
        for (look, text) in pieces(line) {
            let x = 20.0 + column as f64 * CHAR_WIDTH;
            column += text.chars().count();
            if text.trim().is_empty() {
                continue;
            }
            let weight = if look.bold {
                " font-weight=\"bold\""
            } else {
                ""
            };
            let text = text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
            svg.push_str(&format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{}\"{weight} xml:space=\"preserve\">{text}</text>\n",
                look.colour
            ));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// How a piece of a line looks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    bold: bool,
    colour: &'static str,
}

const PLAIN: Look = Look {
    bold: false,
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
                    look = codes.split(';').fold(look, changed);
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

fn changed(look: Look, code: &str) -> Look {
    let colour = match code {
        "" | "0" => return PLAIN,
        // What is underlined is a heading.
        "1" | "4" => return Look { bold: true, ..look },
        "2" => "#7f848e",
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
const FILES: [(&str, &str); 3] = [
    (
        "notes/orders.md",
        "# Orders\n\nTen thousand orders a day.\nOrders of one customer must stay in order.\n",
    ),
    (
        "notes/machines.txt",
        "Kafka was proposed, but nobody here has run Kafka.\nWe have one machine.\n",
    ),
    ("script.json", include_str!("pictures/script.json")),
];

const CHAR_WIDTH: f64 = 8.43;
const LINE_HEIGHT: f64 = 19.0;
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn colours_and_weights_are_read_off_the_codes() {
    let shown = pieces("a\u{1b}[1;32mb\u{1b}[0mc");
    let green = Look {
        bold: true,
        colour: "#98c379",
    };
    let wanted = [(PLAIN, "a"), (green, "b"), (PLAIN, "c")];
    assert_eq!(shown, wanted.map(|(look, text)| (look, text.to_owned())));
    assert!(drawn("a < b & c").contains("a &lt; b &amp; c"));
}
