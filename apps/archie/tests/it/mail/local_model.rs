//! Mails and a real small model on this machine: it proves the plumbing, not the wit. Six mails, because the model is slow; all
//! sixteen in the long profile.

use std::fs;

use archie_email_assistant::evaluation::{LabeledMail, SIXTEEN};
use serde_json::Value as Json;
use superstep_conformance::services;

use super::evaluation::bytes;
use super::kit::mbox;
use crate::kit::Workdir;

#[test]
fn mails_and_no_stuck_thread() {
    let workdir = Workdir::with_model("openai:smollm2-135m")
        .with_environment("OPENAI_BASE_URL", &services::url("model"));
    let mails = LabeledMail::set(SIXTEEN).unwrap();
    let is_long = std::env::var_os("SUPERSTEP_LONG").is_some();
    let count = if is_long { mails.len() } else { 6 };
    let mails: Vec<_> = mails.iter().take(count).map(bytes).collect();
    fs::write(workdir.path("mbox"), mbox(&mails)).unwrap();
    let ran = workdir.run(&["mail", "ingest", "./mbox", "--json"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let came: Json = serde_json::from_str(&ran.out()).unwrap();
    let came = came.as_array().unwrap();
    assert_eq!(came.len(), count);
    for mail in came {
        let decision = mail["classification"].as_str().unwrap();
        assert!(
            ["ignore", "notify", "respond"].contains(&decision),
            "{mail}"
        );
        let asks = mail["asks"].as_array().unwrap().len();
        let shown = workdir.json(&["show", mail["thread"].as_str().unwrap(), "--json"]);
        let ended = &shown["values"]["ended"];
        assert!(asks > 0 || ended.is_string(), "stuck: {mail} {shown}");
    }
    assert!(
        !workdir.path("mbox.outbox").exists(),
        "nothing leaves without a yes"
    );
}
