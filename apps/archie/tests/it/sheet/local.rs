//! With a small real model, which cannot plan: its garbage becomes observations, it ends at the limit, and nothing is harmed.

use std::fs;

use superstep_conformance::services;

use super::kit::{python, sales};
use crate::kit::Workdir;

#[test]
fn a_small_real_model_ends_at_the_limit_and_harms_nothing() {
    for actions in ["text", "calls"] {
        let workdir = Workdir::with_model("openai:smollm2-135m")
            .with_environment("OPENAI_BASE_URL", &services::url("model"))
            .with_environment("OPENAI_API_KEY", "none")
            .with_environment("ARCHIE_PYTHON", &python().display().to_string());
        fs::write(workdir.path("sales.xlsx"), sales()).unwrap();
        let args = [
            "sheet",
            "sales.xlsx",
            "--instruction",
            "Count each Product",
            "--max-steps",
            "2",
            "--with-informer",
            "--actions",
            actions,
            "--yes",
        ];
        let ran = workdir.run(&args, "");
        // It rarely comes to anything. If it does not, the program says so.
        let has_result = ran.out().contains("Finish →");
        assert_eq!(
            ran.code(),
            Some(i32::from(!has_result)),
            "{actions}: {ran:?}"
        );
        assert_eq!(ran.out().contains("No result: "), !has_result, "{ran:?}");
        assert_eq!(
            fs::read(workdir.path("sales.xlsx")).unwrap(),
            sales(),
            "the input is as it was"
        );
        let shown = workdir.json(&["show", &workdir.thread(), "--json"]);
        let values = &shown["values"];
        assert!(values["step"].as_u64().unwrap() <= 2, "{values}");
        assert!(
            matches!(
                values["stopped"].as_str(),
                Some("step_limit" | "finished" | "repeated")
            ),
            "{values}"
        );
        let report = fs::read_to_string(workdir.path("out/report.md")).unwrap();
        assert!(
            report.contains("# Count each Product") && report.contains("model calls"),
            "{report}"
        );
    }
}
