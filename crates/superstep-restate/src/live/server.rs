//! The Redis server: its address, and how a connection to it is opened.
//!
//! The client library opens unencrypted connections. Encrypted ones are opened here, because it would read certificates only
//! once.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, RedisResult};
use superstep_tls::{TlsClient, TlsError, TlsParameters};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{RedisError, without_password};
use crate::refusal::chain;

/// The Redis server. Cheap to clone.
#[derive(Clone)]
pub(super) struct RedisServer {
    client: Client,
    encryption: Option<TlsClient>,
    /// File whose first line is the password. Read for every connection.
    passfile: Option<PathBuf>,
}

/// A connection. Ends with its last clone.
#[derive(Clone)]
pub(super) struct RedisLink {
    pub(super) connection: MultiplexedConnection,
    /// Drives an encrypted connection; the client library drives the others.
    _driver: Arc<JoinSet<()>>,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Parameters that the client library knows.
const KNOWN: [&str; 4] = ["protocol", "db", "user", "pass"];

impl RedisServer {
    pub(super) fn parse(address: &str) -> Result<Self, RedisError> {
        let (rest, parameters) = TlsParameters::take_from_url(address)?;
        refuse_unknown(&rest)?;
        let (plain, encryption) = match without_tls(&rest) {
            Some(plain) => (plain, Some(TlsClient::new(&parameters.required()?)?)),
            None => {
                parameters.refused()?;
                (rest, None)
            }
        };
        let client = Client::open(plain).map_err(|source| RedisError::BadAddress {
            address: without_password(address),
            source,
        })?;
        let mut server = Self {
            client,
            encryption,
            passfile: None,
        };
        if let Some(file) = parameters.passfile
            && !server.has_password()
        {
            server.passfile = Some(file.into());
            // A file that is absent from the start is a mistake, and not worth a retry.
            server.password()?;
        }
        Ok(server)
    }

    fn has_password(&self) -> bool {
        let info = self.client.get_connection_info();
        info.redis_settings().password().is_some()
    }

    /// Opens a connection.
    pub(super) async fn connect(&self, config: AsyncConnectionConfig) -> RedisResult<RedisLink> {
        let client = self.client_now()?;
        let Some(encryption) = &self.encryption else {
            let connection = client.get_multiplexed_async_connection_with_config(&config);
            return Ok(RedisLink {
                connection: connection.await?,
                _driver: Arc::default(),
            });
        };
        let opened = open_encrypted(&client, encryption, config);
        tokio::time::timeout(CONNECT_TIMEOUT, opened)
            .await
            .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }

    /// Returns the client with the password as it is now.
    fn client_now(&self) -> RedisResult<Cow<'_, Client>> {
        let password = self.password();
        match password.map_err(|error| io::Error::other(chain(&error)))? {
            Some(password) => self.client_with(&password).map(Cow::Owned),
            None => Ok(Cow::Borrowed(&self.client)),
        }
    }

    fn client_with(&self, password: &str) -> RedisResult<Client> {
        let info = self.client.get_connection_info().clone();
        let settings = info.redis_settings().clone().set_password(password);
        Client::open(info.set_redis_settings(settings))
    }

    /// Reads the password from the file, if there is one.
    fn password(&self) -> Result<Option<String>, TlsError> {
        let Some(file) = &self.passfile else {
            return Ok(None);
        };
        let text = std::fs::read_to_string(file).map_err(|source| TlsError::File {
            file: file.clone(),
            source,
        })?;
        let password = text.lines().next().unwrap_or_default();
        Ok(Some(password.to_owned()))
    }
}

/// Fails if the address has a parameter that nothing reads, such as a misspelled one about TLS.
fn refuse_unknown(address: &str) -> Result<(), TlsError> {
    let (_, query) = address.split_once('?').unwrap_or_default();
    let parameters = query.split('#').next().unwrap_or_default().split('&');
    let names = parameters.map(|pair| pair.split('=').next().unwrap_or_default());
    let names = names.map(|name| percent_decode_str(name).decode_utf8_lossy());
    let unknown = names.filter(|name| !name.is_empty() && !KNOWN.contains(&&**name));
    match unknown.map(Cow::into_owned).next() {
        // It may be part of a password, which no message may contain.
        Some(_) if query.contains('@') => Err(TlsError::Ambiguous),
        Some(name) => Err(TlsError::UnknownParameter { name }),
        None => Ok(()),
    }
}

/// Returns the address without TLS that belongs to one with TLS.
fn without_tls(address: &str) -> Option<String> {
    let schemes = [("rediss://", "redis://"), ("valkeys://", "valkey://")];
    schemes.into_iter().find_map(|(with, without)| {
        let rest = address.strip_prefix(with)?;
        Some(format!("{without}{rest}"))
    })
}

async fn open_encrypted(
    client: &Client,
    encryption: &TlsClient,
    config: AsyncConnectionConfig,
) -> RedisResult<RedisLink> {
    let info = client.get_connection_info();
    let ConnectionAddr::Tcp(host, port) = info.addr() else {
        let kind = ErrorKind::InvalidClientConfig;
        return Err((kind, "the address names no host").into());
    };
    let stream = TcpStream::connect((host.as_str(), *port)).await?;
    stream.set_nodelay(true)?;
    let stream = encryption.connect(host, stream).await;
    let stream = stream.map_err(|error| io::Error::other(chain(&error)))?;
    let opened = MultiplexedConnection::new_with_config(info.redis_settings(), stream, config);
    let (connection, driver) = opened.await?;
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    Ok(RedisLink {
        connection,
        _driver: Arc::new(tasks),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(address: &str) -> Option<String> {
        let server = RedisServer::parse(address).unwrap();
        let client = server.client_now().unwrap();
        let info = client.get_connection_info();
        info.redis_settings().password().map(str::to_owned)
    }

    #[test]
    fn a_password_is_in_the_address_or_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let file = file.display();
        let address = format!("redis://h?passfile={file}");
        let absent = RedisServer::parse(&address).err().unwrap();
        assert_eq!(absent.code(), "redis-bad-parameters");
        std::fs::write(file.to_string(), "from file\n").unwrap();
        assert_eq!(password(&address).as_deref(), Some("from file"));
        let both = format!("redis://:own@h?passfile={file}");
        assert_eq!(password(&both).as_deref(), Some("own"));
        assert_eq!(password("redis://h"), None);
    }

    #[test]
    fn a_parameter_that_nothing_reads_is_refused_and_shows_no_password() {
        let refused = |address: &str| {
            let error = RedisServer::parse(address).err().unwrap();
            assert_eq!(error.code(), "redis-bad-parameters", "{address}");
            chain(&error)
        };
        let text = refused("rediss://h?sslrootcrt=/etc/authority.pem");
        assert!(text.contains("`sslrootcrt`"), "{text}");
        for address in ["redis://:p?secret@h", "redis://:p?secret&more@h"] {
            let text = refused(address);
            assert!(text.contains("%3F"), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
        for known in [
            "redis://h?protocol=resp3",
            "unix:///run/redis?user=u&pass=p@ss&db=1",
        ] {
            assert!(RedisServer::parse(known).is_ok(), "{known}");
        }
    }

    #[test]
    fn parameters_of_tls_need_the_scheme_with_tls() {
        for (address, code) in [
            ("redis://h?sslrootcert=/a", "redis-bad-parameters"),
            ("rediss://h?sslrootcert=/absent", "redis-bad-parameters"),
            ("rediss://h?sslmode=prefer", "redis-bad-parameters"),
            ("redis+tls://h", "redis-bad-address"),
        ] {
            let refused = RedisServer::parse(address).err().unwrap();
            assert_eq!(refused.code(), code, "{address}");
        }
        let server = RedisServer::parse("rediss://h:1?sslmode=require").unwrap();
        assert!(server.encryption.is_some());
    }
}
