//! `archie doctor`: reports what works on this machine, what does not, and how to fix it.

mod measure;
mod offers;

use std::time::Duration;

use anyhow::Context as _;
use archie_agent::{Exit, ModelProfile, ModelProfiles, Terminal};
use serde_json::{Value as Json, json};

use crate::app::App;
use crate::cli::args::DoctorArgs;
use crate::cli::settings::{Store, VARIABLES};
use measure::measure;
use offers::offers;

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
        .map(|variable| json!({ "name": variable.name, "set": std::env::var_os(variable.name).is_some(), "what": variable.what }))
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
        false => tell(&report, terminal),
    }
    Ok(if is_well { Exit::Done } else { Exit::Failed })
}

fn tell(report: &Json, terminal: &dyn Terminal) {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    terminal.line(&format!("archie {}", text(&report["version"])));
    for part in ["model", "store", "sandbox"] {
        let mark = if report[part]["ok"] == json!(true) {
            "ok"
        } else {
            "!!"
        };
        terminal.line(&format!("{mark}  {part}: {}", text(&report[part]["says"])));
    }
    terminal.line(&format!(
        "    settings: {} (there need not be one)",
        text(&report["settings"])
    ));
    terminal.line("    environment:");
    let names = VARIABLES.iter().map(|variable| variable.name.len());
    let width = names.max().unwrap_or_default();
    for variable in report["environment"].as_array().into_iter().flatten() {
        let mark = if variable["set"] == json!(true) {
            "set"
        } else {
            "-"
        };
        terminal.line(&format!(
            "      {:<width$} {mark:<4} {}",
            text(&variable["name"]),
            text(&variable["what"])
        ));
    }
}

async fn model(app: &App) -> Json {
    let no = |says: String| json!({ "ok": false, "says": says });
    let Some(name) = app.settings.model.clone() else {
        return no(unchosen(&offers().await));
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
fn unchosen(offers: &[String]) -> String {
    let Some(first) = offers.first() else {
        return format!(
            "no model is chosen, and none answers here: start Ollama or another local server, or set a key; then {CHOOSE}"
        );
    };
    format!(
        "no model is chosen; here answer {}: `archie --model {first}`, or {CHOOSE}",
        offers.join(", ")
    )
}

const CHOOSE: &str = "set ARCHIE_MODEL to PROVIDER:NAME";

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
        Ok(_) => json!({ "ok": true, "says": format!("{place} opens") }),
        Err(error) => json!({ "ok": false, "says": format!("{place}: {error}") }),
    }
}

/// Generous: a local model may have to be loaded first.
const PATIENCE: Duration = Duration::from_secs(180);
