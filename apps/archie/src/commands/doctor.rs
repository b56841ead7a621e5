//! What works here, what does not, and how to mend it.

mod offers;

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use superstep_llm::{Message, Request};

use crate::agents::sheet;
use crate::cli::args::DoctorArgs;
use crate::cli::settings::{Store, VARIABLES};
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;
use offers::offers;

pub(super) async fn run(args: &DoctorArgs, home: &Home, say: &dyn Say) -> anyhow::Result<Exit> {
    let waiting = say.waiting("looking");
    let model = model(home).await;
    let store = store(home).await;
    let sandbox = sheet::ready();
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
        "settings": home.settings.file.display().to_string(),
        "agents": home.agents.iter().map(|agent| agent.name().to_owned()).collect::<Vec<_>>(),
        "environment": variables,
    });
    if let Some(file) = &args.bundle {
        // Only whether a variable is set, never what it is set to.
        std::fs::write(file, serde_json::to_string_pretty(&report)?)?;
        say.line(&format!(
            "{} holds no keys; look at it before you send it",
            file.display()
        ));
    }
    match args.json {
        true => say.json(&report),
        false => tell(&report, say),
    }
    Ok(if is_well { Exit::Done } else { Exit::Failed })
}

fn tell(report: &Json, say: &dyn Say) {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    say.line(&format!("archie {}", text(&report["version"])));
    for part in ["model", "store", "sandbox"] {
        let mark = if report[part]["ok"] == json!(true) {
            "ok"
        } else {
            "!!"
        };
        say.line(&format!("{mark}  {part}: {}", text(&report[part]["says"])));
    }
    say.line(&format!(
        "    settings: {} (there need not be one)",
        text(&report["settings"])
    ));
    say.line("    environment:");
    let names = VARIABLES.iter().map(|variable| variable.name.len());
    let width = names.max().unwrap_or_default();
    for variable in report["environment"].as_array().into_iter().flatten() {
        let mark = if variable["set"] == json!(true) {
            "set"
        } else {
            "-"
        };
        say.line(&format!(
            "      {:<width$} {mark:<4} {}",
            text(&variable["name"]),
            text(&variable["what"])
        ));
    }
}

async fn model(home: &Home) -> Json {
    let no = |says: String| json!({ "ok": false, "says": says });
    let Some(name) = home.settings.model.clone() else {
        return no(unchosen(&offers().await));
    };
    // A script would count the question as one of its own.
    if name.starts_with("script:") || name.starts_with("cassette:") {
        return match home.models.get(&name) {
            Ok(_) => json!({ "ok": true, "says": format!("{name} can be read") }),
            Err(error) => no(error.to_string()),
        };
    }
    let opened = match home.models.get(&name) {
        Ok(model) => model,
        Err(error) => return no(error.to_string()),
    };
    let request = Request::new("doctor", vec![Message::user("Say hello.")]).tokens_max(8);
    let begun = Instant::now();
    match tokio::time::timeout(PATIENCE, opened.reply(&request)).await {
        Ok(Ok(reply)) => {
            let took = begun.elapsed().as_millis();
            json!({ "ok": true, "says": format!("{} answers in {took} ms", reply.model) })
        }
        Ok(Err(error)) => no(error.to_string()),
        Err(_) => no(format!("{name} gave nothing for {} s", PATIENCE.as_secs())),
    }
}

/// That no model is chosen, and which could be.
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

async fn store(home: &Home) -> Json {
    let place = match &home.settings.store {
        Store::Sqlite(path) => format!("sqlite:{}", path.display()),
        // Without the password that may be in it.
        Store::Postgres(_) => "postgres".to_owned(),
    };
    match home
        .runtime
        .threads(&superstep::checkpoint::ThreadQuery::default())
        .await
    {
        Ok(_) => json!({ "ok": true, "says": format!("{place} opens") }),
        Err(error) => json!({ "ok": false, "says": format!("{place}: {error}") }),
    }
}

const PATIENCE: Duration = Duration::from_secs(30);
