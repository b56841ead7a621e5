//! `archie setup`: finds a model, tests it and saves the choice in the settings file.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use archie_agent::{Exit, Output, Terminal};
use serde_json::{Value as Json, json};
use superstep_llm::{Message, Model as _, ModelName, Provider, Remote, Request};

use crate::app::App;
use crate::cli::settings::update_file;
use crate::model_offers::{ModelOffer, OfferSource, find_offers, openai_base_url_from_env};

/// What to set up.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct SetupArgs {
    /// Test and save this model: PROVIDER:NAME
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Take the first model without asking
    #[arg(long, conflicts_with = "model")]
    pub yes: bool,
    /// Print JSON; without --yes or --model, only what was found
    #[arg(long)]
    pub json: bool,
}

/// A model, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ModelChoice {
    name: ModelName,
    /// Address of a server that speaks OpenAI's API and is not OpenAI's own.
    openai_base_url: Option<String>,
}

impl From<&ModelOffer> for ModelChoice {
    fn from(offer: &ModelOffer) -> Self {
        Self {
            name: offer.name.clone(),
            openai_base_url: offer.openai_base_url().map(str::to_owned),
        }
    }
}

pub(super) async fn run(
    args: &SetupArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let output = Output {
        terminal,
        json: args.json,
        told: &[],
        streamed: "",
    };
    let saved_url = app.settings.openai_base_url.as_deref();
    let waiting = terminal.waiting("looking for models");
    let offers = find_offers(saved_url).await;
    drop(waiting);
    if let Some(given) = &args.model {
        let choice = named(given, &offers, saved_url)?;
        let took = test(&choice, terminal).await?;
        return save(app, &choice, took, &offers, &output);
    }
    if offers.is_empty() {
        match args.json {
            true => terminal.json(&report(&offers)),
            false => terminal.hint(NOTHING_FOUND),
        }
        return Ok(Exit::Failed);
    }
    if args.json && !args.yes {
        terminal.json(&report(&offers));
        return Ok(Exit::Done);
    }
    show(&offers, &output);
    loop {
        let choice = match args.yes {
            true => offers.first().map(ModelChoice::from),
            false => choose(&offers, saved_url, terminal)?,
        };
        let Some(choice) = choice else {
            terminal.hint("Nothing was saved. `archie setup --yes` takes the first model.");
            return Ok(Exit::Refused);
        };
        match test(&choice, terminal).await {
            Ok(took) => return save(app, &choice, took, &offers, &output),
            Err(error) if args.yes => return Err(error),
            Err(error) => terminal.aside(&format!("{error:#}\nChoose another one.")),
        }
    }
}

fn show(offers: &[ModelOffer], output: &Output<'_>) {
    let shown = &offers[..offers.len().min(OFFERS_SHOWN)];
    let widths = shown.iter().map(|offer| offer.name.to_string().len());
    let width = widths.max().unwrap_or_default();
    output.tell("Models that are available here:");
    for (at, offer) in shown.iter().enumerate() {
        let name = offer.name.to_string();
        output.tell(&format!("{:>4}  {name:<width$}  {}", at + 1, offer.source));
    }
    if let Some(more @ 1..) = offers.len().checked_sub(OFFERS_SHOWN) {
        output.tell(&format!("      and {more} more"));
    }
}

/// Asks until the person chooses a model. Returns `None` if they leave.
fn choose(
    offers: &[ModelOffer],
    saved_url: Option<&str>,
    terminal: &dyn Terminal,
) -> anyhow::Result<Option<ModelChoice>> {
    loop {
        let Some(line) = terminal.ask("Number, or PROVIDER:NAME [1]: ")? else {
            return Ok(None);
        };
        match read_choice(line.trim(), offers, saved_url) {
            Ok(choice) => return Ok(Some(choice)),
            Err(error) => terminal.aside(&error.to_string()),
        }
    }
}

fn read_choice(
    typed: &str,
    offers: &[ModelOffer],
    saved_url: Option<&str>,
) -> anyhow::Result<ModelChoice> {
    let number = match typed {
        "" => Ok(1),
        typed => typed.parse::<usize>(),
    };
    let Ok(number) = number else {
        return named(typed, offers, saved_url);
    };
    let offer = number.checked_sub(1).and_then(|at| offers.get(at));
    let offer = offer.with_context(|| format!("type a number from 1 to {}", offers.len()))?;
    Ok(offer.into())
}

/// Returns the model with a name that the person typed, at the server that offers it if one does.
fn named(
    given: &str,
    offers: &[ModelOffer],
    saved_url: Option<&str>,
) -> anyhow::Result<ModelChoice> {
    let offered = |name: &ModelName| offers.iter().find(|offer| offer.name == *name);
    let name = match ModelName::from_typed(given) {
        Ok(name) => name,
        Err(error) => {
            // A bare name of a server's model, such as `qwen3:8b`.
            let local = offers.iter().find(|offer| offer.name.name() == given);
            return local.map(ModelChoice::from).ok_or_else(|| error.into());
        }
    };
    if let Some(offer) = offered(&name) {
        return Ok(offer.into());
    }
    // Not offered. With a key of OpenAI it is OpenAI's; otherwise it may be on a server that does not list its models.
    let is_openais = offers
        .iter()
        .any(|offer| offer.source == OfferSource::Key("OPENAI_API_KEY"));
    let saved_url = saved_url.filter(|_| !is_openais).map(str::to_owned);
    let openai_base_url = match name.provider() {
        Provider::OpenAi | Provider::OpenAiResponses => openai_base_url_from_env().or(saved_url),
        _ => None,
    };
    Ok(ModelChoice {
        name,
        openai_base_url,
    })
}

/// Calls the model once. Returns how long that took.
async fn test(choice: &ModelChoice, terminal: &dyn Terminal) -> anyhow::Result<Duration> {
    let name = &choice.name;
    let begun = Instant::now();
    // A script would count the request as one of its own.
    if matches!(name.provider(), Provider::Script | Provider::Cassette) {
        superstep_llm::open(name)?;
        return Ok(begun.elapsed());
    }
    // Without retries, so that a wrong key or a server that is down is reported at once.
    let model = Remote::from_env_or(name, choice.openai_base_url.as_deref())?;
    let question = Message::user("Reply with the one word: ready");
    let request = Request::new("setup", vec![question]).tokens_max(REPLY_TOKENS_MAX);
    let waiting = terminal.waiting(&format!("asking {name} a short question"));
    let reply = tokio::time::timeout(REPLY_TIME_MAX, model.reply(&request)).await;
    drop(waiting);
    match reply {
        Ok(reply) => reply?,
        Err(_) => bail!(
            "`{name}` did not answer a short question within {} s",
            REPLY_TIME_MAX.as_secs()
        ),
    };
    Ok(begun.elapsed())
}

fn save(
    app: &App,
    choice: &ModelChoice,
    took: Duration,
    offers: &[ModelOffer],
    output: &Output<'_>,
) -> anyhow::Result<Exit> {
    let name = choice.name.to_string();
    let file = &app.settings.file;
    update_file(file, |fields| {
        fields.insert("model".to_owned(), json!(name));
        match (&choice.openai_base_url, choice.name.provider()) {
            (Some(url), _) => {
                fields.insert("openai_base_url".to_owned(), json!(url));
            }
            // OpenAI's own server from now on.
            (None, Provider::OpenAi | Provider::OpenAiResponses) => {
                fields.remove("openai_base_url");
            }
            (None, _) => {}
        }
    })?;
    let seconds = took.as_secs_f64();
    if output.json {
        let mut report = report(offers);
        report["model"] = json!(name);
        report["openai_base_url"] = json!(choice.openai_base_url);
        report["seconds"] = json!(seconds);
        report["saved"] = json!(file.display().to_string());
        output.terminal.json(&report);
    } else {
        output.tell(&format!("{name} answered after {seconds:.1} s."));
        output.tell(&format!("Saved as your model in {}.", file.display()));
    }
    if let Some(other) = model_from_env().filter(|other| *other != name) {
        output.terminal.aside(&format!(
            "ARCHIE_MODEL is set to `{other}` and takes precedence; unset it to use {name}."
        ));
    }
    Ok(Exit::Done)
}

fn report(offers: &[ModelOffer]) -> Json {
    let found = offers.iter().map(
        |offer| json!({ "model": offer.name.to_string(), "source": offer.source.to_string() }),
    );
    json!({ "found": found.collect::<Vec<_>>(), "model": null, "saved": null })
}

fn model_from_env() -> Option<String> {
    let model = std::env::var("ARCHIE_MODEL").ok();
    model.filter(|model| !model.is_empty())
}

/// What to print if there is no model.
pub(super) const NOTHING_FOUND: &str = "\
No model was found here. The shortest ways to get one:
  1. Install Ollama (https://ollama.com) and run `ollama pull qwen3:8b`.
  2. Start llama.cpp, LM Studio or vLLM. If it does not listen at its usual
     port, set OPENAI_BASE_URL, for instance to http://127.0.0.1:8081/v1.
  3. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY.
Then run `archie setup` again.";

/// Lines of the list: with the question, they fit a terminal of 24 rows.
const OFFERS_SHOWN: usize = 18;
/// Enough for a model that thinks before it answers.
const REPLY_TOKENS_MAX: u32 = 64;
/// Generous: a local model may have to be loaded first.
const REPLY_TIME_MAX: Duration = Duration::from_secs(180);

#[cfg(test)]
mod tests {
    use super::*;

    fn offers() -> Vec<ModelOffer> {
        let server = |program, url: &str| OfferSource::Server {
            program,
            url: url.to_owned(),
        };
        let offer = |name: &str, source| ModelOffer {
            name: name.parse().unwrap(),
            source,
        };
        vec![
            offer(
                "ollama:qwen3:8b",
                server("Ollama", "http://localhost:11434"),
            ),
            offer("openai:m", server("llama.cpp", "http://127.0.0.1:8080/v1")),
        ]
    }

    fn chosen(typed: &str, saved_url: Option<&str>) -> (String, Option<String>) {
        let choice = read_choice(typed, &offers(), saved_url).unwrap();
        (choice.name.to_string(), choice.openai_base_url)
    }

    #[test]
    fn a_number_a_name_or_nothing_chooses_a_model() {
        let first = ("ollama:qwen3:8b".to_owned(), None);
        assert_eq!(chosen("", None), first);
        assert_eq!(chosen("1", None), first);
        assert_eq!(chosen("qwen3:8b", None), first);
        let url = Some("http://127.0.0.1:8080/v1".to_owned());
        assert_eq!(chosen("2", None), ("openai:m".to_owned(), url.clone()));
        assert_eq!(chosen("openai:m", Some("http://other")).1, url);
        assert_eq!(
            chosen("claude-sonnet-4-5", None),
            ("anthropic:claude-sonnet-4-5".to_owned(), None)
        );
        for wrong in ["0", "3", "qwen", "nothing:x"] {
            assert!(read_choice(wrong, &offers(), None).is_err(), "{wrong}");
        }
    }
}
