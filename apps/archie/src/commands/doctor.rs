//! `archie doctor`: reports what works on this machine, what does not, and how to fix it.

mod measure;

use std::time::Duration;

use anyhow::Context as _;
use archie_agent::{Exit, LineMark, ModelProfile, ModelProfiles, Terminal};
use serde_json::{Value as Json, json};

use crate::app::App;
use crate::cli::args::DoctorArgs;
use crate::cli::settings::{Store, VARIABLES};
use crate::model_offers::{ModelOffer, find_offers};
use measure::measure;

pub(super) async fn run(
    args: &DoctorArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let waiting = terminal.waiting("looking");
    let model = model(app).await;
    let store = store(app).await;
    let sandbox = archie_sheet::ready();
    let sandbox = json!({ "ok": sandbox.is_ok(), "says": sandbox.unwrap_or_else(|why| format!("`archie sheet` cannot run code: {why}")) });
    drop(waiting);
    let is_well = model["ok"] == json!(true) && store["ok"] == json!(true);
    let variables: Vec<_> = VARIABLES
        .iter()
        .map(|variable| json!({ "name": variable.name, "set": std::env::var_os(variable.name).is_some_and(|value| !value.is_empty()), "what": variable.what }))
        .collect();
    let report = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "model": model,
        "store": store,
        "sandbox": sandbox,
        "settings": app.settings.file.display().to_string(),
        "agents": app.agents.iter().map(|agent| agent.name().to_owned()).collect::<Vec<_>>(),
        "environment": variables,
    });
    if let Some(file) = &args.bundle {
        // The report says whether a variable is set, never its value.
        std::fs::write(file, serde_json::to_string_pretty(&report)?)?;
        terminal.line(&format!(
            "{} holds no keys; look at it before you send it",
            file.display()
        ));
    }
    match args.json {
        true => terminal.json(&report),
        false => tell(&report, args.verbose, terminal),
    }
    Ok(if is_well { Exit::Done } else { Exit::Failed })
}

/// Prints the report, problems first.
fn tell(report: &Json, verbose: bool, terminal: &dyn Terminal) {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    terminal.line(&format!("archie {}", text(&report["version"])));
    let mut parts = ["model", "store", "sandbox"].map(|part| (part, &report[part]));
    parts.sort_by_key(|(_, found)| found["ok"] == json!(true));
    for (part, found) in parts {
        let mark = match found["ok"] == json!(true) {
            true => LineMark::Good,
            false => LineMark::Problem,
        };
        terminal.marked_line(mark, &format!("{part}: {}", text(&found["says"])));
    }
    let settings = text(&report["settings"]);
    let settings = match std::path::Path::new(&settings).exists() {
        true => settings,
        false => format!("{settings} (does not exist; `archie setup` creates it)"),
    };
    terminal.marked_line(LineMark::Plain, &format!("settings: {settings}"));
    let variables = report["environment"].as_array().into_iter().flatten();
    if verbose {
        let names = VARIABLES.iter().map(|variable| variable.name.len());
        let width = names.max().unwrap_or_default();
        terminal.marked_line(LineMark::Plain, "environment:");
        for variable in variables {
            let mark = match variable["set"] == json!(true) {
                true => "set",
                false => "-",
            };
            let (name, what) = (text(&variable["name"]), text(&variable["what"]));
            let line = format!("{name:<width$} {mark:<4} {what}");
            terminal.marked_line(LineMark::Plain, &line);
        }
        return;
    }
    let set = variables.filter(|variable| variable["set"] == json!(true));
    let set: Vec<_> = set.map(|variable| text(&variable["name"])).collect();
    let set = match set.is_empty() {
        true => "nothing is set".to_owned(),
        false => set.join(", "),
    };
    terminal.marked_line(
        LineMark::Plain,
        &format!("environment: {set}; `archie doctor --verbose` describes every variable"),
    );
}

async fn model(app: &App) -> Json {
    let no = |says: String| json!({ "ok": false, "says": says });
    let Some(name) = app.settings.model.clone() else {
        let offers = find_offers(app.settings.openai_base_url.as_deref()).await;
        return no(unchosen(&offers));
    };
    // A script would count the request as one of its own.
    if name.starts_with("script:") || name.starts_with("cassette:") {
        return match app.models.get(&name) {
            Ok(_) => json!({ "ok": true, "says": format!("{name} can be read") }),
            Err(error) => no(error.to_string()),
        };
    }
    let opened = match app.models.get(&name) {
        Ok(model) => model,
        Err(error) => return no(error.to_string()),
    };
    match tokio::time::timeout(PATIENCE, measure(opened.as_ref())).await {
        Ok(Ok(measured)) => match remember(app, &name, measured.profile()) {
            Ok(()) => {
                json!({ "ok": true, "says": measured.says(&name), "measured": measured, "profile": measured.profile() })
            }
            Err(error) => no(format!("{error:#}")),
        },
        Ok(Err(error)) => no(error.to_string()),
        Err(_) => no(format!(
            "{name} did not answer five short questions within {} s",
            PATIENCE.as_secs()
        )),
    }
}

/// Stores the profile of a model, for the agents.
fn remember(app: &App, model: &str, profile: ModelProfile) -> anyhow::Result<()> {
    let file = app.settings.profiles_file();
    let store = || {
        let mut profiles = ModelProfiles::read(&file)?;
        profiles.set(model, profile);
        profiles.write(&file)
    };
    store().with_context(|| format!("cannot store what was measured in {}", file.display()))
}

/// Returns the message that no model is set, with the models that are available.
fn unchosen(offers: &[ModelOffer]) -> String {
    let names = offers.iter().take(OFFERS_SHOWN);
    let mut names: Vec<_> = names.map(|offer| offer.name.to_string()).collect();
    if let Some(more @ 1..) = offers.len().checked_sub(OFFERS_SHOWN) {
        names.push(format!("{more} more"));
    }
    match names.is_empty() {
        true => "no model is chosen, and none was found here; `archie setup` says how to get one"
            .to_owned(),
        false => format!(
            "no model is chosen; run `archie setup` to choose one (available here: {})",
            names.join(", ")
        ),
    }
}

const OFFERS_SHOWN: usize = 5;

async fn store(app: &App) -> Json {
    let place = match &app.settings.store {
        Store::Sqlite(path) => format!("sqlite:{}", path.display()),
        // Leave out the URL, which may contain a password.
        Store::Postgres(_) => "postgres".to_owned(),
    };
    match app
        .runtime
        .threads(&superstep::checkpoint::ThreadQuery::default())
        .await
    {
        Ok(_) => match &app.encryption {
            Some(encryption) => {
                let key = encryption.current_key();
                json!({ "ok": true, "says": format!("{place} opens, encrypted with the key {key}"), "key": key })
            }
            None => json!({ "ok": true, "says": format!("{place} opens") }),
        },
        Err(error) => json!({ "ok": false, "says": format!("{place}: {error}") }),
    }
}

/// Generous: a local model may have to be loaded first.
const PATIENCE: Duration = Duration::from_secs(180);
