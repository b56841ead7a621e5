//! `archie new`: creates a small project with an agent, whose program also contains the built-in agents.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use archie_agent::{Exit, Terminal};

use crate::cli::args::NewArgs;

pub(super) fn run(args: &NewArgs, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let name = &args.name;
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !is_name {
        bail!("`{name}` is not a name for an agent: small letters, digits and _, a letter first");
    }
    let folder = Path::new(name);
    if folder.exists() {
        bail!("{name} exists already; choose another name, or another folder to stand in");
    }
    let crates = match &args.from {
        Some(checkout) => by_path(checkout)?,
        None => by_version(),
    };
    for (file, text) in FILES {
        let path = folder.join(file.replace("NAME", name));
        let text = text
            .replace("{{name}}", name)
            .replace("{{crates}}", &crates);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        terminal.line(&format!("wrote {}", path.display()));
    }
    terminal.line("");
    terminal.line(&format!("cd {name}"));
    terminal.line("cargo test                                  # your graph, on a scripted model");
    terminal.line(&format!(
        "cargo run -- --model script:hello.json run {name}      # it asks, you answer"
    ));
    terminal
        .line("cargo run -- threads                        # your threads, and everybody else's");
    Ok(Exit::Done)
}

fn by_version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let lines = CRATES.map(|(name, _)| match name {
        ARCHIE => format!("archie = {{ package = \"{name}\", version = \"{version}\" }}"),
        _ => format!("{name} = \"{version}\""),
    });
    lines.join("\n")
}

fn by_path(checkout: &Path) -> anyhow::Result<String> {
    let root = checkout
        .canonicalize()
        .with_context(|| format!("{} is not there", checkout.display()))?;
    let mut lines = Vec::new();
    for (name, path) in CRATES {
        let path = root.join(path);
        if !path.join("Cargo.toml").exists() {
            bail!("{} is not a checkout: it has no {name}", checkout.display());
        }
        let path = path.display().to_string();
        lines.push(match name {
            ARCHIE => format!("archie = {{ package = \"{name}\", path = {path:?} }}"),
            _ => format!("{name} = {{ path = {path:?} }}"),
        });
    }
    Ok(lines.join("\n"))
}

/// Package of the library `archie`.
const ARCHIE: &str = "superstep-archie";

const CRATES: [(&str, &str); 5] = [
    (ARCHIE, "apps/archie"),
    ("archie-agent", "agents/archie-agent"),
    ("superstep", "crates/superstep"),
    ("superstep-agent", "crates/superstep-agent"),
    ("superstep-llm", "crates/superstep-llm"),
];

const FILES: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("new/Cargo.toml.txt")),
    ("src/main.rs", include_str!("new/main.rs.txt")),
    ("src/lib.rs", include_str!("new/lib.rs.txt")),
    ("tests/NAME.rs", include_str!("new/test.rs.txt")),
    ("hello.json", include_str!("new/hello.json")),
    ("README.md", include_str!("new/README.md.txt")),
];
