//! Demo of `mail`: of three emails, one is ignored, one shown, and one answered with an edited draft.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use archie_agent::Terminal;
use archie_email_assistant::mailbox::Mailboxes;
use superstep_llm::Script;

use super::{Person, settings};
use crate::agents::AGENTS;
use crate::app::App;
use crate::cli::args::InboxArgs;
use crate::commands::inbox;
use crate::commands::mail::{IngestArgs, handle_ingest};
use crate::inbox::items;
use crate::terminal::Console;

pub(super) async fn tour(home: &Path, console: &Console, quiet: bool) -> anyhow::Result<()> {
    let folder = home.join("mail");
    fs::create_dir(&folder)?;
    let mbox = folder.join("mbox");
    fs::write(&mbox, MAILS)?;
    let model = MODEL.to_owned();
    let app = App::open(settings(home, &model)?, AGENTS).await?;
    let script = Arc::new(Script::parse("demo-mail", SCRIPT)?);
    app.models.put(&model, script.clone());
    let person = Person::new(console, quiet, []);
    person.line("archie> mail ingest ./mbox");
    let args = IngestArgs {
        source: mbox.display().to_string(),
        ..IngestArgs::default()
    };
    let mailboxes = Mailboxes::new(&app.settings.home);
    handle_ingest(&args, &app, &mailboxes, &person).await?;
    let edit = "edit {\"response_text\": \"Friday noon.\"}";
    let items = items(&app, true, 2).await?;
    for (item, said) in items.iter().zip(["ignore", edit]) {
        // Display the item in full first: an answer that sends something requires it.
        for answer in [None, Some(said.to_owned())] {
            let typed = answer.as_deref().unwrap_or_default();
            person.line(format!("archie> inbox {} {typed}", item.short_id).trim_end());
            let args = InboxArgs {
                item: Some(item.short_id.clone()),
                answer: answer.into_iter().collect(),
                digest: None,
                all: false,
                plain: true,
                limit: 50,
                json: false,
            };
            inbox::run(&args, &app, &person).await?;
        }
    }
    let sent: Vec<_> = fs::read_dir(folder.join("mbox.outbox"))?.collect::<Result<_, _>>()?;
    ensure!(sent.len() == 1, "{} mails went out", sent.len());
    let mail = fs::read_to_string(sent[0].path())?;
    ensure!(
        mail.contains("Friday noon."),
        "the mail has other words than those approved"
    );
    ensure!(
        mail.contains("In-Reply-To: <report@example.com>"),
        "the mail left its conversation"
    );
    script.finish()?;
    Ok(())
}

pub(super) const MODEL: &str = "script:demo-mail";
pub(super) const SCRIPT: &str = include_str!("mail.json");

const MAILS: &str = "\
From news@example.com Mon Jan  6 08:00:00 2025
From: News <news@example.com>
To: ada@example.com
Subject: Weekly digest
Message-ID: <digest@example.com>
Date: Mon, 6 Jan 2025 08:00:00 +0000

Ten things you should read.

From ci@example.com Mon Jan  6 09:00:00 2025
From: CI <ci@example.com>
To: ada@example.com
Subject: Deploy finished
Message-ID: <deploy@example.com>
Date: Mon, 6 Jan 2025 09:00:00 +0000

Version 12 is out.

From bob@example.com Mon Jan  6 10:00:00 2025
From: Bob <bob@example.com>
To: ada@example.com
Cc: carol@example.com
Subject: Q4 report?
Message-ID: <report@example.com>
Date: Mon, 6 Jan 2025 10:00:00 +0000

When is the report ready?
";
