use super::*;

fn accepted(mark: &str, ask: Ask) -> RequestLog {
    RequestLog {
        mark: mark.to_owned(),
        ask,
        told: Told::Accepted {
            run: format!("run of {mark}"),
        },
        may_be_refused: false,
        may_be_cancelled: false,
        may_be_deleted: false,
        cancelled_at: None,
    }
}

const STEPS_ASK: Ask = Ask::Steps { ms: 0 };

fn answer(value: u64) -> RequestLog {
    accepted(&format!("answer {value}"), Ask::Answer { value })
}

fn sight(rows: &[(&str, &str)], done: &[&str]) -> ThreadSight {
    let row = |(mark, status): &(&str, &str)| RowSight {
        mark: (*mark).to_owned(),
        status: (*status).to_owned(),
    };
    ThreadSight {
        rows: rows.iter().map(row).collect(),
        done: done.iter().map(|entry| (*entry).to_owned()).collect(),
        answers: Vec::new(),
    }
}

/// The kinds of faults of a thread.
fn kinds(requests: Vec<RequestLog>, sight: &ThreadSight) -> Vec<&'static str> {
    let log = ThreadLog {
        id: "t".to_owned(),
        requests,
    };
    let faults = judge_thread(&log, Some(sight)).into_iter();
    faults.map(|(kind, _)| kind).collect()
}

const ALL: [&str; 3] = ["a:first", "a:second", "a:third"];

#[test]
fn a_run_that_ended_with_all_that_it_did_is_right() {
    let one = sight(&[("a", "success")], &ALL);
    assert!(kinds(vec![accepted("a", STEPS_ASK)], &one).is_empty());
    let both = [ALL.as_slice(), &["b:first", "b:second", "b:third"]].concat();
    let both = sight(&[("b", "success"), ("a", "success")], &both);
    let requests = || vec![accepted("a", STEPS_ASK), accepted("b", STEPS_ASK)];
    assert!(kinds(requests(), &both).is_empty());
}

#[test]
fn a_run_that_is_lost_doubled_active_or_failed_is_found() {
    let asked = || vec![accepted("a", STEPS_ASK)];
    assert_eq!(kinds(asked(), &sight(&[], &[])), ["run_lost"]);
    let twice = sight(&[("a", "success"), ("a", "success")], &ALL);
    assert_eq!(kinds(asked(), &twice), ["run_doubled"]);
    for status in ["pending", "running"] {
        let active = sight(&[("a", status)], &[]);
        assert!(!active.is_at_rest());
        assert_eq!(kinds(asked(), &active), ["unfinished"]);
    }
    assert_eq!(kinds(asked(), &sight(&[("a", "error")], &[])), ["failed"]);
    let interrupted = sight(&[("a", "interrupted")], &ALL[..1]);
    assert_eq!(kinds(asked(), &interrupted), ["wrong_status"]);
    let log = ThreadLog {
        id: "t".to_owned(),
        requests: asked(),
    };
    assert_eq!(judge_thread(&log, None)[0].0, "thread_lost");
}

#[test]
fn a_state_that_the_inputs_do_not_say_is_found() {
    let asked = || vec![accepted("a", STEPS_ASK)];
    let wrong: [&[&str]; 4] = [
        &[],
        &["a:first", "a:third"],
        &["a:first", "a:second", "a:second", "a:third"],
        &["a:first", "b:first", "a:second", "a:third"],
    ];
    for done in wrong {
        let shown = sight(&[("a", "success")], done);
        assert_eq!(kinds(asked(), &shown), ["wrong_state"], "{done:?}");
    }
}

#[test]
fn a_run_that_was_ended_early_leaves_its_beginning_or_nothing() {
    let cancelled = || RequestLog {
        may_be_cancelled: true,
        ..accepted("a", STEPS_ASK)
    };
    for done in [&ALL[..0], &ALL[..2], &ALL[..]] {
        let shown = sight(&[("a", "interrupted")], done);
        assert!(kinds(vec![cancelled()], &shown).is_empty(), "{done:?}");
    }
    let later = sight(&[("a", "interrupted")], &ALL[1..]);
    assert_eq!(kinds(vec![cancelled()], &later), ["wrong_state"]);

    let deleted = || RequestLog {
        may_be_deleted: true,
        ..cancelled()
    };
    assert!(kinds(vec![deleted()], &sight(&[], &[])).is_empty());
    let left_behind = sight(&[], &ALL[..1]);
    assert_eq!(kinds(vec![deleted()], &left_behind), ["wrong_state"]);
}

#[test]
fn a_refusal_is_expected_or_found_and_what_was_refused_never_runs() {
    let refused = |may_be_refused| RequestLog {
        told: Told::Refused(409),
        may_be_refused,
        ..accepted("a", STEPS_ASK)
    };
    let nothing = sight(&[], &[]);
    assert!(kinds(vec![refused(true)], &nothing).is_empty());
    assert_eq!(
        kinds(vec![refused(false)], &nothing),
        ["unexpected_refusal"]
    );
    let ran = sight(&[("a", "success")], &ALL);
    assert_eq!(kinds(vec![refused(true)], &ran), ["refused_but_ran"]);
}

#[test]
fn answers_are_in_the_state_once_and_in_order() {
    let requests = || vec![accepted("q", Ask::Questions), answer(7), answer(8)];
    let rows = [
        ("answer 8", "success"),
        ("answer 7", "success"),
        ("q", "success"),
    ];
    let shown = |answers: &[u64]| ThreadSight {
        answers: answers.to_vec(),
        ..sight(&rows, &["q:act_one", "q:act_two"])
    };
    assert!(kinds(requests(), &shown(&[7, 8])).is_empty());
    for wrong in [[8, 7], [7, 7], [9, 8]] {
        assert_eq!(kinds(requests(), &shown(&wrong)), ["wrong_answers"]);
    }
    // Of an answer without a reply nothing is known.
    let unknown = |value| RequestLog {
        told: Told::Unknown,
        ..answer(value)
    };
    let cut_off = || vec![answer(7), unknown(8)];
    for answers in [&[7][..], &[7, 8][..]] {
        let found = kinds(cut_off(), &shown(answers));
        assert!(!found.contains(&"wrong_answers"), "{answers:?}");
    }
    assert!(kinds(cut_off(), &shown(&[7, 8, 8])).contains(&"wrong_answers"));
}

fn line(at: u64, phase: &str, key: &str) -> Line {
    Line {
        at,
        thread: "t".to_owned(),
        pid: 1,
        phase: phase.to_owned(),
        key: key.to_owned(),
        detail: 1,
    }
}

fn effects_of(mark: &str) -> Vec<Line> {
    let keys = STEPS
        .iter()
        .flat_map(|node| EFFECTS.map(|effect| format!("{mark}/{node}/{effect}")));
    keys.flat_map(|key| [line(10, "start", &key), line(11, "acked", &key)])
        .collect()
}

fn kinds_of_effects(judge: &EffectJudge, lines: &[Line]) -> Vec<&'static str> {
    let faults = judge.judge(lines).faults.into_iter();
    faults.map(|(kind, _)| kind).collect()
}

#[test]
fn every_effect_of_a_finished_run_is_in_the_ledger() {
    let mut judge = EffectJudge::default();
    judge.add_finished("a");
    let mut lines = effects_of("a");
    assert!(kinds_of_effects(&judge, &lines).is_empty());
    lines.retain(|line| line.key != "a/third/two");
    assert_eq!(kinds_of_effects(&judge, &lines), ["effect_missing"]);
}

#[test]
fn an_effect_repeats_only_if_it_was_in_flight() {
    let judge = EffectJudge::default();
    let in_flight = [
        line(1, "start", "a/first/one"),
        line(2, "start", "a/first/one"),
    ];
    assert!(kinds_of_effects(&judge, &in_flight).is_empty());
    assert_eq!(judge.judge(&in_flight).redone, 1);
    let exact = EffectJudge::exact();
    assert_eq!(kinds_of_effects(&exact, &in_flight), ["effect_doubled"]);
    let acknowledged = [effects_of("a"), vec![line(12, "start", "a/first/one")]].concat();
    let kinds = kinds_of_effects(&judge, &acknowledged);
    assert_eq!(kinds, ["acknowledged_step_again"]);
    let bodies = [
        line(1, "body", "a/second"),
        line(2, "body", "b/first"),
        line(3, "body", "a/first"),
    ];
    let kinds = kinds_of_effects(&judge, &bodies);
    assert_eq!(kinds, ["acknowledged_superstep_again"]);
    let again = [line(1, "body", "a/first"), line(2, "body", "a/first")];
    assert!(kinds_of_effects(&judge, &again).is_empty());
    assert_eq!(kinds_of_effects(&exact, &again), ["node_again"]);
}

#[test]
fn what_was_cancelled_or_refused_has_no_effect_afterwards() {
    let request = |told: Told, cancelled_at| RequestLog {
        told,
        cancelled_at,
        ..accepted("a", STEPS_ASK)
    };
    let judge = |request: RequestLog| {
        let log = ThreadLog {
            id: "t".to_owned(),
            requests: vec![request],
        };
        let mut judge = EffectJudge::default();
        judge.add(&log, &ThreadSight::default());
        judge
    };
    let late = [line(1_000, "start", "a/second/one")];
    let cancelled = judge(request(Told::Unknown, Some(100)));
    assert_eq!(kinds_of_effects(&cancelled, &late), ["ran_after_cancel"]);
    let in_time = judge(request(Told::Unknown, Some(999)));
    assert!(kinds_of_effects(&in_time, &late).is_empty());
    let refused = judge(request(Told::Refused(409), None));
    assert_eq!(kinds_of_effects(&refused, &late), ["refused_but_ran"]);
}
