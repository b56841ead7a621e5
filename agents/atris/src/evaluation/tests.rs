use std::sync::Arc;

use archie_agent::mcp::McpServers;
use archie_agent::{AgentDeps, ModelRegistry};
use superstep::store::MemoryStore;

use super::*;
use crate::{Extraction, NO_MODEL};

fn deps() -> AgentDeps {
    AgentDeps {
        data_folder: "unused".into(),
        prompts_folder: None,
        model: None,
        models: Arc::new(ModelRegistry::default()),
        mcp: Arc::new(McpServers::new(Vec::new(), "unused".as_ref())),
        store: Arc::new(MemoryStore::default()),
        spending: None,
        thread_folders: None,
        web: None,
    }
}

#[test]
fn there_are_120_questions_over_five_apis_and_one_has_a_thousand_calls() {
    let catalogues = catalogues().unwrap();
    let questions = questions().unwrap();
    assert_eq!((catalogues.len(), questions.len()), (5, 120));
    assert!(catalogues.iter().any(|api| api.apis.len() > 1_000));
    let held_out = questions.iter().filter(|one| one.half == Half::HeldOut);
    assert_eq!(held_out.count(), 60);
    for question in &questions {
        let api = catalogues.iter().find(|api| api.name == question.api);
        let calls: Vec<_> = api.unwrap().apis.iter().collect();
        let Some(call) = &question.call else {
            assert_eq!(question.asks.as_deref(), Some("call"), "{question:?}");
            continue;
        };
        let is_it = |api: &&&Api| format!("{} {}", api.method, api.api_url) == *call;
        let api = calls.iter().find(is_it).unwrap();
        let names = question.parameters.keys().chain(&question.missing);
        for name in names {
            assert!(api.parameter(name).is_some(), "{question:?}: {name}");
        }
    }
}

#[test]
fn numbers_are_judged_as_numbers() {
    for (one, other, wanted) in [
        (json!(80), json!(80.0), true),
        (json!([1, 2.0]), json!([1.0, 2]), true),
        (json!([1, 2]), json!([1]), false),
        (json!(80), json!(80.5), false),
        (json!(80), json!("80"), false),
        (json!("a"), json!("a"), true),
    ] {
        assert_eq!(is_same(&one, &other), wanted, "{one} and {other}");
    }
}

/// The figures are what was measured. They may only grow.
#[tokio::test]
async fn the_rules_alone_keep_their_score_and_never_write_without_approval() {
    let options = Options {
        extraction: Extraction::Rules,
        ..Options::default()
    };
    let evaluation = evaluate(&deps(), NO_MODEL, &options, questions().unwrap(), drop)
        .await
        .unwrap();
    // Only questions that the rules may be tuned with are shown, so that the others stay unseen.
    for result in &evaluation.results {
        if !result.right && result.half == Half::Tuned {
            eprintln!(
                "{}: {}\n    became {}\n    wanted {}",
                result.api, result.question, result.became, result.expected
            );
        }
    }
    let score = |half| evaluation.score(half);
    eprintln!(
        "tuned {:?}, held out {:?}, all {:?}",
        score(Some(Half::Tuned)),
        score(Some(Half::HeldOut)),
        score(None)
    );
    assert_eq!(evaluation.writes_without_approval, 0);
    assert!(score(Some(Half::Tuned)).0 >= TUNED);
    assert!(score(Some(Half::HeldOut)).0 >= HELD_OUT);
}

const TUNED: usize = 60;
const HELD_OUT: usize = 56;
