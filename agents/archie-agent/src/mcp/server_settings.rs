//! Settings of an MCP server: the entry of the settings file, and its checked form.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep_agent::digest;

/// An MCP server, as the person configured it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerSettings {
    /// Name of the server: the prefix of its tools.
    pub name: String,
    /// How to reach the server.
    pub target: McpTarget,
    /// How agents may use its tools, by the server's names for them. Tools that are not listed are [`McpToolUse::Unsafe`].
    pub tools: BTreeMap<String, McpToolUse>,
    /// Whether agents also get tools that list and read the server's resources.
    pub has_resources: bool,
    /// Whether what is sent to the server stays on this machine.
    pub is_local: bool,
    /// Maximum number of questions that the server may ask the person during one call.
    pub questions_max: usize,
    /// Maximum time of one call.
    pub call_time_max: Duration,
    /// Maximum time to start or contact the server.
    pub start_time_max: Duration,
}

/// How to reach an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum McpTarget {
    /// A program that speaks MCP over its standard streams.
    Program {
        /// Absolute path, or a name that is looked up in `PATH`.
        program: String,
        /// Arguments.
        args: Vec<String>,
        /// Names of the environment variables that the program gets, besides `PATH` and `HOME`.
        env: Vec<String>,
    },
    /// A server over streamable HTTP.
    Http {
        /// Address.
        url: String,
        /// Name of the environment variable with the token.
        token: Option<String>,
    },
}

/// How agents may use a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpToolUse {
    /// Changes nothing. Called without asking, until the agent has read something untrusted.
    Read,
    /// Calling twice equals calling once. Asks before each call; after a crash it is called again.
    Idempotent,
    /// Asks before each call, and asks again if the outcome of a call is unknown.
    Unsafe,
    /// Agents do not get it.
    Off,
}

/// An entry under `mcp` of the settings file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpServerEntry {
    command: Option<Vec<String>>,
    #[serde(default)]
    env: Vec<String>,
    url: Option<String>,
    token: Option<String>,
    #[serde(default)]
    tools: BTreeMap<String, McpToolUse>,
    #[serde(default)]
    resources: bool,
    #[serde(default)]
    local: bool,
    #[serde(default)]
    questions: usize,
    timeout_seconds: Option<u64>,
    start_seconds: Option<u64>,
}

impl McpServerEntry {
    /// Checks the entry.
    pub fn check(self, name: &str) -> anyhow::Result<McpServerSettings> {
        check_name(name)?;
        let target = self.target();
        let target = target.with_context(|| format!("the MCP server `{name}` is not valid"))?;
        let seconds = |given: Option<u64>| Duration::from_secs(given.unwrap_or(SECONDS).max(1));
        Ok(McpServerSettings {
            name: name.to_owned(),
            target,
            call_time_max: seconds(self.timeout_seconds),
            start_time_max: seconds(self.start_seconds),
            tools: self.tools,
            has_resources: self.resources,
            is_local: self.local,
            questions_max: self.questions.min(QUESTIONS_MAX),
        })
    }

    fn target(&self) -> anyhow::Result<McpTarget> {
        match (&self.command, &self.url) {
            (Some(command), None) => {
                let Some((program, args)) = command.split_first() else {
                    bail!("`command` is empty; write [\"PROGRAM\", \"ARGUMENT\", …]");
                };
                if self.token.is_some() {
                    bail!("`token` is for `url`; pass secrets to a program with `env`");
                }
                check_program(program)?;
                self.env.iter().try_for_each(|name| check_variable(name))?;
                Ok(McpTarget::Program {
                    program: program.clone(),
                    args: args.to_vec(),
                    env: self.env.clone(),
                })
            }
            (None, Some(url)) => {
                if !self.env.is_empty() {
                    bail!("`env` is for `command`; name the variable of a token with `token`");
                }
                check_url(url, self.token.is_some())?;
                self.token
                    .iter()
                    .try_for_each(|name| check_variable(name))?;
                Ok(McpTarget::Http {
                    url: url.clone(),
                    token: self.token.clone(),
                })
            }
            _ => bail!("write either `command`, a list, or `url`"),
        }
    }
}

impl McpTarget {
    /// Returns a digest of the target: a person accepts the tools of this program or address, not of any that has the name.
    pub(super) fn digest(&self) -> String {
        digest("archie.mcp.target.v1", &json!(self))
    }
}

/// Shows what is started or called.
impl std::fmt::Display for McpTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program { program, args, .. } => {
                f.write_str(program)?;
                args.iter().try_for_each(|arg| write!(f, " {arg}"))
            }
            Self::Http { url, .. } => f.write_str(url),
        }
    }
}

/// Checks a name. It is part of the names of tools, which providers limit.
fn check_name(name: &str) -> anyhow::Result<()> {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_short = (1..=NAME_CHARS_MAX).contains(&name.len());
    if !is_short || !name.chars().all(is_letter) {
        bail!(
            "`{name}` is not a name for an MCP server: use at most {NAME_CHARS_MAX} of a-z, 0-9 and -"
        );
    }
    Ok(())
}

/// Refuses a relative path: it would name a file in whatever folder the person has opened.
fn check_program(program: &str) -> anyhow::Result<()> {
    if program.is_empty() || (program.contains('/') && !Path::new(program).is_absolute()) {
        bail!("`{program}` is a relative path; write an absolute one, or a name from PATH");
    }
    Ok(())
}

fn check_variable(name: &str) -> anyhow::Result<()> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_letter) {
        bail!(
            "secrets are named, not written down: give the name of an environment variable, such as FILES_TOKEN"
        );
    }
    Ok(())
}

fn check_url(url: &str, has_token: bool) -> anyhow::Result<()> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if !["http", "https"].contains(&scheme) || authority.is_empty() {
        bail!("`url` must begin with http://HOST or https://HOST");
    }
    if authority.contains('@') {
        bail!("`url` holds a password; name the variable of a token with `token`");
    }
    let is_loopback = ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| {
        authority
            .strip_prefix(host)
            .is_some_and(|port| port.is_empty() || port.starts_with(':'))
    });
    if has_token && scheme == "http" && !is_loopback {
        bail!("a token is sent over https:// only, or to this machine");
    }
    Ok(())
}

const NAME_CHARS_MAX: usize = 24;
/// Default of the times.
const SECONDS: u64 = 60;
/// More questions than this in one call are not asked.
const QUESTIONS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(name: &str, entry: serde_json::Value) -> Result<McpServerSettings, String> {
        let entry: McpServerEntry =
            serde_json::from_value(entry).map_err(|error| error.to_string())?;
        entry.check(name).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_program_and_an_address_are_taken() {
        let files = json!({ "command": ["node", "x.js"], "env": ["A"], "tools": { "t": "read" } });
        let files = checked("files", files).unwrap();
        assert_eq!(files.target.to_string(), "node x.js");
        assert_eq!(files.tools["t"], McpToolUse::Read);
        assert_eq!(files.questions_max, 0);
        let remote = json!({ "url": "https://example.com/mcp", "token": "REMOTE_TOKEN" });
        assert!(checked("remote", remote).is_ok());
        let here = json!({ "url": "http://127.0.0.1:99/mcp", "token": "T" });
        assert!(checked("here", here).is_ok());
    }

    #[test]
    fn what_is_not_safe_or_not_clear_is_refused_with_what_to_do() {
        for (name, entry, says) in [
            ("Files", json!({ "command": ["x"] }), "a-z"),
            ("a__b", json!({ "command": ["x"] }), "a-z"),
            ("f", json!({}), "either `command`"),
            (
                "f",
                json!({ "command": ["x"], "url": "http://x" }),
                "either `command`",
            ),
            ("f", json!({ "command": [] }), "empty"),
            ("f", json!({ "command": ["./server"] }), "relative path"),
            (
                "f",
                json!({ "command": ["node_modules/.bin/x"] }),
                "relative path",
            ),
            ("f", json!({ "command": ["x"], "token": "T" }), "`env`"),
            (
                "f",
                json!({ "command": ["x"], "env": ["A=hunter2"] }),
                "environment variable",
            ),
            ("f", json!({ "url": "ftp://x" }), "http://HOST"),
            ("f", json!({ "url": "https://me:pw@x/" }), "password"),
            (
                "f",
                json!({ "url": "http://x/", "token": "T" }),
                "https:// only",
            ),
            (
                "f",
                json!({ "url": "http://127.0.0.1.evil/", "token": "T" }),
                "https:// only",
            ),
            (
                "f",
                json!({ "url": "https://x/", "token": "sk-hunter2.3" }),
                "environment variable",
            ),
            (
                "f",
                json!({ "command": ["x"], "tools": { "t": "safe" } }),
                "safe",
            ),
            ("f", json!({ "program": ["x"] }), "program"),
        ] {
            let why = checked(name, entry.clone()).unwrap_err();
            assert!(why.contains(says), "{entry}: {why}");
            // A secret that was written down is not printed.
            assert!(!why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn another_program_under_the_same_name_has_another_digest() {
        let target = |entry| checked("f", entry).unwrap().target.digest();
        let one = target(json!({ "command": ["node", "a.js"] }));
        assert_ne!(one, target(json!({ "command": ["node", "b.js"] })));
        assert_ne!(
            one,
            target(json!({ "command": ["node", "a.js"], "env": ["TOKEN"] }))
        );
        assert_eq!(
            one,
            target(json!({ "command": ["node", "a.js"], "questions": 2 }))
        );
    }
}
