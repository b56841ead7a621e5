//! Finds the Python that runs the code, and checks that it has the required modules.

use std::path::{Path, PathBuf};
use std::process::Command;

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
#[error("{why}; {REMEDY}")]
pub struct NoPython {
    why: String,
}

impl Python {
    /// Checks the given interpreter, or the default one if there is none. The caller passes the value of `ARCHIE_PYTHON`.
    pub fn find(named: Option<&Path>) -> Result<Self, NoPython> {
        let program = match named {
            Some(named) => named.to_owned(),
            None => PathBuf::from(USUAL),
        };
        let no = |why: String| NoPython { why };
        let asked = Command::new(&program)
            .args(["-I", "-c", ASK])
            .env_clear()
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output();
        let told = match asked {
            Ok(told) if told.status.success() => told.stdout,
            Ok(told) => {
                let said = String::from_utf8_lossy(&told.stderr);
                let last = said.trim().lines().last().unwrap_or("nothing").to_owned();
                return Err(no(format!("`{}` says: {last}", program.display())));
            }
            Err(error) => {
                return Err(no(format!(
                    "`{}` cannot be run: {error}",
                    program.display()
                )));
            }
        };
        let told: PythonReport = serde_json::from_slice(&told).map_err(|error| {
            no(format!(
                "`{}` is not a Python interpreter: {error}",
                program.display()
            ))
        })?;
        let lacks = |module: &&&str| told.lacks.iter().any(|lack| lack == **module);
        if let Some(module) = MODULES.iter().find(lacks) {
            return Err(no(format!("`{}` has no {module}", program.display())));
        }
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

/// Environment variable with the path of the interpreter to use.
pub const VARIABLE: &str = "ARCHIE_PYTHON";

const USUAL: &str = "/usr/bin/python3";
const REMEDY: &str = "make one with `python3 -m venv DIR && DIR/bin/pip install pandas openpyxl matplotlib` and set ARCHIE_PYTHON to DIR/bin/python";

/// Only looks the modules up: they are not imported, so none of their code runs.
const ASK: &str = "import sys, json, importlib.util as u
print(json.dumps({'program': sys.executable, 'folders': sorted({sys.prefix, sys.base_prefix}),
'lacks': [m for m in ('pandas', 'openpyxl', 'matplotlib') if u.find_spec(m) is None]}))";
