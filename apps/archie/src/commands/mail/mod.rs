//! `archie mail`: ingests email, manages what the assistant learned, classifies past email again, and signs in to mailboxes.

mod ingest;
mod ingest_command;
mod login;
mod memory;
mod rules;
mod schedule;
mod time_machine;
mod time_machine_command;
mod timer;
mod tones;

use std::time::Duration;

use archie_agent::printable::one_line;
use archie_agent::{Exit, Terminal};
use archie_email_assistant::email::Email;
use archie_email_assistant::mailbox::Mailboxes;
use archie_email_assistant::memory::Preferences;
use archie_email_assistant::rules::RuleAction;
use clap::{Args, Subcommand};

use crate::app::App;
use crate::cli::interval::interval;
pub use ingest::{Ingest, IngestedMail};
pub use ingest_command::handle_ingest;
use login::login;
use memory::handle_memory;
use rules::handle_rules;
use schedule::handle_schedule;
pub use time_machine::{ReclassifiedMail, time_machine};
use time_machine_command::handle_time_machine;
pub use tones::handle_tones;

/// What was asked for.
#[derive(Debug, Clone, Args)]
pub struct MailArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: MailCommand,
}

/// [`Preferences`], as they are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PreferencesArg {
    /// Which mails matter.
    #[value(name = "triage_preferences", alias = "triage")]
    Triage,
    /// How answers are written.
    #[value(name = "response_preferences", alias = "response")]
    Response,
    /// How meetings are made.
    #[value(name = "cal_preferences", alias = "cal")]
    Calendar,
}

impl From<PreferencesArg> for Preferences {
    fn from(which: PreferencesArg) -> Self {
        match which {
            PreferencesArg::Triage => Self::Triage,
            PreferencesArg::Response => Self::Response,
            PreferencesArg::Calendar => Self::Calendar,
        }
    }
}

/// What to do with mail.
#[derive(Debug, Clone, Subcommand)]
pub enum MailCommand {
    /// Triage a mailbox and draft replies for the inbox
    Ingest(IngestArgs),
    /// Show, confirm and revert what was learned from you
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// Show or set what happens to mass mail and calendar mail
    Rules(RulesArgs),
    /// Print a timer of the system that ingests a mailbox
    Schedule(ScheduleArgs),
    /// Show a draft in several tones and send the one you pick
    Tones(TonesArgs),
    /// Triage past mails with today's memory, without effects
    TimeMachine(TimeMachineArgs),
    /// Sign in to a mailbox: gmail, or imaps://USER@HOST
    Login(LoginArgs),
}

/// Which mails.
#[derive(Debug, Clone, Default, Args)]
pub struct IngestArgs {
    /// Maildir or mbox path, gmail:ACCOUNT, or imaps://USER@HOST
    pub source: String,
    /// Read only mails to this address
    #[arg(long, value_name = "ADDRESS")]
    pub email: Option<String>,
    /// Read only mails of the last N minutes
    #[arg(long, value_name = "N")]
    pub minutes_since: Option<u64>,
    /// Include mails that are marked as read
    #[arg(long)]
    pub include_read: bool,
    /// Process finished mails again
    #[arg(long)]
    pub rerun: bool,
    /// Include mails from yourself and mails that you answered
    #[arg(long)]
    pub skip_filters: bool,
    /// Repeat at this interval, such as 10m, until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub every: Option<Duration>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to do with what was learned.
#[derive(Debug, Clone, Subcommand)]
pub enum MemoryCommand {
    /// Show the learned preferences
    Show {
        /// List of preferences. Default: all
        which: Option<PreferencesArg>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show every change with its reason
    History {
        /// List of preferences
        which: PreferencesArg,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Restore an earlier version of a list
    Revert {
        /// List of preferences
        which: PreferencesArg,
        /// Number of the change, see `history`
        revision: u64,
    },
    /// Show the proposed lines, which have no effect yet
    Proposed {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Add proposed lines to their lists
    Accept {
        /// Ids of the proposals, or `all`
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Discard proposed lines
    Reject {
        /// Ids of the proposals, or `all`
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Take back the last change of a list
    Undo {
        /// List of preferences
        which: PreferencesArg,
    },
    /// Delete a list and its history
    Forget {
        /// List of preferences
        which: PreferencesArg,
    },
}

/// What happens to mails that a rule recognizes.
#[derive(Debug, Clone, Args)]
pub struct RulesArgs {
    /// Mass mail (List-Unsubscribe, List-Id, bulk precedence)
    #[arg(long, value_name = "ACTION")]
    pub bulk: Option<RuleActionArg>,
    /// Invitations and reminders of calendars
    #[arg(long, value_name = "ACTION")]
    pub calendar: Option<RuleActionArg>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// [`RuleAction`], as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum RuleActionArg {
    /// Leave them
    Ignore,
    /// Show them in the inbox
    Notify,
    /// Let the model decide
    Model,
}

impl From<RuleActionArg> for RuleAction {
    fn from(action: RuleActionArg) -> Self {
        match action {
            RuleActionArg::Ignore => Self::Ignore,
            RuleActionArg::Notify => Self::Notify,
            RuleActionArg::Model => Self::Model,
        }
    }
}

/// Which mailbox to ingest, and how often.
#[derive(Debug, Clone, Args)]
pub struct ScheduleArgs {
    /// Maildir or mbox path, gmail:ACCOUNT, or imaps://USER@HOST
    pub source: String,
    /// Time between two ingests, in whole minutes
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = interval)]
    pub every: Duration,
    /// Print a line for crontab instead of a systemd timer
    #[arg(long, conflicts_with_all = ["install", "remove"])]
    pub crontab: bool,
    /// Write the systemd user timer and start it
    #[arg(long, conflicts_with = "remove")]
    pub install: bool,
    /// Stop the systemd user timer and delete it
    #[arg(long)]
    pub remove: bool,
}

/// Which draft, in which tones.
#[derive(Debug, Clone, Args)]
pub struct TonesArgs {
    /// Item id of the draft, see `archie inbox`
    #[arg(value_name = "ID")]
    pub item: String,
    /// Tone in your words; repeatable
    #[arg(long = "tone", value_name = "WORDS", default_values = ["brief", "warm", "formal"])]
    pub tones: Vec<String>,
    /// Send this one without asking: its number or its words
    #[arg(long, value_name = "TONE", conflicts_with = "json")]
    pub pick: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Which mails of before.
#[derive(Debug, Clone, Args)]
pub struct TimeMachineArgs {
    /// Maildir or mbox path, gmail:ACCOUNT, or imaps://USER@HOST
    pub source: String,
    /// Read mails of the last N days
    #[arg(long, default_value_t = 7)]
    pub days: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Where to sign in.
#[derive(Debug, Clone, Args)]
pub struct LoginArgs {
    /// gmail, or imaps://USER@HOST
    pub what: String,
    /// Account, for gmail
    #[arg(long, value_name = "ADDRESS")]
    pub account: Option<String>,
    /// Server for outgoing mail, for imaps://: smtps://HOST
    #[arg(long, value_name = "URL")]
    pub smtp: Option<String>,
}

/// Runs `archie mail`.
pub async fn handle_mail_command(
    args: &MailArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let mailboxes = Mailboxes::new(&app.settings.home);
    match &args.command {
        MailCommand::Ingest(args) => handle_ingest(args, app, &mailboxes, terminal).await,
        MailCommand::Memory(command) => handle_memory(command, app, terminal).await,
        MailCommand::Rules(args) => handle_rules(args, app, terminal).await,
        MailCommand::Schedule(args) => handle_schedule(args, app, terminal).await,
        MailCommand::Tones(args) => handle_tones(args, app, terminal).await,
        MailCommand::TimeMachine(args) => {
            handle_time_machine(args, app, &mailboxes, terminal).await
        }
        MailCommand::Login(args) => login(args, &app.settings.home, terminal).await,
    }
}

/// Returns a one-line title of an email: its subject, or its sender if it has none.
fn title(email: &Email) -> String {
    match email.subject.is_empty() {
        true => one_line(&email.from),
        false => one_line(&email.subject),
    }
}
