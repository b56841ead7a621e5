//! A Python environment of Archie's own, for machines whose Python lacks the modules: made once, in the cache folder.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
/// because installing may take a minute.
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
    run(&make, TIME_LIMIT)?;
    progress("installing pandas, openpyxl and matplotlib from the Python registry, once");
    run(&install, TIME_LIMIT)?;
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
        let install = step(&[&start[..], WHEELS_ONLY, PACKAGES].concat());
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
            step(&[&start[..], WHEELS_ONLY, PACKAGES].concat()),
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

fn run(step: &Step, time_limit: Duration) -> Result<(), EnvironmentError> {
    let Some((program, args)) = step.words.split_first() else {
        return Ok(());
    };
    let failed = |says: String| EnvironmentError::Command {
        command: step.words.join(" "),
        says,
    };
    let started = Instant::now();
    let ran = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut ran = ran.map_err(|error| failed(error.to_string()))?;
    // Another thread reads what it says, because a full pipe would block it.
    let stderr = ran.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(mut stderr) = stderr {
            // What was read before an error is all there is to show.
            let _ = stderr.read_to_end(&mut said);
        }
        said
    });
    let status = loop {
        if let Some(status) = ran.try_wait().map_err(|error| failed(error.to_string()))? {
            break status;
        }
        if started.elapsed() > time_limit {
            let ended = ran.kill().and_then(|()| ran.wait());
            ended.map_err(|error| failed(error.to_string()))?;
            let says = format!("it took longer than {} s", time_limit.as_secs());
            return Err(failed(says));
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    if status.success() {
        return Ok(());
    }
    let said = reader.join().unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
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
/// A package that is not a wheel runs code of its own when it is installed, outside of any sandbox.
const WHEELS_ONLY: &[&str] = &["--only-binary", ":all:"];
const SAID_CHARS: usize = 300;
const TIME_LIMIT: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_takes_too_long_is_ended() {
        let step = |words: &[&str]| Step {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        run(&step(&["true"]), TIME_LIMIT).unwrap();
        let wrong = run(&step(&["sh", "-c", "echo no >&2; exit 3"]), TIME_LIMIT);
        assert!(wrong.unwrap_err().to_string().contains("failed: no;"));
        let late = run(&step(&["sleep", "60"]), Duration::from_millis(100));
        assert!(late.unwrap_err().to_string().contains("took longer than"));
    }
}
