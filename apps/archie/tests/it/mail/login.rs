//! Signing in with a browser, against a server that speaks Google's code flow with PKCE.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value as Json, json};

use super::kit::{ACCOUNT, triage};
use super::servers::Emulated;
use crate::kit::Workdir;
use crate::tmux::Terminal;

/// What a browser does when its person clicks on the account: the fields of the form are sent, and we are led back.
async fn allow(url: &str, base: &str) {
    let browser = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let page = browser.get(url).send().await.unwrap().text().await.unwrap();
    // One for each account that there is.
    let mut forms = page
        .split("<form")
        .skip(1)
        .map(|form| form.split("</form>").next().unwrap());
    let form = forms
        .find(|form| form.contains(ACCOUNT))
        .unwrap_or_else(|| panic!("there is no form: {page}"));
    let fields: Vec<_> = form
        .split("<input")
        .skip(1)
        .filter_map(|input| Some((part(input, "name")?, part(input, "value")?)))
        .collect();
    let body = reqwest::Url::parse_with_params("http://form.invalid", &fields).unwrap();
    let answer = browser
        .post(format!("{base}/o/oauth2/v2/auth/callback"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body.query().unwrap().to_owned())
        .send()
        .await
        .unwrap();
    let back = answer.headers()["location"].to_str().unwrap().to_owned();
    let said = browser
        .get(back)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert_eq!(said, "You can close this page.");
}

fn part(input: &str, name: &str) -> Option<String> {
    let value = input
        .split(&format!(" {name}=\""))
        .nth(1)?
        .split('"')
        .next()?;
    Some(
        value
            .replace("&amp;", "&")
            .replace("&#39;", "'")
            .replace("&quot;", "\""),
    )
}

#[tokio::test]
async fn s19_signing_in_asks_for_little_and_keeps_what_it_got_to_its_owner() {
    let emulated = Emulated::with_mails(1);
    let workdir = Workdir::scripted(&json!([triage("ignore")]))
        .with_environment("ARCHIE_GOOGLE_URL", emulated.url())
        .with_environment("ARCHIE_GOOGLE_CLIENT_ID", "archie")
        .with_environment("ARCHIE_GOOGLE_CLIENT_SECRET", "GOCSPX-test")
        .with_environment(
            "ARCHIE_GOOGLE_CALLBACK_PORT",
            &emulated.callback.to_string(),
        );
    let mut command = workdir.command();
    command
        .args(["mail", "login", "gmail", "--account", ACCOUNT])
        .stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let url = lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.starts_with("http"))
        .unwrap();
    assert!(
        url.contains("gmail.modify") && url.contains("calendar.events"),
        "{url}"
    );
    assert!(
        !url.contains("mail.google.com") && url.contains("code_challenge_method=S256"),
        "{url}"
    );
    allow(&url, emulated.url()).await;
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert!(process.wait().unwrap().success(), "{rest:?}");
    let file = workdir.path(&format!("home/mail/google-{ACCOUNT}.json"));
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let token = fs::read_to_string(&file).unwrap();
    assert!(token.contains("access_token") && !rest.join("").contains(&token));
    let ran = workdir.run(&["mail", "ingest", &format!("gmail:{ACCOUNT}")], "");
    assert!(ran.out().contains("ignore  \"Question 0\""), "{ran:?}");
    let secret: Json = serde_json::from_str(&token).unwrap();
    let secret = secret["access_token"].as_str().unwrap().as_bytes();
    for entry in fs::read_dir(workdir.path("home"))
        .unwrap()
        .map(Result::unwrap)
    {
        if entry.path().is_file() {
            let bytes = fs::read(entry.path()).unwrap();
            let is_there = bytes.windows(secret.len()).any(|window| window == secret);
            assert!(!is_there, "s25: {:?} holds the token", entry.path());
        }
    }
    // Whoever else may read it, we do not.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = workdir.run(&["mail", "ingest", &format!("gmail:{ACCOUNT}")], "");
    assert!(ran.err().contains("others may read"), "{ran:?}");
}

const LOGIN: [&str; 5] = [
    "mail",
    "login",
    "imap://bob@127.0.0.1",
    "--smtp",
    "smtp://127.0.0.1",
];

#[test]
fn a_piped_password_is_not_repeated() {
    let workdir = Workdir::with_model("");
    let ran = workdir.run(&LOGIN, "hunter2-secret\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        !format!("{}{}", ran.out(), ran.err()).contains("hunter2"),
        "{ran:?}"
    );
    let kept = fs::read_to_string(workdir.path("home/mail/imap-bob@127.0.0.1.json")).unwrap();
    assert!(kept.contains("hunter2-secret"));
    // In a shell whose input is a pipe, too.
    let lines = format!("{}\nhunter2-secret\nexit\n", LOGIN.join(" "));
    let ran = workdir.run(&[], &lines);
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out().contains("kept in") && !ran.out().contains("hunter2"),
        "{ran:?}"
    );
    let none = workdir.run(&LOGIN, "");
    assert_eq!(none.code(), Some(1), "{none:?}");
    assert!(none.err().contains("no password was given"), "{none:?}");
}

#[test]
fn a_typed_password_is_neither_shown_nor_kept_in_the_history() {
    let workdir = Workdir::with_model("");
    let terminal = Terminal::open(&workdir);
    terminal.shows("archie>");
    terminal.types(&LOGIN.join(" "));
    terminal.shows("Password:");
    terminal.types("hunter2-secret");
    let screen = terminal.shows("archie>");
    assert!(screen.contains("kept in"), "{screen}");
    assert!(!screen.contains("hunter2"), "{screen}");
    let kept = fs::read_to_string(workdir.path("home/mail/imap-bob@127.0.0.1.json")).unwrap();
    assert!(kept.contains("hunter2-secret"));
    // One that was typed into the command itself is refused, and not remembered.
    terminal.types("mail login imap://bob:hunter2-secret@127.0.0.1 --smtp smtp://127.0.0.1");
    let screen = terminal.shows("archie>");
    assert!(screen.contains("leave the password out"), "{screen}");
    terminal.types("mail login imap://bob@127.0.0.1 hunter2-secret");
    terminal.shows("archie>");
    terminal.types("threads");
    terminal.shows("archie>");
    terminal.types("exit");
    terminal.until_gone();
    let history = fs::read_to_string(workdir.path("home/history")).unwrap();
    assert!(
        history.contains("threads") && history.contains("mail login"),
        "{history}"
    );
    assert!(!history.contains("hunter2"), "{history}");
}
