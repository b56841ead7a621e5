//! `archie mail rules`: shows and sets what happens to mails that a rule recognizes.

use archie_agent::{Exit, Terminal};
use archie_email_assistant::rules::RuleSettings;

use super::RulesArgs;
use crate::app::App;

pub(super) async fn handle_rules(
    args: &RulesArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let before = RuleSettings::load(&app.memory).await?;
    let settings = RuleSettings {
        bulk: args.bulk.map_or(before.bulk, Into::into),
        calendar: args.calendar.map_or(before.calendar, Into::into),
    };
    if settings != before {
        settings.save(&app.memory).await?;
    }
    if args.json {
        terminal.json(&serde_json::to_value(settings)?);
        return Ok(Exit::Done);
    }
    terminal.line(&format!("bulk      {}", settings.bulk.word()));
    terminal.line(&format!("calendar  {}", settings.calendar.word()));
    Ok(Exit::Done)
}
