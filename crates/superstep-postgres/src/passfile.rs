//! Passwords in a file, in the form of libpq: lines of `host:port:database:user:password`, with `*` for any.

use std::path::Path;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::fault::PostgresError;

/// Reads the password for the servers of an address from a file, if it has one.
///
/// The client library sends the same password to all of them, so one that is for some of them only is an error.
pub(crate) fn read_password(config: &Config, file: &Path) -> Result<Option<String>, PostgresError> {
    let Some(user) = config.get_user() else {
        let file = file.to_owned();
        return Err(PostgresError::PassFileUser { file });
    };
    let text = std::fs::read_to_string(file).map_err(|source| PostgresError::PassFile {
        file: file.to_owned(),
        source,
    })?;
    let mut passwords = passwords(config, user, &text);
    let first = passwords.next().flatten();
    match passwords.all(|other| other == first) {
        true => Ok(first),
        false => Err(PostgresError::PassFileDiffers {
            file: file.to_owned(),
        }),
    }
}

/// Returns the password of each server of an address: that of the first line that fits.
fn passwords<'a>(
    config: &'a Config,
    user: &'a str,
    text: &'a str,
) -> impl Iterator<Item = Option<String>> + 'a {
    let database = config.get_dbname().unwrap_or(user);
    let ports = config.get_ports();
    let servers = config.get_hosts().iter().enumerate();
    servers.map(move |(number, host)| {
        let port = ports.get(number).or(ports.first());
        let port = port.copied().unwrap_or(DEFAULT_PORT).to_string();
        find(text, [name_of(host), &port, database, user])
    })
}

/// As in libpq, every local socket is `localhost`.
fn name_of(host: &Host) -> &str {
    match host {
        Host::Tcp(name) => name,
        #[cfg(unix)]
        Host::Unix(_) => "localhost",
    }
}

fn find(text: &str, wanted: [&str; 4]) -> Option<String> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.find_map(|line| {
        let [patterns @ .., password] = fields(line)?;
        let fits = |(pattern, wanted): (&String, &str)| pattern == "*" || pattern == wanted;
        let fit = patterns.iter().zip(wanted).all(fits);
        fit.then_some(password)
    })
}

/// Splits a line at its colons, except for those behind a backslash. The last field keeps all that follow.
fn fields(line: &str) -> Option<[String; FIELDS]> {
    let mut fields: [String; FIELDS] = std::array::from_fn(|_| String::new());
    let mut at = 0;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => fields[at].extend(chars.next()),
            ':' if at + 1 < FIELDS => at += 1,
            c => fields[at].push(c),
        }
    }
    (at + 1 == FIELDS).then_some(fields)
}

const FIELDS: usize = 5;
const DEFAULT_PORT: u16 = 5_432;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# host:port:database:user:password\n\
                    not a line\n\
                    db.example:5433:*:ada:first\n\
                    db.example:*:*:ada:a\\:b\\\\:c\n\
                    localhost:*:*:ada:local\n";
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("passwords");
        std::fs::write(&file, text).unwrap();
        let read = |url: &str| read_password(&url.parse().unwrap(), &file);
        let password = |url: &str| read(url).unwrap();
        assert_eq!(
            password("postgres://ada@db.example:5433/d").as_deref(),
            Some("first")
        );
        assert_eq!(
            password("postgres://ada@db.example/d").as_deref(),
            Some("a:b\\:c")
        );
        assert_eq!(
            password("postgres://ada@db.example:5434,db.example:5435/d").as_deref(),
            Some("a:b\\:c")
        );
        assert_eq!(password("host=/var/run user=ada").as_deref(), Some("local"));
        assert_eq!(password("postgres://bob@db.example/d"), None);
        for several in [
            "postgres://ada@db.example:5433,db.example:5434/d",
            "postgres://ada@other,db.example:5433/d",
            "postgres://ada@db.example:5433,other/d",
        ] {
            let error = read(several).unwrap_err();
            let is_different = matches!(error, PostgresError::PassFileDiffers { .. });
            assert!(is_different, "{several}: {error}");
        }
        let error = read("postgres://db.example:5433/d").unwrap_err();
        assert!(error.to_string().contains("name the user"), "{error}");
    }
}
