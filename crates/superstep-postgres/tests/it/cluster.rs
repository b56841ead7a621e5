//! A PostgreSQL server of a test's own, which it may stop and kill as it likes.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use free_ports::free_port;
use tempfile::TempDir;

/// A server that goes with its directory.
pub(crate) struct Cluster {
    dir: TempDir,
    programs: PathBuf,
    port: u16,
}

impl Cluster {
    /// Makes one and starts it.
    pub(crate) fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("pg").tempdir().unwrap();
        let cluster = Self {
            dir,
            programs: programs(),
            port: free_port(),
        };
        // PostgreSQL does not serve root.
        if let Some((user, group)) = servant() {
            std::os::unix::fs::chown(cluster.dir.path(), Some(user), Some(group)).unwrap();
        }
        let made = ["--auth=trust", "--username=superstep", "--no-sync"];
        cluster.run("initdb", &made, &["--pgdata", &cluster.data()]);
        cluster.control("start", "fast");
        cluster
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://superstep@127.0.0.1:{}/postgres", self.port)
    }

    /// Kills it without a word, and starts it again.
    pub(crate) fn crash_and_start(&self) {
        self.control("restart", "immediate");
    }

    /// Lets it finish what it does, and starts it again.
    pub(crate) fn restart(&self) {
        self.control("restart", "fast");
    }

    /// The port that it listens at, on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its socket.
    pub(crate) fn socket(&self) -> String {
        self.dir.path().display().to_string()
    }

    /// Writes a file into its data folder that only it can read. It looks at it when it starts.
    pub(crate) fn write(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = Path::new(&self.data()).join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        if let Some((user, group)) = servant() {
            std::os::unix::fs::chown(&path, Some(user), Some(group)).unwrap();
        }
    }

    fn control(&self, action: &str, mode: &str) {
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={} -c unix_socket_directories={}",
            self.port,
            self.dir.path().display()
        );
        let log = self.dir.path().join("log").display().to_string();
        let data = self.data();
        let wait = ["--wait", "--silent", "--log", &log, "--pgdata", &data];
        match action {
            "start" => self.run("pg_ctl", &["start", "--options", &options], &wait),
            _ => {
                let again = ["restart", "--options", &options, "--mode", mode];
                self.run("pg_ctl", &again, &wait);
            }
        }
    }

    fn run(&self, program: &str, args: &[&str], more: &[&str]) {
        let status = self.status(program, args, more);
        assert!(status.success(), "{program} {args:?}: {status}");
    }

    fn status(&self, program: &str, args: &[&str], more: &[&str]) -> ExitStatus {
        let mut command = Command::new(self.programs.join(program));
        command.args(args).args(more).current_dir(self.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        if let Some((user, group)) = servant() {
            command.gid(group).uid(user);
        }
        command.status().unwrap()
    }

    fn data(&self) -> String {
        self.dir.path().join("data").display().to_string()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let stop = ["stop", "--silent", "--wait", "--mode=immediate", "--pgdata"];
        // If it does not run there is nothing to stop.
        let _ = self.status("pg_ctl", &stop, &[&self.data()]);
    }
}

/// Where the oldest installed version that is new enough has its programs.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let number = |name: &std::ffi::OsStr| name.to_str()?.parse::<u32>().ok();
    let found = versions.filter_map(|entry| number(&entry.ok()?.file_name()));
    let version = found.filter(|version| *version >= 15).min();
    let version =
        version.expect("this test needs PostgreSQL's programs: run `cargo xtask services up`");
    Path::new("/usr/lib/postgresql")
        .join(version.to_string())
        .join("bin")
}

/// Whom root lets the server run as: user and group.
fn servant() -> Option<(u32, u32)> {
    let number = |args: &[&str]| {
        let output = Command::new("id").args(args).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    if number(&["-u"])? != 0 {
        return None;
    }
    Some((number(&["-u", "postgres"])?, number(&["-g", "postgres"])?))
}
