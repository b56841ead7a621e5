//! `archie atris health`: checks that hosts answer and keys are set.

use anyhow::bail;
use archie_agent::Exit;
use archie_atris::answer::shown;
use archie_atris::catalogue_store::CatalogueStore;
use archie_atris::connector::Connector;
use archie_atris::health::{ApiHealth, check};

use crate::session::Session;

/// What to check.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct HealthArgs {
    /// Check only this API. Default: all
    #[arg(long, value_name = "NAME")]
    pub api: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Runs `archie atris health`. Fails if a call to one of the APIs cannot succeed.
pub async fn handle_health_command(
    args: &HealthArgs,
    session: &Session<'_>,
) -> anyhow::Result<Exit> {
    let store = CatalogueStore::new(session.app.memory.clone());
    let catalogues = match &args.api {
        None => store.list().await?,
        Some(name) => match store.find(name).await? {
            Some(catalogue) => vec![catalogue],
            None => bail!("there is no API `{name}`; `archie api list` says which there are"),
        },
    };
    let connector = Connector::default();
    let mut all = Vec::new();
    for catalogue in &catalogues {
        let health = check(catalogue, &connector).await;
        if !args.json {
            lines(&health)
                .iter()
                .for_each(|line| session.terminal.line(line));
        }
        all.push(health);
    }
    if args.json {
        session.terminal.json(&serde_json::to_value(&all)?);
    }
    Ok(match all.iter().all(ApiHealth::is_good) {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

fn lines(health: &ApiHealth) -> Vec<String> {
    let mut lines = Vec::new();
    for host in &health.hosts {
        let says = match (&host.status, &host.error) {
            (Some(status), _) => format!("answers ({status})"),
            (None, Some(error)) => format!("does not answer: {}", shown(error)),
            (None, None) => "does not answer".to_owned(),
        };
        lines.push(format!("{}: {} {says}", health.api, shown(&host.host)));
    }
    if health.hosts.is_empty() {
        lines.push(format!("{}: has no host", health.api));
    }
    if let Some(variable) = &health.key_variable {
        let is = match health.is_key_set {
            true => "is set",
            false => "is not set",
        };
        lines.push(format!(
            "{}: the key variable `{variable}` {is}",
            health.api
        ));
    }
    lines
}
