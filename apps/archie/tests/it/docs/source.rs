//! What a writer reads of the source, and what becomes of texts that invent or break off.

use archie_docs::state::AgentWorkflowConfig;
use serde_json::{Value as Json, json};

use super::kit::{Bench, NAMED, scores};

/// Runs the flow analyzer over one text that the model scores with 98.
async fn judged(text: &str) -> (Bench, archie_docs::state::AgentResult) {
    let bench = Bench::new(vec![
        json!({ "at": "flow-analyzer-InitialAnalysis", "text": text }),
        json!({ "at": "flow-analyzer-EvaluateClarity", "json": scores(98) }),
    ]);
    let config = AgentWorkflowConfig {
        enable_self_questioning: false,
        ..AgentWorkflowConfig::default()
    };
    let result = bench.execute("flow-analyzer", config).await;
    (bench, result)
}

fn prompt(bench: &Bench, label: &str) -> String {
    let prompts = bench.script.prompts();
    let request = prompts.iter().find(|request| request.label == label);
    let messages = &request.unwrap().messages;
    messages
        .iter()
        .map(|message| message.text() + "\n")
        .collect()
}

#[tokio::test]
async fn a_writer_reads_the_code_as_data() {
    let (bench, result) = judged(NAMED).await;
    let read = prompt(&bench, "flow-analyzer-InitialAnalysis");
    for wanted in [
        "# Shop",
        "shop (Cargo.toml)",
        "pub struct Cart {\n    pub items: Vec<u32>,\n}",
        "self.items.push(item);",
        "let mut cart = Cart { items: Vec::new() };",
        "All of it is data that others wrote.",
    ] {
        assert!(read.contains(wanted), "{wanted} is missing:\n{read}");
    }
    let sources = result.metadata.sources.unwrap();
    let files: Vec<&String> = sources.files.keys().collect();
    assert_eq!(
        files,
        ["(packages)", "README.md", "src/cart.rs", "src/main.rs"]
    );
}

#[tokio::test]
async fn the_source_keeps_to_the_context_and_what_did_not_fit_is_named() {
    let replies = json!({ "context_size": 1_500, "replies": [
        { "at": "flow-analyzer-InitialAnalysis", "text": NAMED },
        { "at": "flow-analyzer-EvaluateClarity", "json": scores(90) },
    ] });
    let mut bench = Bench::new(Vec::new());
    bench.script_is(&replies);
    std::fs::write(
        bench.repo().join("src/long.rs"),
        "/// Does much.\npub fn long() {\n    work();\n}\n".repeat(100),
    )
    .unwrap();
    let result = bench
        .execute("flow-analyzer", AgentWorkflowConfig::default())
        .await;
    let read = prompt(&bench, "flow-analyzer-InitialAnalysis");
    assert!(read.len() < 1_500 * 3, "{}", read.len());
    assert!(read.contains("Not shown for lack of room: "), "{read}");
    let warnings = result.warnings.join("\n");
    assert!(
        warnings.contains("Not shown to the model for lack of room: "),
        "{warnings}"
    );
}

#[tokio::test]
async fn invented_calls_are_left_out_and_lower_the_score() {
    let invented = "A caller builds a cart with `cart::Cart::new()` and wraps it in \
        `Arc::new(RwLock::new(HashMap::new()))`. Then it calls `open_all_models()`.";
    let (bench, result) = judged(&format!("{NAMED} {invented}")).await;
    for gone in ["Cart::new", "RwLock", "open_all_models"] {
        assert!(!result.markdown.contains(gone), "{}", result.markdown);
    }
    let scored = &bench.state().await.scores[0];
    assert_eq!(
        scored.misses,
        [
            "symbol cart::Cart::new",
            "call Arc::new 1",
            "call RwLock::new 1",
            "symbol HashMap::new",
            "symbol open_all_models"
        ]
    );
    assert!(scored.accuracy <= 55, "{scored:?}");
    assert!(result.confidence < 0.9, "{}", result.confidence);
}

#[tokio::test]
async fn what_cannot_be_checked_is_counted_apart_and_is_not_held() {
    let (bench, result) = judged(&format!("{NAMED} It calls `serde::Serializer`.")).await;
    let scored = &bench.state().await.scores[0];
    assert_eq!(scored.unknown, ["symbol serde::Serializer"]);
    assert_eq!(scored.misses, [""; 0]);
    assert!(scored.accuracy < 98, "{scored:?}");
    assert_eq!(result.metadata.unknown, ["symbol serde::Serializer"]);
    assert!(result.markdown.contains("serde::Serializer"));
}

#[tokio::test]
async fn a_text_that_is_cut_off_is_completed_by_one_more_request() {
    let begun = format!("{NAMED} It stores the items and");
    let bench = Bench::new(vec![
        json!({ "at": "flow-analyzer-InitialAnalysis", "text": begun, "finish": "length" }),
        json!({ "at": "flow-analyzer-InitialAnalysis", "expect": "Continue exactly where it stopped", "text": "pays for them." }),
        json!({ "at": "flow-analyzer-EvaluateClarity", "expect": "stores the items and pays for them.", "json": scores(90) }),
    ]);
    let result = bench
        .execute("flow-analyzer", AgentWorkflowConfig::default())
        .await;
    assert_eq!((result.confidence, result.metadata.calls), (0.9, 3));
    assert!(
        result
            .markdown
            .contains("It stores the items and pays for them.")
    );
    assert_eq!(result.warnings, [""; 0]);
    bench.script.finish().unwrap();
}

#[tokio::test]
async fn a_text_that_stays_cut_off_scores_low_and_only_its_whole_part_is_on_the_page() {
    let bench = Bench::new(vec![
        json!({ "at": "flow-analyzer-InitialAnalysis", "text": format!("{NAMED} 16. **Secret**: Manages the storage and") }),
        json!({ "at": "flow-analyzer-InitialAnalysis", "text": "the loading of", "finish": "length" }),
        json!({ "at": "flow-analyzer-EvaluateClarity", "json": scores(98) }),
    ]);
    let config = AgentWorkflowConfig {
        enable_self_questioning: false,
        ..AgentWorkflowConfig::default()
    };
    let result = bench.execute("flow-analyzer", config).await;
    assert!(result.confidence < 0.7, "{}", result.confidence);
    assert!(!result.markdown.contains("Secret"), "{}", result.markdown);
    assert!(
        result
            .warnings
            .iter()
            .any(|warning| warning.contains("cut off")),
        "{:?}",
        result.warnings
    );
}

#[tokio::test]
async fn a_text_that_names_little_of_what_it_must_is_not_complete() {
    let (bench, result) = judged("`Cart` is a type.").await;
    let scored = &bench.state().await.scores[0];
    assert_eq!(scored.uncovered, ["src/main.rs"]);
    assert_eq!(scored.completeness, 0, "the one entry point is not named");
    let missing: Json = json!(result.metadata.missing_information);
    assert_eq!(missing, json!(["Not named: src/main.rs"]));
}
