//! `archie mail schedule`: a timer of the system that ingests a mailbox, so that no process has to keep running.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use archie_agent::{Exit, Terminal, private_file};
use archie_email_assistant::mailbox::Mailboxes;
use superstep_agent::digest;

use super::ScheduleArgs;
use crate::app::App;
use crate::cli::settings::Store;

/// Runs `archie mail schedule`: prints the timer, or installs or removes it.
pub(super) async fn handle_schedule(
    args: &ScheduleArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let timer = SystemTimer::of(args, app)?;
    if args.crontab {
        terminal.line(&timer.crontab()?);
        terminal.aside("add this line with `crontab -e`; delete it there to stop");
        return Ok(Exit::Done);
    }
    if args.install {
        timer.install()?;
        terminal.line(&format!(
            "{}.timer runs every {} minutes",
            timer.name, timer.minutes
        ));
        terminal.line(&format!(
            "`archie mail schedule {} --remove` stops it",
            timer.source_in_shell()
        ));
        return Ok(Exit::Done);
    }
    if args.remove {
        timer.remove()?;
        terminal.line(&format!("{}.timer is removed", timer.name));
        return Ok(Exit::Done);
    }
    let folder = units_folder()?;
    for (file, text) in timer.units() {
        terminal.line(&format!("# {}", folder.join(file).display()));
        terminal.line(&text);
    }
    let name = &timer.name;
    terminal.aside(&format!(
        "write these files and start the timer with `archie mail schedule {source} --install`, or by hand:\n  \
         systemctl --user daemon-reload && systemctl --user enable --now {name}.timer\n\
         stop it with `archie mail schedule {source} --remove`, or by hand:\n  \
         systemctl --user disable --now {name}.timer\n\
         see its runs with `journalctl --user -u {name}`",
        source = timer.source_in_shell(),
    ));
    Ok(Exit::Done)
}

/// A timer that runs `archie mail ingest` at an interval.
#[derive(Debug)]
struct SystemTimer {
    /// Name of the units, without a suffix: the same for one mailbox and one home folder.
    name: String,
    source: String,
    minutes: u64,
    program: String,
    /// Arguments of the program.
    args: Vec<String>,
    home: String,
}

impl SystemTimer {
    fn of(args: &ScheduleArgs, app: &App) -> anyhow::Result<Self> {
        let seconds = args.every.as_secs();
        ensure!(
            seconds >= 60 && seconds.is_multiple_of(60),
            "`--every` takes whole minutes, such as 10m or 2h"
        );
        let source = Mailboxes::canonical(&args.source);
        let home = std::path::absolute(&app.settings.home)?
            .display()
            .to_string();
        let program = std::env::current_exe().context("the path of this program is not known")?;
        let mut ingest = vec!["mail".to_owned(), "ingest".to_owned(), source.clone()];
        if let Some(model) = &app.settings.model {
            ingest.extend(["--model".to_owned(), model.clone()]);
        }
        // The address of a PostgreSQL database may contain a password, so it is not written here.
        if let Store::Sqlite(file) = &app.settings.store {
            let file = std::path::absolute(file)?;
            ingest.extend(["--store".to_owned(), format!("sqlite:{}", file.display())]);
        }
        let key = digest("timer", &serde_json::json!([source, home]));
        let timer = Self {
            name: format!("archie-mail-{}", &key[..8]),
            source,
            minutes: seconds / 60,
            program: program.display().to_string(),
            args: ingest,
            home,
        };
        timer.refuse_control_characters()?;
        Ok(timer)
    }

    /// Fails if a word has a control character: a line break would start a new line of a unit or of the crontab.
    fn refuse_control_characters(&self) -> anyhow::Result<()> {
        let words = [&self.source, &self.program, &self.home];
        for word in words.into_iter().chain(&self.args) {
            ensure!(
                !word.chars().any(char::is_control),
                "`{}` has control characters, which a timer cannot have",
                word.escape_debug()
            );
        }
        Ok(())
    }

    /// Returns the source as it is typed in a shell.
    fn source_in_shell(&self) -> String {
        in_shell(&self.source)
    }

    /// Returns the systemd units, each with its file name.
    fn units(&self) -> [(String, String); 2] {
        let command: Vec<_> = std::iter::once(&self.program)
            .chain(&self.args)
            .map(|word| in_unit(word, true))
            .collect();
        let source = self.source.replace('%', "%%");
        let service = format!(
            "[Unit]\nDescription=Archie ingests {source}\n\n[Service]\nType=oneshot\nEnvironment={}\n\
             # Keys and other variables, as NAME=value. Readable by you only.\nEnvironmentFile=-{}\nExecStart={}\n",
            in_unit(&format!("ARCHIE_HOME={}", self.home), false),
            environment_file(&self.home).replace('%', "%%"),
            command.join(" ")
        );
        let timer = format!(
            "[Unit]\nDescription=Archie ingests {source} every {minutes} minutes\n\n[Timer]\nOnActiveSec=10s\n\
             OnUnitActiveSec={minutes}min\n\n[Install]\nWantedBy=timers.target\n",
            minutes = self.minutes
        );
        [
            (format!("{}.service", self.name), service),
            (format!("{}.timer", self.name), timer),
        ]
    }

    /// Returns the line for crontab. As with systemd, the environment file may be missing. Only the user can read the log.
    fn crontab(&self) -> anyhow::Result<String> {
        let times = match self.minutes {
            minutes if minutes < 60 && 60 % minutes == 0 => format!("*/{minutes} * * * *"),
            60 => "0 * * * *".to_owned(),
            1_440 => "0 0 * * *".to_owned(),
            minutes
                if minutes % 60 == 0
                    && 24 % (minutes / 60).clamp(1, 24) == 0
                    && minutes < 1_440 =>
            {
                format!("0 */{} * * *", minutes / 60)
            }
            minutes => bail!(
                "crontab cannot repeat something every {minutes} minutes; take minutes that divide an hour, or hours that \
                 divide a day"
            ),
        };
        let words = std::iter::once(&self.program).chain(&self.args);
        let command: Vec<_> = words.map(|word| in_shell(word)).collect();
        let home = in_shell(&self.home);
        let folder = in_shell(&format!("{}/mail", self.home));
        let log = in_shell(&format!("{}/mail/ingest.log", self.home));
        let environment = in_shell(&environment_file(&self.home));
        let line = format!(
            "umask 077; mkdir -p {folder} && {{ if [ -r {environment} ]; then set -a; . {environment}; set +a; fi; \
             ARCHIE_HOME={home} {}; }} >> {log} 2>&1",
            command.join(" ")
        );
        // cron takes `%` for the end of the line.
        Ok(format!("{times} {}", line.replace('%', "\\%")))
    }

    fn install(&self) -> anyhow::Result<()> {
        let folder = units_folder()?;
        for (file, text) in self.units() {
            let file = folder.join(file);
            private_file::write(&file, text.as_bytes())
                .with_context(|| format!("{} cannot be written", file.display()))?;
        }
        systemctl(&["daemon-reload"])?;
        systemctl(&["enable", "--now", &format!("{}.timer", self.name)])
    }

    fn remove(&self) -> anyhow::Result<()> {
        let folder = units_folder()?;
        let files = self.units().map(|(file, _)| folder.join(file));
        ensure!(
            files.iter().any(|file| file.exists()),
            "there is no timer for `{}`: {} does not exist",
            self.source,
            files[1].display()
        );
        systemctl(&["disable", "--now", &format!("{}.timer", self.name)])?;
        for file in files.iter().filter(|file| file.exists()) {
            std::fs::remove_file(file)
                .with_context(|| format!("{} cannot be deleted", file.display()))?;
        }
        systemctl(&["daemon-reload"])
    }
}

fn environment_file(home: &str) -> String {
    Path::new(home)
        .join("mail/environment")
        .display()
        .to_string()
}

/// Returns the folder of the user's units.
fn units_folder() -> anyhow::Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let config = set("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(PathBuf::from(set("HOME")?).join(".config")));
    Ok(config.context("set HOME")?.join("systemd/user"))
}

fn systemctl(args: &[&str]) -> anyhow::Result<()> {
    let ran = Command::new("systemctl").arg("--user").args(args).output();
    let ran =
        ran.context("`systemctl` cannot be run; use `--crontab` on a system without systemd")?;
    ensure!(
        ran.status.success(),
        "`systemctl --user {}` failed: {}",
        args.join(" "),
        String::from_utf8_lossy(&ran.stderr).trim()
    );
    Ok(())
}

/// Quotes a word for a unit file. In a command, `$` starts a variable.
fn in_unit(word: &str, is_command: bool) -> String {
    let word = word
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%");
    let word = if is_command {
        word.replace('$', "$$")
    } else {
        word
    };
    format!("\"{word}\"")
}

/// Quotes a word for a shell. Control characters were refused before.
fn in_shell(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| String::new(), |word| word.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(minutes: u64) -> SystemTimer {
        SystemTimer {
            name: "archie-mail-0123abcd".to_owned(),
            source: "/people/ada/my $mail 100%".to_owned(),
            minutes,
            program: "/usr/bin/archie".to_owned(),
            args: ["mail", "ingest", "/people/ada/my $mail 100%"]
                .map(str::to_owned)
                .to_vec(),
            home: "/people/ada/.local/share/archie".to_owned(),
        }
    }

    #[test]
    fn a_crontab_line_names_everything_in_full_and_quotes_it() {
        assert_eq!(
            timer(10).crontab().unwrap(),
            "*/10 * * * * umask 077; mkdir -p /people/ada/.local/share/archie/mail && \
             { if [ -r /people/ada/.local/share/archie/mail/environment ]; then set -a; \
             . /people/ada/.local/share/archie/mail/environment; set +a; fi; \
             ARCHIE_HOME=/people/ada/.local/share/archie /usr/bin/archie mail ingest '/people/ada/my $mail 100\\%'; } \
             >> /people/ada/.local/share/archie/mail/ingest.log 2>&1"
        );
        for (minutes, times) in [
            (60, "0 * * * *"),
            (120, "0 */2 * * *"),
            (1_440, "0 0 * * *"),
        ] {
            assert!(
                timer(minutes).crontab().unwrap().starts_with(times),
                "{minutes}"
            );
        }
        for minutes in [7, 90, 300, 2_880] {
            assert!(timer(minutes).crontab().is_err(), "{minutes}");
        }
    }

    #[test]
    fn control_characters_are_refused_wherever_they_are() {
        timer(10).refuse_control_characters().unwrap();
        let changes: [fn(&mut SystemTimer); 4] = [
            |timer| timer.source.push('\n'),
            |timer| timer.program.push('\n'),
            |timer| timer.home.push('\r'),
            |timer| timer.args.push("--model\nx".to_owned()),
        ];
        for change in changes {
            let mut timer = timer(10);
            change(&mut timer);
            let why = timer.refuse_control_characters().unwrap_err().to_string();
            assert!(why.contains("control characters"), "{timer:?}: {why}");
        }
    }

    #[test]
    fn a_unit_runs_the_ingest_and_its_timer_repeats_it() {
        let [(_, service), (name, timer)] = timer(10).units();
        assert!(
            service.contains(
                "ExecStart=\"/usr/bin/archie\" \"mail\" \"ingest\" \"/people/ada/my $$mail 100%%\"\n"
            ),
            "{service}"
        );
        assert!(service.contains(
            "Type=oneshot\nEnvironment=\"ARCHIE_HOME=/people/ada/.local/share/archie\"\n"
        ));
        assert_eq!(name, "archie-mail-0123abcd.timer");
        assert!(timer.contains("OnUnitActiveSec=10min\n"), "{timer}");
    }
}
