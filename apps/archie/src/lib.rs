//! Archie: durable agents in one program.
//!
//! What a person installs: a shell and a command line over threads that survive whatever happens to the process. The program is a
//! library too, so that an agent of your own can stand beside ours in the same shell and inbox.
//!
//! It never sends anything anywhere but to the model that was chosen, it keeps nothing but what is in its store and beside the
//! person's own files, and it knows no rule of the runtime: what may run again, who wins, what is stored, all that is
//! `superstep`'s.
//!
//! In reading order: [`cli::args`] (what can be typed), [`home::Home`] (the store, the runtime, the agents), [`commands`],
//! [`shell`], [`say::Say`] (the one way to talk to the person), [`agents`].
//!
//! ```no_run
//! use archie::cli::settings::{Given, Settings};
//! use archie::home::Home;
//!
//! # async fn example() -> anyhow::Result<()> {
//! let home = Home::open(Settings::read(&Given::default())?).await?;
//! for agent in &home.agents {
//!     println!("{}: {}", agent.name(), agent.about());
//! }
//! # Ok(())
//! # }
//! ```

pub mod agents;
pub mod cli;
pub mod commands;
pub mod exit;
pub mod home;
pub mod models;
pub mod say;
pub mod shell;

/// Says what went wrong: what, why, and what to do, one below the other, on stderr.
pub fn complain(error: &anyhow::Error) {
    use std::io::Write;
    let mut err = std::io::stderr().lock();
    let mut said = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        // Some errors end with their cause already.
        if said.contains(&cause) {
            continue;
        }
        let begin = if said.is_empty() {
            "error: "
        } else {
            "  because: "
        };
        // Nobody is left to tell if this fails.
        let _ = writeln!(err, "{begin}{cause}");
        said.push_str(&cause);
    }
}
