//! Runs the commands that a page shows, and compares what they print with what the page says.
//!
//! A page shows commands in blocks of the language `console`: a line that begins with `$ ` is a command, `> ` continues it, and
//! the lines after it are what it prints, on stdout and stderr. All blocks of a page are one session of one shell, in a folder
//! of its own, so a command finds what an earlier one made.
//!
//! - `…` stands for any text in a line, and alone on a line for any lines.
//! - An id of the page stands for an id of the session: the first time that a page shows it, it is bound to what was printed, and
//!   later commands and lines that use it mean that one. A date stands for any date.
//! - A command has to succeed, unless it ends with `# exits with N`.
//! - `<!-- files: NAME -->` copies the files of `examples/book/files/NAME` into the folder before the first command.
//! - `<!-- file: NAME -->` before a block of another language writes the block into the file NAME in its place, so that a later
//!   command runs what readers copy: a Python program, a script of a model, a policy.
//! - `<!-- run: COMMAND -->` runs a command that readers do not see and that prints nothing, such as one that sets a scripted model.
//! - `127.0.0.1:2024`, the default address of a server, `127.0.0.1:8787`, that of a receiver, and `127.0.0.1:9080`, that of a worker,
//!   are free addresses here. The tests of `archie` have an empty database at [`POSTGRES`], and Restate at [`RESTATE`].

mod matching;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::workspace::root;

use self::matching::{Ids, match_lines, replace_words};

/// What lists the pages of the book, from the root of the workspace.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Where `<!-- files: NAME -->` finds them, from the root of the workspace.
const FILES: &str = "examples/book/files";

/// Runs the program behind `--bin`, as cargo would after a build.
const RUN: &str = r#"#!/bin/sh
while [ "$1" != --bin ]; do shift; done
program=$2
shift 2
if [ "$1" = -- ]; then shift; fi
exec "$PROGRAMS/$program" "$@"
"#;

/// How long one command may take.
const COMMAND_MAX: Duration = Duration::from_secs(60);

/// Addresses that pages use; each session has others. The first is the server's default, the last the worker's.
const ADDRESSES: [&str; 3] = ["127.0.0.1:2024", "127.0.0.1:8787", "127.0.0.1:9080"];

/// A database of PostgreSQL, as pages call it.
pub const POSTGRES: &str = "postgres://127.0.0.1/archie";

/// Where Restate listens, as pages call it: its admin port, and its ingress.
pub const RESTATE: [&str; 2] = ["http://127.0.0.1:9070", "http://127.0.0.1:8080"];

/// Ends a block of code that becomes a file; no block has this line.
const END_OF_FILE: &str = "END OF THE BLOCK";

/// Ends what a command printed; no program prints it.
const END: char = '\u{1e}';

/// A page with commands.
#[derive(Debug)]
pub struct Page {
    /// From the root of the workspace.
    pub path: String,
    files: Vec<String>,
    calls: Vec<Call>,
}

/// A command, and what the page says that it prints.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    /// The number of its line.
    line: usize,
    command: String,
    output: Vec<String>,
}

impl Call {
    /// The beginning of a command that writes a block into a file.
    fn writing(line: usize, name: &str) -> Self {
        Self {
            line,
            command: format!("cat > '{name}' <<'{END_OF_FILE}'\n"),
            output: Vec::new(),
        }
    }
}

/// Where a line of a page is.
enum Block {
    Outside,
    Commands,
    /// In one that becomes a file: the command that writes it, up to this line.
    File(Call),
    Other,
}

/// What a session needs of the machine.
#[derive(Debug)]
pub struct Session<'a> {
    /// An empty folder.
    pub folder: &'a Path,
    /// Programs that commands name, each with its file.
    pub programs: &'a [(&'a str, &'a Path)],
    /// What pages say, and what it is here: an address with a free port.
    pub replaced: &'a [(&'a str, String)],
    /// Variables that a reader need not set, because their defaults would install something here.
    pub environment: &'a [(&'a str, String)],
}

/// Returns the chapters of the book, each once, named from the root of the workspace.
pub fn chapters() -> anyhow::Result<Vec<String>> {
    let summary = fs::read_to_string(root().join(SUMMARY))
        .with_context(|| format!("{SUMMARY} cannot be read"))?;
    let links = summary.lines().filter_map(|line| line.split_once("]("));
    let links = links.filter_map(|(_, rest)| rest.strip_suffix(')'));
    let from_root = |link: &str| match link.strip_prefix("../") {
        Some(outside) => outside.to_owned(),
        None => format!("docs/{link}"),
    };
    let mut chapters: Vec<String> = links.map(from_root).collect();
    chapters.sort();
    chapters.dedup();
    Ok(chapters)
}

/// Returns the chapters of the book that have commands to execute.
pub fn pages() -> anyhow::Result<Vec<Page>> {
    let pages = chapters()?.into_iter().map(|path| Page::read(&path));
    let mut pages = pages.collect::<anyhow::Result<Vec<Page>>>()?;
    pages.retain(|page| !page.calls.is_empty());
    Ok(pages)
}

/// Runs the pages that start programs of an example with `cargo run`, and returns what is wrong with each. `program` is one of the
/// example's programs, with the others next to it. The sessions and what stands in for cargo are in `folder`. `environment` is what
/// [`Session::environment`] says.
pub fn faults_of_programs(
    package: &str,
    program: &Path,
    folder: &Path,
    environment: &[(&str, String)],
) -> anyhow::Result<Vec<String>> {
    let command = format!("cargo run -q -p {package} ");
    let pages = pages()?;
    let pages: Vec<&Page> = pages.iter().filter(|page| page.uses(&command)).collect();
    if pages.is_empty() {
        bail!("no page has the command `{command}`");
    }
    let programs = program.parent().context("a program is in a folder")?;
    let cargo = folder.join("cargo");
    fs::write(
        &cargo,
        RUN.replace("$PROGRAMS", &programs.display().to_string()),
    )?;
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755))?;
    Ok(faults(&pages, |page| {
        let folder = folder.join(page.path.replace('/', "-"));
        fs::create_dir(&folder)?;
        page.check(&Session {
            folder: &folder,
            programs: &[("cargo", cargo.as_path())],
            replaced: &free_addresses()?,
            environment,
        })
    }))
}

/// Returns the addresses of pages, each with one of this machine at which nothing listens.
pub fn free_addresses() -> anyhow::Result<Vec<(&'static str, String)>> {
    // All are bound before the first is let go, so that no two are the same.
    let listeners = ADDRESSES.map(|address| (address, TcpListener::bind("127.0.0.1:0")));
    let listeners = listeners.into_iter();
    listeners
        .map(|(address, listener)| Ok((address, listener?.local_addr()?.to_string())))
        .collect()
}

/// Checks pages, four at a time because most of their time is waiting, and returns what is wrong with each.
pub fn faults(pages: &[&Page], check: impl Fn(&Page) -> anyhow::Result<()> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut faults = Vec::new();
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            faults.extend(check(page).err().map(|fault| format!("{fault:#}")));
        }
        faults
    };
    thread::scope(|scope| {
        let workers = [(); 4].map(|()| scope.spawn(work));
        let faults = workers.into_iter().flat_map(|worker| match worker.join() {
            Ok(faults) => faults,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        faults.collect()
    })
}

impl Page {
    /// Reads a page, named from the root of the workspace.
    pub fn read(path: &str) -> anyhow::Result<Self> {
        let text = fs::read_to_string(root().join(path))
            .with_context(|| format!("{path} cannot be read"))?;
        Self::parse(path, &text)
    }

    /// Whether a command of the page begins with this.
    pub fn uses(&self, program: &str) -> bool {
        let commands = self.calls.iter().map(|call| call.command.as_str());
        commands
            .flat_map(str::lines)
            .any(|line| line.contains(program))
    }

    fn parse(path: &str, text: &str) -> anyhow::Result<Self> {
        let mut page = Self {
            path: path.to_owned(),
            files: Vec::new(),
            calls: Vec::new(),
        };
        let mut block = Block::Outside;
        let mut file: Option<String> = None;
        for (at, line) in text.lines().enumerate() {
            let line_number = at + 1;
            if let Some(language) = line.strip_prefix("```") {
                block = match block {
                    Block::Outside => match file.take() {
                        Some(name) => Block::File(Call::writing(line_number, &name)),
                        None if language == "console" => Block::Commands,
                        None => Block::Other,
                    },
                    Block::File(mut call) => {
                        call.command.push_str(END_OF_FILE);
                        page.calls.push(call);
                        Block::Outside
                    }
                    Block::Commands | Block::Other => Block::Outside,
                };
                continue;
            }
            match &mut block {
                Block::Commands => page.add(line_number, line)?,
                Block::File(call) => {
                    call.command.push_str(line);
                    call.command.push('\n');
                }
                Block::Other => {}
                Block::Outside => {
                    page.files.extend(marked(line, "files"));
                    file = marked(line, "file").or(file);
                    page.calls.extend(marked(line, "run").map(|command| Call {
                        line: line_number,
                        command,
                        output: Vec::new(),
                    }));
                }
            }
        }
        if let Some(name) = file {
            bail!("{path}: no block follows `<!-- file: {name} -->`");
        }
        // Such a command could print anything.
        let says_nothing = |call: &&Call| {
            call.output.iter().any(|line| line == "…") && call.output.iter().all(|line| line == "…")
        };
        match page.calls.iter().find(says_nothing) {
            None => Ok(page),
            Some(call) => bail!("{path}:{}: say a line that the command prints", call.line),
        }
    }

    fn add(&mut self, line_number: usize, line: &str) -> anyhow::Result<()> {
        if let Some(command) = line.strip_prefix("$ ") {
            self.calls.push(Call {
                line: line_number,
                command: command.to_owned(),
                output: Vec::new(),
            });
            return Ok(());
        }
        let call = self.calls.last_mut();
        let call = call.with_context(|| format!("{}:{line_number}: no `$ `", self.path))?;
        match line.strip_prefix("> ") {
            Some(more) if call.output.is_empty() => {
                call.command.push('\n');
                call.command.push_str(more);
            }
            _ => call.output.push(line.to_owned()),
        }
        Ok(())
    }

    /// Runs the commands in their order. Fails at the first that fails or prints something else.
    pub fn check(&self, session: &Session<'_>) -> anyhow::Result<()> {
        for name in &self.files {
            copy(&root().join(FILES).join(name), session.folder)?;
        }
        let mut shell = Shell::start(session)?;
        let mut ids = Ids::new();
        for call in &self.calls {
            let place = format!("{}:{}", self.path, call.line);
            let command = replace_words(&call.command, &ids);
            let wanted_status = exit_status_of(&call.command);
            let (output, status) = shell
                .run(&with_replaced(&command, session.replaced))
                .with_context(|| format!("{place}: `{command}`"))?;
            let output = without_replaced(&output, session);
            if status != wanted_status {
                bail!("{place}: `{command}` exited with {status}:\n{output}");
            }
            let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
            let wanted: Vec<&str> = call.output.iter().map(|line| line.trim_end()).collect();
            let Some(bound) = match_lines(&wanted, &lines, &ids) else {
                let wanted = wanted.join("\n");
                bail!("{place}: `{command}` prints\n{output}\nand the page says\n{wanted}");
            };
            ids = bound;
        }
        Ok(())
    }
}

/// Returns what a line such as `<!-- files: NAME -->` says.
pub fn marked(line: &str, mark: &str) -> Option<String> {
    let rest = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    let text = rest.strip_prefix(mark)?.strip_prefix(": ")?;
    Some(text.to_owned())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let entries = fs::read_dir(from).with_context(|| format!("{} is missing", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn exit_status_of(command: &str) -> i32 {
    let status = command.rsplit_once("# exits with ");
    status
        .and_then(|(_, status)| status.trim().parse().ok())
        .unwrap_or(0)
}

fn with_replaced(command: &str, replaced: &[(&str, String)]) -> String {
    let replace = |text: String, (page, here): &(&str, String)| text.replace(page, here);
    replaced.iter().fold(command.to_owned(), replace)
}

/// What was printed, in the words of a page: its addresses, and the folder as the home that it is.
fn without_replaced(output: &str, session: &Session<'_>) -> String {
    let replace = |text: String, (page, here): &(&str, String)| text.replace(here, page);
    let text = session.replaced.iter().fold(output.to_owned(), replace);
    let text = text.replace(&session.folder.display().to_string(), "~");
    // The shell itself says that something in the background was killed, some time later.
    let is_notice = |line: &&str| {
        line.starts_with("~/.bin/command: line ")
            && [" Killed ", " Terminated "]
                .iter()
                .any(|end| line.contains(end))
    };
    let lines = text.split_inclusive('\n').filter(|line| !is_notice(line));
    lines.collect()
}

/// A shell that runs commands one after the other, and everything that they started.
struct Shell {
    process: Child,
    input: ChildStdin,
    output: Receiver<String>,
    folder: PathBuf,
}

impl Shell {
    fn start(session: &Session<'_>) -> anyhow::Result<Self> {
        let bin = session.folder.join(".bin");
        fs::create_dir_all(&bin)?;
        for (name, file) in session.programs {
            std::os::unix::fs::symlink(file, bin.join(name))?;
        }
        let mut shell = Command::new("bash");
        shell
            .args(["--noprofile", "--norc"])
            .current_dir(session.folder)
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("HOME", session.folder)
            .env("LANG", "C.UTF-8")
            .env("USER", "ada")
            .envs(
                session
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            // Everything that a command started ends with the session.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = shell.spawn().context("bash cannot be started")?;
        let mut input = process.stdin.take().context("bash has an input")?;
        let mut stdout = process.stdout.take().context("bash has an output")?;
        input.write_all(b"exec 2>&1\n")?;
        let (sender, output) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            let mut bytes = Vec::new();
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                bytes.extend_from_slice(&buffer[..count]);
                // A character may come in two pieces.
                match String::from_utf8(std::mem::take(&mut bytes)) {
                    Err(cut) => bytes = cut.into_bytes(),
                    Ok(text) => {
                        // The session has ended.
                        let Ok(()) = sender.send(text) else { break };
                    }
                }
            }
        });
        Ok(Self {
            process,
            input,
            output,
            folder: session.folder.to_owned(),
        })
    }

    /// Returns what a command printed, and its exit status.
    fn run(&mut self, command: &str) -> anyhow::Result<(String, i32)> {
        let file = self.folder.join(".bin/command");
        fs::write(&file, format!("{command}\n"))?;
        // From a file, so that the command's own input is empty and not the rest of the session.
        writeln!(
            self.input,
            "source '{}' < /dev/null; printf '\\036%s\\036' $?",
            file.display()
        )?;
        let mut text = String::new();
        while text.matches(END).count() < 2 {
            match self.output.recv_timeout(COMMAND_MAX) {
                Ok(more) => text.push_str(&more),
                Err(RecvTimeoutError::Timeout) => bail!("takes too long; it printed:\n{text}"),
                Err(RecvTimeoutError::Disconnected) => bail!("ended the shell:\n{text}"),
            }
        }
        let (output, rest) = text.split_once(END).context("the end was found")?;
        let status = rest.split(END).next().unwrap_or_default();
        Ok((output.to_owned(), status.parse()?))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        // What has ended already cannot be killed.
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str) -> Result<(), String> {
        let folder = std::env::temp_dir().join(format!(
            "console-{}-{:?}",
            std::process::id(),
            thread::current().id()
        ));
        fs::create_dir_all(&folder).unwrap();
        let session = Session {
            folder: &folder,
            programs: &[],
            replaced: &[("127.0.0.1:2024", "127.0.0.1:41234".to_owned())],
            environment: &[("GREETING", "Hello".to_owned())],
        };
        let checked = Page::parse("page.md", page).unwrap().check(&session);
        fs::remove_dir_all(&folder).unwrap();
        checked.map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_page_that_says_what_is_printed_passes() {
        let page = "Text\n```console\n$ name=Ada; cd /\n$ echo \"Hello, $name.\"; echo b >&2\nHello, Ada.\nb\n```\n\
            ```sh\n$ exit 1\n```\n```console\n$ cat <<END\n> a\n> END\na\n$ (exit 3) # exits with 3\n```\n";
        check(page).unwrap();
    }

    #[test]
    fn what_a_page_does_not_say_is_found_with_its_line() {
        let error = check("```console\n$ echo a\nb\n```\n").unwrap_err();
        assert_eq!(
            error,
            "page.md:2: `echo a` prints\na\n\nand the page says\nb"
        );
        assert!(check("```console\n$ echo a\n```\n").is_err());
        assert!(check("```console\n$ echo a\na\nb\n```\n").is_err());
        assert!(Page::parse("page.md", "```console\n$ echo a\n…\n```\n").is_err());
        let error = check("```console\n$ echo no; false\nno\n```\n").unwrap_err();
        assert!(error.contains("exited with 1"), "{error}");
        assert!(check("```console\n$ exit 1\n```\n").is_err());
    }

    #[test]
    fn dots_stand_for_anything_and_ids_for_themselves() {
        check("```console\n$ echo after 12 ms; echo b; echo c\nafter … ms\n…\nc\n```\n").unwrap();
        let page = "```console\n$ printf 'id %s\\n' c0ffee1\nid 3f9a2c7\n$ echo 3f9a2c7 2026-01-02\n3f9a2c7 2025-09-09\n";
        check(&format!("{page}$ test 3f9a2c7 = c0ffee1\n```\n")).unwrap();
        assert!(check(&format!("{page}$ echo b0ffee1\n3f9a2c7\n```\n")).is_err());
    }

    #[test]
    fn a_session_has_the_variables_that_it_is_given() {
        check("```console\n$ echo $GREETING, $USER\nHello, ada\n```\n").unwrap();
    }

    #[test]
    fn a_hidden_command_runs_in_its_place() {
        let page = "<!-- run: name=Ada -->\n```console\n$ echo $name\nAda\n```\n";
        check(page).unwrap();
        assert!(check("<!-- run: echo a -->\n").is_err());
    }

    #[test]
    fn a_block_becomes_a_file_that_a_command_runs() {
        let page = "<!-- file: greet.sh -->\n\n```sh\necho \"Hello, $1.\"\n\n# 127.0.0.1:2024\n```\n\
            ```console\n$ bash greet.sh Ada; tail -1 greet.sh\nHello, Ada.\n# 127.0.0.1:2024\n$ grep -c 41234 greet.sh\n1\n```\n";
        check(page).unwrap();
        let error = check(&page.replace("Hello, $1", "$1")).unwrap_err();
        assert!(error.starts_with("page.md:9: "), "{error}");
        assert!(Page::parse("page.md", "<!-- file: a -->\nText.\n").is_err());
    }

    #[test]
    fn chapters_are_files() {
        let chapters = chapters().unwrap();
        assert!(chapters.contains(&"README.md".to_owned()));
        assert!(chapters.iter().all(|path| root().join(path).is_file()));
    }

    #[test]
    fn an_address_of_a_page_is_another_one_here() {
        check("```console\n$ url=http://127.0.0.1:2024; echo $url; test ${#url} = 22\nhttp://127.0.0.1:2024\n```\n")
            .unwrap();
    }

    #[test]
    fn what_a_session_started_ends_with_it() {
        check("```console\n$ sleep 1000 &\n$ jobs -p > /dev/null\n```\n").unwrap();
    }
}
