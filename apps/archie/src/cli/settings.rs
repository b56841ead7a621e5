//! Settings. In order of precedence: the command line, environment variables, the settings file, defaults.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use archie_agent::mcp::{McpServerEntry, McpServerSettings};
use archie_agent::private_file;
use archie_atris::connector::{AllowedHost, NotAHost};
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use superstep_agent::budget::{Limits, Meter};
use superstep_llm::ModelName;

use crate::web::WebSettings;

/// Resolved settings of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Model as `PROVIDER:NAME` or `script:FILE`; `None` if none is set.
    pub model: Option<String>,
    /// Models that callers of `archie serve` may choose for a run, besides `model`. Default: none.
    pub models: Vec<String>,
    /// Address of the server for `openai:` models that the settings file names. `OPENAI_BASE_URL` takes precedence.
    pub openai_base_url: Option<String>,
    /// Database of the threads. Default: `threads.db` in the home folder.
    pub store: Store,
    /// What drives threads. Default: this process.
    pub engine: Engine,
    /// Encryption of the database. Default: off.
    pub encryption: EncryptionSettings,
    /// URL of a Redis server that carries live messages from the workers of a cluster. Only used with PostgreSQL.
    pub redis: Option<String>,
    /// Amount that a thread may spend before a person is asked; `None` for no limit.
    pub budget: Option<Limits>,
    /// Folder for the database, the settings file, the shell history and credentials. Default: `archie` in the user's data
    /// folder.
    pub home: PathBuf,
    /// Folder for the files that callers of `archie serve` upload and agents leave for them. Default: `files` in the home folder.
    pub files: PathBuf,
    /// Folder whose files `AGENT/NAME.md` override built-in prompts.
    pub prompts: Option<PathBuf>,
    /// MCP servers, in the order of their names. Only the settings file names them.
    pub mcp: Vec<McpServerSettings>,
    /// How agents may read pages of the web; `None` if they may not. Only the settings file turns it on.
    pub web: Option<WebSettings>,
    /// Name recorded with answers. Default: `USER`, or `me`.
    pub person: String,
    /// Path of the settings file, which need not exist.
    pub file: PathBuf,
}

/// How the database is encrypted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncryptionSettings {
    /// Where the key-encryption keys are; `None` if the database is not encrypted.
    pub keys: Option<KeySource>,
    /// Fields of metadata, states and items that stay in clear, because they are searched.
    pub searchable: Vec<String>,
    /// Whether data is accepted that was stored before encryption was turned on.
    pub accept_plain_data: bool,
}

/// Where the key-encryption keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// File with a key per line.
    File(PathBuf),
    /// The variable [`KEY_VARIABLE`]. It is read when the database is opened, so that settings contain no key.
    Variable,
}

/// Environment variable with the key-encryption keys themselves.
pub const KEY_VARIABLE: &str = "ARCHIE_ENCRYPTION_KEY";

/// Database of the threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// SQLite file.
    Sqlite(PathBuf),
    /// URL of a PostgreSQL database.
    Postgres(String),
}

/// What drives threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engine {
    /// This process.
    Local,
    /// Workers of a Restate cluster, with the URL of its ingress.
    Restate(String),
}

/// Settings from the command line; `None` where the option was not given.
#[derive(Debug, Clone, Default)]
pub struct SettingOptions {
    /// Value of `--model`.
    pub model: Option<String>,
    /// Value of `--store`.
    pub store: Option<String>,
    /// Value of `--engine`.
    pub engine: Option<String>,
    /// Value of `--budget`.
    pub budget: Option<String>,
}

/// Contents of the settings file, `settings.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    model: Option<String>,
    #[serde(default)]
    models: Vec<String>,
    openai_base_url: Option<String>,
    store: Option<String>,
    engine: Option<String>,
    encryption_key_file: Option<PathBuf>,
    #[serde(default)]
    searchable: Vec<String>,
    #[serde(default)]
    accept_plain_data: bool,
    redis: Option<String>,
    budget: Option<String>,
    files: Option<PathBuf>,
    prompts: Option<PathBuf>,
    person: Option<String>,
    #[serde(default)]
    mcp: BTreeMap<String, McpServerEntry>,
    web: Option<WrittenWeb>,
}

/// The field `web` of the settings file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWeb {
    #[serde(default)]
    allow_hosts: Vec<String>,
}

impl WrittenWeb {
    fn check(self) -> Result<WebSettings, NotAHost> {
        let hosts = self
            .allow_hosts
            .iter()
            .map(|host| host.parse::<AllowedHost>());
        let allow_hosts: Result<Vec<AllowedHost>, NotAHost> = hosts.collect();
        Ok(WebSettings {
            allow_hosts: allow_hosts?,
        })
    }
}

/// An environment variable, for `archie doctor`.
#[derive(Debug)]
pub struct Variable {
    /// Name of the variable.
    pub name: &'static str,
    /// Description for a person.
    pub what: &'static str,
}

/// Environment variables that the program reads.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "ARCHIE_MODEL",
        what: "the model, PROVIDER:NAME or script:FILE",
    },
    Variable {
        name: "ARCHIE_STORE",
        what: "where threads are kept, sqlite:PATH or postgres://…",
    },
    Variable {
        name: "ARCHIE_ENGINE",
        what: "who drives threads, local or restate:INGRESS_URL",
    },
    Variable {
        name: "ARCHIE_ENCRYPTION_KEY_FILE",
        what: "a file with the keys that encrypt the database",
    },
    Variable {
        name: KEY_VARIABLE,
        what: "these keys themselves, in place of a file",
    },
    Variable {
        name: "ARCHIE_ACCEPT_PLAIN_DATA",
        what: "1 to read what was stored before the database was encrypted",
    },
    Variable {
        name: "ARCHIE_REDIS",
        what: "redis://…, for words as they come from the workers of a cluster",
    },
    Variable {
        name: "ARCHIE_BUDGET",
        what: "what a thread may spend before you are asked: dollars (0.50), tokens (20000t) or calls (30c)",
    },
    Variable {
        name: "ARCHIE_HOME",
        what: "the folder of threads, history and settings",
    },
    Variable {
        name: "ARCHIE_FILES",
        what: "the folder of the files that callers of `archie serve` upload",
    },
    Variable {
        name: "ARCHIE_PROMPTS",
        what: "a folder with prompts of your own, AGENT/NAME.md",
    },
    Variable {
        name: "ARCHIE_PLAIN",
        what: "1 for plain lines: no colours, nothing drawn over, for screen readers and simple terminals",
    },
    Variable {
        name: "ARCHIE_PERSON",
        what: "in whose name questions are answered",
    },
    Variable {
        name: "ARCHIE_PYTHON",
        what: "the Python that `sheet` runs code with; it needs pandas and openpyxl, and matplotlib for pictures",
    },
    Variable {
        name: "ARCHIE_LOG",
        what: "what is logged to stderr, such as `warn` or `superstep=debug`",
    },
    Variable {
        name: "OTEL_EXPORTER_OTLP_HEADERS",
        what: "headers for OTLP backends, such as `x-api-key=…`",
    },
    Variable {
        name: "OTEL_EXPORTER_OTLP_ENDPOINT",
        what: "OTLP backend that receives the trace of every run, such as http://127.0.0.1:4318",
    },
    Variable {
        name: "LANGSMITH_TRACING",
        what: "`true`: send the trace of every run to LangSmith",
    },
    Variable {
        name: "LANGSMITH_API_KEY",
        what: "the key for LangSmith",
    },
    Variable {
        name: "LANGSMITH_ENDPOINT",
        what: "another LangSmith server",
    },
    Variable {
        name: "LANGSMITH_PROJECT",
        what: "the project in LangSmith; `default` unless set",
    },
    Variable {
        name: "ARCHIE_TRACE_CONTENT",
        what: "`1`: traces also contain states and the texts of errors",
    },
    Variable {
        name: "OPENAI_API_KEY",
        what: "the key for openai: and openai_responses: models",
    },
    Variable {
        name: "OPENAI_BASE_URL",
        what: "another server that speaks OpenAI's wire, such as http://127.0.0.1:8080/v1",
    },
    Variable {
        name: "ANTHROPIC_API_KEY",
        what: "the key for anthropic: models",
    },
    Variable {
        name: "ANTHROPIC_BASE_URL",
        what: "another server that speaks Anthropic's wire",
    },
    Variable {
        name: "GEMINI_API_KEY",
        what: "the key for gemini: models",
    },
    Variable {
        name: "GEMINI_BASE_URL",
        what: "another server that speaks Gemini's wire",
    },
    Variable {
        name: "OLLAMA_HOST",
        what: "where Ollama is",
    },
    Variable {
        name: "SUPERSTEP_SCRIPT_LEDGER",
        what: "where a script notes what it said, so that it can go on after a crash",
    },
    Variable {
        name: "ARCHIE_GOOGLE_CLIENT_ID",
        what: "who this program is to Google, for `archie mail login gmail`",
    },
    Variable {
        name: "ARCHIE_GOOGLE_CLIENT_SECRET",
        what: "what goes with it",
    },
    Variable {
        name: "ARCHIE_GOOGLE_CALLBACK_PORT",
        what: "where a browser comes back to after signing in; any free port unless set",
    },
    Variable {
        name: "ARCHIE_GOOGLE_URL",
        what: "another server that speaks the wire of Gmail and Calendar",
    },
    Variable {
        name: "NO_COLOR",
        what: "set to anything: no colours",
    },
];

impl Settings {
    /// Returns the file with what `archie doctor` measured of models, which need not exist.
    pub fn profiles_file(&self) -> PathBuf {
        self.home.join("models.json")
    }

    /// Resolves the settings from `given`, the environment and the settings file.
    pub fn read(given: &SettingOptions) -> anyhow::Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self::from(given, variable)
    }

    fn from(
        given: &SettingOptions,
        variable: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let home = match variable("ARCHIE_HOME") {
            Some(home) => PathBuf::from(home),
            None => usual_home(&variable)?,
        };
        let written = read_file(&home.join("settings.json"))?;
        Self::resolve(given, variable, home, written)
    }

    /// Resolves the settings from the text of a settings file alone.
    pub(crate) fn from_text(text: &str) -> anyhow::Result<Self> {
        let written = serde_json::from_str(text)?;
        Self::resolve(
            &SettingOptions::default(),
            |_| None,
            PathBuf::new(),
            written,
        )
    }

    fn resolve(
        given: &SettingOptions,
        variable: impl Fn(&str) -> Option<String>,
        home: PathBuf,
        written: Written,
    ) -> anyhow::Result<Self> {
        let file = home.join("settings.json");
        if let Some(store) = &given.store {
            refuse_password(store)?;
        }
        if let Some(engine) = &given.engine {
            refuse_credentials("--engine", engine)?;
        }
        let store = given
            .store
            .clone()
            .or_else(|| variable("ARCHIE_STORE"))
            .or(written.store);
        let store = match store {
            Some(store) => store_of(&store)?,
            None => Store::Sqlite(home.join("threads.db")),
        };
        let engine = given
            .engine
            .clone()
            .or_else(|| variable("ARCHIE_ENGINE"))
            .or(written.engine);
        let budget = given
            .budget
            .clone()
            .or_else(|| variable("ARCHIE_BUDGET"))
            .or(written.budget);
        let keys = key_source(&variable, written.encryption_key_file)?;
        let accepts_plain = match variable("ARCHIE_ACCEPT_PLAIN_DATA") {
            Some(value) => is_on("ARCHIE_ACCEPT_PLAIN_DATA", &value)?,
            None => written.accept_plain_data,
        };
        let person = variable("ARCHIE_PERSON").or(written.person);
        let mcp = written.mcp.into_iter();
        let mcp = mcp.map(|(name, entry)| entry.check(&name));
        let mcp: anyhow::Result<_> = mcp.collect();
        let mcp =
            mcp.with_context(|| format!("the settings in {} are not valid", file.display()))?;
        let web = written.web.map(WrittenWeb::check).transpose();
        let web =
            web.with_context(|| format!("the settings in {} are not valid", file.display()))?;
        let openai_base_url = written.openai_base_url.map(base_url_of).transpose();
        let openai_base_url = openai_base_url
            .with_context(|| format!("the settings in {} are not valid", file.display()))?;
        Ok(Self {
            models: written.models.into_iter().map(with_provider).collect(),
            openai_base_url,
            model: given
                .model
                .clone()
                .or_else(|| variable("ARCHIE_MODEL"))
                .or(written.model)
                .map(with_provider),
            store,
            engine: engine.as_deref().map_or(Ok(Engine::Local), engine_of)?,
            encryption: EncryptionSettings {
                keys,
                searchable: written.searchable,
                accept_plain_data: accepts_plain,
            },
            redis: variable("ARCHIE_REDIS").or(written.redis),
            mcp,
            web,
            budget: budget.as_deref().map(budget_of).transpose()?,
            files: variable("ARCHIE_FILES")
                .map(PathBuf::from)
                .or(written.files)
                .unwrap_or_else(|| home.join("files")),
            prompts: variable("ARCHIE_PROMPTS")
                .map(PathBuf::from)
                .or(written.prompts),
            person: person
                .or_else(|| variable("USER"))
                .unwrap_or_else(|| "me".to_owned()),
            home,
            file,
        })
    }

    /// Returns settings in which callers may choose these models as well.
    #[must_use]
    pub fn allowing(&self, models: &[String]) -> Self {
        let mut settings = self.clone();
        let added = models.iter().cloned().map(with_provider);
        settings.models.extend(added);
        settings
    }

    /// Returns the names of the models that the context of a run may choose.
    pub fn run_models(&self) -> impl Iterator<Item = String> {
        self.model.iter().chain(&self.models).cloned()
    }

    /// Returns the model, or an error that explains how to set one.
    pub fn model(&self) -> anyhow::Result<&str> {
        let model = self.model.as_deref().context(
            "no model is chosen; run `archie setup`, or name one with --model PROVIDER:NAME",
        )?;
        model.parse::<ModelName>()?;
        Ok(model)
    }
}

/// Adds the provider to a bare name such as `gpt-4o`. Leaves any other name as it is; commands that need no model accept it.
fn with_provider(model: String) -> String {
    match ModelName::from_typed(&model) {
        Ok(name) => name.to_string(),
        Err(_) => model,
    }
}

fn usual_home(variable: &impl Fn(&str) -> Option<String>) -> anyhow::Result<PathBuf> {
    if let Some(data) = variable("XDG_DATA_HOME") {
        return Ok(PathBuf::from(data).join("archie"));
    }
    let home = variable("HOME")
        .context("there is no HOME; set ARCHIE_HOME to a folder for threads and settings")?;
    Ok(PathBuf::from(home).join(".local/share/archie"))
}

fn read_file(path: &Path) -> anyhow::Result<Written> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text)
            .with_context(|| format!("the settings in {} cannot be read", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Written::default()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

fn parse(text: &str) -> serde_json::Result<Written> {
    serde_json::from_str(text)
}

/// Changes fields of a settings file and keeps the others. Creates the file if it does not exist, and replaces it atomically.
/// Fails without writing if the result would not be valid.
pub fn update_file(path: &Path, change: impl FnOnce(&mut Map<String, Json>)) -> anyhow::Result<()> {
    // A link to a file in another place, such as a repository of settings, stays a link.
    let path = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        Err(error) => {
            return Err(error).with_context(|| format!("`{}` cannot be read", path.display()));
        }
    };
    let invalid = || format!("the settings in `{}` are not valid", path.display());
    let mut fields: Map<String, Json> = match std::fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).with_context(invalid)?,
        Err(error) if error.kind() == ErrorKind::NotFound => Map::new(),
        Err(error) => {
            return Err(error).with_context(|| format!("`{}` cannot be read", path.display()));
        }
    };
    change(&mut fields);
    let text = serde_json::to_string_pretty(&fields)?;
    Settings::from_text(&text).with_context(invalid)?;
    private_file::write(&path, format!("{text}\n").as_bytes())
        .with_context(|| format!("`{}` cannot be written", path.display()))
}

/// Checks the text of a settings file without resolving any settings.
#[doc(hidden)]
pub fn check_text(text: &str) -> anyhow::Result<()> {
    parse(text).map(drop).map_err(Into::into)
}

fn store_of(text: &str) -> anyhow::Result<Store> {
    if let Some(path) = text.strip_prefix("sqlite:") {
        return Ok(Store::Sqlite(PathBuf::from(path)));
    }
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return Ok(Store::Postgres(text.to_owned()));
    }
    bail!(
        "`{}` is not a store: write sqlite:PATH or postgres://USER@HOST/DATABASE",
        scheme_of(text)
    )
}

/// Returns where the key-encryption keys are. Two places are an error: a wrong guess would store data under the wrong key.
fn key_source(
    variable: &impl Fn(&str) -> Option<String>,
    written: Option<PathBuf>,
) -> anyhow::Result<Option<KeySource>> {
    let named = variable("ARCHIE_ENCRYPTION_KEY_FILE").map(PathBuf::from);
    match (named.or(written), variable(KEY_VARIABLE).is_some()) {
        (Some(file), true) => bail!(
            "both `{KEY_VARIABLE}` and the key file `{}` are set; unset one of them",
            file.display()
        ),
        (Some(file), false) => Ok(Some(KeySource::File(file))),
        (None, true) => Ok(Some(KeySource::Variable)),
        (None, false) => Ok(None),
    }
}

fn is_on(name: &str, value: &str) -> anyhow::Result<bool> {
    match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        other => bail!("`{name}` is `{other}`; write 1 or 0"),
    }
}

/// Returns the scheme of an address, or the first name of a list of `name=value`: what follows may contain a password.
fn scheme_of(text: &str) -> &str {
    let scheme = text.split("://").next().unwrap_or_default();
    scheme.split(['=', ' ']).next().unwrap_or_default()
}

/// Fails if the address of a database on the command line has a password: the list of processes shows it to every user of the
/// machine, and the history of the shell keeps it.
fn refuse_password(address: &str) -> anyhow::Result<()> {
    let is_url = address.starts_with("postgres://") || address.starts_with("postgresql://");
    let (_, rest) = address.split_once("://").unwrap_or_default();
    let credentials = rest.split_once('@').map(|(credentials, _)| credentials);
    let is_in_front = credentials.is_some_and(|credentials| credentials.contains(':'));
    let mut parameters = rest.split(['?', '&']).skip(1);
    let is_parameter = parameters.any(|parameter| parameter.starts_with("password="));
    if is_url && (is_in_front || is_parameter) {
        bail!(
            "the address in `--store` has a password, which other users of this machine can read in the list of processes; leave it \
             out and set `PGPASSWORD`, or name a file of passwords with `PGPASSFILE` or `?passfile=FILE`, or give the whole address \
             in `ARCHIE_STORE` or in the settings file"
        );
    }
    Ok(())
}

/// Fails if an HTTP address on the command line has a user or a password, for the same reason.
pub(crate) fn refuse_credentials(option: &str, address: &str) -> anyhow::Result<()> {
    let address = address.split('?').next().unwrap_or_default();
    if address.contains('@') {
        bail!(
            "the address in `{option}` has a user or a password, which other users of this machine can read in the list of \
             processes; leave it out, and let the client show a certificate instead: `https://HOST:PORT?sslcert=FILE&sslkey=FILE`"
        );
    }
    Ok(())
}

fn engine_of(text: &str) -> anyhow::Result<Engine> {
    match text.strip_prefix("restate:") {
        Some(url) if names_host(url) => Ok(Engine::Restate(url.trim_end_matches('/').to_owned())),
        None if text == "local" => Ok(Engine::Local),
        _ => bail!(
            "`{}` is not an engine: write local or restate:http://HOST:PORT",
            scheme_of(text)
        ),
    }
}

fn base_url_of(url: String) -> anyhow::Result<String> {
    match names_host(&url) {
        true => Ok(url),
        false => {
            bail!("`openai_base_url` is `{url}`, not an address such as http://127.0.0.1:8080/v1")
        }
    }
}

/// Returns whether `url` is an HTTP URL with a host; `http://` alone is not.
fn names_host(url: &str) -> bool {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
}

/// Parses a budget in dollars (`0.50`), tokens (`20000t`) or calls (`30c`).
fn budget_of(text: &str) -> anyhow::Result<Limits> {
    let wrong = || {
        format!("`{text}` is not a budget: write dollars (0.50), tokens (20000t) or calls (30c)")
    };
    if let Some(tokens) = text.strip_suffix('t') {
        return Ok(Limits::of(
            Meter::Tokens,
            tokens.parse().with_context(wrong)?,
        ));
    }
    if let Some(calls) = text.strip_suffix('c') {
        return Ok(Limits::of(Meter::Calls, calls.parse().with_context(wrong)?));
    }
    let dollars: f64 = text.trim_start_matches('$').parse().with_context(wrong)?;
    if !(0.0..=MOST_DOLLARS).contains(&dollars) {
        bail!(wrong());
    }
    // The check above keeps this in range.
    Ok(Limits::of(
        Meter::NanoDollars,
        (dollars * 1e9).round() as u64,
    ))
}

const MOST_DOLLARS: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_comes_before_the_environment_and_the_file() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(
            home.path().join("settings.json"),
            r#"{"model": "ollama:file", "person": "ada"}"#,
        )
        .unwrap();
        let variable = |name: &str| match name {
            "ARCHIE_HOME" => Some(home.path().display().to_string()),
            "ARCHIE_STORE" => Some("postgres://x/y".to_owned()),
            _ => None,
        };
        let given = SettingOptions {
            model: Some("openai:given".to_owned()),
            ..SettingOptions::default()
        };
        let settings = Settings::from(&given, variable).unwrap();
        assert_eq!(settings.model().unwrap(), "openai:given");
        assert_eq!(settings.store, Store::Postgres("postgres://x/y".to_owned()));
        assert_eq!(settings.person, "ada");
        let settings = Settings::from(&SettingOptions::default(), variable).unwrap();
        assert_eq!(settings.model().unwrap(), "ollama:file");
    }

    #[test]
    fn a_password_is_refused_on_the_command_line_and_nowhere_else() {
        let home = tempfile::tempdir().unwrap();
        let resolve = |store: &str, stored: &str| {
            let variable = |name: &str| match name {
                "ARCHIE_HOME" => Some(home.path().display().to_string()),
                "ARCHIE_STORE" => Some(stored.to_owned()),
                _ => None,
            };
            let given = SettingOptions {
                store: (!store.is_empty()).then(|| store.to_owned()),
                ..SettingOptions::default()
            };
            Settings::from(&given, variable)
        };
        let with_password = "postgres://ada:secret@h/d";
        for shown in [
            with_password,
            "postgresql://:secret@h/d",
            "postgres://ada@h/d?sslmode=require&password=secret",
        ] {
            let error = resolve(shown, "").unwrap_err().to_string();
            for name in ["PGPASSWORD", "PGPASSFILE", "ARCHIE_STORE"] {
                assert!(error.contains(name), "{error}");
            }
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(resolve("", with_password).is_ok());
        assert!(resolve("postgres://ada@h:5432/d?passfile=/a", "").is_ok());
        assert!(resolve("sqlite:a:b@c", "").is_ok());
    }

    #[test]
    fn the_keys_of_the_database_are_in_one_place_and_never_in_the_settings() {
        let resolve = |file: &str, key: &str, plain: &str| {
            let variable = |name: &str| match name {
                "ARCHIE_HOME" => Some("/absent".to_owned()),
                "ARCHIE_ENCRYPTION_KEY_FILE" => Some(file.to_owned()),
                KEY_VARIABLE => Some(key.to_owned()),
                "ARCHIE_ACCEPT_PLAIN_DATA" => Some(plain.to_owned()),
                _ => None,
            };
            let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
            Settings::from(&SettingOptions::default(), variable).map(|read| read.encryption)
        };
        assert_eq!(resolve("", "", "").unwrap(), EncryptionSettings::default());
        let file = resolve("/keys", "", "1").unwrap();
        assert_eq!(file.keys, Some(KeySource::File(PathBuf::from("/keys"))));
        assert!(file.accept_plain_data);
        let variable = resolve("", "secret", "0").unwrap();
        assert_eq!(variable.keys, Some(KeySource::Variable));
        assert!(!format!("{variable:?}").contains("secret"));
        for (wrong, why) in [
            (resolve("/keys", "secret", ""), "unset one of them"),
            (resolve("", "", "maybe"), "write 1 or 0"),
        ] {
            let error = wrong.unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
        }
        let text = r#"{"encryption_key_file": "/k", "searchable": ["team"]}"#;
        let written = Settings::from_text(text).unwrap().encryption;
        assert_eq!(written.searchable, ["team"]);
        assert_eq!(written.keys, Some(KeySource::File(PathBuf::from("/k"))));
    }

    #[test]
    fn an_engine_on_the_command_line_has_no_password_and_no_error_shows_one() {
        let engine = |given: &str| {
            let given = SettingOptions {
                engine: Some(given.to_owned()),
                ..SettingOptions::default()
            };
            let variable = |name: &str| (name == "ARCHIE_HOME").then(|| "/absent".to_owned());
            Settings::from(&given, variable).map(|settings| settings.engine)
        };
        for shown in [
            "restate:https://ada:secret@h",
            "restate:https://secret@h?sslmode=require",
        ] {
            let error = engine(shown).unwrap_err().to_string();
            assert!(error.contains("--engine"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(engine("restate:https://h?sslrootcert=/etc/ca@2025.pem").is_ok());
        for (wrong, shown) in [
            ("mysql://ada:secret@h/d", "`mysql`"),
            ("host=h password=secret", "`host`"),
        ] {
            let error = store_of(wrong).unwrap_err().to_string();
            assert!(error.contains(shown), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let error = engine_of("restate:ftp://ada:secret@h").unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn callers_may_choose_the_model_and_those_that_the_operator_lists() {
        let text = r#"{"model": "gpt-4o", "models": ["script:b.json", "claude-sonnet-4"]}"#;
        let settings = Settings::from_text(text).unwrap();
        let settings = settings.allowing(&["o3-mini".to_owned()]);
        let names: Vec<String> = settings.run_models().collect();
        assert_eq!(
            names,
            [
                "openai:gpt-4o",
                "script:b.json",
                "anthropic:claude-sonnet-4",
                "openai:o3-mini"
            ]
        );
        let silent = Settings::from_text("{}").unwrap();
        assert_eq!(silent.run_models().count(), 0);
    }

    #[test]
    fn a_budget_is_in_dollars_tokens_or_calls() {
        assert_eq!(
            budget_of("0.50").unwrap(),
            Limits::of(Meter::NanoDollars, 500_000_000)
        );
        assert_eq!(
            budget_of("20000t").unwrap(),
            Limits::of(Meter::Tokens, 20_000)
        );
        assert_eq!(budget_of("30c").unwrap(), Limits::of(Meter::Calls, 30));
        for wrong in ["", "-1", "much", "NaN", "1e99"] {
            assert!(budget_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_engine_is_here_or_on_a_cluster() {
        assert_eq!(engine_of("local").unwrap(), Engine::Local);
        let cluster = Engine::Restate("http://127.0.0.1:8080".to_owned());
        assert_eq!(
            engine_of("restate:http://127.0.0.1:8080/").unwrap(),
            cluster
        );
        for wrong in ["restate:", "restate:http://", "restate:https:///x"] {
            assert!(engine_of(wrong).is_err(), "{wrong}");
        }
        assert!(engine_of("temporal").is_err());
    }

    #[test]
    fn a_changed_file_keeps_its_other_fields_and_a_wrong_change_is_not_written() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let real = home.path().join("real.json");
        let file = home.path().join("settings.json");
        std::fs::write(&real, r#"{"person": "ada", "model": "ollama:old"}"#).unwrap();
        std::os::unix::fs::symlink(&real, &file).unwrap();
        update_file(&file, |fields| {
            fields.insert("model".to_owned(), "openai:new".into());
            fields.insert("openai_base_url".to_owned(), "http://127.0.0.1:1/v1".into());
        })
        .unwrap();
        assert!(file.is_symlink(), "the link was replaced");
        let mode = std::fs::metadata(&real).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others can read it");
        let written = std::fs::read_to_string(&file).unwrap();
        let settings = Settings::from_text(&written).unwrap();
        assert_eq!(settings.model.as_deref(), Some("openai:new"));
        assert_eq!(settings.person, "ada");
        assert_eq!(
            settings.openai_base_url.as_deref(),
            Some("http://127.0.0.1:1/v1")
        );
        let wrong = update_file(&file, |fields| {
            fields.insert("openai_base_url".to_owned(), "127.0.0.1".into());
        });
        let wrong = format!("{:#}", wrong.unwrap_err());
        assert!(wrong.contains("not an address"), "{wrong}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
    }

    #[test]
    fn pages_of_the_web_are_off_unless_the_file_has_them() {
        let web = |text: &str| Settings::from_text(text).map(|settings| settings.web);
        assert_eq!(web("{}").unwrap(), None);
        assert_eq!(web(r#"{"web": {}}"#).unwrap(), Some(WebSettings::default()));
        let hosts = web(r#"{"web": {"allow_hosts": ["wiki.lan:8080"]}}"#).unwrap();
        assert_eq!(hosts.unwrap().allow_hosts.len(), 1);
        let wrong = web(r#"{"web": {"allow_hosts": ["http://x/"]}}"#).unwrap_err();
        assert!(format!("{wrong:#}").contains("not a host"), "{wrong:#}");
        assert!(web(r#"{"web": {"hosts": []}}"#).is_err());
    }

    #[test]
    fn a_mistake_in_the_file_is_said_where_it_is() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("settings.json"), r#"{"modle": "x"}"#).unwrap();
        let variable =
            |name: &str| (name == "ARCHIE_HOME").then(|| home.path().display().to_string());
        let error = format!(
            "{:#}",
            Settings::from(&SettingOptions::default(), variable).unwrap_err()
        );
        assert!(
            error.contains("settings.json") && error.contains("modle"),
            "{error}"
        );
    }
}
