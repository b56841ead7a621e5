//! `archie mail login`: signs in to a mailbox. Credentials are stored only in a file that its owner alone can read.

use std::path::Path;

use anyhow::{Context, bail};
use archie_agent::{Exit, Terminal, private_file};
use archie_email_assistant::google::{ClientId, base_url, exchange};
use archie_email_assistant::mailbox::{Access, ImapAddress, write_private};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::LoginArgs;

pub(super) async fn login(
    args: &LoginArgs,
    home: &Path,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let home = home.join("mail");
    own_folder(&home)?;
    match args.what.as_str() {
        "gmail" => gmail(args, &home, terminal).await,
        what if what.starts_with("imap://") || what.starts_with("imaps://") => {
            imap(args, &home, terminal)
        }
        other => bail!("`{other}` is nothing to sign in to: write gmail, or imaps://USER@HOST"),
    }
}

fn own_folder(folder: &Path) -> anyhow::Result<()> {
    private_file::folder(folder).with_context(|| format!("{} cannot be made", folder.display()))
}

fn imap(args: &LoginArgs, home: &Path, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let place = ImapAddress::parse(&args.what)?;
    let smtp = args
        .smtp
        .clone()
        .context("say where mails go out: --smtp smtps://HOST")?;
    let password = terminal
        .ask_secret("Password: ")?
        .filter(|password| !password.is_empty())
        .context("no password was given; nothing is kept")?;
    let access = Access {
        password,
        smtp,
        address: args.account.clone().unwrap_or_default(),
        sent: "Sent".to_owned(),
    };
    let file = place.file(home);
    write_private(&file, &serde_json::to_vec(&access)?)?;
    terminal.line(&format!("kept in {}", file.display()));
    Ok(Exit::Done)
}

/// Signs in with OAuth's authorization code flow and `PKCE`: a local browser signs in and is redirected to this process.
async fn gmail(args: &LoginArgs, home: &Path, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let account = args
        .account
        .clone()
        .context("say which account: --account ADDRESS")?;
    let client = ClientId::find()?;
    let listener = TcpListener::bind(("127.0.0.1", callback_port())).await?;
    let redirect = format!(
        "http://127.0.0.1:{}/callback",
        listener.local_addr()?.port()
    );
    let (verifier, state) = (secret(), secret());
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let base = base_url();
    let place = match &base {
        Some(base) => format!("{base}/o/oauth2/v2/auth"),
        None => "https://accounts.google.com/o/oauth2/v2/auth".to_owned(),
    };
    let url = reqwest::Url::parse_with_params(
        &place,
        [
            ("client_id", client.id.as_str()),
            ("redirect_uri", redirect.as_str()),
            ("response_type", "code"),
            ("scope", SCOPES),
            ("state", state.as_str()),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
            ("access_type", "offline"),
            ("prompt", "consent"),
            ("login_hint", account.as_str()),
        ],
    )?;
    terminal.line(&format!(
        "open this in your browser, and allow what it asks:\n{url}"
    ));
    let code = code_of(&listener, &state).await?;
    let form: [(&str, &str); 6] = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", &redirect),
        ("client_id", &client.id),
        ("client_secret", &client.secret),
        ("code_verifier", &verifier),
    ];
    let http = reqwest::Client::builder().build();
    let http = http.context("HTTPS is not available; does this machine have root certificates?")?;
    let token = exchange(&http, base.as_deref(), &form).await?;
    let file = home.join(format!("google-{account}.json"));
    write_private(&file, &serde_json::to_vec(&token)?)?;
    terminal.line(&format!(
        "signed in as {account}; kept in {}",
        file.display()
    ));
    Ok(Exit::Done)
}

/// Waits until the browser is redirected here with the authorization code. Rejects requests with another `state`.
async fn code_of(listener: &TcpListener, state: &str) -> anyhow::Result<String> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let mut bytes = vec![0; 8_192];
        let count = stream.read(&mut bytes).await?;
        let request = String::from_utf8_lossy(&bytes[..count]).into_owned();
        let path = request.split_whitespace().nth(1).unwrap_or_default();
        let url = reqwest::Url::parse("http://127.0.0.1/").and_then(|base| base.join(path))?;
        let value = |name: &str| {
            let found = url.query_pairs().find(|(known, _)| known == name);
            found.map(|(_, value)| value.into_owned())
        };
        let is_ours = url.path() == "/callback" && value("state").as_deref() == Some(state);
        let said = match is_ours {
            true => "You can close this page.",
            false => "This is not what was waited for.",
        };
        let answer = format!(
            "HTTP/1.1 {} \r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{said}",
            if is_ours { 200 } else { 400 },
            said.len()
        );
        stream.write_all(answer.as_bytes()).await?;
        if !is_ours {
            continue;
        }
        if let Some(error) = value("error") {
            bail!("Google did not let us in: {error}");
        }
        return value("code").context("Google gave no code");
    }
}

/// Returns the port for the redirect: `ARCHIE_GOOGLE_CALLBACK_PORT`, or 0 for any free port.
fn callback_port() -> u16 {
    let port = std::env::var("ARCHIE_GOOGLE_CALLBACK_PORT").ok();
    port.and_then(|port| port.parse().ok()).unwrap_or(0)
}

/// Returns a random string for the `PKCE` verifier or the `state` parameter.
fn secret() -> String {
    let part = || uuid::Uuid::new_v4().simple().to_string();
    format!("{}{}", part(), part())
}

/// Gmail: read, label, draft and send, but not delete permanently or change settings. Calendar: view and edit events.
const SCOPES: &str =
    "https://www.googleapis.com/auth/gmail.modify https://www.googleapis.com/auth/calendar.events";
