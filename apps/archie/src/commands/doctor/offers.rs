//! Finds the models that are available here: on servers that respond, and from providers whose keys are set.

use std::env;
use std::time::Duration;

use serde_json::Value as Json;
use superstep_llm::{Address, Provider};

/// Returns values for `--model`, with those of local servers first.
pub(super) async fn offers() -> Vec<String> {
    let mut offers = listed(Provider::Ollama, "api/tags", "/models", "name").await;
    if set("OPENAI_BASE_URL") {
        offers.extend(listed(Provider::OpenAi, "models", "/data", "id").await);
    }
    let keys = [
        (Provider::OpenAi, "OPENAI_API_KEY", set("OPENAI_BASE_URL")),
        (Provider::Anthropic, "ANTHROPIC_API_KEY", false),
        (Provider::Gemini, "GEMINI_API_KEY", false),
    ];
    for (provider, key, is_listed) in keys {
        if set(key) && !is_listed {
            offers.push(format!("{}:NAME", provider.word()));
        }
    }
    offers
}

/// Returns the models that a server lists; empty if it does not respond within two seconds.
async fn listed(provider: Provider, path: &str, list: &str, name: &str) -> Vec<String> {
    let told = async {
        let address = Address::from_env(provider)?;
        let url = format!("{}/{path}", address.url.trim_end_matches('/'));
        let client = reqwest::Client::builder().timeout(PATIENCE).build().ok()?;
        let mut request = client.get(url);
        if let Some(key) = &address.key {
            request = request.bearer_auth(key.expose());
        }
        let answer = request.send().await.ok()?.error_for_status().ok()?;
        answer.json::<Json>().await.ok()
    };
    let told = told.await.unwrap_or_default();
    let models = told.pointer(list).and_then(Json::as_array);
    let names = models.into_iter().flatten();
    names
        .filter_map(|model| model[name].as_str())
        .map(|name| format!("{}:{name}", provider.word()))
        .take(NAMES_MAX)
        .collect()
}

fn set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

const PATIENCE: Duration = Duration::from_secs(2);
const NAMES_MAX: usize = 5;
