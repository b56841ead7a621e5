//! A mailbox on an IMAP server, with an SMTP server for outgoing email.
//!
//! SMTP has no idempotency keys and stores nothing that could be looked up. After sending, the mailbox appends a copy to the
//! folder of sent emails. If the copy is there, the email was sent; if not, the result is unknown and a person is asked.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use async_imap::Session;
use futures_util::TryStreamExt;
use lettre::transport::smtp::authentication::Credentials;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use rustls_platform_verifier::BuilderVerifierExt;
use serde::{Deserialize, Serialize};
use superstep::checkpoint::BoxFuture;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::ServerName;

use super::{MailQuery, Mailbox, NotSent, Outgoing, Sent, SentStatus, credentials};
use crate::calendar::{Calendar, Ics};
use crate::email::Email;
use crate::mime;

/// An account on an IMAP server.
pub struct Imap {
    place: ImapAddress,
    access: Access,
    calendar: Ics,
}

/// User and server of an IMAP account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImapAddress {
    user: String,
    host: String,
    port: u16,
    is_encrypted: bool,
}

/// Password and SMTP server of an account, stored in a file that only its owner can read.
#[derive(Clone, Serialize, Deserialize)]
pub struct Access {
    /// Password for both servers.
    pub password: String,
    /// SMTP server: `smtps://HOST`, `smtp://HOST?tls=required`, or `smtp://127.0.0.1:PORT`.
    pub smtp: String,
    /// Owner's email address; empty if the IMAP user name is the address.
    #[serde(default)]
    pub address: String,
    /// Folder for sent emails. Default: `Sent`.
    #[serde(default = "sent_folder")]
    pub sent: String,
}

fn sent_folder() -> String {
    "Sent".to_owned()
}

impl ImapAddress {
    /// Parses `imaps://USER@HOST` or, on this machine only, `imap://USER@127.0.0.1:PORT`. A password in the URL is an error.
    pub fn parse(source: &str) -> anyhow::Result<Self> {
        let url = reqwest::Url::parse(source)
            .with_context(|| format!("`{source}` is not an address of a mailbox"))?;
        if url.password().is_some() {
            bail!(
                "leave the password out of the address; `archie mail login {}://USER@HOST` asks for it",
                url.scheme()
            );
        }
        let is_encrypted = url.scheme() == "imaps";
        let host = url
            .host_str()
            .context("the address names no server")?
            .to_owned();
        let is_here = matches!(host.as_str(), "127.0.0.1" | "localhost" | "::1" | "[::1]");
        if !is_encrypted && !is_here {
            bail!("imap:// is not encrypted and only for this machine; write imaps://");
        }
        let user = url.username().replace("%40", "@");
        if user.is_empty() {
            bail!(
                "the address names no user; write {}://USER@{host}",
                url.scheme()
            );
        }
        Ok(Self {
            user,
            port: url.port().unwrap_or(if is_encrypted { 993 } else { 143 }),
            host,
            is_encrypted,
        })
    }

    /// Returns the path of the credentials file in the folder `home`.
    pub fn file(&self, home: &Path) -> std::path::PathBuf {
        home.join(format!(
            "imap-{}@{}.json",
            self.user.replace('/', "_"),
            self.host
        ))
    }
}

/// A connection, with or without TLS.
trait Line: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + std::fmt::Debug {}

impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + std::fmt::Debug> Line for T {}

impl Imap {
    /// Opens an account with the credentials that `archie mail login` stored in `home`.
    pub fn open(source: &str, home: &Path) -> anyhow::Result<Self> {
        let place = ImapAddress::parse(source)?;
        let file = place.file(home);
        let access = credentials(&file, &format!("sign in with `archie mail login {source}`"))?;
        Ok(Self::new(place, access, &home.join("calendar")))
    }

    /// Creates an account from credentials, with a calendar in the folder `calendar`.
    pub fn new(place: ImapAddress, mut access: Access, calendar: &Path) -> Self {
        if access.address.is_empty() {
            access.address.clone_from(&place.user);
        }
        Self {
            place,
            access,
            calendar: Ics::new(calendar),
        }
    }

    async fn session(&self) -> anyhow::Result<Session<Box<dyn Line>>> {
        let place = &self.place;
        let connect = TcpStream::connect((place.host.as_str(), place.port));
        let stream = tokio::time::timeout(PATIENCE, connect).await?;
        let stream = stream.with_context(|| format!("{} cannot be reached", place.host))?;
        let line: Box<dyn Line> = match place.is_encrypted {
            true => {
                // Name the provider explicitly: a program may link two, and then there is no default.
                let provider = Arc::new(aws_lc_rs::default_provider());
                let config = ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()?
                    .with_platform_verifier()?
                    .with_no_client_auth();
                let name = ServerName::try_from(place.host.clone())?;
                Box::new(
                    TlsConnector::from(Arc::new(config))
                        .connect(name, stream)
                        .await?,
                )
            }
            false => Box::new(stream),
        };
        let mut client = async_imap::Client::new(line);
        client
            .read_response()
            .await?
            .context("the server says nothing")?;
        let session = client.login(&place.user, &self.access.password).await;
        session.map_err(|(error, _)| {
            anyhow::Error::from(error).context("the server does not let us in")
        })
    }

    async fn list_now(&self, which: &MailQuery) -> anyhow::Result<Vec<Email>> {
        let mut session = self.session().await?;
        let inbox = session.examine("INBOX").await?;
        let validity = inbox.uid_validity.unwrap_or_default();
        let mut wanted = match which.include_read {
            true => "ALL".to_owned(),
            false => "UNSEEN".to_owned(),
        };
        if let Some(since) = which
            .since
            .and_then(|since| chrono::DateTime::from_timestamp(since, 0))
        {
            wanted.push_str(&format!(" SINCE {}", since.format("%d-%b-%Y")));
        }
        let mut uids: Vec<u32> = session.uid_search(wanted).await?.into_iter().collect();
        uids.sort_unstable();
        let mut emails = Vec::new();
        for uid in uids {
            let Some(email) = fetch(&mut session, uid)
                .await?
                .and_then(|bytes| mime::read(&bytes))
            else {
                continue;
            };
            if which.is_too_old(&email) {
                continue;
            }
            emails.push(Email {
                id: format!("{validity}-{uid}"),
                thread_id: email
                    .references
                    .first()
                    .unwrap_or(&email.message_id)
                    .clone(),
                account: self.access.address.clone(),
                ..email
            });
        }
        session.logout().await?;
        Ok(emails)
    }

    /// Finds emails with the `\Answered` flag, which the server stores for all mail programs.
    async fn answered_now(&self) -> anyhow::Result<BTreeSet<String>> {
        let mut session = self.session().await?;
        let inbox = session.examine("INBOX").await?;
        let validity = inbox.uid_validity.unwrap_or_default();
        let uids = session.uid_search("ANSWERED").await?;
        session.logout().await?;
        Ok(uids
            .into_iter()
            .map(|uid| format!("{validity}-{uid}"))
            .collect())
    }

    /// Opens a session with the inbox selected, and returns it with the `UID` of this email.
    async fn at(&self, id: &str) -> anyhow::Result<(Session<Box<dyn Line>>, u32)> {
        let mut session = self.session().await?;
        let inbox = session.select("INBOX").await?;
        let (validity, uid) = id
            .split_once('-')
            .context("this is not an id of this mailbox")?;
        if inbox.uid_validity.unwrap_or_default().to_string() != validity {
            bail!("the server has renumbered its mails; ingest them again");
        }
        Ok((session, uid.parse()?))
    }

    async fn send_now(&self, mail: &Outgoing) -> Result<Sent, NotSent> {
        let message = mime::write(mail).map_err(NotSent::Refused)?;
        let transport = self.transport().map_err(NotSent::Refused)?;
        // If the server cannot be reached, nothing was sent.
        let reached = transport.test_connection().await;
        match reached {
            Ok(true) => {}
            Ok(false) => {
                return Err(NotSent::Refused(anyhow::anyhow!(
                    "the server for outgoing mail does not answer"
                )));
            }
            Err(error) => return Err(NotSent::Refused(error.into())),
        }
        let bytes = message.formatted();
        match transport.send_raw(message.envelope(), &bytes).await {
            Ok(_) => {}
            // The server rejected the email.
            Err(error) if error.is_permanent() || error.is_transient() => {
                return Err(NotSent::Refused(error.into()));
            }
            Err(error) => return Err(NotSent::Unknown(error.into())),
        }
        // The email was sent, even if storing the copy fails.
        if let Err(error) = self.keep(&bytes).await {
            tracing::warn!(
                error = format!("{error:#}"),
                "a sent mail has no copy among the sent mails"
            );
        }
        Ok(Sent {
            message_id: mail.message_id.clone(),
        })
    }

    fn transport(&self) -> anyhow::Result<AsyncSmtpTransport<Tokio1Executor>> {
        let smtp = &self.access.smtp;
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(smtp)
            .with_context(|| format!("`{smtp}` is not a server for outgoing mail"))?
            .timeout(Some(PATIENCE));
        let is_here = smtp.starts_with("smtp://127.0.0.1") || smtp.starts_with("smtp://localhost");
        if !is_here {
            builder = builder.credentials(Credentials::new(
                self.place.user.clone(),
                self.access.password.clone(),
            ));
        }
        Ok(builder.build())
    }

    async fn keep(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut session = self.session().await?;
        let sent = &self.access.sent;
        if session
            .append(sent, Some("(\\Seen)"), None, bytes)
            .await
            .is_err()
        {
            session.create(sent).await?;
            session.append(sent, Some("(\\Seen)"), None, bytes).await?;
        }
        session.logout().await?;
        Ok(())
    }

    async fn look_now(&self, mail: &Outgoing) -> anyhow::Result<SentStatus> {
        let mut session = self.session().await?;
        let unknown = || {
            SentStatus::Unknown(
                "it is not among the sent mails, and the server may have taken it all the same"
                    .to_owned(),
            )
        };
        if session.examine(&self.access.sent).await.is_err() {
            return Ok(unknown());
        }
        let wanted = format!("HEADER Message-ID \"{}\"", mail.message_id);
        let found = session.uid_search(wanted).await?;
        session.logout().await?;
        Ok(match found.is_empty() {
            true => unknown(),
            false => SentStatus::Sent(Sent {
                message_id: mail.message_id.clone(),
            }),
        })
    }
}

async fn fetch(session: &mut Session<Box<dyn Line>>, uid: u32) -> anyhow::Result<Option<Vec<u8>>> {
    let found: Vec<_> = session
        .uid_fetch(uid.to_string(), "BODY.PEEK[]")
        .await?
        .try_collect()
        .await?;
    Ok(found
        .iter()
        .find_map(|fetched| fetched.body())
        .map(<[u8]>::to_vec))
}

impl Mailbox for Imap {
    fn account(&self) -> &str {
        &self.access.address
    }

    fn list<'a>(&'a self, which: &'a MailQuery) -> BoxFuture<'a, anyhow::Result<Vec<Email>>> {
        Box::pin(self.list_now(which))
    }

    fn answered<'a>(&'a self, _: &'a [Email]) -> BoxFuture<'a, anyhow::Result<BTreeSet<String>>> {
        Box::pin(self.answered_now())
    }

    fn raw<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<Vec<u8>>> {
        Box::pin(async move {
            let (mut session, uid) = self.at(id).await?;
            let found = fetch(&mut session, uid).await?;
            session.logout().await?;
            found.with_context(|| format!("there is no mail `{id}`"))
        })
    }

    fn mark_as_read<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let (mut session, uid) = self.at(id).await?;
            let _: Vec<_> = session
                .uid_store(uid.to_string(), "+FLAGS (\\Seen)")
                .await?
                .try_collect()
                .await?;
            session.logout().await?;
            Ok(())
        })
    }

    fn send<'a>(
        &'a self,
        mail: &'a Outgoing,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Sent, NotSent>> {
        Box::pin(self.send_now(mail))
    }

    fn look<'a>(
        &'a self,
        mail: &'a Outgoing,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, anyhow::Result<SentStatus>> {
        Box::pin(self.look_now(mail))
    }

    fn calendar(&self) -> &dyn Calendar {
        &self.calendar
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("smtp", &self.smtp)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Imap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Imap")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_password_and_is_encrypted_unless_it_is_here() {
        let place = ImapAddress::parse("imaps://ada%40example.org@mail.example.org").unwrap();
        assert_eq!((place.user.as_str(), place.port), ("ada@example.org", 993));
        assert!(ImapAddress::parse("imap://ada@127.0.0.1:1143").is_ok());
        for wrong in [
            "imap://ada@mail.example.org",
            "imaps://ada:secret@mail.example.org",
            "imaps://mail.example.org",
        ] {
            assert!(ImapAddress::parse(wrong).is_err(), "{wrong}");
        }
    }
}
