//! A program that speaks MCP over its standard streams, and how it is started.

use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;

use rmcp::transport::TokioChildProcess;
use tokio::process::Command;

/// A program that speaks MCP over its standard streams. It gets `PATH`, `HOME` and the variables given here, but no others, so
/// it cannot read our API keys.
#[derive(Clone)]
pub struct ServerProgram {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    folder: Option<PathBuf>,
    discards_stderr: bool,
}

impl ServerProgram {
    /// Creates a program from an absolute path, or a name that is looked up in `PATH`.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            folder: None,
            discards_stderr: false,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the folder in which the program starts. Default: that of our process, which may hold files of others: some programs
    /// run what they find there.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Discards what the program writes to its standard error. Default: it goes to ours, unchanged.
    #[must_use]
    pub fn discard_stderr(mut self) -> Self {
        self.discards_stderr = true;
        self
    }

    /// Starts the program. It is killed when the connection ends.
    pub(super) fn start(&self) -> std::io::Result<TokioChildProcess> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().kill_on_drop(true);
        for inherited in ["PATH", "HOME"] {
            if let Some(value) = std::env::var_os(inherited) {
                command.env(inherited, value);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let stderr = match self.discards_stderr {
            true => Stdio::null(),
            false => Stdio::inherit(),
        };
        let (process, _) = TokioChildProcess::builder(command).stderr(stderr).spawn()?;
        Ok(process)
    }
}

/// Leaves out the values of variables and the arguments, which may be secret.
impl fmt::Debug for ServerProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerProgram")
            .field("program", &self.program)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}
