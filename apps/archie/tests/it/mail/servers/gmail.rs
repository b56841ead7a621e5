//! Gmail: a mail is a draft before it is sent.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use archie_email_assistant::email::Email;
use archie_email_assistant::mailbox::MailQuery;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::emulated::Emulated;
use super::{TRIALS, one_mail_for_each_yes, sixteen, taken_in_and_answered, worked_on};
use crate::mail::kit::*;

#[tokio::test]
async fn sixteen_mails_from_end_to_end() {
    let emulated = Emulated::with_mails(16);
    let looks = json!([{ "name": "check_calendar_tool", "args": { "dates": ["2025-01-10"] } }]);
    let meets = schedules(&["bob@example.com"]);
    let first = vec![
        wants(looks),
        wants(json!([sends("Friday at ten."), meets, done()])),
    ];
    let world = World::new(&sixteen(|at| format!("Question {at}"), first));
    let home = world.home_over(emulated.gmail(), |sqlite| sqlite);
    taken_in_and_answered(&world, &home).await;
    let (mut sent, mut read) = (0, 0);
    for at in 0..16 {
        sent += emulated.sent_in(&format!("t{at}")).await;
        read += usize::from(!emulated.is_unread(&format!("m{at}")).await);
    }
    let events = emulated.ask("/calendar/v3/calendars/primary/events").await;
    let events = events["items"].as_array().unwrap().len();
    assert_eq!((sent, read, events), (8, 8, 1));
    let drafts = emulated.ask("/gmail/v1/users/me/drafts").await;
    let drafts = drafts["drafts"].as_array().map_or(0, Vec::len);
    assert_eq!(drafts, 0, "no draft is left behind");
}

#[tokio::test]
async fn killed_at_every_point_one_mail_for_each_yes() {
    let emulated = Emulated::with_mails(TRIALS + 1);
    let gmail = emulated.gmail();
    let mails = gmail.list(&MailQuery::default()).await.unwrap();
    let sent = async |email: &Email| emulated.sent_in(&email.thread_id).await;
    let calm = &mails[TRIALS];
    let (points, _) = worked_on(&gmail, calm, &[], async || sent(calm).await > 0).await;
    one_mail_for_each_yes(|| emulated.gmail(), &mails[..TRIALS], Some(points), sent).await;
}

#[tokio::test]
async fn every_answer_to_a_send_lost_one_mail_for_each_yes() {
    let emulated = Emulated::with_mails(TRIALS);
    let mails = emulated.gmail().list(&MailQuery::default()).await.unwrap();
    let mut tasks = JoinSet::new();
    let url = forgetful(emulated.url().to_owned(), &mut tasks).await;
    let gmail = || emulated.gmail_behind(&url);
    let sent = async |email: &Email| emulated.sent_in(&email.thread_id).await;
    let asked = one_mail_for_each_yes(gmail, &mails, None, sent).await;
    assert_eq!(asked, 0, "what was sent is found without a person");
}

/// Stands before a server, hands everything on, and keeps the first answer to a send of each draft to itself.
async fn forgetful(upstream: String, tasks: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let kept = Arc::new(Mutex::new(BTreeSet::new()));
    tasks.spawn(async move {
        let mut lines = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            lines.spawn(hand_on(stream, upstream.clone(), kept.clone()));
        }
    });
    url
}

async fn hand_on(stream: TcpStream, upstream: String, kept: Arc<Mutex<BTreeSet<Vec<u8>>>>) {
    let client = reqwest::Client::new();
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.to_owned())
        };
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let mut words = head.split_whitespace();
        let method = words.next().unwrap().parse().unwrap();
        let path = words.next().unwrap();
        let mut request = client
            .request(method, format!("{upstream}{path}"))
            .body(body.clone());
        for name in ["authorization", "content-type"] {
            if let Some(value) = header(name) {
                request = request.header(name, value);
            }
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let answer = answer.bytes().await.unwrap();
        if path.ends_with("/drafts/send") && kept.lock().unwrap().insert(body) {
            return;
        }
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&answer).await.unwrap();
    }
}
