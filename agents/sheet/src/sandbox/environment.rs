//! A Python environment of Archie's own, for machines whose Python lacks the modules: made once, in the cache folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::python::Python;

/// Why the environment could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// There is neither uv nor a Python to make it with.
    #[error(
        "neither `uv` nor `python3` with its `venv` module is installed; install one (Debian: `sudo apt-get install python3-venv`), or set ARCHIE_PYTHON to a Python with pandas and openpyxl"
    )]
    NoInstaller,
    /// There is no cache folder.
    #[error("there is no folder for it; set HOME or XDG_CACHE_HOME")]
    NoFolder,
    /// A command failed.
    #[error(
        "`{command}` failed: {says}; check the connection to the Python registry, or set ARCHIE_PYTHON to a Python with pandas and openpyxl"
    )]
    Command {
        /// The command.
        command: String,
        /// The last line of its error output.
        says: String,
    },
    /// A file operation failed.
    #[error("`{path}` cannot be written", path = path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error from the operating system.
        #[source]
        source: std::io::Error,
    },
}

/// Returns the interpreter of Archie's own environment, if it was made.
pub fn existing() -> Option<PathBuf> {
    let python = interpreter(&folder()?);
    python.exists().then_some(python)
}

/// Makes the environment and installs the modules in it, unless that was done before. Calls `progress` before each command,
/// because installing takes up to a minute.
pub fn create(progress: impl Fn(&str)) -> Result<PathBuf, EnvironmentError> {
    let folder = folder().ok_or(EnvironmentError::NoFolder)?;
    let python = interpreter(&folder);
    if Python::find(Some(&python)).is_ok() {
        return Ok(python);
    }
    let partial = folder.with_extension("partial");
    clear(&partial)?;
    let parent = partial.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent).map_err(|source| EnvironmentError::Io {
        path: parent.to_owned(),
        source,
    })?;
    let inside = interpreter(&partial);
    let (make, install) = commands(&partial, &inside).ok_or(EnvironmentError::NoInstaller)?;
    progress(&format!(
        "making a Python environment in {}",
        folder.display()
    ));
    run(&make)?;
    progress("installing pandas, openpyxl and matplotlib from the Python registry, once");
    run(&install)?;
    // Only a complete environment has the final name, so that one that was interrupted is made again.
    clear(&folder)?;
    std::fs::rename(&partial, &folder).map_err(|source| EnvironmentError::Io {
        path: folder.clone(),
        source,
    })?;
    Ok(python)
}

/// Returns the folder of the environment. As root it is one that the unprivileged user of the sandbox can read.
fn folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_root = super::bubblewrap::is_root().unwrap_or(false);
    let cache = match set("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None if is_root => PathBuf::from("/var/cache"),
        None => PathBuf::from(set("HOME")?).join(".cache"),
    };
    Some(cache.join("archie").join("python"))
}

fn interpreter(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

/// A command line.
struct Step {
    words: Vec<String>,
}

/// Returns the commands that make an environment and install the modules: with uv if it is there, which is faster.
fn commands(folder: &Path, python: &Path) -> Option<(Step, Step)> {
    let step = |words: &[&str]| Step {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    let (folder, python) = (folder.display().to_string(), python.display().to_string());
    if works("uv") {
        let make = step(&["uv", "venv", "--quiet", &folder]);
        let start = ["uv", "pip", "install", "--quiet", "--python", &python];
        let install = step(&[&start[..], PACKAGES].concat());
        return Some((make, install));
    }
    works("python3").then(|| {
        let start = [
            &python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        (
            step(&["python3", "-m", "venv", &folder]),
            step(&[&start[..], PACKAGES].concat()),
        )
    })
}

fn works(program: &str) -> bool {
    let ran = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    ran.is_ok_and(|ran| ran.status.success())
}

fn run(step: &Step) -> Result<(), EnvironmentError> {
    let Some((program, args)) = step.words.split_first() else {
        return Ok(());
    };
    let failed = |says: String| EnvironmentError::Command {
        command: step.words.join(" "),
        says,
    };
    let ran = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output();
    let ran = ran.map_err(|error| failed(error.to_string()))?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    let last = said.trim().lines().last().unwrap_or("it said nothing");
    Err(failed(last.chars().take(SAID_CHARS).collect()))
}

fn clear(folder: &Path) -> Result<(), EnvironmentError> {
    match std::fs::remove_dir_all(folder) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(EnvironmentError::Io {
            path: folder.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

const PACKAGES: &[&str] = &["pandas", "openpyxl", "matplotlib"];
const SAID_CHARS: usize = 300;
