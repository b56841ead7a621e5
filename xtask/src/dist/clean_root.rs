//! A folder as the root of a process, with nothing of this machine in it but a kernel: what a program needs from elsewhere is
//! missing there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, net, thread};

use anyhow::{Context, bail, ensure};
use serde_json::Value as Json;

use harness::workspace::in_words;
use services::require_program;

/// How a program is started in a folder.
#[derive(Debug)]
pub(super) struct CleanRoot {
    root: PathBuf,
    program: String,
    environment: Vec<(String, String)>,
    /// Where it may write besides `/tmp`, and the account it runs as.
    home: String,
    user: u32,
}

impl CleanRoot {
    /// The root of a machine on which somebody installed the program.
    pub(super) fn of_machine(root: &Path, program: &str) -> Self {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Self {
            root: root.to_owned(),
            program: program.to_owned(),
            environment: vec![variable("HOME", "/home"), variable("PATH", "/usr/bin")],
            home: "/home".to_owned(),
            user: 1000,
        }
    }

    /// The root of a container, started as the image says.
    pub(super) fn of_image(root: &Path, config: &Json) -> anyhow::Result<Self> {
        let config = &config["config"];
        let text = |json: &Json| json.as_str().map(str::to_owned);
        let variables = config["Env"].as_array().into_iter().flatten();
        let variables = variables.filter_map(|line| text(line)?.split_once('=').map(owned));
        let user = text(&config["User"]).context("the image names no user")?;
        let user = user.split(':').next().unwrap_or_default().to_owned();
        Ok(Self {
            root: root.to_owned(),
            program: text(&config["Entrypoint"][0]).context("the image has no entry point")?,
            environment: variables.collect(),
            home: text(&config["WorkingDir"]).context("the image has no working folder")?,
            user: user
                .parse()
                .context("the user of the image is not a number")?,
        })
    }

    /// Returns the program with these arguments: in namespaces of its own, and the files of the root are read-only. Without
    /// a network unless `hosts` has names.
    fn command(&self, args: &[&str], hosts: Option<&Path>) -> anyhow::Result<Command> {
        for folder in [
            "proc",
            "dev",
            "tmp",
            "etc",
            self.home.trim_start_matches('/'),
        ] {
            fs::create_dir_all(self.root.join(folder))?;
        }
        let user = self.user.to_string();
        let mut command = Command::new(require_program("bwrap", "bubblewrap")?);
        command
            .args([
                "--unshare-all",
                "--unshare-user",
                "--die-with-parent",
                "--new-session",
            ])
            .args(["--uid", &user, "--gid", &user, "--clearenv", "--ro-bind"])
            .arg(&self.root)
            .args(["/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"])
            .args(["--tmpfs", &self.home, "--chdir", &self.home]);
        if let Some(folder) = hosts {
            command.arg("--share-net");
            command.arg("--ro-bind").arg(folder).arg("/etc");
        }
        for (name, value) in &self.environment {
            command.args(["--setenv", name, value]);
        }
        command.arg("--").arg(&self.program).args(args);
        command.stdin(Stdio::null());
        Ok(command)
    }

    fn run(&self, args: &[&str]) -> anyhow::Result<(bool, String, String)> {
        let mut command = self.command(args, None)?;
        let output = command.output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Ok((
            output.status.success(),
            text(&output.stdout),
            text(&output.stderr),
        ))
    }

    /// Fails unless the program prints this version.
    pub(super) fn check_version(&self, version: &str) -> anyhow::Result<()> {
        let (_, printed, error) = self.run(&["--version"])?;
        ensure!(
            printed == format!("archie {version}"),
            "`archie --version` prints {printed:?} {error:?}"
        );
        Ok(())
    }

    /// Runs the demo and returns how many of its scenarios passed. One needs Python, which is not there; it has to say so.
    pub(super) fn check_demo(&self) -> anyhow::Result<usize> {
        let (_, printed, error) = self.run(&["demo", "--json"])?;
        let result = printed.lines().last().unwrap_or_default();
        let result: Json = serde_json::from_str(result)
            .with_context(|| format!("`archie demo --json` prints {printed:?} {error:?}"))?;
        passed(&result)
    }

    /// Fails unless the program finds a host that only `/etc/hosts` names, although `/etc/nsswitch.conf` names services that
    /// are not there.
    pub(super) fn check_names(&self) -> anyhow::Result<()> {
        let listener = net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("hosts"), "127.0.0.1 planted.example\n")?;
        fs::write(
            folder.path().join("nsswitch.conf"),
            "hosts: sss [NOTFOUND=return] resolve\n",
        )?;
        let store = format!("postgres://archie@planted.example:{port}/archie");
        let mut command = self.command(&["--store", &store, "threads"], Some(folder.path()))?;
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let start = Instant::now();
        let is_found = loop {
            if listener.accept().is_ok() {
                break true;
            }
            if child.try_wait()?.is_some() || start.elapsed() > NAMES_MAX {
                break false;
            }
            thread::sleep(Duration::from_millis(20));
        };
        // It ended already, or nobody needs it any more.
        let _ = child.kill();
        let output = child.wait_with_output()?;
        if !is_found {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!(
                "the program does not find a host of /etc/hosts: {}",
                error.trim()
            );
        }
        Ok(())
    }
}

/// Returns how many scenarios passed, or the first failure that is not the lack of a Python.
fn passed(result: &Json) -> anyhow::Result<usize> {
    let scenarios = result["scenarios"].as_array();
    let scenarios = scenarios.context("the demo has no scenarios")?;
    let mut passed = 0;
    for scenario in scenarios {
        let why = scenario["why"].as_str().unwrap_or_default();
        match scenario["passed"] == true {
            true => passed += 1,
            false if scenario["agent"] == "sheet" && why.starts_with(NO_PYTHON) => {}
            false => bail!("the demo of {} failed: {why}", scenario["agent"]),
        }
    }
    ensure!(passed >= 4, "only {passed} scenarios of the demo passed");
    Ok(passed)
}

/// Runs `dpkg` as if by root on a machine whose root is this folder.
pub(super) fn dpkg(root: &Path, args: &[&str]) -> anyhow::Result<()> {
    let database = root.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(database.join(folder))?;
    }
    for file in ["status", "available"] {
        let path = database.join(file);
        if !path.exists() {
            fs::write(path, "")?;
        }
    }
    let mut command = Command::new(require_program("bwrap", "bubblewrap")?);
    command
        .args([
            "--unshare-user",
            "--uid",
            "0",
            "--gid",
            "0",
            "--die-with-parent",
        ])
        .args([
            "--dev-bind",
            "/",
            "/",
            "--setenv",
            "PATH",
            "/usr/sbin:/usr/bin:/sbin:/bin",
        ])
        .args(["--", "dpkg", "--root"])
        .arg(root)
        .args(args);
    let output = command.output()?;
    ensure!(
        output.status.success(),
        "`{}` failed: {}",
        in_words(&command),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// How the failure of the scenario begins whose code runs in a sandbox.
const NO_PYTHON: &str = "its code cannot run here";
const NAMES_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_demo_passes_if_nothing_but_python_is_missing() {
        let result = |agent: &str, why: &str| {
            let names = ["analyze", "docs", "atris", "email_assistant"];
            let mut scenarios: Vec<_> = names
                .iter()
                .map(|name| json!({ "agent": name, "passed": true }))
                .collect();
            scenarios.push(json!({ "agent": agent, "passed": false, "why": why }));
            passed(&json!({ "scenarios": scenarios })).map_err(|error| error.to_string())
        };
        assert_eq!(result("sheet", "its code cannot run here: no bwrap"), Ok(4));
        assert!(result("sheet", "it was killed").is_err());
        assert!(result("docs", "its code cannot run here").is_err());
        assert!(passed(&json!({ "scenarios": [] })).is_err());
    }

    #[test]
    fn an_image_is_started_as_its_configuration_says() {
        let config = json!({ "config": {
            "User": "65532:65532", "Env": ["HOME=/x", "A=b=c"], "Entrypoint": ["/usr/bin/archie"],
            "WorkingDir": "/x",
        }});
        let root = CleanRoot::of_image(Path::new("/r"), &config).unwrap();
        assert_eq!((root.user, root.home.as_str()), (65532, "/x"));
        assert_eq!(root.environment[1], ("A".to_owned(), "b=c".to_owned()));
        assert!(CleanRoot::of_image(Path::new("/r"), &json!({})).is_err());
    }
}
