//! `archie models`: lists the models that are available here, with prices and context sizes.

use std::time::Duration;

use archie_agent::printable::grouped;
use archie_agent::{Exit, Terminal};
use futures_util::future::join_all;
use serde_json::{Value as Json, json};
use superstep_llm::price::PRICES_OF;
use superstep_llm::{Model as _, Price, Prices, Remote};

use super::setup::NOTHING_FOUND;
use crate::app::App;
use crate::cli::args::JsonArgs;
use crate::model_offers::{ModelOffer, OfferSource, find_offers};

/// A line of the list.
struct ModelLine {
    offer: ModelOffer,
    price: Option<Price>,
    /// In tokens, if the server tells it.
    context_size: Option<u64>,
}

pub(super) async fn run(
    args: &JsonArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let waiting = terminal.waiting("looking for models");
    let offers = find_offers(app.settings.openai_base_url.as_deref()).await;
    let lines = offers.into_iter().flat_map(with_other_models).map(line);
    let lines = join_all(lines).await;
    drop(waiting);
    let chosen = app.settings.model.as_deref().unwrap_or_default();
    if args.json {
        let lines = lines.iter().map(|line| in_json(line, chosen));
        terminal.json(&Json::Array(lines.collect()));
        return Ok(Exit::Done);
    }
    if lines.is_empty() {
        terminal.hint(NOTHING_FOUND);
        return Ok(Exit::Failed);
    }
    show(&lines, chosen, terminal);
    Ok(Exit::Done)
}

/// Returns the offer of a server, or all priced models of a provider whose key is set.
fn with_other_models(offer: ModelOffer) -> Vec<ModelOffer> {
    let OfferSource::Key(_) = offer.source else {
        return vec![offer];
    };
    let provider = offer.name.provider();
    let names = Prices::known().models().into_iter();
    let names = names.filter(|name| name.provider() == provider && !name.name().contains("embed"));
    let source = offer.source;
    names
        .map(|name| ModelOffer {
            name,
            source: source.clone(),
        })
        .collect()
}

async fn line(offer: ModelOffer) -> ModelLine {
    let context_size = match &offer.source {
        OfferSource::Server { .. } => context_size(&offer).await,
        // Asking would need a request to the provider for each model.
        OfferSource::Key(_) => None,
    };
    ModelLine {
        price: match &offer.source {
            OfferSource::Key(_) => Prices::known().price(&offer.name),
            // The server of the person, whatever the model is called.
            OfferSource::Server { .. } => None,
        },
        context_size,
        offer,
    }
}

async fn context_size(offer: &ModelOffer) -> Option<u64> {
    let model = Remote::from_env_or(&offer.name, offer.openai_base_url()).ok()?;
    let size = tokio::time::timeout(TIME_MAX, model.context_size());
    size.await.ok()?.ok()?
}

fn show(lines: &[ModelLine], chosen: &str, terminal: &dyn Terminal) {
    let names = lines.iter().map(|line| line.offer.name.to_string().len());
    let width = names.max().unwrap_or_default().max("model".len());
    let row = |mark: &str, name: &str, cells: [&str; 4]| {
        let [input, output, context, source] = cells;
        terminal.line(&format!(
            "{mark:<2}{name:<width$}  {input:>7}  {output:>7}  {context:>9}  {source}"
        ));
    };
    row("", "model", ["input", "output", "context", "available"]);
    for line in lines {
        let name = line.offer.name.to_string();
        let dollars = |price: Option<u64>| price.map_or("-".to_owned(), in_dollars);
        let context = line.context_size.map(|size| size as usize).map(grouped);
        row(
            if name == chosen { "*" } else { "" },
            &name,
            [
                &dollars(line.price.map(|price| price.input)),
                &dollars(line.price.map(|price| price.output)),
                &context.unwrap_or_else(|| "-".to_owned()),
                &line.offer.source.to_string(),
            ],
        );
    }
    terminal.line(&format!(
        "Prices per million tokens as of {PRICES_OF}; context in tokens; - is unknown."
    ));
    if !lines
        .iter()
        .any(|line| line.offer.name.to_string() == chosen)
    {
        terminal.hint("`archie setup` chooses a model.");
    }
}

/// Formats a price in billionths of a dollar per token as dollars per million tokens.
fn in_dollars(nano_dollars: u64) -> String {
    format!("${}.{:02}", nano_dollars / 1_000, nano_dollars % 1_000 / 10)
}

fn in_json(line: &ModelLine, chosen: &str) -> Json {
    let name = line.offer.name.to_string();
    let dollars = |nano: u64| nano as f64 / 1_000.0;
    json!({
        "model": name,
        "source": line.offer.source.to_string(),
        "is_chosen": name == chosen,
        "context_size": line.context_size,
        "input_dollars_per_million": line.price.map(|price| dollars(price.input)),
        "output_dollars_per_million": line.price.map(|price| dollars(price.output)),
    })
}

/// Time for a server to tell a context size.
const TIME_MAX: Duration = Duration::from_secs(5);

#[test]
fn prices_are_in_dollars_per_million_tokens() {
    assert_eq!(in_dollars(250), "$0.25");
    assert_eq!(in_dollars(15_000), "$15.00");
    assert_eq!(in_dollars(1_250), "$1.25");
}
