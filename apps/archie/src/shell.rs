//! The shell: runs one command after the other, with line editing, history and completion.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::bail;
use archie_agent::printable::{one_line, printable};
use archie_agent::style::{Face, Style};
use archie_agent::{AgentFactory, Exit, LineMark, Terminal, Waiting};
use clap::error::ContextKind;
use clap::{CommandFactory, Parser};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Editor, Helper};
use superstep::checkpoint::{Page, ThreadQuery};

use crate::app::App;
use crate::cli::args::{Command, ShellLine};
use crate::cli::settings::{SettingOptions, Settings};
use crate::commands;
use crate::commands::inquiry::AskArgs;
use crate::ctrl_c;
use crate::terminal::{self, Console};

/// Prompt for a command.
pub const PROMPT: &str = "archie> ";

/// Reads and runs commands until the person leaves. Returns the result of the last command.
pub fn start_shell(
    mut app: App,
    makers: &[AgentFactory],
    runtime: &tokio::runtime::Runtime,
) -> anyhow::Result<Exit> {
    let is_terminal = terminal::is_interactive();
    let ids = Arc::new(Mutex::new(Vec::new()));
    let terminal: Box<dyn Terminal> = match is_terminal {
        true => Box::new(LineEditor::new(&app, ids.clone())?),
        false => Box::new(Console::new()),
    };
    if is_terminal {
        greet(&app, &*terminal);
    }
    let mut last = Exit::Done;
    // What is pressed once too often while a command ends must not end the shell.
    let _watch = ctrl_c::Watch::start();
    loop {
        if is_terminal {
            let known = runtime.block_on(recent(&app));
            *ids.lock().unwrap_or_else(PoisonError::into_inner) = known;
        }
        let Some(line) = get_command_input(&*terminal)? else {
            return Ok(last);
        };
        let command = match parse_command(&line) {
            Typed::Nothing => continue,
            Typed::Exit => return Ok(last),
            Typed::Help => {
                help(&*terminal);
                continue;
            }
            Typed::Model(None) => {
                terminal.line(
                    app.settings
                        .model
                        .as_deref()
                        .unwrap_or("no model is chosen"),
                );
                continue;
            }
            Typed::Model(Some(name)) => {
                choose_model(&mut app, &name, &*terminal);
                continue;
            }
            Typed::Wrong(why) => {
                terminal.aside(why.trim_end());
                continue;
            }
            Typed::Question(question) if app.settings.model.is_none() => {
                terminal.aside(&format!(
                    "`{}` is not a command. To ask it as a question, choose a model first: `archie setup`",
                    first_word(&question)
                ));
                continue;
            }
            Typed::Question(question) => Box::new(ask(question)),
            Typed::Command(command) => command,
        };
        let done = match command.needs_home() {
            true => runtime.block_on(run_command(&command, &app, &*terminal)),
            false => commands::without_home(&command, &app.settings, makers),
        };
        match done {
            Ok(exit) => last = exit,
            Err(error) => {
                match is_terminal {
                    true => crate::complain_with(&error, as_typed_in_shell),
                    false => crate::complain(&error),
                }
                last = Exit::Failed;
            }
        }
        if command.changes_settings() {
            app = runtime.block_on(reopen(app, makers))?;
        }
    }
}

/// Runs a command until it ends or is stopped. The first Ctrl-C is for the command, which may have something to store and to say; the
/// second one stops it.
async fn run_command(
    command: &Command,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let stopped = async {
        ctrl_c::pressed().await;
        tokio::select! {
            () = ctrl_c::pressed() => return,
            () = tokio::time::sleep(ENDS_WITHIN) => {}
        }
        terminal.aside("press Ctrl-C again to stop the command");
        ctrl_c::pressed().await;
    };
    tokio::select! {
        biased;
        done = commands::run(command, app, terminal) => done,
        () = stopped => bail!("stopped"),
    }
}

/// How long a command may take after Ctrl-C before the shell says how to stop it.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// Opens the app again after a command changed the settings file. What the command line of the shell set stays.
async fn reopen(app: App, makers: &[AgentFactory]) -> anyhow::Result<App> {
    let written = Settings::read(&SettingOptions::default())?;
    let settings = Settings {
        model: written.model,
        models: written.models,
        openai_base_url: written.openai_base_url,
        mcp: written.mcp,
        web: written.web,
        ..app.settings.clone()
    };
    drop(app);
    App::open(settings, makers).await
}

fn ask(question: String) -> Command {
    Command::Ask(AskArgs {
        question: vec![question],
        inputs: None,
        recursive: false,
        memory_file: None,
        json: false,
    })
}

fn first_word(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

/// Returns a message of the program with its commands as they are typed in the shell: `archie doctor` is `doctor`. Only for
/// messages of the program: an answer of a model or the text of a file stays as it is.
fn as_typed_in_shell(message: &str) -> String {
    let mut parts = message.split(BEFORE_COMMAND);
    let mut typed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([' ', '`']).unwrap_or(part.len());
        typed.push_str(match is_command(&part[..end]) {
            true => "`",
            false => BEFORE_COMMAND,
        });
        typed.push_str(part);
    }
    typed
}

const BEFORE_COMMAND: &str = "`archie ";

/// Returns whether a word is the name of a command.
fn is_command(word: &str) -> bool {
    ShellLine::command().find_subcommand(word).is_some()
}

fn get_command_input(terminal: &dyn Terminal) -> anyhow::Result<Option<String>> {
    terminal.ask(PROMPT)
}

/// A parsed line.
#[derive(Debug)]
pub enum Typed {
    /// An empty line or a comment.
    Nothing,
    /// `exit` or `quit`.
    Exit,
    /// `help`.
    Help,
    /// `model` shows the model, `model NAME` sets it.
    Model(Option<String>),
    /// A command with its arguments.
    Command(Box<Command>),
    /// A line that does not start with a command.
    Question(String),
    /// A line that does not parse, with the error message.
    Wrong(String),
}

/// Parses a line as a command with arguments, with the quoting rules of a POSIX shell.
pub fn parse_command(line: &str) -> Typed {
    let line = line.replace("\\\n", " ");
    let Some(words) = shlex::split(&line) else {
        // The apostrophe of "what's" is not a quote.
        let words: Vec<_> = line.split_whitespace().collect();
        return match is_question(&words, false) {
            true => Typed::Question(line.trim().to_owned()),
            false => Typed::Wrong("a quote is not closed".to_owned()),
        };
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => Typed::Nothing,
        ["exit" | "quit"] => Typed::Exit,
        ["help"] => Typed::Help,
        ["model"] => Typed::Model(None),
        ["model", name] => Typed::Model(Some((*name).to_owned())),
        words => match ShellLine::try_parse_from(words) {
            Ok(line) => Typed::Command(Box::new(line.command)),
            Err(error) => {
                let is_suggested = error.get(ContextKind::SuggestedSubcommand).is_some();
                match is_question(words, is_suggested) {
                    true => Typed::Question(line.trim().to_owned()),
                    false => Typed::Wrong(error.to_string()),
                }
            }
        },
    }
}

/// Returns whether words that are not a valid command are a question: not one that starts with a command, with a command that
/// has a typing error, or that has options. `is_suggested` says whether the parser knows a command similar to the first word.
fn is_question(words: &[&str], is_suggested: bool) -> bool {
    let Some((first, rest)) = words.split_first() else {
        return false;
    };
    if is_command(first) || ["help", "model", "exit", "quit"].contains(first) {
        return false;
    }
    if words.last().is_some_and(|last| last.ends_with('?')) {
        return true;
    }
    let has_option = rest.iter().any(|word| word.starts_with('-'));
    let is_short = rest.is_empty() || (rest.len() == 1 && is_suggested);
    let is_typing_error = first.chars().count() >= TYPED_CHARS_MIN
        && ShellLine::command()
            .get_subcommands()
            .any(|command| is_one_edit_apart(first, command.get_name()));
    !(has_option || is_short || is_typing_error)
}

/// Returns whether two words differ in one character: another one, one more, or two that are swapped.
fn is_one_edit_apart(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same..], &other[same..]);
    match (one, other) {
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([_, a @ ..], b) if a == b => true,
        (a, [_, b @ ..]) if a == b => true,
        ([a, b, rest @ ..], [c, d, others @ ..]) => a == d && b == c && rest == others,
        _ => false,
    }
}

/// A shorter word is close to too many others: `how` is one character from `show`.
const TYPED_CHARS_MIN: usize = 5;

fn greet(app: &App, terminal: &dyn Terminal) {
    let model = app
        .settings
        .model
        .as_deref()
        .unwrap_or("none chosen; `setup` finds one");
    terminal.line(&format!(
        "archie {}  model: {model}",
        env!("CARGO_PKG_VERSION")
    ));
    terminal.line("Type a question or a command. `help` lists the commands, `exit` leaves.");
}

fn choose_model(app: &mut App, name: &str, terminal: &dyn Terminal) {
    match superstep_llm::ModelName::from_typed(name) {
        Ok(model) => {
            let name = model.to_string();
            terminal.line(&format!("model: {name}"));
            match app.models.get(&name) {
                Ok(_) => terminal.aside(&format!(
                    "until you leave the shell; `setup --model {name}` tests and saves it"
                )),
                Err(error) => terminal.aside(&error.to_string()),
            }
            app.settings.model = Some(name);
        }
        Err(error) => terminal.aside(&error.to_string()),
    }
}

fn help(terminal: &dyn Terminal) {
    terminal.line("Commands (each takes --help):");
    for command in ShellLine::command().get_subcommands() {
        let about = command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        terminal.line(&format!("  {:<12} {about}", command.get_name()));
    }
    terminal.line("  model NAME   Use another model until you leave; alone, show the model");
    terminal.line("  exit         Leave the shell; threads are kept");
    terminal.line("");
    terminal.line("A first try:   analyze --query \"Which queue should we use?\" --inputs ./notes");
    terminal.line("Anything else is a question:   what is a queue?");
    terminal.line("End a line with \\ to continue it. Tab completes.");
    terminal.line("Ctrl-C stops a run and keeps its thread.");
}

async fn recent(app: &App) -> Vec<String> {
    let query = ThreadQuery {
        page: Page {
            limit: COMPLETED,
            offset: 0,
        },
        ..ThreadQuery::default()
    };
    let rows = app.runtime.threads(&query).await.unwrap_or_default();
    rows.into_iter().map(|row| row.thread.to_string()).collect()
}

/// A terminal with line editing.
struct LineEditor {
    console: Console,
    editor: Mutex<Editor<Typing, DefaultHistory>>,
    history: PathBuf,
    ids: Arc<Mutex<Vec<String>>>,
}

impl LineEditor {
    fn new(app: &App, ids: Arc<Mutex<Vec<String>>>) -> anyhow::Result<Self> {
        let history = app.settings.home.join("history");
        Ok(Self {
            console: Console::new(),
            editor: Mutex::new(editor(&history, ids.clone())?),
            history,
            ids,
        })
    }
}

fn editor(
    history: &Path,
    ids: Arc<Mutex<Vec<String>>>,
) -> anyhow::Result<Editor<Typing, DefaultHistory>> {
    // Lines are added explicitly, because some contain secrets.
    let config = Config::builder()
        .auto_add_history(false)
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Typing {
        files: FilenameCompleter::new(),
        ids,
    }));
    // The file does not exist the first time.
    let _ = editor.load_history(history);
    Ok(editor)
}

impl Terminal for LineEditor {
    fn line(&self, text: &str) {
        self.console.line(text);
    }

    fn line_of(&self, parts: &[(Face, &str)]) {
        self.console.line_of(parts);
    }

    fn verbatim(&self, text: &str) {
        self.console.verbatim(text);
    }

    fn hint(&self, text: &str) {
        self.console.line(&as_typed_in_shell(text));
    }

    fn marked_line(&self, mark: LineMark, text: &str) {
        self.console.marked_line(mark, &as_typed_in_shell(text));
    }

    fn markdown(&self, text: &str) {
        self.console.markdown(text);
    }

    fn piece(&self, text: &str) {
        self.console.piece(text);
    }

    fn label(&self, text: &str) {
        self.console.label(text);
    }

    fn style(&self) -> Style {
        self.console.style()
    }

    fn pieces_end(&self) {
        self.console.pieces_end();
    }

    fn aside(&self, text: &str) {
        self.console.aside(&as_typed_in_shell(text));
    }

    fn ask(&self, prompt: &str) -> anyhow::Result<Option<String>> {
        self.console.pieces_end();
        let shown = printable(prompt);
        let mut editor = self.editor.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match editor.readline(&shown) {
                Ok(line) => {
                    if !holds_secret(&line) {
                        // Continue without a history if it cannot be written.
                        let _ = editor.add_history_entry(&line);
                        let _ = editor.append_history(&self.history);
                    }
                    return Ok(Some(line));
                }
                Err(ReadlineError::Eof) => return Ok(None),
                Err(ReadlineError::Interrupted) if prompt == PROMPT => {
                    self.console.aside("`exit` or Ctrl-D leaves");
                }
                Err(ReadlineError::Interrupted) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn ask_secret(&self, prompt: &str) -> anyhow::Result<Option<String>> {
        // The editor may have read beyond the command. That input would return as a command and get into the history.
        let fresh = editor(&self.history, self.ids.clone())?;
        *self.editor.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        self.console.ask_secret(prompt)
    }

    fn page_size(&self) -> Option<(usize, usize)> {
        self.console.page_size()
    }

    fn waiting(&self, what: &str) -> Waiting {
        self.console.waiting(what)
    }

    fn is_watched(&self) -> bool {
        true
    }
}

/// Returns whether a line may contain a password: a URL with one, or a `mail login` that does not parse.
fn holds_secret(line: &str) -> bool {
    let has_password = |word: &str| {
        let Some((_, rest)) = word.split_once("://") else {
            return false;
        };
        let user = rest.rsplit_once('@').map(|(user, _)| user);
        user.is_some_and(|user| user.contains(':'))
    };
    let mut words = line.split_whitespace();
    let is_login = words.next() == Some("mail") && words.next() == Some("login");
    let is_odd = is_login && !matches!(parse_command(line), Typed::Command(_));
    is_odd || line.split_whitespace().any(has_password)
}

/// Completes commands, options, paths and thread ids, and continues lines that end with a backslash.
struct Typing {
    files: FilenameCompleter,
    ids: Arc<Mutex<Vec<String>>>,
}

impl Helper for Typing {}

impl Highlighter for Typing {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        Cow::Borrowed(line)
    }
}

impl Hinter for Typing {
    type Hint = String;
}

impl Validator for Typing {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match context.input().ends_with('\\') {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for Typing {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        cx: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..pos];
        let start = typed.rfind(' ').map_or(0, |at| at + 1);
        let word = &typed[start..];
        let pair = |text: String| Pair {
            display: one_line(&text),
            replacement: text,
        };
        if start == 0 {
            let commands = ShellLine::command();
            let names = commands
                .get_subcommands()
                .map(|command| command.get_name().to_owned());
            let names = names.chain(["help", "model", "exit"].map(str::to_owned));
            let fitting = names
                .filter(|name| name.starts_with(word))
                .map(|name| pair(name + " "));
            return Ok((0, fitting.collect()));
        }
        if word.starts_with('-') {
            return Ok((start, flags(typed, word).into_iter().map(pair).collect()));
        }
        let command = typed.split(' ').next().unwrap_or_default();
        if THREAD_COMMANDS.contains(&command) {
            let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
            let fitting = ids.iter().filter(|id| id.starts_with(word)).cloned();
            return Ok((start, fitting.map(pair).collect()));
        }
        let (start, mut pairs) = self.files.complete(line, pos, cx)?;
        // The editor prints completions unchanged, so leave out names that are not printable.
        pairs.retain(|pair| one_line(&pair.replacement) == pair.replacement);
        Ok((start, pairs))
    }
}

fn flags(typed: &str, word: &str) -> Vec<String> {
    let name = typed.split(' ').next().unwrap_or_default();
    let commands = ShellLine::command();
    let Some(command) = commands.find_subcommand(name) else {
        return Vec::new();
    };
    let long = command
        .get_arguments()
        .filter_map(|argument| argument.get_long());
    long.map(|long| format!("--{long} "))
        .filter(|flag| flag.starts_with(word))
        .collect()
}

const THREAD_COMMANDS: [&str; 9] = [
    "resume", "show", "history", "fork", "undo", "diff", "trace", "export", "delete",
];

/// Number of recent threads that completion offers.
const COMPLETED: u32 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_password_is_known() {
        for secret in [
            "mail login imaps://bob:hunter2@mail.example.com --smtp smtps://mail.example.com",
            "mail login imaps://bob@mail.example.com --smtp smtps://bob:hunter2@mail.example.com",
            "mail login imaps://bob@mail.example.com hunter2",
            "mail login imaps://bob@mail.example.com --password hunter2",
            "mail login \"hunter2",
            "mail ingest imaps://bob:hunter/2@mail.example.com",
        ] {
            assert!(holds_secret(secret), "{secret}");
        }
        for plain in [
            "mail login imaps://bob@mail.example.com --smtp smtps://mail.example.com:465",
            "analyze --query \"a: b\" --inputs ./notes",
            "api add https://example.com:8443/openapi.json --name shop",
            "inbox 3f9a2c response write to bob@example.com: no",
        ] {
            assert!(!holds_secret(plain), "{plain}");
        }
    }

    #[test]
    fn a1_a_line_is_a_command_and_its_arguments_and_quotes_keep_words_together() {
        let Typed::Command(command) =
            parse_command("analyze --query \"Choose a queue\" --inputs ./notes")
        else {
            panic!("not a command");
        };
        let Command::Analyze(args) = *command else {
            panic!("not analyze");
        };
        assert_eq!(args.query.as_deref(), Some("Choose a queue"));
        assert!(matches!(parse_command(""), Typed::Nothing));
        assert!(matches!(parse_command("exit"), Typed::Exit));
        assert!(matches!(
            parse_command("model ollama:x"),
            Typed::Model(Some(_))
        ));
        assert!(matches!(parse_command("analyse"), Typed::Wrong(_)));
        assert!(matches!(parse_command("analyze \"oh"), Typed::Wrong(_)));
    }

    #[test]
    fn free_text_is_a_question_and_a_mistyped_command_is_not() {
        for question in [
            "what is kafka?",
            "what's kafka?",
            "how does Kafka keep order",
            "kafka?",
            "is a queue enough for us",
            "who said \"it's fine\"",
        ] {
            let Typed::Question(asked) = parse_command(question) else {
                panic!("{question} is not a question");
            };
            assert_eq!(asked, question);
        }
        for command in [
            "kafka",
            "analyse my notes now",
            "analyse --query x",
            "resum 01a1",
            "theads",
            "show me the threads",
            "analyze what's this",
            "kafka --help",
        ] {
            assert!(
                matches!(parse_command(command), Typed::Wrong(_)),
                "{command}"
            );
        }
    }

    #[test]
    fn one_edit_is_another_character_one_more_or_two_that_are_swapped() {
        for (one, other) in [
            ("analyse", "analyze"),
            ("resum", "resume"),
            ("resume", "resum"),
            ("rseume", "resume"),
            ("threaads", "threads"),
            ("xdoctor", "doctor"),
        ] {
            assert!(is_one_edit_apart(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("resume", "resume"),
            ("what", "watch"),
            ("doctor", "doc"),
            ("abcd", "badc"),
        ] {
            assert!(!is_one_edit_apart(one, other), "{one} {other}");
        }
    }

    #[test]
    fn commands_in_messages_are_as_they_are_typed_in_the_shell() {
        assert_eq!(
            as_typed_in_shell("run `archie setup`, `archie resume 01a1` or `archie doctor --json`"),
            "run `setup`, `resume 01a1` or `doctor --json`"
        );
        for other in ["`archie --model x`", "archie setup", "`archie nothing`", ""] {
            assert_eq!(as_typed_in_shell(other), other);
        }
    }
}
