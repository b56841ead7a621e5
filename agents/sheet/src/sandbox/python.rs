//! Which Python runs the code, and whether it has what the code is promised.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python with pandas and openpyxl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// The program.
    pub program: PathBuf,
    /// The folders that it is made of.
    pub folders: Vec<PathBuf>,
    /// What is missing that only some code needs, such as pictures.
    pub lacks: Vec<String>,
}

/// No Python that will do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}; {MEND}")]
pub struct NoPython {
    why: String,
}

impl Python {
    /// The one that `ARCHIE_PYTHON` names, or the usual one.
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

/// What the code is promised.
pub const MODULES: &[&str] = &["pandas", "openpyxl"];

/// Names a Python of one's own.
pub const VARIABLE: &str = "ARCHIE_PYTHON";

const USUAL: &str = "/usr/bin/python3";
const MEND: &str = "make one with `python3 -m venv DIR && DIR/bin/pip install pandas openpyxl matplotlib` and set ARCHIE_PYTHON to DIR/bin/python";

/// It is only asked what it has: nothing is imported, and so nothing of it runs.
const ASK: &str = "import sys, json, importlib.util as u
print(json.dumps({'program': sys.executable, 'folders': sorted({sys.prefix, sys.base_prefix}),
'lacks': [m for m in ('pandas', 'openpyxl', 'matplotlib') if u.find_spec(m) is None]}))";
