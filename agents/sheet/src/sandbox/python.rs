//! Finds the Python that runs the code, and checks that it has the required modules.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::environment;

/// A Python interpreter that has the required [`MODULES`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// Path of the interpreter.
    pub program: PathBuf,
    /// Folders outside `/usr` that the interpreter needs; the sandbox makes them readable.
    pub folders: Vec<PathBuf>,
    /// Missing optional modules, such as `matplotlib` for pictures.
    pub lacks: Vec<String>,
}

/// Why there is no suitable Python, and how to get one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}; {remedy}")]
pub struct NoPython {
    why: String,
    remedy: &'static str,
}

impl Python {
    /// Checks the given interpreter, or the default one if there is none. The caller passes the value of `ARCHIE_PYTHON`.
    ///
    /// Runs it outside of the sandbox. Whether the sandbox can read it, only a run inside tells: see
    /// [`Bubblewrap::try_out`](super::Bubblewrap::try_out).
    pub fn find(named: Option<&Path>) -> Result<Self, NoPython> {
        let is_own = |named: &Path| environment::existing().is_some_and(|own| own == named);
        let (program, remedy) = match named {
            Some(named) if is_own(named) => (named, DEFAULT_REMEDY),
            Some(named) => (named, REMEDY),
            None => (Path::new(USUAL), DEFAULT_REMEDY),
        };
        let no = |why: String| NoPython { why, remedy };
        let found = Self::inspect(program).map_err(no)?;
        let lacks = |module: &&&str| found.lacks.iter().any(|lack| lack == **module);
        match MODULES.iter().find(lacks) {
            Some(module) => Err(no(format!("`{}` has no {module}", program.display()))),
            None => Ok(found),
        }
    }

    /// Asks an interpreter for its folders and missing modules, whichever these are. An error says why it cannot be asked.
    pub(super) fn inspect(program: &Path) -> Result<Self, String> {
        let asked = Command::new(program)
            .args(["-I", "-c", ASK])
            .env_clear()
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output();
        let told = match asked {
            Ok(told) if told.status.success() => told.stdout,
            Ok(told) => {
                let said = String::from_utf8_lossy(&told.stderr);
                let last = said.trim().lines().last().unwrap_or("nothing");
                return Err(format!("`{}` says: {last}", program.display()));
            }
            Err(error) => return Err(format!("`{}` cannot be run: {error}", program.display())),
        };
        let told: PythonReport = serde_json::from_slice(&told).map_err(|error| {
            format!(
                "`{}` is not a Python interpreter: {error}",
                program.display()
            )
        })?;
        let folders = told
            .folders
            .into_iter()
            .filter(|folder| !folder.starts_with("/usr"));
        Ok(Self {
            program: told.program,
            folders: folders.collect(),
            lacks: told.lacks,
        })
    }
}

#[derive(serde::Deserialize)]
struct PythonReport {
    program: PathBuf,
    folders: Vec<PathBuf>,
    lacks: Vec<String>,
}

/// Modules that the code can rely on.
pub const MODULES: &[&str] = &["pandas", "openpyxl"];

/// Code that imports the [`MODULES`], for a trial run.
pub(crate) const IMPORTS: &str = "import pandas, openpyxl";

/// Environment variable with the path of the interpreter to use.
pub const VARIABLE: &str = "ARCHIE_PYTHON";

const USUAL: &str = "/usr/bin/python3";
/// What to do if the program can make an environment: it does that only if no Python is named.
const DEFAULT_REMEDY: &str = "run `archie demo`, which makes a Python environment with the modules for `archie sheet`, or set ARCHIE_PYTHON to a Python that has them";
const REMEDY: &str = "make one with `python3 -m venv DIR && DIR/bin/pip install pandas openpyxl matplotlib` and set ARCHIE_PYTHON to DIR/bin/python";

/// Only looks the modules up: they are not imported, so none of their code runs.
const ASK: &str = "import sys, json, importlib.util as u
print(json.dumps({'program': sys.executable, 'folders': sorted({sys.prefix, sys.base_prefix}),
'lacks': [m for m in ('pandas', 'openpyxl', 'matplotlib') if u.find_spec(m) is None]}))";

#[test]
fn only_who_names_a_python_is_told_to_make_one() {
    let wrong = Python::find(Some(Path::new("/nonexistent/python"))).unwrap_err();
    let wrong = wrong.to_string();
    assert!(wrong.contains("`/nonexistent/python` cannot be run"));
    assert!(wrong.contains("pip install pandas openpyxl"));
    let usual = NoPython {
        why: "`/usr/bin/python3` has no pandas".to_owned(),
        remedy: DEFAULT_REMEDY,
    };
    let usual = usual.to_string();
    assert!(usual.contains("run `archie demo`") && !usual.contains("venv"));
}
