//! The sandbox that isolates code with bubblewrap.
//!
//! The code gets its own namespaces: no network, no other processes, no users. The system and `/in` are read-only; `/data` is
//! writable. Privileges are dropped first: if root starts the sandbox, it switches to the user `nobody`, because root in a
//! namespace that maps to root is root to the kernel. The environment is empty from the start, because `/proc/1/environ` is
//! readable inside.

use std::path::{Path, PathBuf};

use superstep::checkpoint::BoxFuture;
use tokio::process::Command;

use super::{
    End, Job, Kind, Limits, Outcome, Python, RUNNER, Sandbox, SandboxError, process, seccomp,
};

/// Runs Python under bubblewrap.
#[derive(Debug)]
pub struct Bubblewrap {
    python: Python,
    filter: Vec<u8>,
    is_root: bool,
}

impl Bubblewrap {
    /// Creates the sandbox for this Python. An error says what is missing and how to fix it.
    pub fn new(python: Python) -> Result<Self, SandboxError> {
        Self::check_programs()?;
        Ok(Self {
            python,
            filter: seccomp::program().map_err(SandboxError::Filter)?,
            is_root: is_root()?,
        })
    }

    /// Checks that the programs that the sandbox needs are installed.
    pub fn check_programs() -> Result<(), SandboxError> {
        for (program, remedy) in NEEDED {
            if !Path::new("/usr/bin").join(program).is_file() {
                return Err(SandboxError::Missing { program, remedy });
            }
        }
        Ok(())
    }

    /// Runs `code` in the sandbox, and fails if that fails. A Python that runs outside may not run inside: if root starts the
    /// sandbox, its user `nobody` cannot read a Python below root's home.
    ///
    /// Blocks the calling thread, for a second or two if the code imports pandas.
    pub fn try_out(&self, code: &str) -> Result<(), SandboxError> {
        // On a thread of its own, because the caller may be inside a runtime, where another one cannot be started.
        let tried = std::thread::scope(|scope| {
            let trial = scope.spawn(|| -> Result<(), SandboxError> {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                runtime.block_on(self.trial(code))
            });
            trial.join()
        });
        match tried {
            Ok(tried) => tried,
            Err(_) => Err(std::io::Error::other("the trial run panicked").into()),
        }
    }

    async fn trial(&self, code: &str) -> Result<(), SandboxError> {
        let limits = Limits {
            time_ms: TRIAL_SECONDS * 1_000,
            cpu_s: TRIAL_SECONDS,
            ..Limits::default()
        };
        let job = Job::new(limits)?;
        job.give("step.py", code.as_bytes())?;
        job.give("layout.json", b"{}")?;
        let why = match self.run(&job).await {
            Ok(outcome) => match failure(&job, &outcome)? {
                Some(why) => why,
                None => return Ok(()),
            },
            // Only a message about the interpreter is about this Python. Otherwise no Python would do.
            Err(SandboxError::Walls { says }) if self.is_about_python(&says) => says,
            Err(error) => return Err(error),
        };
        Err(SandboxError::Trial {
            python: self.python.program.clone(),
            why,
        })
    }

    fn is_about_python(&self, says: &str) -> bool {
        let program = self.python.program.display().to_string();
        says.contains("execvp") || says.contains(&program)
    }

    /// Makes the job's files accessible to the unprivileged user that the sandbox switches to, if it runs as root.
    fn hand_over(&self, job: &Job) -> std::io::Result<()> {
        if self.is_root {
            let given = std::fs::read_dir(&job.given)?.map(|file| Ok(file?.path()));
            let given: Vec<PathBuf> = given.collect::<std::io::Result<_>>()?;
            let folders = [job.folder(), &job.given, &job.writable];
            for path in folders
                .into_iter()
                .chain(given.iter().map(PathBuf::as_path))
            {
                std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY))?;
            }
        }
        Ok(())
    }

    fn command(&self, job: &Job, filter: &Path) -> Command {
        // The shell opens the filter as file descriptor 9 for bubblewrap, and then replaces itself.
        let mut command = Command::new("/bin/sh");
        // A shell passes its current folder on to its children.
        command.current_dir("/");
        command
            .args(["-c", "exec 9<\"$0\"; exec \"$@\""])
            .arg(filter);
        if self.is_root {
            let id = NOBODY.to_string();
            command
                .args(["/usr/bin/setpriv", "--reuid", &id, "--regid", &id])
                .args(["--clear-groups", "--no-new-privs", "--"]);
        }
        command.arg("/usr/bin/bwrap").args(WALLS.split_whitespace());
        for folder in &self.python.folders {
            command.arg("--ro-bind").arg(folder).arg(folder);
        }
        command.arg("--ro-bind").arg(&job.given).arg(IN);
        command.arg("--bind").arg(&job.writable).arg(DATA);
        command.args("--remount-ro /dev --remount-ro / --chdir /data --seccomp 9 --".split(' '));
        command.arg("/usr/bin/prlimit").args(limits(job));
        command.arg("--").arg(&self.python.program);
        command.args(["-I", "-X", "utf8"]);
        command.arg(PathBuf::from(IN).join(RUNNER)).args([IN, DATA]);
        command
    }
}

/// Returns why the code of a job failed; `None` if it did not.
fn failure(job: &Job, outcome: &Outcome) -> std::io::Result<Option<String>> {
    #[derive(serde::Deserialize)]
    struct TrialReport {
        ok: bool,
        error: String,
    }
    if let Some(why) = outcome.end.says(&job.limits) {
        return Ok(Some(why));
    }
    let report = job.left("result.json")?;
    let report = report.and_then(|bytes| serde_json::from_slice::<TrialReport>(&bytes).ok());
    Ok(match report {
        Some(report) if report.ok => None,
        // The lines after the first one are those of the code.
        Some(report) => Some(
            report
                .error
                .lines()
                .next()
                .unwrap_or("it failed")
                .to_owned(),
        ),
        // Not even the runner ran.
        None => {
            let last = outcome.said.trim().lines().last();
            Some(last.unwrap_or("it said nothing").to_owned())
        }
    })
}

/// Limits are set inside the sandbox, where threads of other processes do not count.
fn limits(job: &Job) -> [String; 6] {
    let limits = &job.limits;
    [
        // The soft limit sends a signal that identifies the reason, the hard limit one that cannot be ignored.
        format!("--cpu={}:{}", limits.cpu_s, limits.cpu_s + 1),
        format!("--as={}", limits.memory_bytes),
        format!("--fsize={}", limits.file_bytes),
        format!("--nproc={}", limits.threads),
        "--nofile=256".to_owned(),
        "--core=0".to_owned(),
    ]
}

impl Sandbox for Bubblewrap {
    fn kind(&self) -> Kind {
        Kind::Bubblewrap
    }

    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, SandboxError>> {
        Box::pin(async move {
            let filter = job.folder().join("filter");
            std::fs::write(&filter, &self.filter)?;
            self.hand_over(job)?;
            let outcome = process::watch(self.command(job, &filter), job).await?;
            match outcome.end {
                // The runner itself always exits with 0 and reports errors of the code in its result.
                End::Exited(code) if code != 0 && outcome.said.contains("bwrap:") => {
                    Err(SandboxError::Walls {
                        says: outcome.said.trim().to_owned(),
                    })
                }
                _ => Ok(outcome),
            }
        })
    }
}

pub(super) fn is_root() -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata("/proc/self")?.uid() == 0)
}

const NOBODY: u32 = 65_534;
/// Time limit of a trial run. Ample for importing pandas on a slow machine.
const TRIAL_SECONDS: u64 = 60;
const IN: &str = "/in";
const DATA: &str = "/data";

const NEEDED: [(&str, &str); 3] = [
    (
        "bwrap",
        "install bubblewrap with `sudo apt-get install bubblewrap`",
    ),
    (
        "prlimit",
        "install util-linux with `sudo apt-get install util-linux`",
    ),
    (
        "setpriv",
        "install util-linux with `sudo apt-get install util-linux`",
    ),
];

/// The code runs as process 1. A helper process of bubblewrap next to it would have the same user but no filter, and the code
/// could write to its memory. `/` and `/dev` become read-only at the end, because they are in-memory file systems without a
/// size limit.
const WALLS: &str = "
    --unshare-all --unshare-user --disable-userns --as-pid-1 --die-with-parent --new-session
    --clearenv --cap-drop ALL --hostname sandbox --uid 1000 --gid 1000
    --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64
    --ro-bind-try /etc/ld.so.cache /etc/ld.so.cache --ro-bind-try /etc/localtime /etc/localtime
    --proc /proc --dev /dev --size 67108864 --tmpfs /tmp
    --setenv PATH /usr/bin --setenv HOME /tmp --setenv LANG C.UTF-8 --setenv MPLCONFIGDIR /tmp
    --setenv OPENBLAS_NUM_THREADS 1 --setenv OMP_NUM_THREADS 1 --setenv PYTHONDONTWRITEBYTECODE 1
";
