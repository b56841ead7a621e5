//! The interview with a real model on this machine: it proves the plumbing, not the wit.

use superstep_conformance::services;

use crate::kit::Workdir;

#[test]
fn the_interview_works_with_a_small_real_model() {
    let workdir = Workdir::with_model("openai:smollm2-135m")
        .with_environment("OPENAI_BASE_URL", &services::url("model"));
    let args = [
        "analyze",
        "--query",
        "Choose a queue",
        "--inputs",
        "./notes",
    ];
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    let id = workdir.thread();
    let asks = |workdir: &Workdir| {
        let shown = workdir.json(&["show", &id, "--json"]);
        shown["questions"][0]["request"]["query"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(!asks(&workdir).is_empty());
    let ran = workdir.run(&["resume", &id], "yes, per customer\n");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    assert!(!asks(&workdir).is_empty());
    let ran = workdir.run(&["resume", &id], "SOLUTION APPROVED\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let result = workdir.result();
    for heading in [
        "Assumptions",
        "Main components",
        "Alternatives and trade-offs",
        "Decisions and why",
        "Open questions",
    ] {
        assert!(result.contains(&format!("## {heading}\n")), "{result}");
    }
}
