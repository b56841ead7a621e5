//! A Python environment of Archie's own, for machines whose Python lacks the modules: made once, in the cache folder.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::python::{IMPORTS, Python};
use super::{Bubblewrap, SandboxError};

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
    /// An environment that works in the sandbox could not be made with any Python.
    #[error(
        "no Python works in the sandbox; tried {tried}; install python3 with its `venv` module for all users (Debian: `sudo apt-get install python3-venv`), check the connection to the Python registry, or set ARCHIE_PYTHON to a Python with pandas and openpyxl that all users can read",
        tried = listed(tried)
    )]
    NoneWorks {
        /// The Pythons, in the order in which they were tried.
        tried: Vec<FailedPython>,
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

/// A Python with which the environment could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedPython {
    /// Path of the interpreter.
    pub python: String,
    /// What went wrong.
    pub why: String,
}

fn listed(tried: &[FailedPython]) -> String {
    let line = |failed: &FailedPython| format!("`{}` ({})", failed.python, failed.why);
    let lines: Vec<_> = tried.iter().map(line).collect();
    lines.join(", ")
}

/// Returns the interpreter of Archie's own environment, if it was made.
pub fn existing() -> Option<PathBuf> {
    let python = interpreter(&folder()?);
    python.exists().then_some(python)
}

/// Makes the environment and installs the modules in it, unless that was done before and it works in the sandbox. Takes the first
/// Python that the sandbox can use. Calls `progress` before each command, because installing may take a minute.
pub fn create(progress: impl Fn(&str)) -> Result<PathBuf, EnvironmentError> {
    let folder = folder().ok_or(EnvironmentError::NoFolder)?;
    let python = interpreter(&folder);
    if try_out(&python, IMPORTS).is_ok() {
        return Ok(python);
    }
    let partial = folder.with_extension("partial");
    let parent = partial.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent).map_err(|source| EnvironmentError::Io {
        path: parent.to_owned(),
        source,
    })?;
    let has_uv = works("uv");
    let mut tried = Vec::new();
    let mut bases: Vec<_> = bases(&mut tried).into_iter().map(Some).collect();
    if bases.is_empty() && has_uv {
        // uv finds another one, or downloads it.
        bases.push(None);
    }
    for base in bases {
        clear(&partial)?;
        let name = match &base {
            Some(base) => base.display().to_string(),
            None => "uv".to_owned(),
        };
        progress(&format!(
            "making a Python environment in {} with {name}",
            folder.display()
        ));
        match fill(&partial, base.as_deref(), has_uv, &progress) {
            Ok(()) => {
                // Only a complete environment has the final name, so that one that was interrupted is made again.
                clear(&folder)?;
                std::fs::rename(&partial, &folder).map_err(|source| EnvironmentError::Io {
                    path: folder.clone(),
                    source,
                })?;
                return Ok(python);
            }
            Err(why) => tried.push(FailedPython { python: name, why }),
        }
    }
    clear(&partial)?;
    Err(match tried.is_empty() {
        true => EnvironmentError::NoInstaller,
        false => EnvironmentError::NoneWorks { tried },
    })
}

/// Makes an environment with a Python, or with one that uv chooses, and tries it out in the sandbox.
fn fill(
    folder: &Path,
    base: Option<&Path>,
    has_uv: bool,
    progress: &impl Fn(&str),
) -> Result<(), String> {
    let (make, install) = commands(folder, base, has_uv);
    run(&make, TIME_LIMIT)?;
    progress("installing pandas, openpyxl and matplotlib from the Python registry, once");
    run(&install, TIME_LIMIT)?;
    try_out(&interpreter(folder), IMPORTS)
}

/// Returns the interpreters that run in the sandbox, best first, and adds the others to `tried`.
///
/// A Python below a private home, such as one of pyenv below `/root`, runs for the person, and not for the sandbox's user. Finding
/// that out here saves installing the modules for nothing.
fn bases(tried: &mut Vec<FailedPython>) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let (mut seen, mut bases) = (Vec::new(), Vec::new());
    for named in candidates(&path)
        .into_iter()
        .filter(|named| named.is_file())
    {
        let mut fail = |python: &Path, why: String| {
            let python = python.display().to_string();
            tried.push(FailedPython { python, why });
        };
        match resolve(&named) {
            Err(why) => fail(&named, why),
            Ok(base) if seen.contains(&base) => {}
            Ok(base) => {
                seen.push(base.clone());
                match try_out(&base, "pass") {
                    Ok(()) => bases.push(base),
                    Err(why) => fail(&base, why),
                }
            }
        }
    }
    bases
}

/// Returns where a Python may be, best first: on the search path, then in the folders that all users share.
fn candidates(path: &OsStr) -> Vec<PathBuf> {
    let on_path = std::env::split_paths(path)
        // A folder that depends on the current one could hold anything.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("python3"));
    let mut candidates = Vec::new();
    for candidate in on_path.chain(SHARED.iter().map(PathBuf::from)) {
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    candidates
}

/// Returns the real interpreter behind a link, a virtual environment or a script such as those of pyenv.
fn resolve(named: &Path) -> Result<PathBuf, String> {
    // With the person's environment, because such a script needs it to find the interpreter.
    let asked = Command::new(named)
        .args(["-I", "-c", ASK])
        .stdin(Stdio::null())
        .output();
    let told = asked.map_err(|error| format!("it cannot be run: {error}"))?;
    match told.status.success() {
        true => real_interpreter(&told.stdout),
        false => Err(last_line(&told.stderr)),
    }
}

/// Returns the path in the reply to [`ASK`], without links.
fn real_interpreter(told: &[u8]) -> Result<PathBuf, String> {
    let told: (PathBuf, (u32, u32)) = serde_json::from_slice(told)
        .map_err(|error| format!("it is not a Python interpreter: {error}"))?;
    let (program, (major, minor)) = told;
    if (major, minor) < VERSION_MIN {
        let (needed_major, needed_minor) = VERSION_MIN;
        return Err(format!(
            "it is Python {major}.{minor}; {needed_major}.{needed_minor} or newer is needed"
        ));
    }
    std::fs::canonicalize(&program)
        .map_err(|error| format!("`{}` cannot be read: {error}", program.display()))
}

/// Runs code in the sandbox with this interpreter. An error says why that failed.
fn try_out(program: &Path, code: &str) -> Result<(), String> {
    let python = Python::inspect(program)?;
    let tried = Bubblewrap::new(python).and_then(|sandbox| sandbox.try_out(code));
    tried.map_err(|error| match error {
        SandboxError::Trial { why, .. } => why,
        error => error.to_string(),
    })
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

/// Returns the commands that make an environment and install the modules: with uv if it is there, which is faster. Without uv
/// there must be a `base`.
fn commands(folder: &Path, base: Option<&Path>, has_uv: bool) -> (Step, Step) {
    let step = |words: &[&str]| Step {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    let python = interpreter(folder).display().to_string();
    let folder = folder.display().to_string();
    let base = base.map(|base| base.display().to_string());
    if has_uv {
        let make = ["uv", "venv", "--quiet", &folder];
        let with = base.iter().flat_map(|base| ["--python", base.as_str()]);
        let make: Vec<_> = make.into_iter().chain(with).collect();
        let start = ["uv", "pip", "install", "--quiet", "--python", &python];
        let install = [&start[..], WHEELS_ONLY, PACKAGES].concat();
        return (step(&make), step(&install));
    }
    let base = base.as_deref().unwrap_or("python3");
    let start = [
        python.as_str(),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    (
        step(&[base, "-m", "venv", &folder]),
        step(&[&start[..], WHEELS_ONLY, PACKAGES].concat()),
    )
}

fn works(program: &str) -> bool {
    let ran = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    ran.is_ok_and(|ran| ran.status.success())
}

/// Runs a command. An error says which one failed, and the last line that it said.
fn run(step: &Step, time_limit: Duration) -> Result<(), String> {
    let Some((program, args)) = step.words.split_first() else {
        return Ok(());
    };
    let failed = |says: String| format!("`{}` failed: {says}", step.words.join(" "));
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
    Err(failed(last_line(&said)))
}

fn last_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let last = said.trim().lines().last().unwrap_or("it said nothing");
    last.chars().take(SAID_CHARS).collect()
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

/// Interpreters that all users can read, where they are installed.
const SHARED: &[&str] = &["/usr/bin/python3", "/usr/local/bin/python3"];
/// The oldest Python for which pandas still has wheels that we use.
const VERSION_MIN: (u32, u32) = (3, 9);
const ASK: &str = "import sys, json; print(json.dumps([sys.executable, sys.version_info[:2]]))";
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
        assert!(wrong.unwrap_err().ends_with("failed: no"));
        let late = run(&step(&["sleep", "60"]), Duration::from_millis(100));
        assert!(late.unwrap_err().contains("took longer than"));
    }

    #[test]
    fn the_search_path_comes_before_the_shared_folders() {
        let found = candidates(OsStr::new("/ada/shims:bin::/usr/local/bin:/ada/shims"));
        let expected = [
            "/ada/shims/python3",
            "/usr/local/bin/python3",
            "/usr/bin/python3",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
        let shared: Vec<_> = SHARED.iter().map(PathBuf::from).collect();
        assert_eq!(candidates(OsStr::new("")), shared);
    }

    #[test]
    fn links_lead_to_the_interpreter_and_old_ones_are_refused() {
        let real = std::fs::canonicalize("/bin/sh").unwrap();
        let asked = |told: &str| real_interpreter(told.as_bytes());
        assert_eq!(asked(r#"["/bin/sh", [3, 12]]"#), Ok(real));
        let old = asked(r#"["/bin/sh", [3, 6]]"#).unwrap_err();
        assert_eq!(old, "it is Python 3.6; 3.9 or newer is needed");
        let wrong = asked("hello").unwrap_err();
        assert!(wrong.starts_with("it is not a Python interpreter"));
    }

    #[test]
    fn an_environment_is_made_with_the_python_that_was_found() {
        let base = Path::new("/usr/bin/python3.12");
        let words = |base, has_uv| {
            let (make, install) = commands(Path::new("/cache/python"), base, has_uv);
            assert!(install.words.join(" ").contains("/cache/python/bin/python"));
            make.words.join(" ")
        };
        let make = words(Some(base), false);
        assert_eq!(make, "/usr/bin/python3.12 -m venv /cache/python");
        let make = words(Some(base), true);
        let uv = "uv venv --quiet /cache/python";
        assert_eq!(make, format!("{uv} --python /usr/bin/python3.12"));
        assert_eq!(words(None, true), uv);
    }

    #[test]
    fn the_error_names_every_python_why_it_failed_and_what_to_do() {
        let failed = |python: &str, why: &str| FailedPython {
            python: python.to_owned(),
            why: why.to_owned(),
        };
        let tried = vec![
            failed("/private/bin/python3.11", "bwrap: Permission denied"),
            failed("/usr/bin/python3.12", "`uv venv` failed: no"),
        ];
        let says = EnvironmentError::NoneWorks { tried }.to_string();
        for words in [
            "`/private/bin/python3.11` (bwrap: Permission denied), `/usr/bin/python3.12` (`uv venv` failed: no)",
            "install python3 with its `venv` module for all users",
            "connection to the Python registry",
            "set ARCHIE_PYTHON",
        ] {
            assert!(says.contains(words), "{words:?} is not in {says}");
        }
    }
}
