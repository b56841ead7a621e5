//! A mail server from Debian's packages: Dovecot for IMAP, aiosmtpd for what goes out. Every user name is let in with the password
//! `test` and has a mailbox of its own, so that tests do not meet; what goes out lies in one Maildir, a file for each mail.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use free_ports::free_ports;

use super::account::Account;
use super::daemon::{Daemon, Life};
use super::packages::{find_program, install};
use super::single::{start_unless_it_runs, wait_until};
use super::{Member, Places, Service, Status};

#[derive(Debug)]
pub(super) struct Mail {
    imap: Daemon,
    smtp: Daemon,
}

impl Mail {
    pub(super) fn new(places: &Places) -> Self {
        // Dovecot reads mails as somebody who may not enter a home folder.
        let open = format!("superstep-mail-{}", places.account.caller());
        Self {
            imap: Daemon {
                program: IMAP,
                folder: places.data.with_file_name(open),
            },
            smtp: Daemon {
                program: SMTP,
                folder: places.addresses.join(NAME),
            },
        }
    }

    fn start_imap(&self) -> anyhow::Result<()> {
        let folder = &self.imap.folder;
        own_folder(folder)?;
        fs::create_dir_all(folder.join("mails"))?;
        if Account::find().is_root() {
            std::os::unix::fs::chown(folder.join("mails"), Some(NOBODY), Some(NOBODY))?;
            fs::set_permissions(folder.join("mails"), fs::Permissions::from_mode(0o700))?;
        }
        let port = free_ports(PORT, 1)?[0];
        self.imap.keep_port(port)?;
        fs::write(folder.join("imap.conf"), settings(folder, port)?)?;
        let program =
            find_program(IMAP).context("the package dovecot-imapd has no program dovecot")?;
        let mut command = Command::new(program);
        command.args(["-F", "-c"]).arg(folder.join("imap.conf"));
        self.imap.start(&mut command, Life::Own)
    }

    fn start_smtp(&self) -> anyhow::Result<()> {
        let folder = &self.smtp.folder;
        fs::create_dir_all(folder)?;
        // What tests of before sent is of no use to those that come, and there is more each time.
        if self.sink().exists() {
            fs::remove_dir_all(self.sink())?;
        }
        let port = free_ports(SMTP_PORT, 1)?[0];
        self.smtp.keep_port(port)?;
        // Debian's own Python, for whose packages it is.
        let mut command = Command::new("/usr/bin/python3");
        command
            .args(["-m", "aiosmtpd", "-n", "-l", &format!("127.0.0.1:{port}")])
            .args(["-c", "aiosmtpd.handlers.Mailbox"])
            .arg(self.sink());
        self.smtp.start(&mut command, Life::Own)
    }

    /// Where what goes out lies. The server makes it.
    fn sink(&self) -> PathBuf {
        self.smtp.folder.join("sink")
    }
}

impl Service for Mail {
    fn name(&self) -> &'static str {
        NAME
    }

    fn up(&self) -> anyhow::Result<()> {
        let has_smtp = Path::new("/usr/lib/python3/dist-packages/aiosmtpd").exists();
        if find_program(IMAP).is_none() || !has_smtp {
            eprintln!("{NAME}: installing {} (about 20 s)", PACKAGES.join(" and "));
            install(&PACKAGES)?;
        }
        start_unless_it_runs(&self.imap, || self.start_imap())?;
        start_unless_it_runs(&self.smtp, || self.start_smtp())?;
        wait_until(&self.imap, SHORT, PATIENCE, greets)?;
        wait_until(&self.smtp, SHORT, PATIENCE, greets)
    }

    fn down(&self) -> anyhow::Result<bool> {
        let imap = self.imap.stop()?;
        let smtp = self.smtp.stop()?;
        Ok(imap || smtp)
    }

    fn status(&self) -> anyhow::Result<Status> {
        let port = |daemon: &Daemon| daemon.port().ok().filter(|_| daemon.runs());
        let (imap, smtp) = (port(&self.imap), port(&self.smtp));
        let mut member =
            Member::with_url(NAME, imap.map(|port| format!("imap://127.0.0.1:{port}")));
        if let Some(port) = smtp {
            member
                .urls
                .push(("smtp", format!("smtp://127.0.0.1:{port}")));
            member
                .urls
                .push(("sink", self.sink().display().to_string()));
        }
        Ok(Status {
            healthy: imap.is_some_and(greets) && smtp.is_some_and(greets),
            remark: None,
            members: vec![member],
        })
    }
}

/// Others can write beside it.
fn own_folder(folder: &Path) -> anyhow::Result<()> {
    if !folder.exists() {
        fs::create_dir(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    }
    let found = folder.symlink_metadata()?;
    if !found.is_dir() || found.uid() != Account::find().caller() {
        bail!(
            "{} is there and not ours; remove it or set TMPDIR",
            folder.display()
        );
    }
    Ok(())
}

/// Loopback, nothing encrypted, everybody let in, a mailbox for each name.
fn settings(folder: &Path, port: u16) -> anyhow::Result<String> {
    let folder = folder
        .to_str()
        .context("the folder of the cache is no text")?;
    let user = match Account::find().is_root() {
        true => NOBODY,
        false => Account::find().caller(),
    };
    Ok(SETTINGS
        .replace("FOLDER", folder)
        .replace("PORT", &port.to_string())
        .replace("USER", &user.to_string()))
}

/// Both greet whoever comes.
fn greets(port: u16) -> bool {
    let hear = || -> std::io::Result<[u8; 3]> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect_timeout(&address, SHORT)?;
        stream.set_read_timeout(Some(SHORT))?;
        let mut heard = [0; 3];
        stream.read_exact(&mut heard)?;
        Ok(heard)
    };
    hear().is_ok_and(|heard| &heard == b"* O" || &heard == b"220")
}

const NAME: &str = "mail";
const IMAP: &str = "dovecot";
const SMTP: &str = "python3";
const PACKAGES: [&str; 2] = ["dovecot-imapd", "python3-aiosmtpd"];
const PORT: u16 = 28_500;
const SMTP_PORT: u16 = 28_600;
const NOBODY: u32 = 65_534;
const SHORT: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(30);
const SETTINGS: &str = include_str!("mail/dovecot.conf");

#[test]
fn dovecot_listens_on_loopback() {
    let settings = settings(Path::new("/srv/mail"), 28_500).unwrap();
    assert!(settings.contains("listen = 127.0.0.1\n"));
    assert!(settings.contains("port = 28500\n"));
    assert!(settings.contains("maildir:/srv/mail/mails/%u"));
}
