//! The workflow that every agent shares: its checklist, line by line.

use std::collections::BTreeSet;

use archie_docs::scan::Tree;
use archie_docs::state::{AgentContext, AgentWorkflowConfig};
use archie_docs::workflow::{self, BaseAgentWorkflow};
use archie_docs::writers::{self, FileStructureAgentWorkflow, build_file_tree};
use serde_json::{Map, Value as Json, json};

use super::kit::{Bench, questions, replies, scores};

fn config(change: impl FnOnce(&mut AgentWorkflowConfig)) -> AgentWorkflowConfig {
    let mut config = AgentWorkflowConfig::default();
    change(&mut config);
    config
}

const FS: &str = "file-structure";

#[tokio::test]
async fn c1_an_agent_says_only_what_is_its_own() {
    /// The whole of a new agent: six hooks.
    #[derive(Debug)]
    struct Licences;
    impl BaseAgentWorkflow for Licences {
        fn get_agent_name(&self) -> &'static str {
            "licences"
        }
        fn build_system_prompt(&self, _: &AgentContext) -> String {
            "You know licences.".to_owned()
        }
        fn build_human_prompt(&self, context: &AgentContext, _: &Tree) -> String {
            format!("{} files", context.file_count)
        }
        fn parse_analysis(&self, analysis: &str, _: &Tree) -> Map<String, Json> {
            Map::from_iter([("text".to_owned(), analysis.into())])
        }
        fn format_markdown(&self, data: &Map<String, Json>) -> String {
            format!("# Licences\n\n{}\n", data["text"].as_str().unwrap())
        }
        fn generate_summary(&self, _: &Map<String, Json>) -> String {
            "Read the licences".to_owned()
        }
    }
    let bench = Bench::with_agents(
        vec![
            json!({ "at": "licences-InitialAnalysis", "expect": ["You know licences.", "6 files"], "text": "All free, says `Cargo.toml`." }),
            json!({ "at": "licences-EvaluateClarity", "json": scores(90) }),
        ],
        vec![std::sync::Arc::new(Licences)],
    );
    let result = bench.execute("licences", config(|_| ())).await;
    assert_eq!(
        result.markdown,
        "# Licences\n\nAll free, says `Cargo.toml`.\n"
    );
    assert_eq!(result.summary, "Read the licences");
    bench.script.finish().unwrap();
}

#[tokio::test]
async fn c2_the_state_has_the_names_of_the_brief() {
    let bench = Bench::new(replies(FS, &[62, 85], &[4]));
    bench.execute(FS, config(|_| ())).await;
    let graph = workflow::graph(&bench.deps).unwrap();
    let thread = bench.runtime.thread(&graph, "t").unwrap();
    let values: Json = thread
        .state()
        .await
        .unwrap()
        .unwrap()
        .values
        .decode()
        .unwrap();
    for name in [
        "context",
        "iteration",
        "currentAnalysis",
        "missingInformation",
        "clarityScore",
        "selfQuestions",
        "finalAnalysis",
        "refinementNotes",
    ] {
        assert!(values.get(name).is_some(), "{name} is missing: {values}");
    }
    assert_eq!(
        (&values["iteration"], &values["clarityScore"]),
        (&json!(1), &json!(85))
    );
}

#[test]
fn c3_the_graph_is_the_one_of_the_brief() {
    let bench = Bench::new(Vec::new());
    let drawing = workflow::graph(&bench.deps).unwrap().drawing();
    let edges: BTreeSet<(String, String)> = drawing
        .edges
        .into_iter()
        .map(|edge| (edge.source, edge.target))
        .collect();
    for (from, to) in [
        ("__start__", "analyzeInitial"),
        ("analyzeInitial", "evaluateClarity"),
        ("evaluateClarity", "generateQuestions"),
        ("generateQuestions", "refineAnalysis"),
        ("refineAnalysis", "evaluateClarity"),
        ("evaluateClarity", "finalizeOutput"),
        ("finalizeOutput", "__end__"),
    ] {
        assert!(
            edges.contains(&(from.to_owned(), to.to_owned())),
            "{from} -> {to}: {edges:?}"
        );
    }
}

#[tokio::test]
async fn c4_the_overall_score_is_the_average_of_four() {
    let bench = Bench::new(vec![
        json!({ "at": "file-structure-InitialAnalysis", "text": "`src/main.rs` begins it, and `tests` tries it." }),
        json!({ "at": "file-structure-EvaluateClarity", "json": { "completeness": 90, "clarity": 80, "depth": 70, "accuracy": 84 } }),
    ]);
    let result = bench.execute(FS, config(|_| ())).await;
    assert_eq!(result.confidence, 0.81);
    let scored = &bench.state().await.scores[0];
    assert_eq!(
        (scored.overall, scored.accuracy, scored.checked),
        (81, 84, 2)
    );
}

#[tokio::test]
async fn c4_accuracy_is_measured_and_a_file_that_is_not_there_is_asked_about() {
    let bench = Bench::new(vec![
        json!({ "at": "file-structure-InitialAnalysis", "text": "It begins in `src/nope.rs`. The cart is in `src/cart.rs`, the tests are elsewhere." }),
        json!({ "at": "file-structure-EvaluateClarity", "expect": "path src/nope.rs", "json": scores(80) }),
        json!({ "at": "file-structure-GenerateQuestions", "json": questions(3, 1) }),
        json!({ "at": "file-structure-Refinement-1", "expect": "The tree has no `src/nope.rs`", "text": "It begins in `src/main.rs`, the tests are elsewhere." }),
        json!({ "at": "file-structure-EvaluateClarity", "json": scores(80) }),
    ]);
    let result = bench.execute(FS, config(|_| ())).await;
    let state = bench.state().await;
    assert_eq!(state.scores[0].accuracy, 40, "one of two claims holds");
    assert_eq!(state.scores[0].overall, 70);
    assert_eq!(state.scores[0].misses, ["path src/nope.rs"]);
    assert_eq!(state.scores[1].accuracy, 80);
    assert!(state.rounds[0].questions[0].contains("src/nope.rs"));
    assert!(!result.markdown.contains("nope"), "{}", result.markdown);
}

#[tokio::test]
async fn what_never_held_is_left_out_of_the_page_and_said() {
    let bench = Bench::new(vec![
        json!({ "at": "file-structure-InitialAnalysis", "text": "It begins in `src/nope.rs`. The cart is in `src/cart.rs`." }),
        json!({ "at": "file-structure-EvaluateClarity", "json": scores(100) }),
    ]);
    let result = bench
        .execute(FS, config(|config| config.clarity_threshold = 60))
        .await;
    assert!(
        !result.markdown.contains("nope")
            && result.markdown.contains("The cart is in `src/cart.rs`.")
    );
    assert_eq!(
        result.warnings,
        ["1 statement was left out: the tree does not bear it out"]
    );
}

#[tokio::test]
async fn c5_three_to_five_questions_and_a_better_text() {
    let bench = Bench::new(vec![
        json!({ "at": "file-structure-InitialAnalysis", "text": "First: `src`, `tests`." }),
        json!({ "at": "file-structure-EvaluateClarity", "json": scores(50) }),
        json!({ "at": "file-structure-GenerateQuestions", "json": questions(9, 1) }),
        json!({ "at": "file-structure-Refinement-1", "expect": ["Round 1, question 5?", "First: `src`"], "text": "Second: `src`, `tests`." }),
        json!({ "at": "file-structure-EvaluateClarity", "json": scores(60) }),
        json!({ "at": "file-structure-GenerateQuestions", "expect": "Round 1, question 5?", "json": { "questions": ["One?"] } }),
        json!({ "at": "file-structure-Refinement-2", "expect": "One?", "text": "Third: `src`, `tests`." }),
        json!({ "at": "file-structure-EvaluateClarity", "json": scores(90) }),
    ]);
    let result = bench.execute(FS, config(|_| ())).await;
    let state = bench.state().await;
    let counts: Vec<_> = state
        .rounds
        .iter()
        .map(|round| round.questions.len())
        .collect();
    assert_eq!(
        counts,
        [5, 3],
        "nine are cut to five, one is filled up to three"
    );
    assert_eq!(state.final_analysis, "Third: `src`, `tests`.");
    assert_eq!(result.metadata.self_questions.len(), 8);
    bench.script.finish().unwrap();
}

#[tokio::test]
async fn c6_it_ends_at_the_threshold_or_at_the_limit() {
    let bench = Bench::new(replies(FS, &[62, 74, 85], &[4, 3]));
    let result = bench.execute(FS, config(|_| ())).await;
    assert_eq!(
        (result.confidence, result.metadata.stopped.as_str()),
        (0.85, "enough")
    );
    assert_eq!(result.metadata.scores, [62, 74, 85]);
    bench.script.finish().unwrap();
    let bench = Bench::new(replies(FS, &[62, 70, 85, 91], &[4, 3, 3]));
    let result = bench
        .execute(FS, config(|config| config.clarity_threshold = 99))
        .await;
    assert_eq!(
        (result.metadata.iterations, result.metadata.stopped.as_str()),
        (3, "limit")
    );
    assert!(
        result
            .warnings
            .iter()
            .any(|warning| warning.contains("below the threshold of 99")),
        "{result:?}"
    );
    bench.script.finish().unwrap();
}

#[test]
fn c7_the_defaults_are_those_of_the_brief() {
    let config = serde_json::to_value(AgentWorkflowConfig::default()).unwrap();
    assert_eq!(
        (
            &config["maxIterations"],
            &config["clarityThreshold"],
            &config["minImprovement"],
            &config["enableSelfQuestioning"]
        ),
        (&json!(3), &json!(80), &json!(5), &json!(true))
    );
}

#[tokio::test]
async fn c7_what_is_set_takes_effect() {
    let bench = Bench::new(replies(FS, &[12], &[]));
    let result = bench
        .execute(FS, config(|config| config.clarity_threshold = 10))
        .await;
    assert_eq!((result.metadata.iterations, result.metadata.calls), (0, 2));
    bench.script.finish().unwrap();
}

#[tokio::test]
async fn c7_a_refinement_that_gains_too_little_is_the_last() {
    let bench = Bench::new(replies(FS, &[62, 64], &[4]));
    let result = bench.execute(FS, config(|_| ())).await;
    assert_eq!(
        (result.metadata.stopped.as_str(), result.confidence),
        ("plateau", 0.64)
    );
    assert!(
        result
            .warnings
            .iter()
            .any(|warning| warning.contains("gained less than 5")),
        "{result:?}"
    );
    bench.script.finish().unwrap();
}

#[tokio::test]
async fn the_best_version_is_kept_not_the_last() {
    let bench = Bench::new(replies(FS, &[62, 78, 50], &[4, 3]));
    let result = bench.execute(FS, config(|_| ())).await;
    assert_eq!(result.confidence, 0.78);
    assert!(
        result.markdown.contains("Text 1 about `Cart`") && !result.markdown.contains("Text 2"),
        "{}",
        result.markdown
    );
    bench.script.finish().unwrap();
}

#[tokio::test]
async fn c8_the_result_has_every_field() {
    let bench = Bench::new(replies(FS, &[62, 74, 85], &[4, 3]));
    let result = bench.execute(FS, config(|_| ())).await;
    let json = serde_json::to_value(&result).unwrap();
    assert_eq!(json["agentName"], "file-structure");
    assert_eq!(json["status"], "success");
    assert_eq!(json["confidence"], 0.85);
    assert_eq!(
        json["warnings"],
        json!([
            "Iteration 1: Addressed 4 questions",
            "Iteration 2: Addressed 3 questions"
        ])
    );
    assert_eq!(json["metadata"]["iterations"], 2);
    assert_eq!(
        json["metadata"]["selfQuestions"].as_array().unwrap().len(),
        7
    );
    assert_eq!(json["metadata"]["missingInformation"], json!([]));
    assert_eq!(
        json["metadata"]["refinementNotes"][0],
        "Iteration 1: Addressed 4 questions: 62 → 74"
    );
    assert!(
        json["data"]["fileCount"].is_u64()
            && json["summary"].is_string()
            && json["markdown"].is_string()
    );
}

#[tokio::test]
async fn c9_the_trace_has_the_names_of_the_brief() {
    let bench = Bench::new(replies(FS, &[62, 85], &[4]));
    bench.execute(FS, config(|_| ())).await;
    let graph = workflow::graph(&bench.deps).unwrap();
    let trace = bench
        .runtime
        .thread(&graph, "t")
        .unwrap()
        .trace()
        .await
        .unwrap();
    let run = &trace.runs[0];
    assert_eq!(run.name, "Agent-file-structure");
    let nodes: Vec<_> = run
        .inner
        .iter()
        .flat_map(|superstep| &superstep.inner)
        .collect();
    let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "file-structure-InitialAnalysis",
            "file-structure-EvaluateClarity",
            "file-structure-GenerateQuestions",
            "file-structure-Refinement-1",
            "file-structure-EvaluateClarity",
            "file-structure-Finalize"
        ]
    );
    assert_eq!(nodes[0].fields["superstep.node"], "analyzeInitial");
    assert_eq!(nodes[0].inner[0].name, "chat test", "the call is inside");
}

#[test]
fn c10_the_seven_agents_are_there() {
    let names: Vec<_> = writers::all()
        .iter()
        .map(|agent| agent.get_agent_name())
        .collect();
    assert_eq!(
        names,
        [
            "file-structure",
            "dependency-analyzer",
            "architecture-analyzer",
            "flow-analyzer",
            "schema-analyzer",
            "pattern-analyzer",
            "security-analyzer"
        ]
    );
}

#[tokio::test]
async fn c11_each_lever_saves_calls() {
    let calls = async |replies: Vec<Json>, change: fn(&mut AgentWorkflowConfig)| {
        let bench = Bench::new(replies);
        let result = bench.execute(FS, config(change)).await;
        bench.script.finish().unwrap();
        assert_eq!(bench.asked().len(), result.metadata.calls as usize);
        result.metadata.calls
    };
    let all = calls(replies(FS, &[40, 50, 60, 70], &[3, 3, 3]), |_| ()).await;
    assert_eq!(all, 2 + 3 * 3, "three calls for each iteration");
    let fewer = calls(replies(FS, &[40, 50], &[3]), |config| {
        config.max_iterations = 1
    })
    .await;
    let lower = calls(replies(FS, &[40, 50], &[3]), |config| {
        config.clarity_threshold = 50
    })
    .await;
    let off = calls(replies(FS, &[40], &[]), |config| {
        config.enable_self_questioning = false
    })
    .await;
    assert_eq!((fewer, lower, off), (5, 5, 2));
}

#[tokio::test]
async fn scores_that_cannot_be_read_are_asked_for_once_more_and_then_it_stops() {
    let bench = Bench::new(vec![
        json!({ "at": "file-structure-InitialAnalysis", "text": "First." }),
        json!({ "at": "file-structure-EvaluateClarity", "text": "Quite good!" }),
        json!({ "at": "file-structure-EvaluateClarity", "json": { "completeness": 400, "clarity": 1, "depth": 1, "accuracy": 1 } }),
    ]);
    let result = bench.execute(FS, config(|_| ())).await;
    assert_eq!(
        (result.metadata.stopped.as_str(), result.metadata.calls),
        ("unscored", 3)
    );
    assert_eq!(serde_json::to_value(result.status).unwrap(), "degraded");
    assert!(
        result.warnings[0].starts_with("Unscored: "),
        "{:?}",
        result.warnings
    );
    assert!(result.markdown.contains("First."));
    bench.script.finish().unwrap();
}

#[tokio::test]
async fn scores_that_were_mended_count() {
    let bench = Bench::new(vec![
        json!({ "at": "file-structure-InitialAnalysis", "text": "First: `src`, `tests`." }),
        json!({ "at": "file-structure-EvaluateClarity", "text": "90" }),
        json!({ "at": "file-structure-EvaluateClarity", "expect": "does not fit", "json": scores(90) }),
    ]);
    let result = bench.execute(FS, config(|_| ())).await;
    assert_eq!((result.confidence, result.warnings.len()), (0.9, 0));
}

#[tokio::test]
async fn c12_questions_are_answered_side_by_side() {
    let mut all = replies(FS, &[62, 85], &[3]);
    all.insert(3, json!({ "at": "file-structure-Answer-1", "expect": "Round 1, question 2?", "text": "Answer two." }));
    all.insert(3, json!({ "at": "file-structure-Answer-1", "expect": "Round 1, question 1?", "text": "Answer one." }));
    all.insert(3, json!({ "at": "file-structure-Answer-1", "expect": "Round 1, question 3?", "text": "Answer three." }));
    let bench = Bench::new(all);
    let result = bench
        .execute(FS, config(|config| config.parallel_answers = true))
        .await;
    let answers: Vec<_> = bench
        .state()
        .await
        .answers
        .into_iter()
        .map(|answer| answer.answer)
        .collect();
    assert_eq!(
        answers,
        ["Answer one.", "Answer two.", "Answer three."],
        "in the order of the questions"
    );
    let refined = bench
        .script
        .prompts()
        .into_iter()
        .find(|request| request.label.ends_with("Refinement-1"))
        .unwrap();
    assert!(format!("{refined:?}").contains("Found: Answer two."));
    assert_eq!(result.metadata.calls, 5 + 3);
    bench.script.finish().unwrap();
}

#[tokio::test]
async fn c12_the_model_fetches_more_files_and_nothing_else() {
    let mut all = replies(FS, &[62, 85], &[3]);
    let tool = |name: &str, args: Json| json!({ "name": name, "args": args });
    all.insert(
        3,
        json!({ "at": "file-structure-Refinement-1", "tool_calls": [
        tool("read_file", json!({ "path": "src/cart.rs", "line": 5 })),
        tool("read_file", json!({ "path": "../outside" })),
        tool("read_file", json!({ "path": "target/junk.rs" })),
        tool("list_files", json!({ "folder": "src" })),
        tool("find_symbol", json!({ "name": "Cart" })),
    ] }),
    );
    let bench = Bench::new(all);
    let result = bench
        .execute(FS, config(|config| config.tools = true))
        .await;
    let asked = bench.script.prompts();
    let second = asked
        .iter()
        .filter(|request| request.label.ends_with("Refinement-1"))
        .nth(1)
        .unwrap();
    let told: Vec<String> = second
        .messages
        .iter()
        .rev()
        .take(5)
        .map(|message| message.text())
        .rev()
        .collect();
    assert!(told[0].contains("6:     pub fn add"), "{told:?}");
    assert!(
        told[1].contains("no file `../outside`") && told[2].contains("no file `target/junk.rs`"),
        "{told:?}"
    );
    assert!(
        told[3].contains("src/cart.rs") && told[4].contains("src/cart.rs:1"),
        "{told:?}"
    );
    let reads: Vec<_> = result
        .metadata
        .reads
        .iter()
        .map(|read| read.path.as_str())
        .collect();
    assert_eq!(
        reads,
        ["src/cart.rs"],
        "a change of it makes the page stale"
    );
    bench.script.finish().unwrap();
}

#[tokio::test]
async fn c12_a_person_approves_an_iteration_and_changes_its_questions() {
    let mut all = replies(FS, &[62, 85], &[3]);
    all[3]["expect"] = json!(["Round 1, question 3?", "What of mine?"]);
    let bench = Bench::new(all);
    let (id, request) = bench.gate(|config| config.gate = true).await;
    assert_eq!(request["scores"], json!([62]));
    assert_eq!(request["questions"].as_array().unwrap().len(), 3);
    assert_eq!(request["estimate"]["calls"], 3);
    assert_eq!(request["spent"]["calls"], 3);
    assert_eq!(request["estimate"]["cost"], "$0.000420", "{request}");
    let answer = json!({ "type": "accept", "delete": [1], "add": ["What of mine?"] });
    let state = bench.answer(id, answer).await;
    assert_eq!(
        state.rounds[0].questions,
        [
            "Round 1, question 2?",
            "Round 1, question 3?",
            "What of mine?"
        ]
    );
    assert_eq!(
        state.result.unwrap().warnings[0],
        "Iteration 1: Addressed 3 questions"
    );
    bench.script.finish().unwrap();
}

#[tokio::test]
async fn c12_a_person_says_that_this_is_enough() {
    let all = replies(FS, &[62], &[3]);
    let bench = Bench::new(all[..3].to_vec());
    let (id, _) = bench.gate(|config| config.gate = true).await;
    let state = bench.answer(id, json!({ "type": "skip" })).await;
    let result = state.result.unwrap();
    assert_eq!(
        (result.metadata.stopped.as_str(), result.confidence),
        ("skipped", 0.62)
    );
    bench.script.finish().unwrap();
}

#[test]
fn c13_the_file_tree_is_built_from_the_files_of_the_context() {
    let tree = build_file_tree(&["src/a.rs", "src/b/c.rs", "README.md"]);
    assert_eq!(
        tree,
        "src/  (2 files)\n  b/  (1 file)\n    c.rs\n  a.rs\nREADME.md\n"
    );
}

#[tokio::test]
async fn c13_the_first_agent_is_the_one_of_the_brief() {
    let bench = Bench::new(replies(FS, &[90], &[]));
    let result = bench.execute(FS, config(|_| ())).await;
    let prompt = &bench.script.prompts()[0];
    assert!(format!("{prompt:?}").contains("Analyze this file structure"));
    assert!(result.markdown.starts_with("# File Structure\n"));
    assert_eq!(result.summary, "Analyzed 6 files in 2 directories");
    assert_eq!(
        (
            result.data["fileCount"].as_u64(),
            result.data["directoryCount"].as_u64()
        ),
        (Some(6), Some(2))
    );
    assert_eq!(FileStructureAgentWorkflow.get_agent_name(), FS);
}
