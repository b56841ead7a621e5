//! Finds the models that are available here: on servers that respond, and from providers whose keys are set.

use std::env;
use std::fmt;
use std::time::Duration;

use archie_agent::printable::one_line;
use futures_util::future::join_all;
use serde_json::Value as Json;
use superstep_llm::{Address, ModelName, Provider};

/// A model that is available here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelOffer {
    /// Value for `--model`.
    pub(crate) name: ModelName,
    /// Where the model runs.
    pub(crate) source: OfferSource,
}

/// Where an offered model runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OfferSource {
    /// A server that lists the model.
    Server {
        /// Program that usually listens there, or the setting that names the address.
        program: &'static str,
        /// Base URL.
        url: String,
    },
    /// A provider's own server; this environment variable has the key for it.
    Key(&'static str),
}

impl OfferSource {
    /// Returns the program, or the environment variable that makes the model available.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Server { program, .. } => program,
            Self::Key(variable) => variable,
        }
    }
}

impl fmt::Display for OfferSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { program, url } => write!(f, "{url} ({program})"),
            Self::Key(variable) => write!(f, "{variable} is set"),
        }
    }
}

impl ModelOffer {
    /// Returns the address to save with the model: that of a server that speaks OpenAI's API, if it is not OpenAI's own.
    pub(crate) fn openai_base_url(&self) -> Option<&str> {
        match (&self.source, self.name.provider()) {
            (OfferSource::Server { url, .. }, Provider::OpenAi) => Some(url),
            _ => None,
        }
    }
}

/// Returns the models that are available here, those of servers first. `saved_url` is the address that the settings file names
/// for `openai:` models.
pub(crate) async fn find_offers(saved_url: Option<&str>) -> Vec<ModelOffer> {
    let servers = servers(saved_url);
    let mut offers: Vec<_> = join_all(servers.iter().map(ModelServer::offers))
        .await
        .into_iter()
        .flatten()
        .collect();
    offers.extend(with_keys());
    offers
}

/// Returns the models of providers whose keys are set.
fn with_keys() -> impl Iterator<Item = ModelOffer> {
    let is_usable = |(_, variable, _): &(Provider, &'static str, &str)| {
        // With another address, the key is for the server there.
        let is_elsewhere = *variable == "OPENAI_API_KEY" && is_set("OPENAI_BASE_URL");
        is_set(variable) && !is_elsewhere
    };
    HOSTED
        .into_iter()
        .filter(is_usable)
        .map(|(provider, variable, name)| ModelOffer {
            name: ModelName::new(provider, name),
            source: OfferSource::Key(variable),
        })
}

/// Providers, the environment variables with their keys, and a model of each for a start.
const HOSTED: [(Provider, &str, &str); 3] = [
    (Provider::OpenAi, "OPENAI_API_KEY", "gpt-5-mini"),
    (
        Provider::Anthropic,
        "ANTHROPIC_API_KEY",
        "claude-sonnet-4-5",
    ),
    (Provider::Gemini, "GEMINI_API_KEY", "gemini-2.5-flash"),
];

/// A server that may list models.
struct ModelServer {
    provider: Provider,
    program: &'static str,
    address: Address,
}

/// Returns the servers to ask, in the order of their offers.
fn servers(saved_url: Option<&str>) -> Vec<ModelServer> {
    let server = |provider, program, address| ModelServer {
        provider,
        program,
        address,
    };
    let mut servers = Vec::new();
    let is_set_elsewhere = is_set("OPENAI_BASE_URL");
    let program = match is_set_elsewhere {
        true => "OPENAI_BASE_URL",
        false => "saved",
    };
    if (is_set_elsewhere || saved_url.is_some())
        && let Some(address) = Address::from_env_or(Provider::OpenAi, saved_url)
    {
        servers.push(server(Provider::OpenAi, program, address));
    }
    if let Some(address) = Address::from_env(Provider::Ollama) {
        servers.push(server(Provider::Ollama, "Ollama", address));
    }
    // The variable would override the address of any other server.
    if !is_set_elsewhere {
        let others = LOCAL_SERVERS
            .into_iter()
            .filter(|(_, url)| saved_url != Some(*url));
        servers.extend(others.map(|(program, url)| {
            let url = url.to_owned();
            // No key: which program listens there is a guess.
            server(Provider::OpenAi, program, Address { url, key: None })
        }));
    }
    servers
}

/// Programs that speak OpenAI's API, and where they listen by default.
const LOCAL_SERVERS: [(&str, &str); 3] = [
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("LM Studio", "http://127.0.0.1:1234/v1"),
    ("vLLM", "http://127.0.0.1:8000/v1"),
];

impl ModelServer {
    /// Returns the models that the server lists; none if it does not respond in time.
    async fn offers(&self) -> Vec<ModelOffer> {
        let (path, list, field) = match self.provider {
            Provider::Ollama => ("api/tags", "/models", "name"),
            _ => ("models", "/data", "id"),
        };
        let url = self.address.url.trim_end_matches('/');
        let list_url = format!("{url}/{path}");
        let answer = tokio::time::timeout(TIME_MAX, self.get(&list_url)).await;
        let answer = answer.ok().flatten().unwrap_or_default();
        let models = answer.pointer(list).and_then(Json::as_array);
        let names = models.into_iter().flatten();
        names
            .filter_map(|model| model[field].as_str())
            .filter(|name| can_chat(name))
            .take(NAMES_MAX)
            .map(|name| ModelOffer {
                name: ModelName::new(self.provider, name),
                source: OfferSource::Server {
                    program: self.program,
                    url: url.to_owned(),
                },
            })
            .collect()
    }

    async fn get(&self, url: &str) -> Option<Json> {
        // Fails where the machine has no root certificates.
        let client = reqwest::Client::builder().build().ok()?;
        let mut request = client.get(url);
        if let Some(key) = &self.address.key {
            request = request.bearer_auth(key.expose());
        }
        let mut answer = request.send().await.ok()?.error_for_status().ok()?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.ok()? {
            body.extend_from_slice(&chunk);
            if body.len() > BYTES_MAX {
                return None;
            }
        }
        serde_json::from_slice(&body).ok()
    }
}

/// Returns whether a name from a server can be typed and is not that of an embedding model.
fn can_chat(name: &str) -> bool {
    let is_plain = !name.is_empty() && name.len() <= NAME_BYTES_MAX && one_line(name) == name;
    is_plain && !name.to_lowercase().contains("embed")
}

/// Returns the address that the environment sets for `openai:` models.
pub(crate) fn openai_base_url_from_env() -> Option<String> {
    let address = Address::from_env(Provider::OpenAi).map(|address| address.url);
    address.filter(|_| is_set("OPENAI_BASE_URL"))
}

fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Time for a server on this machine to list its models.
const TIME_MAX: Duration = Duration::from_secs(2);
const NAMES_MAX: usize = 50;
const NAME_BYTES_MAX: usize = 200;
const BYTES_MAX: usize = 4 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_can_be_typed_and_chat_are_offered() {
        for good in ["qwen3:8b", "Qwen/Qwen2.5-Coder-1.5B"] {
            assert!(can_chat(good), "{good}");
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for bad in ["", "nomic-embed-text", "a\nb", "a\u{1b}[2J", &long] {
            assert!(!can_chat(bad), "{bad:?}");
        }
    }

    #[test]
    fn only_the_address_of_a_server_with_openais_api_is_saved() {
        let offer = |provider, source| ModelOffer {
            name: ModelName::new(provider, "m"),
            source,
        };
        let server = OfferSource::Server {
            program: "llama.cpp",
            url: "http://127.0.0.1:8080/v1".to_owned(),
        };
        let here = offer(Provider::OpenAi, server.clone());
        assert_eq!(here.openai_base_url(), Some("http://127.0.0.1:8080/v1"));
        assert_eq!(offer(Provider::Ollama, server).openai_base_url(), None);
        let hosted = offer(Provider::OpenAi, OfferSource::Key("OPENAI_API_KEY"));
        assert_eq!(hosted.openai_base_url(), None);
    }
}
