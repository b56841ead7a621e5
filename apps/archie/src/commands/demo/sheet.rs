//! Demo of `sheet`: counts products in a workbook.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use archie_agent::{Exit, Terminal};
use clap::Parser;
use superstep_llm::Script;

use super::{Person, settings};
use crate::agents::{AGENTS, sheet};
use crate::app::App;
use crate::cli::args::{Command, ShellLine};
use crate::commands::sheet::handle_sheet_command;
use crate::session::Session;
use crate::terminal::Console;

pub(super) async fn tour(home: &Path, console: &Console, quiet: bool) -> anyhow::Result<()> {
    let folder = home.join("sheet");
    fs::create_dir(&folder)?;
    let file = folder.join("sales.xlsx");
    fs::write(&file, include_bytes!("sales.xlsx"))?;
    let model = MODEL.to_owned();
    let app = App::open(settings(home, &model)?, AGENTS).await?;
    let script = Arc::new(Script::parse("demo-sheet", SCRIPT)?);
    app.models.put(&model, script.clone());
    let person = Person::new(console, quiet, ["y"]);
    let session = Session {
        app: &app,
        terminal: &person,
        json: false,
    };
    person.line(
        "archie> sheet sales.xlsx --instruction \"Count each Product in a new sheet\" --with-informer",
    );
    let out = folder.join("out");
    let args = [
        "sheet",
        "--instruction",
        "Count each Product in a new sheet",
        "--with-informer",
        "--output-dir",
    ];
    let args = args.iter().map(std::ffi::OsString::from);
    let args = args.chain([out.clone().into_os_string(), file.clone().into_os_string()]);
    let Command::Sheet(args) = ShellLine::try_parse_from(args)?.command else {
        anyhow::bail!("`sheet` is another command");
    };
    let exit = handle_sheet_command(&args, &session).await?;
    ensure!(exit == Exit::Done, "it ended with {exit:?}");
    ensure!(
        fs::read(&file)? == include_bytes!("sales.xlsx"),
        "the input was written"
    );
    let saved = sheet::book::read(&fs::read(out.join("workbook_new.xlsx"))?)?;
    let counts = saved.sheet("Counts").map(|sheet| sheet.values.len());
    ensure!(counts == Some(10), "the result has {counts:?} cells");
    script.finish()?;
    Ok(())
}

pub(super) const MODEL: &str = "script:demo-sheet";
pub(super) const SCRIPT: &str = include_str!("sheet.json");
