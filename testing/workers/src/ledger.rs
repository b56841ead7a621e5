//! The ledger: a process that numbers every report in the order it comes, keeps all of them, and drops none.
//!
//! One line each way: `put THREAD WORKER PHASE DETAIL KEY` is answered with its number once it is kept; `read AFTER` with
//! every line above a number, then `.`; `of THREAD` with every line of a thread, then `.`; `settle` with `.` once only the
//! asker is connected, so that no report of a killed process is still on its way. A line that is read is
//! `NUMBER MILLISECONDS THREAD WORKER PHASE DETAIL KEY`, with the time since 1970. Only a key may contain spaces.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use superstep::__private::lock;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};

use crate::{AnyError, Args};

/// What the serving side holds.
#[derive(Default)]
struct Book {
    lines: Mutex<Vec<String>>,
    connected: AtomicUsize,
}

/// Listens on loopback until the process ends, and says where on stdout.
pub(crate) fn serve() -> Result<(), AnyError> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    accept(&listener)
}

fn accept(listener: &TcpListener) -> Result<(), AnyError> {
    let book = Arc::new(Book::default());
    for stream in listener.incoming() {
        let (stream, book) = (stream?, book.clone());
        book.connected.fetch_add(1, Ordering::SeqCst);
        std::thread::spawn(move || {
            // A killed process resets its connection; what came before counts.
            let _ = book.talk(stream);
            book.connected.fetch_sub(1, Ordering::SeqCst);
        });
    }
    Ok(())
}

impl Book {
    fn talk(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut answers = stream.try_clone()?;
        for line in BufReader::new(stream).lines() {
            let line = line?;
            let (command, words) = line.split_once(' ').unwrap_or((&line, ""));
            let answer = match command {
                "put" => self.put(words),
                "read" => self.read(words.parse().unwrap_or(0)),
                "of" => self.of(words),
                "settle" => self.settle(),
                _ => "?\n".to_owned(),
            };
            answers.write_all(answer.as_bytes())?;
        }
        Ok(())
    }

    fn put(&self, words: &str) -> String {
        let mut lines = lock(&self.lines);
        let number = lines.len() + 1;
        // With the lock held, so that the times rise as the numbers do.
        lines.push(format!("{number} {} {words}\n", now_ms()));
        format!("{number}\n")
    }

    fn read(&self, after: usize) -> String {
        lock(&self.lines).get(after..).unwrap_or(&[]).concat() + ".\n"
    }

    fn of(&self, thread: &str) -> String {
        let lines = lock(&self.lines);
        let of_thread = |line: &&String| line.split(' ').nth(2) == Some(thread);
        lines
            .iter()
            .filter(of_thread)
            .map(String::as_str)
            .collect::<String>()
            + ".\n"
    }

    fn settle(&self) -> String {
        while self.connected.load(Ordering::SeqCst) > 1 {
            std::thread::sleep(Duration::from_micros(200));
        }
        ".\n".to_owned()
    }
}

fn now_ms() -> u128 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.unwrap_or_default().as_millis()
}

/// A connection to the ledger.
pub(crate) struct Ledger {
    connection: tokio::sync::Mutex<Connection>,
    /// The process that reports.
    worker: String,
}

struct Connection {
    stream: BufStream<tokio::net::TcpStream>,
    /// Replies that are still to come. A run that is cancelled drops its tasks, also in the middle of a report; the next
    /// report reads the reply to that one first, or it would take it for its own.
    owed: u64,
}

impl Ledger {
    /// Connects as a worker of this name, or as the process of this number if it has none.
    pub(crate) async fn connect(args: &Args) -> Result<Self, AnyError> {
        let stream = tokio::net::TcpStream::connect(&args.ledger).await?;
        stream.set_nodelay(true)?;
        let worker = match args.name.is_empty() {
            true => std::process::id().to_string(),
            false => args.name.clone(),
        };
        Ok(Self {
            connection: tokio::sync::Mutex::new(Connection {
                stream: BufStream::new(stream),
                owed: 0,
            }),
            worker,
        })
    }

    /// Returns when the ledger keeps the report. Without its ledger a trial means nothing, so the process ends.
    pub(crate) async fn report(&self, report: Report<'_>) {
        if let Err(error) = self.put(report).await {
            eprintln!("the ledger is gone: {error}");
            std::process::exit(8);
        }
    }

    async fn put(&self, report: Report<'_>) -> io::Result<()> {
        let Report {
            thread,
            phase,
            key,
            detail,
        } = report;
        let line = format!("put {thread} {} {phase} {detail} {key}\n", self.worker);
        let mut connection = self.connection.lock().await;
        connection.owed += 1;
        connection.stream.write_all(line.as_bytes()).await?;
        connection.stream.flush().await?;
        while connection.owed > 0 {
            let mut number = String::new();
            connection.stream.read_line(&mut number).await?;
            if number.trim().parse::<u64>().is_err() {
                return Err(io::Error::other(format!("it answered `{}`", number.trim())));
            }
            connection.owed -= 1;
        }
        Ok(())
    }

    /// Returns all lines, in the order in which they came.
    pub(crate) async fn lines(&self) -> Result<Vec<Line>, AnyError> {
        self.ask("read 0\n").await
    }

    /// Returns the lines of a thread, in the order in which they came.
    pub(crate) async fn lines_of(&self, thread: &str) -> Result<Vec<Line>, AnyError> {
        self.ask(&format!("of {thread}\n")).await
    }

    async fn ask(&self, question: &str) -> Result<Vec<Line>, AnyError> {
        let mut connection = self.connection.lock().await;
        let stream = &mut connection.stream;
        stream.write_all(question.as_bytes()).await?;
        stream.flush().await?;
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            match line.trim_end() {
                "." => return Ok(lines),
                line => lines.push(Line::parse(line)?),
            }
        }
    }
}

/// Something that happened. Only the key may contain spaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report<'a> {
    pub(crate) thread: &'a str,
    pub(crate) phase: &'a str,
    pub(crate) key: &'a str,
    pub(crate) detail: u64,
}

/// A line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// In milliseconds since 1970.
    pub(crate) at: i64,
    pub(crate) thread: String,
    pub(crate) worker: String,
    pub(crate) phase: String,
    pub(crate) key: String,
}

impl Line {
    fn parse(line: &str) -> Result<Self, AnyError> {
        let words: Vec<&str> = line.splitn(7, ' ').collect();
        let [_, at, thread, worker, phase, _, key] = words.as_slice() else {
            return Err(format!("`{line}` is not a line of the ledger").into());
        };
        Ok(Self {
            at: at.parse()?,
            thread: (*thread).to_owned(),
            worker: (*worker).to_owned(),
            phase: (*phase).to_owned(),
            key: (*key).to_owned(),
        })
    }
}

#[tokio::test]
async fn reports_are_read_back_in_order_and_by_thread() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut args = Args::parse(["judge".to_owned()].into_iter()).unwrap();
    args.ledger = listener.local_addr().unwrap().to_string();
    args.name = "b.2".to_owned();
    std::thread::spawn(move || accept(&listener));
    let ledger = Ledger::connect(&args).await.unwrap();
    for (thread, key) in [
        ("one", "round 0=7"),
        ("two", "part 1"),
        ("one", "round 1=9"),
    ] {
        let (phase, detail) = ("start", 3);
        let report = Report {
            thread,
            phase,
            key,
            detail,
        };
        ledger.report(report).await;
    }
    let keys = |lines: Vec<Line>| lines.into_iter().map(|line| line.key).collect::<Vec<_>>();
    assert_eq!(
        keys(ledger.lines().await.unwrap()),
        ["round 0=7", "part 1", "round 1=9"]
    );
    let of_one = ledger.lines_of("one").await.unwrap();
    assert!(
        of_one
            .iter()
            .all(|line| line.worker == "b.2" && line.phase == "start")
    );
    assert_eq!(keys(of_one), ["round 0=7", "round 1=9"]);
}
