//! Folders that a stranger has filled, given to the real program: nothing outside is read or written, nothing hangs, and memory stays
//! within a bound, for all five agents. What happens when a folder changes between check and use is tested where files are opened
//! (`user_folder`), 10,000 times.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::kit::Workdir;

/// What is outside of every folder that an agent is given, and in the environment of its process.
const SECRET: &str = "the-launch-code-is-0000";

/// No run may take longer, on a machine that does other things as well.
const TIME_MAX: Duration = Duration::from_secs(60);

/// More memory than the program takes by itself, and less than a file or a folder without end would.
const MEMORY_MAX_MB: u64 = 500;

/// A person's desk with a folder that is not to be trusted, and a folder outside that is none of its business.
struct Hostile {
    workdir: Workdir,
    /// Sockets are gone with who made them.
    sockets: Vec<UnixListener>,
    /// A folder with so many files that they are not read again after each run.
    large: Option<&'static str>,
}

struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Hostile {
    fn with(workdir: Workdir) -> Self {
        let workdir = workdir.with_environment("OUTSIDE_SECRET", SECRET);
        fs::create_dir(workdir.path("outside")).unwrap();
        fs::write(workdir.path("outside/secret.md"), SECRET).unwrap();
        fs::write(workdir.path("outside/victim"), "mine").unwrap();
        Self {
            workdir,
            sockets: Vec::new(),
            large: None,
        }
    }

    fn new(replies: &Json) -> Self {
        Self::with(Workdir::scripted(replies))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.workdir.path(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// Everything that a file can be and should not, under names that the agent would read.
    fn fill(&mut self, folder: &str, ending: &str) {
        let at = |name: &str| format!("{folder}/{name}.{ending}");
        let outside = self.path("outside");
        self.link("../outside/secret.md", &at("relative"));
        self.link(outside.join("secret.md"), &at("absolute"));
        self.link(&outside, &format!("{folder}/parent"));
        self.link(".", &format!("{folder}/circle"));
        self.link(".", &format!("{folder}/circle-too"));
        self.link("nowhere", &at("dangling"));
        self.link("/proc/self/environ", &at("environ"));
        self.link("/proc/self/root", &format!("{folder}/root"));
        self.link("/dev/zero", &at("zero"));
        self.link("/dev/tty", &at("tty"));
        pipe(&self.path(&at("pipe")));
        device(&self.path(&at("device")));
        let socket = UnixListener::bind(self.path(&at("socket")));
        self.sockets.push(socket.unwrap());
        for name in ["new\nline", "\u{1b}]52;c;eA==\u{7}", "\u{202e}back"] {
            self.write(&at(name), "A note.\n");
        }
        let long = "n".repeat(255 - 1 - ending.len());
        self.write(&at(&long), "A note.\n");
        // A file of 210 MB that takes no room.
        let hole = fs::File::create(self.path(&at("hole"))).unwrap();
        hole.set_len(210 << 20).unwrap();
    }

    /// Runs the program, ends it at the limit, and looks at what it did: to the outside, to the model, to its memory.
    fn run(&self, what: &str, args: &[&str], input: &str) -> Ended {
        let before = contents(&self.path("outside"), None);
        let begun = Instant::now();
        let mut command = self.workdir.command();
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        // It may have ended before it read everything.
        let _ = process.stdin.take().unwrap().write_all(input.as_bytes());
        let reading = [
            reader(process.stdout.take().unwrap()),
            reader(process.stderr.take().unwrap()),
        ];
        let status = format!("/proc/{}/status", process.id());
        let mut memory = 0;
        let code = loop {
            memory = peak_mb(&status).unwrap_or(memory);
            if let Some(status) = process.try_wait().unwrap() {
                break status.code();
            }
            let took = begun.elapsed();
            if took > TIME_MAX || memory >= MEMORY_MAX_MB {
                process.kill().unwrap();
                process.wait().unwrap();
                panic!("{what}: stopped after {took:?} with {memory} MB");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let [out, err] = reading.map(|reading| reading.join().unwrap());
        let took = begun.elapsed();
        eprintln!("{what}: status {code:?}, {took:?}, peak memory {memory} MB");
        assert_eq!(
            contents(&self.path("outside"), None),
            before,
            "{what}: outside"
        );
        for (place, text) in [("stdout", &out), ("stderr", &err)] {
            assert!(!text.contains(SECRET), "{what}: {place}: {text}");
        }
        let ledger = fs::read_to_string(self.path("ledger")).unwrap_or_default();
        assert!(!ledger.contains(SECRET), "{what}: the model saw it");
        for (name, bytes) in contents(&self.path(""), self.large) {
            let is_ours = name.starts_with("outside/") || name.starts_with("home/");
            let text = String::from_utf8_lossy(&bytes);
            assert!(is_ours || !text.contains(SECRET), "{what}: {name}");
        }
        Ended { code, out, err }
    }
}

fn reader(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn peak_mb(status: &str) -> Option<u64> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kb: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kb / 1024)
}

/// Every regular file below a folder that is not too large to look at, but not in the one that is left out; links are named by where
/// they lead.
fn contents(folder: &Path, left_out: Option<&str>) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.path().symlink_metadata().unwrap();
            let name = entry.path().strip_prefix(folder).unwrap().to_owned();
            let name = name.display().to_string();
            let kind = metadata.file_type();
            if kind.is_dir() {
                if Some(&*name) != left_out {
                    folders.push(entry.path());
                }
            } else if kind.is_symlink() {
                let target = fs::read_link(entry.path()).unwrap();
                found.insert(name, target.into_os_string().into_encoded_bytes());
            } else if kind.is_file() && metadata.len() < 16 << 20 {
                found.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

/// A device that gives zeros without end.
fn device(path: &Path) {
    let mut mknod = Command::new("mknod");
    let made = mknod.arg(path).args(["c", "1", "5"]).output().unwrap();
    if !made.status.success() {
        eprintln!("NOT TESTED: only root can make a device, so there is none in this folder");
    }
}

const ANALYZE: [&str; 6] = [
    "analyze",
    "--query",
    "Choose a queue",
    "--inputs",
    "notes",
    "--recursive",
];

fn interview() -> Json {
    json!([
        { "at": "initial", "text": "How many orders?" },
        { "at": "final", "json": {
            "assumptions": [], "components": [{ "claim": "A queue." }], "alternatives": [],
            "decisions": [], "open_questions": []
        }}
    ])
}

#[test]
fn analyze_reads_notes_and_nothing_else() {
    let mut lab = Hostile::new(&interview());
    lab.fill("notes", "md");
    lab.fill("notes/sub", "txt");
    lab.write("notes/sub/deep.md", "Deep.\n");
    lab.link("../outside/victim", "notes/.analysis_result.md.partial");
    lab.link("../outside/victim", "notes/analysis_result.md");
    let ran = lab.run("analyze", &ANALYZE, "DONE\n");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let result = lab.path("notes/analysis_result.md");
    assert!(result.symlink_metadata().unwrap().is_file());
    assert!(fs::read_to_string(&result).unwrap().contains("A queue."));
    assert!(ran.out.contains("read a.md, b.txt, "), "{}", ran.out);
    assert!(ran.out.contains("sub/deep.md"), "{}", ran.out);
    for said in [
        "skipped hole.md: larger than 1 MiB",
        "skipped pipe.md: a named pipe",
        "skipped relative.md: a symbolic link",
        "skipped parent: a symbolic link",
        "skipped circle: a symbolic link",
        "skipped socket.md: a socket",
        "skipped sub/hole.txt: larger than 1 MiB",
    ] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
}

#[test]
fn a_hundred_thousand_notes_are_bounded() {
    let mut lab = Hostile::new(&interview());
    lab.large = Some("notes");
    for number in 0..100_000 {
        fs::write(lab.path("notes").join(format!("{number:06}.md")), "Note.\n").unwrap();
    }
    let ran = lab.run("100,000 notes", &ANALYZE, "DONE\n");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("more than 1000 notes"), "{}", ran.err);
    let docs = ["docs", "notes", "--check", "--agents", "file-structure"];
    let ran = lab.run("100,000 files", &docs, "");
    assert!(ran.out.contains(" files in "), "{}{}", ran.out, ran.err);
}

const DOCS: [&str; 5] = [
    "docs",
    "repo",
    "--agents",
    "file-structure",
    "--no-self-questioning",
];

fn documented() -> Hostile {
    let replies = crate::docs::replies("file-structure", &[85], &[]);
    let lab = Hostile::new(&json!(replies));
    crate::docs::repository(&lab.path(""));
    lab
}

#[test]
fn docs_reads_the_tree_and_nothing_else() {
    let mut lab = documented();
    lab.fill("repo", "rs");
    lab.fill("repo/src/sub", "md");
    pipe(&lab.path("repo/tests/.gitignore"));
    lab.link("/dev/zero", "repo/src/.gitignore");
    // A repository within the repository, with a password in its address.
    let config = "[remote \"origin\"]\n\turl = https://x:the-password@example.com/\n";
    lab.write("repo/vendor/lib/.git/config", config);
    lab.write("repo/vendor/lib/lib.rs", "pub fn lib() {}\n");
    let ran = lab.run("docs", &DOCS, "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let ledger = fs::read_to_string(lab.path("ledger")).unwrap();
    assert!(!ledger.contains("the-password") && !ledger.contains(".git/config"));
    for said in [
        "not read: hole.rs: larger than 8 MiB",
        "not read: pipe.rs: a named pipe",
        "not read: socket.rs: a socket",
        "not read: src/.gitignore: its rules do not count: a symbolic link",
        "not read: tests/.gitignore: its rules do not count: a named pipe",
    ] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
    let pages = contents(&lab.path("repo/.arch-docs"), None);
    assert!(pages.contains_key("file-structure.md"));
    let index = String::from_utf8_lossy(&pages["index.md"]).into_owned();
    assert!(index.starts_with("# shop: architecture"), "{index}");
}

#[test]
fn docs_writes_pages_and_nothing_else() {
    let lab = documented();
    // What a repository can bring along: a name that is a script, and links where pages or their temporary files go.
    let manifest = "[package]\nname = \"shop\\ntouch pwned\\n\"\nversion = \"0.1.0\"\n";
    lab.write("repo/Cargo.toml", manifest);
    for name in [
        "index.md.new",
        "index.md",
        "index.html",
        "index.html.new",
        "file-structure.md",
        "file-structure.md.new",
        "manifest.json.new",
    ] {
        lab.link("../../outside/victim", &format!("repo/.arch-docs/{name}"));
    }
    // Pages anywhere, which the viewer would show.
    let page = |page: &str| json!({ "page": page, "pageHash": "0" });
    let made = json!({ "version": 1, "project": "x", "agents": {
        "schema-analyzer": page("../../outside/secret.md"),
        "flow-analyzer": page(&lab.path("outside/secret.md").display().to_string()),
        "pattern-analyzer": page("pattern-analyzer.md"),
        "security-analyzer": page("security-analyzer.md"),
        "stranger": page("stranger.md"),
        "../../outside/secret": page("../../outside/secret.md"),
    }});
    lab.write("repo/.arch-docs/manifest.json", &made.to_string());
    lab.write("repo/.arch-docs/stranger.md", "words of a stranger");
    lab.write("repo/.arch-docs/security-analyzer.md", "# Security\n");
    lab.link(
        "../../outside/secret.md",
        "repo/.arch-docs/pattern-analyzer.md",
    );
    let ran = lab.run("docs with links for pages", &DOCS, "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(
        ran.err.contains("`schema-analyzer` in ") && ran.err.contains("is ignored"),
        "{}",
        ran.err
    );
    let pages = contents(&lab.path("repo/.arch-docs"), None);
    let index = String::from_utf8_lossy(&pages["index.md"]).into_owned();
    assert!(index.starts_with("# shop touch pwned: "), "{index}");
    let viewer = String::from_utf8_lossy(&pages["index.html"]).into_owned();
    assert!(viewer.contains("file-structure") && viewer.contains("Security"));
    assert!(!viewer.contains("stranger"));
    for name in [
        "index.md",
        "index.html",
        "file-structure.md",
        "manifest.json",
    ] {
        let path = lab.path("repo/.arch-docs").join(name);
        assert!(path.symlink_metadata().unwrap().is_file(), "{name}");
    }
}

#[test]
fn docs_does_not_write_into_a_folder_that_a_link_leads_to() {
    for output in [".arch-docs", "site/pages"] {
        let lab = documented();
        lab.link(lab.path("outside"), &format!("repo/{output}"));
        let named = format!("repo/{output}");
        let ran = match output {
            ".arch-docs" => lab.run("docs into a link", &DOCS, ""),
            _ => lab.run(
                "docs --output a link",
                &[&DOCS[..], &["--output", &named]].concat(),
                "",
            ),
        };
        assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
        assert!(ran.err.contains("is a symbolic link"), "{}", ran.err);
    }
    // Outside of the repository the person has named it, and may have named a link.
    let lab = documented();
    fs::create_dir(lab.path("real")).unwrap();
    lab.link("real", "pages");
    let ran = lab.run(
        "docs --output",
        &[&DOCS[..], &["--output", "pages"]].concat(),
        "",
    );
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(lab.path("real/index.md").is_file());
}

#[test]
fn since_runs_nothing_that_the_repository_names() {
    let lab = documented();
    let (repo, mark) = (lab.path("repo"), lab.path("marks"));
    fs::create_dir(&mark).unwrap();
    let git = |args: &[&str]| {
        let done = Command::new("git")
            .current_dir(&repo)
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(args)
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    lab.write("repo/.gitattributes", "* filter=evil diff=evil\n");
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let touch = |name: &str| format!("touch {}/{name}; cat", mark.display());
    let script = repo.join(".git/evil.sh");
    fs::write(
        &script,
        format!("#!/bin/sh\ntouch {}/script\n", mark.display()),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.display().to_string();
    for (name, value) in [
        ("filter.evil.smudge", touch("smudge")),
        ("filter.evil.clean", touch("clean")),
        ("filter.evil.process", touch("process")),
        ("diff.evil.textconv", touch("textconv")),
        ("diff.external", script.clone()),
        ("core.fsmonitor", script.clone()),
        ("core.pager", script.clone()),
        ("core.sshCommand", script.clone()),
        ("core.gitProxy", script.clone()),
        ("core.askPass", script.clone()),
        ("core.alternateRefsCommand", script.clone()),
        ("credential.helper", script.clone()),
        ("tar.tar.command", script.clone()),
        ("gpg.program", script.clone()),
        ("protocol.ext.allow", "always".to_owned()),
        ("protocol.allow", "always".to_owned()),
        ("remote.origin.url", format!("ext::{script}")),
        ("remote.origin.promisor", "true".to_owned()),
        ("remote.origin.uploadpack", script.clone()),
        ("extensions.partialClone", "origin".to_owned()),
        ("core.repositoryFormatVersion", "1".to_owned()),
    ] {
        git(&["config", name, &value]);
    }
    fs::create_dir_all(repo.join(".git/hooks")).unwrap();
    for hook in [
        "post-checkout",
        "fsmonitor-watchman",
        "post-index-change",
        "reference-transaction",
    ] {
        fs::copy(&script, repo.join(".git/hooks").join(hook)).unwrap();
    }
    // An object that is missing, which git would fetch from the remote above.
    let object = git(&["-c", "core.fsmonitor=false", "rev-parse", "HEAD:README.md"]);
    let (folder, name) = object.split_at(2);
    fs::remove_file(repo.join(".git/objects").join(folder).join(name)).unwrap();
    for entry in fs::read_dir(&mark).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let since = [&DOCS[..], &["--since", "HEAD"]].concat();
    let ran = lab.run("docs --since", &since, "");
    let made: Vec<_> = contents(&mark, None).into_keys().collect();
    assert_eq!(made, [] as [&str; 0], "{}{}", ran.out, ran.err);
    // What cannot be had is not there, so that the page is made again.
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("its facts have changed"), "{}", ran.out);
}

#[test]
fn nested_code_is_read_in_linear_time() {
    let lab = documented();
    for (name, text) in [
        ("modules.rs", "mod a{".repeat(8_000) + &"}".repeat(8_000)),
        ("open.rs", "mod a{".repeat(100_000)),
        (
            "classes.py",
            (0..900).map(|at| " ".repeat(at) + "class A:\n").collect(),
        ),
        ("calls.ts", "f(".repeat(200_000) + &")".repeat(200_000)),
        ("arrays.ts", "[".repeat(300_000)),
        (
            "mains.java",
            "class A { void main() { new Object() {".repeat(10_000),
        ),
        (
            "funcs.go",
            "package main\n".to_owned() + &"func main() {}\n".repeat(50_000),
        ),
        (
            "owner.rs",
            format!(
                "impl {} {{ {} }}",
                "A".repeat(500_000),
                "fn a() {} ".repeat(50_000)
            ),
        ),
    ] {
        lab.write(&format!("repo/src/deep/{name}"), &text);
    }
    let begun = Instant::now();
    let ran = lab.run("nested code", &["docs", "repo", "--check"], "");
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(40), "{took:?}");
}

#[test]
fn sheet_reads_the_workbook_and_writes_its_folder_and_nothing_else() {
    let replies = json!([{ "at": "planner_node", "text": "Finish: 5 rows" }]);
    let mut lab = Hostile::with(crate::sheet::with_sales(&replies));
    lab.fill("books", "xlsx");
    let sheet = |file: &str| {
        [
            "sheet".to_owned(),
            file.to_owned(),
            "--instruction".to_owned(),
            "x".to_owned(),
        ]
    };
    for name in [
        "pipe", "device", "socket", "hole", "zero", "environ", "dangling",
    ] {
        let args = sheet(&format!("books/{name}.xlsx"));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ran = lab.run(&format!("sheet {name}"), &args, "");
        assert_eq!(ran.code, Some(1), "{name}: {}{}", ran.out, ran.err);
    }
    // The folder that results go to by default is a link of somebody else's.
    lab.link("outside", "out");
    let args = ["sheet", "sales.xlsx", "--instruction", "x"];
    let ran = lab.run("sheet into a link", &args, "");
    assert_ne!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(
        ran.err.contains("is a symbolic link"),
        "{}{}",
        ran.out,
        ran.err
    );
    // And one whose files are.
    fs::remove_file(lab.path("out")).unwrap();
    lab.link("../outside/victim", "out/report.md");
    lab.link("../outside/victim", "out/workbook_new.xlsx");
    let thread = lab.workdir.thread();
    let ran = lab.run("sheet over links", &["resume", &thread], "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let report = lab.path("out/report.md");
    assert!(report.symlink_metadata().unwrap().is_file());
}

#[test]
fn atris_takes_a_document_and_nothing_else() {
    let mut lab = Hostile::new(&json!([]));
    lab.fill("apis", "yaml");
    for name in [
        "pipe", "device", "socket", "hole", "zero", "environ", "tty", "dangling",
    ] {
        let document = format!("apis/{name}.yaml");
        let ran = lab.run(
            &format!("api add {name}"),
            &["api", "add", &document, "--name", "evil"],
            "",
        );
        assert_eq!(ran.code, Some(1), "{name}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn mail_reads_mails_and_nothing_else() {
    let replies = json!([
        { "at": "triage_router", "json": { "quote": "a@x.org", "reasoning": "News.", "classification": "ignore" } }
    ]);
    let mut lab = Hostile::new(&replies);
    for folder in ["maildir/new", "maildir/cur", "maildir/tmp"] {
        fs::create_dir_all(lab.path(folder)).unwrap();
    }
    lab.fill("maildir/cur", "x:2,S");
    lab.large = Some("maildir/cur");
    for number in 0..100_000 {
        let name = format!("maildir/cur/{number}.y:2,S");
        fs::write(lab.path(&name), "From: a@x.org\nSubject: Read\n\nRead.\n").unwrap();
    }
    for name in ["account", "outbox", "seen", "calendar"] {
        lab.link("outside/secret.md", &format!("maildir.{name}"));
    }
    let ran = lab.run("mail ingest", &["mail", "ingest", "./maildir"], "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    for said in [
        "not read: cur/pipe.x:2,S: a named pipe",
        "not read: cur/relative.x:2,S: a symbolic link",
        "not read: cur/hole.x:2,S: larger than 64 MiB",
    ] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
}

#[test]
fn an_exported_thread_is_for_its_owner_only() {
    let lab = Hostile::new(&interview());
    lab.run("analyze", &ANALYZE, "DONE\n");
    let thread = lab.workdir.thread();
    let ran = lab.run("export", &["export", &thread, "thread.archive"], "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let mode = fs::metadata(lab.path("thread.archive"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    lab.link("outside/victim", "link.archive");
    let ran = lab.run("export to a link", &["export", &thread, "link.archive"], "");
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
}
