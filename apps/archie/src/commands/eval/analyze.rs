//! Scores `analyze`: interviews about decisions with known facts.

use archie_agent::AgentDeps;
use archie_analyze::evaluation::{ScoredDecision, decisions, evaluate, evaluate_plain};

use super::progress::Progress;
use super::report::Scores;
use super::sample;
use super::share::Share;
use crate::app::App;
use crate::cli::args::EvalArgs;

/// Scores the agent, or with `--plain` a prompt that holds the notes and the person's answers. The claims of a plain memo cite
/// nothing that could be checked, so that measure is left out.
pub(super) async fn evaluate_analyze(
    args: &EvalArgs,
    app: &App,
    deps: &AgentDeps,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Scores> {
    let name = app.settings.model()?;
    let decisions = sample(decisions()?, args.cases);
    let of = decisions.len();
    let on_done = |done| progress.set(done, of);
    let scored = match args.plain {
        true => {
            let model = app.models.get(name)?;
            evaluate_plain(&decisions, model.as_ref(), on_done).await?
        }
        false => evaluate(deps, name, &decisions, on_done).await?,
    };
    let share = |(right, of)| Share { right, of };
    let mut measures = vec![
        ("results not degraded", share(scored.not_degraded())),
        ("facts found", share(scored.facts())),
        ("claims supported", share(scored.claims())),
        (
            "without contradiction",
            share(scored.without_contradiction()),
        ),
    ];
    if args.plain {
        measures.retain(|(name, _)| *name != "claims supported");
    }
    let faults = scored.decisions.iter().filter_map(ScoredDecision::fault);
    Ok(Scores {
        measures,
        forbidden: None,
        wrong: faults.collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archie_agent::ModelRegistry;
    use archie_agent::mcp::McpServers;
    use serde_json::{Value as Json, json};
    use superstep::store::MemoryStore;
    use superstep_llm::{Model, Script};

    use super::*;

    const MODEL: &str = "script:test";

    fn scripted(replies: Json) -> Arc<Script> {
        let text = json!({ "replies": replies }).to_string();
        Arc::new(Script::parse("test", &text).unwrap())
    }

    fn deps(script: Arc<Script>) -> AgentDeps {
        let models = ModelRegistry::default();
        models.put(MODEL, script);
        AgentDeps {
            data_folder: "unused".into(),
            prompts_folder: None,
            model: None,
            models: Arc::new(models),
            mcp: Arc::new(McpServers::new(Vec::new(), "unused".as_ref())),
            store: Arc::new(MemoryStore::default()),
            spending: None,
            thread_folders: None,
            web: None,
        }
    }

    #[tokio::test]
    async fn an_interview_is_held_to_its_end_and_its_result_is_scored() {
        let script = scripted(json!([
            { "at": "initial", "text": "Two sites are free. What matters most?" },
            { "at": "followup", "expect": "at least 15,000", "text": "Which lease do you accept?" },
            { "at": "followup", "expect": "Harbour Street is ruled out", "text": "I propose Mill Lane. Does it fit?" },
            { "at": "final", "json": {
                "assumptions": [{ "claim": "At least 15,000 stay at the bank." }],
                "components": [{ "claim": "Fitting out Mill Lane costs 38,000.", "file": "sites.md", "line": 6, "quote": "fitting it out costs 38,000" }],
                "alternatives": [{ "claim": "Harbour Street, for 3,200 a month." }],
                "decisions": [{ "claim": "Sign the lease of Harbour Street." }],
                "open_questions": [],
            } },
        ]));
        let decisions = decisions().unwrap();
        let deps = deps(script.clone());
        let scored = evaluate(&deps, MODEL, &decisions[..1], drop).await.unwrap();
        script.finish().unwrap();
        assert_eq!(scored.not_degraded(), (1, 1));
        assert_eq!(scored.facts(), (2, 4));
        assert_eq!(scored.claims(), (2, 4));
        assert_eq!(scored.without_contradiction(), (0, 1));
        assert_eq!(
            scored.decisions[0].fault().unwrap(),
            "bakery-site: misses rent of Mill Lane, Runa leads the shop; contradicts: opens on Harbour Street"
        );
    }

    #[tokio::test]
    async fn a_plain_prompt_is_one_call_per_decision() {
        let memo = "# Decision memo\n\nRent is 1,850, fitting out 38,000.\n15,000 stay. Runa leads the shop.";
        let script = scripted(json!([
            { "at": "plain", "expect": "Harbour Street is ruled out", "text": memo },
            { "at": "plain", "text": " " },
        ]));
        let decisions = decisions().unwrap();
        let model: &dyn Model = &*script;
        let scored = evaluate_plain(&decisions[..2], model, drop).await.unwrap();
        script.finish().unwrap();
        assert_eq!(scored.not_degraded(), (1, 2));
        assert_eq!(scored.facts(), (4, 8));
        assert_eq!(scored.without_contradiction(), (2, 2));
    }
}
