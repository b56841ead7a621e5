//! Attacks on the connector. A test transport records what would have been sent.

use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Resolver that returns these answers in turn, and repeats the last one.
struct Flipping {
    answers: Vec<&'static str>,
    asked: AtomicUsize,
}

impl Flipping {
    fn new(answers: &[&'static str]) -> Arc<Self> {
        Arc::new(Self {
            answers: answers.to_vec(),
            asked: AtomicUsize::new(0),
        })
    }
}

impl NameResolver for Flipping {
    fn look_up<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = self.answers[asked.min(self.answers.len() - 1)];
        Box::pin(async move {
            Ok(answer
                .split(' ')
                .map(|address| address.parse().unwrap())
                .collect())
        })
    }
}

/// Transport that records where it would connect, and with which call.
#[derive(Default)]
struct Ledger {
    sent: Mutex<Vec<(Vec<SocketAddr>, Call)>>,
    says: Mutex<Vec<Answer>>,
}

impl Ledger {
    fn saying(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        let ledger = Self::default();
        ledger.says.lock().unwrap().extend(answers);
        Arc::new(ledger)
    }

    fn sent(&self) -> Vec<(Vec<SocketAddr>, Call)> {
        self.sent.lock().unwrap().clone()
    }
}

impl Transport for Ledger {
    fn send(&self, vetted: VettedCall) -> BoxFuture<'_, Result<Answer, Fault>> {
        self.sent
            .lock()
            .unwrap()
            .push((vetted.addresses, vetted.call));
        let mut says = self.says.lock().unwrap();
        let answer = if says.is_empty() {
            Answer {
                status: 200,
                ..Answer::default()
            }
        } else {
            says.remove(0)
        };
        Box::pin(async move { Ok(answer) })
    }
}

fn reach(origins: &[&str]) -> AllowedOrigins {
    AllowedOrigins::only(origins.iter().map(|origin| origin.parse().unwrap()))
}

fn moved(to: &str) -> Answer {
    Answer {
        status: 302,
        location: Some(to.to_owned()),
        ..Answer::default()
    }
}

/// Sixty spellings of addresses that must not be called.
const FORMS: [&str; 60] = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://0x7f.1/",
    "http://127.0.0.1./",
    "http://127.0.0.1:80/",
    "http://127.0.0.1:22/",
    "http://127.255.255.254/",
    "http://0/",
    "http://0.0.0.0/",
    "http://0x0/",
    "http://[::]/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[ff02::1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.169.254:80/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://[::ffff:169.254.169.254]/",
    "http://10.0.0.1/",
    "http://10.1/",
    "http://172.16.0.1/",
    "http://192.168.0.1/",
    "http://192.168.257/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://192.0.0.192/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://localhost/",
    "http://localhost./",
    "http://LOCALHOST/",
    "http://a.localhost/",
    "http://metadata.google.internal/",
    "http://127.0.0.1.nip.io/",
    "http://user:pass@127.0.0.1/",
    "http://api.example.com@127.0.0.1/",
    "http://api.example.com:80@127.0.0.1/",
    "http://api.example.com%2f@127.0.0.1/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
];

#[tokio::test]
async fn sixty_ways_to_write_a_denied_address_and_none_is_called() {
    let names = Flipping::new(&["127.0.0.1", "169.254.169.254", "::1", "10.0.0.1"]);
    let ledger = Ledger::saying([]);
    let connector = Connector::over(names, ledger.clone());
    let allowed = reach(&[
        "http://api.example.com",
        "https://api.example.com",
        "http://localhost",
        "http://a.localhost",
        "http://metadata.google.internal",
        "http://127.0.0.1.nip.io",
    ]);
    let mut refused = 0;
    for form in FORMS {
        let call = connector.send(Call::get(form), &allowed).await;
        assert!(matches!(call, Err(Fault::Refused(_))), "{form}: {call:?}");
        refused += 1;
    }
    assert_eq!((refused, ledger.sent().len()), (60, 0));
}

#[tokio::test]
async fn the_same_sixty_as_redirects_and_none_is_called() {
    for form in FORMS {
        let names = Flipping::new(&["93.184.216.34", "127.0.0.1"]);
        let ledger = Ledger::saying([moved(form)]);
        let connector = Connector::over(names, ledger.clone());
        let call = connector
            .send(
                Call::get("http://api.example.com/"),
                &reach(&["http://api.example.com", "http://localhost"]),
            )
            .await;
        assert!(matches!(call, Err(Fault::Refused(_))), "{form}: {call:?}");
        let sent = ledger.sent();
        assert_eq!(sent.len(), 1, "{form}");
        assert_eq!(sent[0].0, ["93.184.216.34:80".parse().unwrap()]);
    }
}

#[tokio::test]
async fn a_real_listener_on_this_machine_hears_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let connector = Connector::default();
    let allowed = reach(&[
        "http://api.example.com",
        "http://localhost",
        &format!("http://localhost:{port}"),
    ]);
    for form in FORMS {
        let with_port = form
            .replacen("/", "\u{0}", 2)
            .replacen('/', &format!(":{port}/"), 1)
            .replace('\u{0}', "/");
        for form in [form, &with_port] {
            assert!(
                connector.send(Call::get(form), &allowed).await.is_err(),
                "{form}"
            );
        }
    }
    let heard = listener.accept();
    assert!(heard.is_err(), "{heard:?}");
}

#[tokio::test]
async fn a_name_is_resolved_once_and_the_connection_goes_to_what_was_vetted() {
    let names = Flipping::new(&["93.184.216.34", "127.0.0.1"]);
    let ledger = Ledger::saying([]);
    let connector = Connector::over(names.clone(), ledger.clone());
    let allowed = reach(&["https://api.example.com"]);
    connector
        .send(Call::get("https://api.example.com/a"), &allowed)
        .await
        .unwrap();
    assert_eq!(names.asked.load(Ordering::Relaxed), 1);
    assert_eq!(ledger.sent()[0].0, ["93.184.216.34:443".parse().unwrap()]);
    // The next call resolves the name again, and the new address is refused.
    let flipped = connector
        .send(Call::get("https://api.example.com/a"), &allowed)
        .await;
    assert!(matches!(flipped, Err(Fault::Refused(_))), "{flipped:?}");
    assert_eq!(ledger.sent().len(), 1);
}

#[tokio::test]
async fn one_bad_address_among_good_ones_is_enough() {
    let ledger = Ledger::saying([]);
    for answers in [
        "93.184.216.34 127.0.0.1",
        "::1 93.184.216.34",
        "1.1.1.1 8.8.8.8 169.254.169.254",
    ] {
        let connector = Connector::over(Flipping::new(&[answers]), ledger.clone());
        let call = connector
            .send(
                Call::get("http://api.example.com/"),
                &reach(&["http://api.example.com"]),
            )
            .await;
        assert!(matches!(call, Err(Fault::Refused(_))), "{answers}");
    }
    assert!(ledger.sent().is_empty());
}

#[tokio::test]
async fn what_is_not_in_the_list_is_not_called_and_a_number_in_it_is_that_origin_only() {
    let ledger = Ledger::saying([]);
    let connector = Connector::over(Flipping::new(&["93.184.216.34"]), ledger.clone());
    let allowed = reach(&["http://127.0.0.1:8080", "https://api.example.com"]);
    for may in [
        "http://127.0.0.1:8080/a",
        "http://2130706433:8080/a",
        "https://api.example.com/",
        "https://API.example.com./",
    ] {
        connector.send(Call::get(may), &allowed).await.unwrap();
    }
    assert_eq!(ledger.sent().len(), 4);
    for must_not in [
        "http://127.0.0.1:8081/",
        "http://127.0.0.2:8080/",
        "https://127.0.0.1:8080/",
        "http://api.example.com/",
        "https://api.example.com:444/",
        "https://example.com/",
        "https://api.example.com.evil.org/",
        "ftp://api.example.com/",
        "file:///etc/passwd",
        "gopher://api.example.com/",
        "data:,x",
        "not an address",
    ] {
        assert!(
            connector.send(Call::get(must_not), &allowed).await.is_err(),
            "{must_not}"
        );
    }
    assert_eq!(ledger.sent().len(), 4);
}

#[tokio::test]
async fn a_secret_goes_home_and_nowhere_else() {
    let home: Origin = "https://a.example.com".parse().unwrap();
    let credential = Credential {
        origin: home,
        header: "authorization".to_owned(),
        prefix: "Bearer ".to_owned(),
        secret: "s3cret".to_owned(),
    };
    let with_secret = |url: &str| Call {
        credential: Some(credential.clone()),
        ..Call::get(url)
    };
    let allowed = reach(&[
        "https://a.example.com",
        "https://b.example.com",
        "http://a.example.com",
    ]);
    let ledger = Ledger::saying([moved("https://b.example.com/x")]);
    let connector = Connector::over(Flipping::new(&["93.184.216.34"]), ledger.clone());
    connector
        .send(with_secret("https://a.example.com/"), &allowed)
        .await
        .unwrap();
    connector
        .send(with_secret("http://a.example.com/"), &allowed)
        .await
        .unwrap();
    let had: Vec<bool> = ledger
        .sent()
        .iter()
        .map(|(_, call)| call.credential.is_some())
        .collect();
    assert_eq!(had, [true, false, false]);
    assert!(!format!("{:?}", ledger.sent()).contains("s3cret"));
}

#[tokio::test]
async fn a_write_follows_no_redirect_and_nobody_is_sent_round_for_ever() {
    let allowed = reach(&["https://a.example.com"]);
    let ledger = Ledger::saying([moved("https://a.example.com/b")]);
    let connector = Connector::over(Flipping::new(&["93.184.216.34"]), ledger.clone());
    let write = Call {
        method: "POST".to_owned(),
        ..Call::get("https://a.example.com/a")
    };
    assert_eq!(connector.send(write, &allowed).await.unwrap().status, 302);
    assert_eq!(ledger.sent().len(), 1);
    let round = Ledger::saying((0..20).map(|_| moved("/a")));
    let connector = Connector::over(Flipping::new(&["93.184.216.34"]), round.clone());
    assert!(
        connector
            .send(Call::get("https://a.example.com/a"), &allowed)
            .await
            .is_err()
    );
    assert_eq!(round.sent().len(), 4);
}

#[tokio::test]
async fn the_wire_connects_to_what_was_vetted_whatever_the_name_says() {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1_024]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
    });
    let url = format!("http://no.such.name.invalid:{}/", address.port());
    let vetted = |addresses| VettedCall {
        call: Call::get(&url),
        url: url.parse().unwrap(),
        addresses,
    };
    let answer = Http::default().send(vetted(vec![address])).await.unwrap();
    assert_eq!(answer.body, b"hi");
    // Without a vetted address there is nothing to connect to, and no other resolver is asked.
    let nowhere = Http::default().send(vetted(Vec::new())).await;
    assert!(matches!(nowhere, Err(Fault::NotSent(_))), "{nowhere:?}");
}

#[tokio::test]
async fn an_answer_is_read_so_far_and_so_long() {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1_024]);
            if number == 0 {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                while stream.write_all(&[b'x'; 4_096]).is_ok() {}
            } else {
                // Sends nothing, and stays connected until the client disconnects.
                let _ = stream.read(&mut [0; 1]);
            }
        }
    });
    let connector = Connector::bounded(100_000, Duration::from_millis(300));
    let long = connector.send(Call::get(&origin), &reach(&[&origin])).await;
    assert_eq!(
        long,
        Err(Fault::Unknown(
            "the answer is longer than 100000 bytes".to_owned()
        ))
    );
    let slow = connector.send(Call::get(&origin), &reach(&[&origin])).await;
    assert_eq!(slow, Err(Fault::Unknown("nothing came in time".to_owned())));
}

#[tokio::test]
async fn a_token_that_a_server_repeats_is_taken_out_of_its_answer() {
    let says = |body: &str| Answer {
        status: 401,
        body: body.as_bytes().to_vec(),
        ..Answer::default()
    };
    let wire = Ledger::saying([
        moved("https://api.example.com/b?token=s3cret-t0ken"),
        says(r#"{"error": {"message": "bad token s3cret-t0ken"}}"#),
    ]);
    let connector = Connector::over(Flipping::new(&["93.184.216.34"]), wire.clone());
    let call = Call {
        credential: Some(Credential {
            origin: "https://api.example.com".parse().unwrap(),
            header: "authorization".to_owned(),
            prefix: "Bearer ".to_owned(),
            secret: "s3cret-t0ken".to_owned(),
        }),
        ..Call::get("https://api.example.com/a")
    };
    let answer = connector
        .send(call, &reach(&["https://api.example.com"]))
        .await
        .unwrap();
    let body = String::from_utf8(answer.body).unwrap();
    assert_eq!(body, r#"{"error": {"message": "bad token [redacted]"}}"#);
    assert!(
        !wire.sent()[1].1.url.contains("s3cret"),
        "{}",
        wire.sent()[1].1.url
    );
}

#[tokio::test]
async fn sixty_ways_to_write_a_denied_address_and_the_internet_has_none_of_them() {
    let names = Flipping::new(&["127.0.0.1", "169.254.169.254", "::1", "10.0.0.1"]);
    let ledger = Ledger::saying([]);
    let connector = Connector::over(names, ledger.clone());
    for form in FORMS {
        let origins = AllowedOrigins::internet([]);
        let call = connector.send(Call::get(form), &origins).await;
        assert!(matches!(call, Err(Fault::Refused(_))), "{form}: {call:?}");
    }
    assert!(ledger.sent().is_empty());
}

#[tokio::test]
async fn a_name_of_the_internet_is_vetted_by_what_it_resolves_to_each_time() {
    let names = Flipping::new(&["93.184.216.34", "93.184.216.34 10.0.0.1"]);
    let ledger = Ledger::saying([]);
    let connector = Connector::over(names, ledger.clone());
    let call = || Call::get("https://hooks.example.com/");
    let allowed = AllowedOrigins::internet([]);
    connector.send(call(), &allowed).await.unwrap();
    let private = connector.send(call(), &allowed).await;
    assert!(matches!(private, Err(Fault::Refused(_))), "{private:?}");
    let named = AllowedOrigins::internet(["hooks.example.com".parse().unwrap()]);
    connector.send(call(), &named).await.unwrap();
    assert_eq!(ledger.sent().len(), 2);
}

#[tokio::test]
async fn a_long_answer_can_be_cut_instead() {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1_024]);
        let _ = stream.write_all(b"HTTP/1.1 202 Accepted\r\n\r\n");
        while stream.write_all(&[b'x'; 4_096]).is_ok() {}
    });
    let http = Http {
        bytes_max: 10,
        is_cut: true,
        ..Http::default()
    };
    let connector = Connector::over(Arc::new(SystemNames), Arc::new(http));
    let answer = connector.send(Call::get(&origin), &reach(&[&origin])).await;
    let answer = answer.unwrap();
    assert_eq!((answer.status, answer.body), (202, vec![b'x'; 10]));
}
