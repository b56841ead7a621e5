//! The address of a database: its servers, how much a connection has to prove, and where the password is.
//!
//! Parameters are those of libpq. `PGSSLMODE`, `PGSSLROOTCERT`, `PGSSLCERT`, `PGSSLKEY`, `PGPASSFILE` and `PGPASSWORD` are read
//! from the environment, and no others. There are two more differences. Without a mode, connections to this machine are not
//! encrypted, and others are as with `prefer`. And `prefer` sends nothing unencrypted after a failed handshake, only to a server
//! that says that it has no TLS.

use std::borrow::Cow;
use std::net::IpAddr;
use std::path::PathBuf;

use superstep_core::error::CheckpointError;
use superstep_tls::{SslMode, TlsClient, TlsError, TlsParameters};
use tokio_postgres::Config;
use tokio_postgres::config::{self, Host, SslNegotiation};
use tokio_postgres::error::SqlState;

use crate::fault::{Fault, PostgresError, in_words};
use crate::passfile::read_password;
use crate::tls::Encryption;

/// A parsed address.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    /// `None` if connections are never encrypted.
    pub(crate) encryption: Option<Encryption>,
    /// File with the password. Read for every connection, so that a new password takes effect without a restart.
    passfile: Option<PathBuf>,
}

impl Address {
    /// Parses a URL or a list of `name=value`. What it leaves open comes from the environment.
    pub(crate) fn parse(text: &str) -> Result<Self, CheckpointError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self::parse_with(text, variable)
    }

    fn parse_with(
        text: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, CheckpointError> {
        let (rest, mut parameters) = take_parameters(text).map_err(wrong)?;
        let is_asked = parameters.first_of_tls().is_some() || variable("PGSSLMODE").is_some();
        let defaults = [
            (&mut parameters.sslmode, "PGSSLMODE"),
            (&mut parameters.sslrootcert, "PGSSLROOTCERT"),
            (&mut parameters.sslcert, "PGSSLCERT"),
            (&mut parameters.sslkey, "PGSSLKEY"),
        ];
        for (parameter, name) in defaults {
            if parameter.is_none() {
                *parameter = variable(name);
            }
        }
        let mut config: Config = rest.parse().map_err(wrong)?;
        if config.get_password().is_none()
            && let Some(password) = variable("PGPASSWORD")
        {
            config.password(password);
        }
        if config.get_hosts().is_empty() {
            // A certificate is for a name or for an address, so there must be one or the other.
            for address in config.get_hostaddrs().to_vec() {
                config.host(address.to_string());
            }
        }
        let mode = mode_for(&config, &parameters, is_asked).map_err(wrong)?;
        let encryption = encryption(&mut config, mode, &parameters).map_err(wrong)?;
        let mut address = Self {
            config,
            encryption,
            passfile: None,
        };
        if address.config.get_password().is_none() {
            address.take_passfile(parameters.passfile, variable("PGPASSFILE"))?;
        }
        Ok(address)
    }

    /// Takes the file with the password: the one that the address names, or else the one of the environment. A file that cannot be
    /// used from the start is a mistake, and not worth a retry. The one of the environment is often meant for other databases.
    fn take_passfile(
        &mut self,
        named: Option<String>,
        of_environment: Option<String>,
    ) -> Result<(), CheckpointError> {
        let is_named = named.is_some();
        self.passfile = named.or(of_environment).map(PathBuf::from);
        let Err(fault) = self.config_now() else {
            return Ok(());
        };
        let why = match &fault {
            Fault::Broken(error) => in_words(error.as_ref()),
            Fault::Refused(error) => in_words(error),
        };
        if is_named {
            return Err(CheckpointError::Unusable { why });
        }
        tracing::warn!(why, "the file in PGPASSFILE is ignored");
        self.passfile = None;
        Ok(())
    }

    /// Returns the configuration with the password as it is now.
    pub(crate) fn config_now(&self) -> Result<Cow<'_, Config>, Fault> {
        let Some(file) = &self.passfile else {
            return Ok(Cow::Borrowed(&self.config));
        };
        let mut config = self.config.clone();
        if let Some(password) = read_password(&config, file)? {
            config.password(password);
        }
        Ok(Cow::Owned(config))
    }

    /// Returns why a connection was not opened.
    pub(crate) fn refusal(&self, source: tokio_postgres::Error) -> Fault {
        let is_password = source.code() == Some(&SqlState::INVALID_PASSWORD);
        match &self.passfile {
            Some(file) if is_password => PostgresError::PasswordRefused {
                file: file.clone(),
                source,
            }
            .into(),
            _ => source.into(),
        }
    }
}

fn wrong(error: impl std::error::Error + 'static) -> CheckpointError {
    CheckpointError::Unusable {
        why: format!(
            "the address is not one of a PostgreSQL database: {}",
            in_words(&error)
        ),
    }
}

/// Returns the mode. `is_asked` is whether somebody said something about TLS to this database, and not only which files to use.
fn mode_for(
    config: &Config,
    parameters: &TlsParameters,
    is_asked: bool,
) -> Result<SslMode, TlsError> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let is_socket = |host: &Host| !matches!(host, Host::Tcp(_));
    // As in libpq: the system protects a local socket. An address takes precedence over the host, also over a socket.
    if !hosts.is_empty() && addresses.is_empty() && hosts.iter().all(is_socket) {
        return Ok(SslMode::Disable);
    }
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => is_loopback(name),
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    let is_local = hosts.iter().all(is_local) && addresses.iter().all(IpAddr::is_loopback);
    let mode = match is_local && !is_asked {
        true => SslMode::Disable,
        false => parameters.mode()?.unwrap_or(SslMode::Prefer),
    };
    // A handshake that comes first cannot be left out where the server has no TLS.
    let is_direct = config.get_ssl_negotiation() == SslNegotiation::Direct;
    match is_direct && !mode.is_required() {
        true => Err(TlsError::WeakDirect { mode }),
        false => Ok(mode),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Sets the mode of the configuration, and returns what encrypts.
fn encryption(
    config: &mut Config,
    mode: SslMode,
    parameters: &TlsParameters,
) -> Result<Option<Encryption>, TlsError> {
    let Some(options) = parameters.options(mode)? else {
        config.ssl_mode(config::SslMode::Disable);
        return Ok(None);
    };
    config.ssl_mode(match mode.is_required() {
        true => config::SslMode::Require,
        false => config::SslMode::Prefer,
    });
    // A server that gets no request for TLS before it starts can only tell by this which protocol comes next.
    let protocols: &[&str] = match config.get_ssl_negotiation() {
        SslNegotiation::Direct => &["postgresql"],
        _ => &[],
    };
    let client = TlsClient::with_protocols(&options, protocols)?;
    Ok(Some(Encryption(client)))
}

fn take_parameters(text: &str) -> Result<(String, TlsParameters), TlsError> {
    match text.starts_with("postgres://") || text.starts_with("postgresql://") {
        true => TlsParameters::take_from_url(text),
        false => Ok(take_from_pairs(text)),
    }
}

/// Takes the parameters out of `name=value` pairs, separated by blanks, with quotes around values that contain some.
fn take_from_pairs(text: &str) -> (String, TlsParameters) {
    let mut parameters = TlsParameters::default();
    let mut rest = String::new();
    let mut left = text.trim_start();
    while let Some((name, text)) = left.split_once('=') {
        let (value, next) = take_value(text.trim_start());
        if !parameters.set(name.trim_end(), &value) {
            rest.push_str(&left[..left.len() - next.len()]);
            rest.push(' ');
        }
        left = next.trim_start();
    }
    rest.push_str(left);
    (rest, parameters)
}

/// Reads a value up to its end. Returns it without quotes and backslashes, and what follows.
fn take_value(text: &str) -> (String, &str) {
    let unquoted = text.strip_prefix('\'');
    let body = unquoted.unwrap_or(text);
    let mut value = String::new();
    let mut chars = body.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            '\'' if unquoted.is_some() => return (value, &body[at + 1..]),
            c if unquoted.is_none() && c.is_whitespace() => return (value, &body[at..]),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Address {
        Address::parse_with(text, |_| None).unwrap()
    }

    fn mode(text: &str) -> (config::SslMode, bool) {
        let address = parsed(text);
        (address.config.get_ssl_mode(), address.encryption.is_some())
    }

    #[test]
    fn this_machine_needs_no_tls_and_others_are_asked_for_it() {
        let off = (config::SslMode::Disable, false);
        for local in [
            "postgres://u@127.0.0.1/d",
            "postgres://u@localhost,[::1]/d",
            "postgres://u@%2Frun%2Fpg/d",
            "postgres://u@%2Frun%2Fpg/d?sslmode=require",
            "host=/run/pg sslmode=verify-full",
            "postgres://u@db.example/d?sslmode=disable",
            "hostaddr=127.0.0.1",
            "host=localhost hostaddr=127.0.0.1",
        ] {
            assert_eq!(mode(local), off, "{local}");
        }
        let prefer = (config::SslMode::Prefer, true);
        assert_eq!(mode("postgres://u@db.example/d"), prefer);
        assert_eq!(mode("postgres://u@localhost,db.example/d"), prefer);
        assert_eq!(mode("hostaddr=10.0.0.1 sslmode = 'allow'"), prefer);
        let require = (config::SslMode::Require, true);
        assert_eq!(mode("postgres://u@127.0.0.1/d?sslmode=require"), require);
        let far = "host=/run/pg hostaddr=10.0.0.5 sslmode=require";
        assert_eq!(mode(far), require);
        assert_eq!(mode("host=localhost hostaddr=10.0.0.5"), prefer);
        let address = parsed("hostaddr=10.0.0.1");
        assert_eq!(address.config.get_hosts(), [Host::Tcp("10.0.0.1".into())]);
    }

    #[test]
    fn pairs_keep_what_is_not_about_tls() {
        let text = r"host=h sslmode='require' application_name='a \'b' user = u passfile=/a\ b";
        let (rest, parameters) = take_from_pairs(text);
        assert_eq!(rest, r"host=h application_name='a \'b' user = u ");
        assert_eq!(parameters.sslmode.as_deref(), Some("require"));
        assert_eq!(parameters.passfile.as_deref(), Some("/a b"));
        assert!(rest.parse::<Config>().is_ok());
    }

    #[test]
    fn the_environment_says_what_the_address_leaves_open() {
        let variable = |name: &str| match name {
            "PGPASSWORD" => Some("secret".to_owned()),
            "PGSSLMODE" => Some("require".to_owned()),
            _ => None,
        };
        let parse = |text: &str| Address::parse_with(text, variable).unwrap().config;
        let open = parse("postgres://u@h/d");
        assert_eq!(open.get_password(), Some("secret".as_bytes()));
        assert_eq!(open.get_ssl_mode(), config::SslMode::Require);
        let said = parse("postgres://u:own@h/d?sslmode=disable");
        assert_eq!(said.get_password(), Some("own".as_bytes()));
        assert_eq!(said.get_ssl_mode(), config::SslMode::Disable);
    }

    #[test]
    fn a_password_file_is_read_again_and_an_absent_one_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("passwords");
        let url = format!("postgres://u@h/d?passfile={}", file.display());
        let error = Address::parse_with(&url, |_| None).err().unwrap();
        assert!(error.to_string().contains("passwords"), "{error}");
        std::fs::write(&file, "*:*:*:u:first").unwrap();
        let address = parsed(&url);
        let password = || {
            let config = address.config_now().unwrap();
            config.get_password().map(<[u8]>::to_vec)
        };
        assert_eq!(password(), Some(b"first".to_vec()));
        std::fs::write(&file, "*:*:*:u:second").unwrap();
        assert_eq!(password(), Some(b"second".to_vec()));
    }

    #[test]
    fn a_file_of_the_environment_may_be_absent_and_turns_no_tls_on() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("passwords");
        let variable = |name: &str| match name {
            "PGSSLROOTCERT" => Some("system".to_owned()),
            "PGSSLCERT" => Some("/absent".to_owned()),
            "PGPASSFILE" => Some(file.display().to_string()),
            _ => None,
        };
        let parse = |text: &str| Address::parse_with(text, variable).unwrap();
        let local = parse("postgres://u@127.0.0.1/d");
        assert!(local.encryption.is_none());
        assert_eq!(local.passfile, None);
        std::fs::write(&file, "*:*:*:u:first").unwrap();
        let local = parse("postgres://u@127.0.0.1/d");
        let config = local.config_now().unwrap();
        assert_eq!(config.get_password(), Some("first".as_bytes()));
        assert_eq!(parse("postgres://127.0.0.1/d").passfile, None);
    }

    #[test]
    fn a_mode_of_the_environment_counts_on_this_machine_too() {
        let variable = |name: &str| (name == "PGSSLMODE").then(|| "require".to_owned());
        let local = Address::parse_with("postgres://u@127.0.0.1/d", variable).unwrap();
        assert_eq!(local.config.get_ssl_mode(), config::SslMode::Require);
    }

    #[test]
    fn what_cannot_work_is_said_at_once() {
        for (url, why) in [
            ("postgres://u@h/d?sslmode=verify-ca", "sslrootcert"),
            ("postgres://u@h/d?sslmode=on", "sslmode"),
            (
                "postgres://u@h/d?sslmode=require&sslrootcert=/absent",
                "/absent",
            ),
            ("postgres://u@h/d?sslcert=/absent", "both"),
            ("postgres://u@h/d?ssl=1", "unknown option"),
            ("postgres://h/d?passfile=/absent", "name the user"),
            (
                "postgres://u@h/d?sslnegotiation=direct&sslmode=prefer",
                "not prefer",
            ),
            ("host=localhost sslnegotiation=direct", "not disable"),
        ] {
            let error = Address::parse_with(url, |_| None).err().unwrap();
            assert!(error.to_string().contains(why), "{url}: {error}");
        }
    }
}
