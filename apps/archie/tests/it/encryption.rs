//! A database that is encrypted: nothing that users write is in it, the right key opens it, and keys are rotated although processes die.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use superstep::Timestamp;
use superstep::store::{Namespace, PutItem, Store};
use superstep_conformance::services;
use superstep_encryption::{EncryptedStore, Encryption, LocalKeys};
use superstep_sqlite::Sqlite;

use crate::cluster::Database;
use crate::kit::{Ran, Workdir};
use crate::serve::ServeProcess;

/// Each secret begins so, and is followed by its number and `;`.
const MARKER: &str = "marker-5d41402abc4b-";
const THREADS: usize = 100;
const SECRETS: usize = 1_000;

fn marker(number: usize) -> String {
    format!("{MARKER}{number:04};")
}

/// Counts secrets up, so that no two places get the same.
struct Markers(usize);

impl Markers {
    fn next(&mut self) -> String {
        self.0 += 1;
        marker(self.0)
    }
}

/// A folder whose model says a secret whenever it is asked, with an encrypted database or without.
fn workdir(is_encrypted: bool, markers: &mut Markers) -> Workdir {
    let turns = (0..THREADS).flat_map(|_| ["initial", "followup"]);
    let replies: Vec<Json> = turns
        .map(|at| json!({ "at": at, "text": format!("{} Is it so?", markers.next()) }))
        .collect();
    let workdir = Workdir::scripted(&Json::from(replies));
    match is_encrypted {
        true => with_key(workdir),
        false => workdir,
    }
}

fn with_key(workdir: Workdir) -> Workdir {
    let file = workdir.path("archie.key");
    done(&workdir, &["encryption", "create-key", "archie.key"]);
    workdir.with_environment("ARCHIE_ENCRYPTION_KEY_FILE", file.to_str().unwrap())
}

#[track_caller]
fn done(workdir: &Workdir, args: &[&str]) -> Ran {
    let ran = workdir.run(args, "");
    assert_eq!(ran.code(), Some(0), "{args:?}: {ran:?}");
    ran
}

/// A caller of the server.
struct Caller {
    url: String,
    client: reqwest::Client,
}

impl Caller {
    async fn send(&self, request: &str, body: Json) -> Json {
        let (method, path) = request.split_once(' ').unwrap();
        let method = method.parse().unwrap();
        let sent = self.client.request(method, format!("{}{path}", self.url));
        let sent = sent.json(&body).timeout(PATIENCE).send().await.unwrap();
        let status = sent.status();
        let text = sent.text().await.unwrap();
        assert!(status.is_success(), "{request}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

/// Writes secrets wherever a caller can, and returns the threads.
async fn plant(server: &ServeProcess, markers: &mut Markers) -> Vec<String> {
    let caller = Caller {
        url: format!("http://{}", server.address),
        client: reqwest::Client::new(),
    };
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        let metadata = json!({ "note": markers.next() });
        let created = caller.send("POST /threads", json!({ "metadata": metadata }));
        let thread = created.await["thread_id"].as_str().unwrap().to_owned();
        let wait = format!("POST /threads/{thread}/runs/wait");
        let input = json!({
            "userInput": format!("analyze: {}", markers.next()),
            "fileContents": { "a.md": format!("{}\n", markers.next()) },
        });
        let run = json!({ "assistant_id": "analyze", "input": input, "metadata": { "note": markers.next() } });
        let values = caller.send(&wait, run).await;
        assert!(values["__interrupt__"].is_array(), "{values}");
        let answer = json!({ "assistant_id": "analyze", "command": { "resume": markers.next() } });
        caller.send(&wait, answer).await;
        threads.push(thread);
    }
    for number in 0..100 {
        let item = json!({ "namespace": ["notes"], "key": number.to_string(), "value": { "note": markers.next() } });
        caller.send("PUT /store/items", item).await;
    }
    for number in 0..50 {
        let assistant = json!({
            "graph_id": "analyze",
            "name": format!("analyst {number}"),
            "description": markers.next(),
            "metadata": { "note": markers.next() },
        });
        caller.send("POST /assistants", assistant).await;
        let cron = json!({
            "assistant_id": "analyze",
            "schedule": "0 0 1 1 *",
            "input": { "userInput": markers.next() },
            "metadata": { "note": markers.next() },
        });
        caller.send("POST /runs/crons", cron).await;
    }
    // What was written can be read.
    let found = caller.send("POST /threads/search", json!({ "limit": 1 }));
    assert!(found.await[0]["metadata"]["note"].is_string());
    assert!(markers.0 >= SECRETS, "only {} secrets", markers.0);
    threads
}

/// Returns the numbers of the secrets in these bytes, as they are or as hexadecimal digits, which is how PostgreSQL dumps bytes.
fn secrets_in(bytes: &[u8]) -> BTreeSet<usize> {
    let hex: String = MARKER.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut found = BTreeSet::new();
    for (text, width) in [(MARKER, 1), (hex.as_str(), 2)] {
        for at in 0..bytes.len().saturating_sub(text.len()) {
            if bytes[at..].starts_with(text.as_bytes()) {
                let number = &bytes[at + text.len()..];
                let digits = number
                    .chunks(width)
                    .take(4)
                    .map(|chunk| *chunk.last().unwrap());
                let digits: String = digits.map(char::from).collect();
                found.insert(digits.parse().unwrap_or(0));
            }
        }
    }
    found
}

/// Returns the secrets in the files of a folder, and how many bytes were searched.
fn secrets_below(folder: &Path) -> (BTreeSet<usize>, usize) {
    let (mut found, mut searched) = (BTreeSet::new(), 0);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let (below, bytes) = secrets_below(&path);
            found.extend(below);
            searched += bytes;
        } else {
            let bytes = fs::read(&path).unwrap();
            searched += bytes.len();
            found.extend(secrets_in(&bytes));
        }
    }
    (found, searched)
}

/// Plants secrets through a server over SQLite. Returns those in the files of the database while the server runs, and those in a backup.
async fn planted_in_sqlite(is_encrypted: bool) -> [BTreeSet<usize>; 2] {
    let mut markers = Markers(0);
    let workdir = workdir(is_encrypted, &mut markers);
    let server = ServeProcess::start(&workdir);
    plant(&server, &mut markers).await;
    let (in_files, searched) = secrets_below(&workdir.path("home"));
    assert!(workdir.path("home/threads.db-wal").exists());
    assert!(searched > 1_000_000, "only {searched} bytes were searched");
    drop(server);
    done(&workdir, &["backup", "backup.db"]);
    let in_backup = secrets_in(&fs::read(workdir.path("backup.db")).unwrap());
    let listed = workdir.json(&["--store", "sqlite:backup.db", "threads", "--json"]);
    assert_eq!(listed.as_array().unwrap().len(), 20);
    let checked = done(&workdir, &["--store", "sqlite:backup.db", "check"]);
    assert!(checked.out().contains("0 cannot be resumed"), "{checked:?}");
    [in_files, in_backup]
}

#[tokio::test]
async fn a_thousand_secrets_of_callers_are_not_in_an_encrypted_file_its_log_and_its_backup() {
    let none = BTreeSet::new();
    assert_eq!(planted_in_sqlite(true).await, [none.clone(), none]);
}

/// The same search finds them where nothing is encrypted: it is no search that cannot fail.
#[tokio::test]
async fn the_secrets_are_found_in_a_file_that_is_not_encrypted() {
    for found in planted_in_sqlite(false).await {
        assert!(found.len() >= SECRETS, "only {}", found.len());
    }
}

/// Plants secrets through a server over PostgreSQL that shows live what its nodes do over Redis. Returns those in the dump of the database
/// and those in Redis.
async fn planted_in_postgres(is_encrypted: bool) -> [BTreeSet<usize>; 2] {
    let mut markers = Markers(0);
    let redis = services::url("redis");
    let workdir = workdir(is_encrypted, &mut markers).with_environment("ARCHIE_REDIS", &redis);
    let database = Database::new();
    let workdir = workdir.with_environment("ARCHIE_STORE", &database.store());
    let server = ServeProcess::start(&workdir);
    let threads = plant(&server, &mut markers).await;
    let dump = output(Command::new("pg_dump").arg(database.store()));
    assert!(dump.len() > 1_000_000, "a dump of {} bytes", dump.len());
    let mut live = Vec::new();
    for thread in threads {
        let key = format!("superstep:live:{thread}");
        let mut command = Command::new("redis-cli");
        command.args(["-u", redis.trim(), "--raw", "XRANGE", &key, "-", "+"]);
        live.extend(output(&mut command));
    }
    assert!(live.len() > 10_000, "only {} bytes in Redis", live.len());
    [secrets_in(&dump), secrets_in(&live)]
}

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[tokio::test]
async fn a_thousand_secrets_of_callers_are_not_in_encrypted_tables_and_not_in_redis() {
    let none = BTreeSet::new();
    assert_eq!(planted_in_postgres(true).await, [none.clone(), none]);
}

#[tokio::test]
async fn the_secrets_are_found_in_tables_and_in_redis_where_nothing_is_encrypted() {
    let [dumped, live] = planted_in_postgres(false).await;
    assert!(dumped.len() >= SECRETS, "only {} in the dump", dumped.len());
    assert!(live.len() >= THREADS, "only {} in Redis", live.len());
}

/// An interview that waits for an answer, in a database with a key.
pub(crate) fn interview() -> Workdir {
    let workdir = with_key(Workdir::scripted(&json!([
        { "at": "initial", "text": "Is ordering required?" },
        { "at": "final", "json": {
            "assumptions": [], "components": [{ "claim": "A queue." }], "alternatives": [], "decisions": [], "open_questions": []
        }}
    ])));
    let analyze = [
        "analyze",
        "--query",
        "Choose a queue",
        "--inputs",
        "./notes",
    ];
    let ran = workdir.run(&analyze, "");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    workdir
}

/// The same folder in a shell in which these variables have other values.
fn in_shell(workdir: &Workdir, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = workdir.command();
    for (name, value) in variables {
        match value.is_empty() {
            true => command.env_remove(name),
            false => command.env(name, value),
        };
    }
    command.args(args);
    Ran::of(command, "")
}

const KEY_FILE: &str = "ARCHIE_ENCRYPTION_KEY_FILE";
const KEY: &str = "ARCHIE_ENCRYPTION_KEY";
const ACCEPT: &str = "ARCHIE_ACCEPT_PLAIN_DATA";

#[test]
fn an_encrypted_database_is_opened_with_its_key_and_with_nothing_else() {
    let workdir = interview();
    let listed = done(&workdir, &["threads"]);
    assert!(listed.out().contains("Choose a queue"), "{listed:?}");
    done(&workdir, &["encryption", "create-key", "other.key"]);
    let text = fs::read_to_string(workdir.path("archie.key")).unwrap();
    let wrong: [(&[(&str, &str)], &str); 6] = [
        (
            &[(KEY_FILE, "")],
            "name the key file in `ARCHIE_ENCRYPTION_KEY_FILE`",
        ),
        (
            &[(KEY_FILE, "other.key")],
            "use the key file of the processes that wrote it",
        ),
        (
            &[(KEY_FILE, "absent.key")],
            "cannot read the key file `absent.key`",
        ),
        (&[(KEY_FILE, "notes/a.md")], "has no usable keys"),
        (&[(KEY_FILE, ""), (KEY, "secret")], "has no usable keys"),
        (&[(KEY, text.trim())], "unset one of them"),
    ];
    for (variables, why) in wrong {
        for args in [
            &["threads"][..],
            &["serve", "--listen", "127.0.0.1:0"],
            &["encryption", "list"],
        ] {
            let ran = in_shell(&workdir, variables, args);
            assert_eq!(ran.code(), Some(1), "{variables:?}: {ran:?}");
            assert!(ran.err().contains(why), "{variables:?}: {ran:?}");
            let shown = ran.err() + &ran.out();
            assert!(
                !shown.contains(text.trim()) && !shown.contains("secret"),
                "{ran:?}"
            );
        }
    }
    let ran = in_shell(
        &workdir,
        &[(KEY_FILE, ""), (KEY, text.trim())],
        &["threads"],
    );
    assert!(ran.out().contains("Choose a queue"), "{ran:?}");
    // The thread goes on where it was.
    let resumed = workdir.run(&["resume", &workdir.thread()], "DONE\n");
    assert_eq!(resumed.code(), Some(0), "{resumed:?}");
    let doctor = workdir.run(&["doctor"], "");
    assert!(
        doctor.out().contains("encrypted with the key"),
        "{doctor:?}"
    );
}

#[test]
fn a_database_that_was_not_encrypted_is_encrypted_from_now_on_if_its_person_says_so() {
    let plain = Workdir::scripted(&json!([
        { "at": "initial", "text": "Is ordering required?" },
        { "at": "initial", "text": "How much may be lost?" }
    ]));
    let analyze = |query| ["analyze", "--query", query, "--inputs", "./notes"];
    assert_eq!(plain.run(&analyze("Choose a queue"), "").code(), Some(3));
    done(&plain, &["encryption", "create-key", "archie.key"]);
    let key = [(KEY_FILE, "archie.key")];
    let refused = in_shell(&plain, &key, &["threads"]);
    assert_eq!(refused.code(), Some(1), "{refused:?}");
    assert!(
        refused.err().contains("set `ARCHIE_ACCEPT_PLAIN_DATA=1`"),
        "{refused:?}"
    );
    // Nothing was changed by that.
    done(&plain, &["threads"]);
    let accepting = [(KEY_FILE, "archie.key"), (ACCEPT, "1")];
    let ran = in_shell(&plain, &accepting, &analyze("Choose a database"));
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    let listed = in_shell(&plain, &accepting, &["threads"]);
    for title in ["Choose a queue", "Choose a database"] {
        assert!(listed.out().contains(title), "{listed:?}");
    }
    let bytes = [
        plain.path("home/threads.db"),
        plain.path("home/threads.db-wal"),
    ];
    let bytes = bytes
        .map(|file| fs::read(file).unwrap_or_default())
        .concat();
    let has = |text: &str| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(has("Choose a queue"));
    assert!(!has("Choose a database") && !has("How much may be lost?"));
    let refused = plain.run(&["threads"], "");
    assert!(
        refused.err().contains("cannot be opened without its key"),
        "{refused:?}"
    );
}

#[test]
fn a_key_file_is_for_its_owner_and_is_never_overwritten() {
    let workdir = Workdir::scripted(&json!([]));
    let create = workdir.json(&["encryption", "create-key", "archie.key", "--json"]);
    let file = workdir.path("archie.key");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let first = fs::read_to_string(&file).unwrap();
    assert_eq!(first.trim().len(), 64);
    let again = workdir.run(&["encryption", "create-key", "archie.key"], "");
    assert_eq!(again.code(), Some(1), "{again:?}");
    assert!(
        again.err().contains("refusing to overwrite it"),
        "{again:?}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), first);
    let added = workdir.json(&["encryption", "add-key", "archie.key", "--json"]);
    assert_eq!(added["older"], json!([create["key"]]));
    let both = fs::read_to_string(&file).unwrap();
    assert!(
        both.ends_with(&first) && both.len() == 130,
        "{}",
        both.len()
    );
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let absent = workdir.run(&["encryption", "add-key", "absent.key"], "");
    assert!(
        absent
            .err()
            .contains("cannot read the key file `absent.key`"),
        "{absent:?}"
    );
    let off = workdir.run(&["encryption", "rewrap"], "");
    assert!(
        off.err().contains("the database is not encrypted"),
        "{off:?}"
    );
}

#[test]
fn a_key_is_replaced_and_then_nothing_needs_the_old_one() {
    let workdir = interview();
    done(&workdir, &["encryption", "add-key", "archie.key"]);
    done(&workdir, &["threads"]);
    done(&workdir, &["encryption", "rewrap"]);
    let text = fs::read_to_string(workdir.path("archie.key")).unwrap();
    let newest = text.lines().next().unwrap();
    fs::write(workdir.path("newest.key"), newest).unwrap();
    let newest = [(KEY_FILE, "newest.key")];
    let listed = in_shell(&workdir, &newest, &["threads"]);
    assert!(listed.out().contains("Choose a queue"), "{listed:?}");

    let rotated = workdir.json(&["encryption", "rotate", "--all", "--json"]);
    let young = workdir.json(&[
        "encryption",
        "rotate",
        "--all",
        "--older-than",
        "1d",
        "--json",
    ]);
    assert_eq!((rotated.as_array().unwrap().len(), young), (1, json!([])));
    let rows = workdir.json(&["encryption", "list", "--json"]);
    assert_eq!(rows[0]["dataKeys"].as_array().unwrap().len(), 2, "{rows}");
    assert_eq!(rows[0]["dataKeys"][0], rotated[0]["dataKey"], "{rows}");
    // Older data with the older key, newer data with the newer one.
    let resumed = workdir.run(&["resume", &workdir.thread()], "DONE\n");
    assert_eq!(resumed.code(), Some(0), "{resumed:?}");
    let unknown = workdir.run(&["encryption", "rotate", "--tenant", "acme"], "");
    assert!(
        unknown.err().contains("acme has no data keys"),
        "{unknown:?}"
    );
}

/// Data keys of many tenants are wrapped again by processes that are killed at any moment.
#[tokio::test]
async fn a_key_is_replaced_although_the_command_is_killed_two_hundred_times() {
    const TENANTS: usize = 60;
    let workdir = with_key(Workdir::scripted(&json!([])));
    done(&workdir, &["threads"]);
    let sqlite = Sqlite::open(workdir.path("home/threads.db")).unwrap();
    let opened = || {
        let text = fs::read_to_string(workdir.path("archie.key")).unwrap();
        let keys = LocalKeys::from_text(&text).unwrap();
        Encryption::new(keys, Arc::new(sqlite.clone()))
    };
    let items: Vec<PutItem> = (0..TENANTS)
        .map(|tenant| PutItem {
            namespace: Namespace::of_tenant(&format!("tenant-{tenant}"), ["notes"]).unwrap(),
            key: "one".to_owned(),
            value: json!({ "tenant": tenant }),
            ttl: None,
        })
        .collect();
    let written = EncryptedStore::new(Arc::new(sqlite.clone()), opened());
    for item in &items {
        written.put(item, Timestamp(1)).await.unwrap();
    }
    done(&workdir, &["encryption", "add-key", "archie.key"]);
    let rewrap = ["encryption", "rewrap"];
    let begun = Instant::now();
    done(&workdir, &rewrap);
    let whole = begun.elapsed();
    add_key(&workdir);
    let (mut kills, mut in_between, mut finished) = (0, 0, 0);
    for attempt in 0..u32::MAX {
        if kills == 200 {
            break;
        }
        // Anywhere from the start of the process to its end.
        let after = whole * (attempt * 37 % 100) / 100;
        if workdir.run_and_kill(&rewrap, "", after) {
            kills += 1;
        } else {
            // Another key, so that there is something to do.
            finished += 1;
            add_key(&workdir);
        }
        let encryption = opened();
        let mut wrapped_by = BTreeSet::new();
        for item in &items {
            let tenant = item.namespace.tenant();
            wrapped_by.extend(encryption.wrapped_by(tenant).await.unwrap());
        }
        in_between += u32::from(wrapped_by.len() > 1);
        let store = EncryptedStore::new(Arc::new(sqlite.clone()), encryption);
        for item in &items {
            let read = store.get(&item.namespace, "one", Timestamp(2)).await;
            assert_eq!(
                read.unwrap().unwrap().value,
                item.value,
                "after {kills} kills"
            );
        }
    }
    done(&workdir, &["encryption", "rewrap"]);
    keep_newest(&workdir.path("archie.key"));
    let store = EncryptedStore::new(Arc::new(sqlite.clone()), opened());
    for item in &items {
        let read = store.get(&item.namespace, "one", Timestamp(2)).await;
        assert_eq!(read.unwrap().unwrap().value, item.value, "at the end");
    }
    assert!(
        in_between > 0,
        "no kill was between two tenants; {finished} commands finished"
    );
}

/// Begins a replacement of the key: the old one stays in the file until everything is wrapped with the new one.
fn add_key(workdir: &Workdir) {
    keep_newest(&workdir.path("archie.key"));
    done(workdir, &["encryption", "add-key", "archie.key"]);
}

/// Removes all keys but the newest from a key file.
fn keep_newest(file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    fs::write(file, text.lines().next().unwrap()).unwrap();
}

#[tokio::test]
async fn an_erased_tenant_loses_its_data_keys_and_its_person_gets_a_receipt() {
    let workdir = with_key(Workdir::scripted(&json!([])));
    done(&workdir, &["threads"]);
    let store = format!("sqlite:{}", workdir.path("home/threads.db").display());
    let text = fs::read_to_string(workdir.path("archie.key")).unwrap();
    let keys = || LocalKeys::from_text(&text).unwrap();
    let sqlite = Sqlite::open(workdir.path("home/threads.db")).unwrap();
    let encrypted = |sqlite: &Sqlite| {
        let sqlite = Arc::new(sqlite.clone());
        EncryptedStore::new(sqlite.clone(), Encryption::new(keys(), sqlite))
    };
    let item = |tenant: &str| PutItem {
        namespace: Namespace::of_tenant(tenant, ["notes"]).unwrap(),
        key: "one".to_owned(),
        value: json!("a note"),
        ttl: None,
    };
    let [acme, globex] = ["acme", "globex"].map(item);
    for item in [&acme, &globex] {
        let written = encrypted(&sqlite).put(item, Timestamp(1)).await;
        written.unwrap();
    }
    // A row from before, as in a backup of which a person restores single rows.
    let row = sqlite.get(&acme.namespace, "one", Timestamp(2));
    let row = row.await.unwrap().unwrap();
    let reserved = workdir.run(&["erase", "superstep.data-keys", "--yes"], "");
    assert_eq!(reserved.code(), Some(1), "{reserved:?}");
    let erase = ["--store", &store, "erase", "acme", "--yes", "--json"];
    let receipt = workdir.json(&erase);
    let destroyed = &receipt["dataKeys"];
    assert_eq!(destroyed["keys"].as_array().unwrap().len(), 1, "{receipt}");
    assert_eq!(destroyed["wrapped_sha256"].as_str().unwrap().len(), 64);
    let rows = workdir.json(&["encryption", "list", "--json"]);
    assert_eq!(rows[0]["erasures"][0], *destroyed, "{rows}");
    assert_eq!(rows[1]["tenant"], "globex", "{rows}");
    let restored = PutItem {
        value: row.value,
        ..acme
    };
    sqlite.put(&restored, Timestamp(3)).await.unwrap();
    let store = encrypted(&sqlite);
    let gone = store.get(&restored.namespace, "one", Timestamp(4)).await;
    assert_eq!(gone.unwrap_err().code(), "store-encryption");
    let stays = store.get(&globex.namespace, "one", Timestamp(4));
    assert_eq!(stays.await.unwrap().unwrap().value, json!("a note"));
}
