//! IMAP and SMTP: nobody but a person can tell what became of a mail whose answer was lost.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use archie_email_assistant::email::Email;
use archie_email_assistant::mailbox::{Access, Imap, ImapAddress, MailQuery, Mailbox};
use serde_json::json;
use superstep_conformance::services;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{TRIALS, one_mail_for_each_yes, sixteen, taken_in_and_answered, worked_on};
use crate::mail::kit::*;

#[tokio::test]
async fn sixteen_mails_from_end_to_end() {
    let somebody = Somebody::with_mails(16).await;
    let first = vec![wants(json!([sends("Friday."), done()]))];
    let world = World::new(&sixteen(|at| somebody.subject(at), first));
    let mailbox = somebody.mailbox(&services::address("mail", "smtp"));
    let home = world.home_over(mailbox.clone(), |sqlite| sqlite);
    taken_in_and_answered(&world, &home).await;
    let sent: usize = (0..16)
        .map(|at| somebody.sent_about(&somebody.subject(at)))
        .sum();
    let unread = mailbox.list(&MailQuery::default()).await.unwrap().len();
    assert_eq!((sent, unread), (8, 8));
}

#[tokio::test]
async fn killed_at_every_point_one_mail_for_each_yes() {
    let somebody = Somebody::with_mails(TRIALS + 1).await;
    let mailbox = somebody.mailbox(&services::address("mail", "smtp"));
    let mails = mailbox.list(&MailQuery::default()).await.unwrap();
    let sent = async |email: &Email| somebody.sent_about(&email.subject);
    let calm = &mails[TRIALS];
    let (points, _) = worked_on(&mailbox, calm, &[], async || sent(calm).await > 0).await;
    one_mail_for_each_yes(|| mailbox.clone(), &mails[..TRIALS], Some(points), sent).await;
}

#[tokio::test]
async fn every_answer_to_a_mail_lost_a_person_looks_and_one_mail_goes_out() {
    let somebody = Somebody::with_mails(TRIALS).await;
    let smtp = services::address("mail", "smtp").replace("smtp://", "");
    let mut tasks = JoinSet::new();
    let mailbox = somebody.mailbox(&cutting(smtp, &mut tasks).await);
    let mails = mailbox.list(&MailQuery::default()).await.unwrap();
    let sent = async |email: &Email| somebody.sent_about(&email.subject);
    let asked = one_mail_for_each_yes(|| mailbox.clone(), &mails, None, sent).await;
    assert_eq!(asked, TRIALS, "nobody but a person can tell");
}

/// Somebody with mails on the shared server.
struct Somebody {
    address: String,
    folder: tempfile::TempDir,
    sink: Sink,
}

impl Somebody {
    async fn with_mails(count: usize) -> Self {
        let somebody = Self {
            address: format!("u{}@example.com", uuid::Uuid::now_v7().simple()),
            folder: tempfile::tempdir().unwrap(),
            sink: Sink::open(),
        };
        let mail = |at| {
            let id = format!("{at}.{}", somebody.address);
            let text = mail(&id, "bob@example.com", &somebody.subject(at), "When?");
            text.replace(ACCOUNT, &somebody.address)
        };
        let mails: Vec<_> = (0..count).map(mail).collect();
        deliver(&somebody.address, &mails).await;
        somebody
    }

    fn subject(&self, at: usize) -> String {
        format!("{} {at}", self.address)
    }

    fn mailbox(&self, smtp: &str) -> Arc<dyn Mailbox> {
        let user = self.address.replace('@', "%40");
        let url = services::url("mail").replace("imap://", &format!("imap://{user}@"));
        let access = Access {
            password: "test".to_owned(),
            smtp: smtp.to_owned(),
            address: self.address.clone(),
            sent: "Sent".to_owned(),
        };
        let place = ImapAddress::parse(&url).unwrap();
        Arc::new(Imap::new(
            place,
            access,
            &self.folder.path().join("calendar"),
        ))
    }

    /// How many answers to a mail the SMTP server was given.
    fn sent_about(&self, subject: &str) -> usize {
        self.sink.count(&format!("Re: {subject}"))
    }
}

/// Where the SMTP server puts what it is given. Each mail is read once, for there are those of every test before.
struct Sink {
    folder: PathBuf,
    subjects: Mutex<BTreeMap<PathBuf, String>>,
}

impl Sink {
    fn open() -> Self {
        let folder = PathBuf::from(services::address("mail", "sink")).join("new");
        Self {
            folder,
            subjects: Mutex::default(),
        }
    }

    fn count(&self, subject: &str) -> usize {
        let mut subjects = self.subjects.lock().unwrap();
        for entry in fs::read_dir(&self.folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            subjects.entry(path).or_insert_with_key(|path| {
                let mail = fs::read_to_string(path).unwrap();
                let subject = mail.lines().find_map(|line| line.strip_prefix("Subject: "));
                subject.unwrap_or_default().to_owned()
            });
        }
        subjects.values().filter(|known| *known == subject).count()
    }
}

/// Puts mails into somebody's inbox, as a server would.
async fn deliver(user: &str, mails: &[String]) {
    let host = services::url("mail").replace("imap://", "");
    let stream = TcpStream::connect(&host).await.unwrap();
    let mut client = async_imap::Client::new(stream);
    client.read_response().await.unwrap();
    let mut session = client
        .login(user, "test")
        .await
        .map_err(|(error, _)| error)
        .unwrap();
    for mail in mails {
        session
            .append("INBOX", None, None, mail.replace('\n', "\r\n"))
            .await
            .unwrap();
    }
    session.logout().await.unwrap();
}

/// Stands before an SMTP server and cuts the line instead of handing on that the mail was taken.
async fn cutting(upstream: String, tasks: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("smtp://{}", listener.local_addr().unwrap());
    tasks.spawn(async move {
        let mut lines = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let upstream = TcpStream::connect(&upstream).await.unwrap();
            lines.spawn(cut_line(stream, upstream));
        }
    });
    url
}

async fn cut_line(stream: TcpStream, upstream: TcpStream) {
    let (client_in, mut client_out) = stream.into_split();
    let (server_in, mut server_out) = upstream.into_split();
    let copies = async {
        let mut from = client_in;
        let _ = tokio::io::copy(&mut from, &mut server_out).await;
    };
    let answers = async {
        let mut lines = BufReader::new(server_in).lines();
        let mut is_data = false;
        while let Ok(Some(line)) = lines.next_line().await {
            if is_data {
                return;
            }
            is_data = line.starts_with("354");
            if client_out
                .write_all(format!("{line}\r\n").as_bytes())
                .await
                .is_err()
            {
                return;
            }
        }
    };
    tokio::select! {
        () = async { copies.await; std::future::pending::<()>().await } => {}
        () = answers => {}
    }
}
