use std::collections::BTreeSet;

use super::*;
use crate::state::{Finding, Source};

fn decision(id: &str) -> EvaluationDecision {
    let decisions = decisions().unwrap();
    decisions.into_iter().find(|one| one.id == id).unwrap()
}

/// Returns a line per fact, with the words of its first set.
fn reference(decision: &EvaluationDecision) -> String {
    let facts = decision.facts.iter();
    let lines = facts.map(|fact| format!("{}.\n", fact.words[0].join(" ")));
    lines.collect()
}

fn contradicts(id: &str, text: &str) -> bool {
    !decision(id).score(text, text).contradictions.is_empty()
}

#[test]
fn there_are_20_decisions_over_eight_folders() {
    let decisions = decisions().unwrap();
    let ids: BTreeSet<_> = decisions.iter().map(|one| &one.id).collect();
    let folders: BTreeSet<_> = decisions.iter().map(|one| &one.folder).collect();
    assert_eq!((decisions.len(), ids.len(), folders.len()), (20, 20, 8));
    for decision in &decisions {
        let id = &decision.id;
        assert_eq!(decision.answers.len(), 2, "{id}");
        assert!((2..=4).contains(&decision.notes.len()), "{id}");
        assert!(decision.facts.len() >= 4, "{id}");
        assert!(!decision.contradictions.is_empty(), "{id}");
        for answer in &decision.answers {
            assert!(!crate::user_is_done(answer), "{id}: {answer}");
        }
    }
    assert!(crate::user_is_done(APPROVAL));
}

#[test]
fn every_fact_is_in_the_notes_the_answers_or_the_query() {
    for decision in decisions().unwrap() {
        let mut known: Vec<&str> = decision.notes.values().map(String::as_str).collect();
        known.extend(decision.answers.iter().map(String::as_str));
        known.push(&decision.query);
        let known = known.join("\n");
        assert_eq!(
            decision.score("", &known).missing,
            [""; 0],
            "{}",
            decision.id
        );
    }
}

#[test]
fn a_text_with_all_facts_scores_full_and_an_empty_one_nothing() {
    for decision in decisions().unwrap() {
        let text = reference(&decision);
        let full = decision.score(&text, &text);
        assert_eq!(full.fault(), None, "{text}");
        assert_eq!(full.found.len(), decision.facts.len());
        let empty = decision.score("", "");
        assert_eq!(empty.found, [""; 0]);
        assert_eq!(empty.missing.len(), decision.facts.len());
        assert_eq!(empty.contradictions, [""; 0]);
    }
}

#[test]
fn what_the_person_ruled_out_contradicts_and_their_own_words_do_not() {
    for decision in decisions().unwrap() {
        for wrong in &decision.contradictions {
            for set in &wrong.words {
                let option = set.join(" ");
                let scored = |text: String| decision.score(&text, &text).contradictions;
                let recommended = scored(format!("We should {option}."));
                assert!(recommended.contains(&wrong.name), "{option}");
                let declined = scored(format!("We should not {option}."));
                assert_eq!(declined, [""; 0], "{option}");
            }
        }
        let own = format!("## Decision\n\n{}", decision.answers.join("\n"));
        let scored = decision.score(&own, &own);
        assert_eq!(scored.contradictions, [""; 0], "{}", decision.id);
    }
}

#[test]
fn a_recommendation_is_distinguished_from_a_description() {
    for wrong in [
        "I recommend opening the second shop on Harbour Street.",
        "**Recommended option: Harbour Street.**",
        "## Recommendation\n\nOpen the shop on Harbour Street, because many people pass.",
        "## Next steps\n\n1. Sign the lease of Harbour Street.",
        "# Decision memo\n\n**Decision:** Sign for Harbour Street at once.",
    ] {
        assert!(contradicts("bakery-site", wrong), "{wrong}");
    }
    for right in [
        "## Options\n\n- Open on Harbour Street: 900 people an hour pass.",
        "# Decision memo\n\nOpening on Harbour Street costs 71,000.",
        "## Decision\n\nOpen on Mill Lane instead of opening on Harbour Street.",
        "## Decision\n\nOpen on Mill Lane, because opening on Harbour Street costs more.",
        "We should choose Mill Lane over Harbour Street.",
        "We decided whether to open on Harbour Street: we will not.",
    ] {
        assert!(!contradicts("bakery-site", right), "{right}");
    }
}

#[test]
fn a_result_is_scored_by_its_claims_and_by_quotations_that_are_in_the_notes() {
    let decision = decision("bakery-site");
    let cites = |claim: &str, quote: &str, support, evidence| Finding {
        source: Some(Source {
            file: "sites.md".to_owned(),
            line: 3,
            page: None,
            quote: quote.to_owned(),
        }),
        support,
        evidence: Some(evidence),
        ..Finding::said(Section::Decisions, claim)
    };
    let quoted = cites(
        "Open on Mill Lane.",
        "rent 1,850 a month",
        Support::Quoted,
        Evidence::Supported,
    );
    let invented = cites(
        "Fitting out is cheap.",
        "it costs 38,000",
        Support::Unsupported,
        Evidence::Unsupported,
    );
    let said = Finding::said(Section::Assumptions, "Runa leads the shop.");
    let mut state = AppState {
        analysis_output: "# Analysis\n\n> 15,000 must be left".to_owned(),
        findings: vec![quoted, invented, said],
        ..AppState::default()
    };
    let scored = decision.score_state(&state);
    assert_eq!(scored.found, ["rent of Mill Lane", "Runa leads the shop"]);
    assert_eq!((scored.supported, scored.claims), (1, 3));
    assert_eq!(scored.degraded, None);
    assert_eq!(scored.contradictions, [""; 0]);
    let harbour = "Sign the lease of Harbour Street.";
    let alternative = Finding::said(Section::Alternatives, harbour);
    state.findings.push(alternative);
    assert_eq!(decision.score_state(&state).contradictions, [""; 0]);
    state
        .findings
        .push(Finding::said(Section::Decisions, harbour));
    let contradictions = decision.score_state(&state).contradictions;
    assert_eq!(contradictions, ["opens on Harbour Street"]);
    state.analysis_output.clear();
    assert!(decision.score_state(&state).degraded.is_some());
}

#[test]
fn the_plain_prompt_has_the_query_the_notes_and_the_answers() {
    let decision = decision("clinic-desk");
    let prompt = decision.plain_prompt();
    let texts = decision.notes.values().chain(&decision.answers);
    for text in texts.chain([&decision.query]) {
        assert!(prompt.contains(text.as_str()), "{text}");
    }
    assert!(prompt.ends_with("Write a decision memo."), "{prompt}");
}

#[test]
fn the_shares_count_decisions_facts_and_claims() {
    let names = |count: usize| vec!["a fact".to_owned(); count];
    let bad = ScoredDecision {
        id: "bakery-site".to_owned(),
        degraded: Some("there is no result".to_owned()),
        missing: names(1),
        contradictions: vec!["opens on Harbour Street".to_owned()],
        ..ScoredDecision::default()
    };
    let good = ScoredDecision {
        found: names(3),
        claims: 5,
        supported: 2,
        ..ScoredDecision::default()
    };
    assert_eq!(good.fault(), None);
    assert_eq!(
        bad.fault().unwrap(),
        "bakery-site: degraded (there is no result); misses a fact; contradicts: opens on Harbour Street"
    );
    let evaluation = Evaluation {
        decisions: vec![bad, good],
    };
    assert_eq!(evaluation.not_degraded(), (1, 2));
    assert_eq!(evaluation.facts(), (3, 4));
    assert_eq!(evaluation.claims(), (2, 5));
    assert_eq!(evaluation.without_contradiction(), (1, 2));
}
