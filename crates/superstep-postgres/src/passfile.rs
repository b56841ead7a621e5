//! Passwords in a file, in the form of libpq: lines of `host:port:database:user:password`, with `*` for any.

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Returns the password of the first line for one of the servers of an address.
pub(crate) fn password_for(config: &Config, text: &str) -> Option<String> {
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    let ports = config.get_ports();
    let servers = config.get_hosts().iter().enumerate();
    let mut servers = servers.map(|(number, host)| {
        let port = ports.get(number).or(ports.first());
        let port = port.copied().unwrap_or(DEFAULT_PORT).to_string();
        (name_of(host), port)
    });
    servers.find_map(|(host, port)| find(text, [host, &port, database, user]))
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
        let password = |url: &str| password_for(&url.parse().unwrap(), text);
        assert_eq!(
            password("postgres://ada@db.example:5433/d").as_deref(),
            Some("first")
        );
        assert_eq!(
            password("postgres://ada@db.example/d").as_deref(),
            Some("a:b\\:c")
        );
        assert_eq!(
            password("postgres://ada@other,db.example:5433/d").as_deref(),
            Some("first")
        );
        assert_eq!(password("host=/var/run user=ada").as_deref(), Some("local"));
        assert_eq!(password("postgres://bob@db.example/d"), None);
    }
}
