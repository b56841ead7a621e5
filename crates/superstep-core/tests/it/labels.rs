//! Labels cannot be stripped, dropped by a node, or taken away without a trace; and policies compare sets.
//!
//! Checked by hand that these notice a broken core: with the comparison taken out of `Ending::check_labels`, the
//! labels of sent payloads out of `command::floor`, or those of labeled values out of `value/json.rs`, one to four of
//! them fail; with a step's labels not taken from its record, one here and the random flows do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use harness::prng::Prng;
use serde_json::{Value as Json, json};
use superstep_core::checkpoint::format::{Body, Change, Entry, Extensions, Record};
use superstep_core::checkpoint::{Archive, Checkpointer, Memory};
use superstep_core::driver::ThreadRequest;
use superstep_core::label::{Declassified, Policy, Verdict};
use superstep_core::node::{Task, TaskEnd};
use superstep_core::run::{RunOptions, read_state};
use superstep_core::{
    Command, END, Graph, Label, Labeled, Labels, Moment, NodeCx, NodeError, Outcome, Run, START,
    SendTo, Seq, State, Step, ThreadId, Timestamp, Value, View,
};

use crate::format::{extensions, labeled_step_record};
use crate::simulate::{StoreDoor, block_on};

#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct Mail {
    body: Labeled<String>,
    reply: Option<Labeled<String>>,
    #[state(append)]
    notes: Vec<Labeled<String>>,
    plain: String,
}

type Told = Result<Command<Mail>, NodeError>;

fn graph<Fut: Future<Output = Told> + Send + 'static>(
    node: impl Fn(View<Mail>, NodeCx) -> Fut + Send + Sync + 'static,
) -> Graph<Mail> {
    Graph::builder("mail")
        .node("node", node)
        .commands("node", &["worker", END])
        .map_node(&WORKER, |_: Labeled<String>, _: NodeCx| async {
            Ok::<_, NodeError>(MailUpdate::default())
        })
        .edge(START, "node")
        .edge("worker", END)
        .build()
        .unwrap()
}

const WORKER: SendTo<Labeled<String>> = SendTo::new("worker");

fn thread() -> ThreadId {
    ThreadId::new("t").unwrap()
}

fn start() -> ThreadRequest {
    let body = Labeled::new("the code is 4711".to_owned(), Label::PRIVATE);
    ThreadRequest::Start {
        input: Value::encode(&MailUpdate::default().body(body)).unwrap(),
        context: None,
        metadata: None,
    }
}

/// Runs until it stops; the process dies once each time `dies` is asked after a task and says so.
fn run(graph: &Graph<Mail>, store: &Memory, dies: impl Fn() -> bool) -> Outcome {
    let mut command = start();
    let mut entropy = 0;
    'process: loop {
        entropy += 1;
        let moment = Moment {
            now: Timestamp(0),
            entropy,
        };
        let loaded = block_on(store.load(&thread())).unwrap();
        let options = RunOptions::default();
        let definition = graph.definition();
        let mut run = Run::open(definition, &thread(), loaded, command, options, moment).unwrap();
        let mut running: Vec<Task> = Vec::new();
        loop {
            match run.next_step() {
                Step::Start(tasks) => running.extend(tasks),
                Step::Drop(ids) => running.retain(|task| !ids.contains(&task.id())),
                Step::Save(commit) => {
                    let saved = block_on(store.save(&commit)).unwrap();
                    run.saved(saved, Timestamp(0)).unwrap();
                }
                Step::Wait { .. } => {
                    let task = running.remove(0);
                    let id = task.id();
                    let end: TaskEnd = block_on(task.execute(Arc::new(StoreDoor(store.clone()))));
                    if dies() {
                        command = ThreadRequest::Recover;
                        continue 'process;
                    }
                    run.task_ended(id, end, Timestamp(0)).unwrap();
                }
                Step::Record(_) | Step::Suspend(_) => unreachable!("only a limited segment does"),
                Step::Stop(outcome) => return outcome,
            }
        }
    }
}

fn outcome(graph: &Graph<Mail>) -> Outcome {
    run(graph, &Memory::new(), || false)
}

/// In the words of the failure, if it is the one for labels that were lost.
fn lost(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed(failures) if failures[0].kind.code() == "node-invalid-update" => {
            failures[0].message.clone()
        }
        other => panic!("not refused: {other:?}"),
    }
}

fn bare(text: &str) -> Labeled<String> {
    Labeled::new(text.to_owned(), Labels::NONE)
}

#[test]
fn a_node_that_has_read_a_label_must_put_it_on_what_it_writes() {
    for at in 0..5 {
        let graph = graph(move |mail, cx| async move {
            let code = mail.body.read(&cx).clone();
            let update = MailUpdate::default();
            let good = cx.labeled(code.clone());
            Ok(match at {
                0 => Command::update(update.body(bare(&code))),
                1 => Command::update(update.reply(bare(&code))),
                // One of several is enough.
                2 => Command::update(update.notes(good).notes(bare(&code))),
                3 => Command::update(update.overwrite_notes(vec![bare(&code)])),
                _ => Command::update(update.reply(good)).send(&WORKER, bare(&code)),
            })
        });
        let said = lost(outcome(&graph));
        assert!(
            said.contains("`private`") && said.contains("cx.labeled"),
            "{at}: {said}"
        );
    }
}

#[test]
fn a_command_to_the_parent_must_carry_what_was_read() {
    let child = graph(|mail, cx| async move {
        let code = mail.body.read(&cx).clone();
        let command = Command::<Mail>::update(MailUpdate::default().reply(bare(&code)));
        Ok(Command::parent(command))
    });
    let parent = Graph::builder("parent")
        .subgraph(
            "child",
            child,
            |mail: &Mail| MailUpdate::default().body(mail.body.clone()),
            |_, _| MailUpdate::default(),
        )
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap();
    assert!(lost(outcome(&parent)).contains("`private`"));
}

#[test]
fn what_carries_its_labels_is_taken_and_what_was_not_read_costs_nothing() {
    let graph = graph(|mail, cx| async move {
        let length = mail.body.clone().map(|body| body.len().to_string());
        let update = MailUpdate::default().notes(length).notes(bare("no code"));
        assert!(cx.read_so_far().is_empty());
        let code = mail.body.read(&cx).clone();
        let update = update.overwrite_notes(Vec::new()).reply(cx.labeled(code));
        // Of a plain type nobody can tell: that is what the type says.
        Ok(Command::update(update.plain("plain")))
    });
    // The note without the label was made before the code was read, but the node returned it afterwards.
    assert!(lost(outcome(&graph)).contains("`private`"));

    let graph = self::graph(|mail, _| async move {
        let length = mail.body.clone().map(|body| body.len().to_string());
        Ok(Command::update(
            MailUpdate::default().notes(length).notes(bare("no code")),
        ))
    });
    assert_eq!(outcome(&graph), Outcome::Finished);
}

/// Without the labels in the step's record the second go would not know that it read, for the closure does not run again.
#[test]
fn what_a_step_has_read_counts_also_after_a_crash() {
    let looks = Arc::new(AtomicU32::new(0));
    let counted = looks.clone();
    let graph = graph(move |mail, cx| {
        let looks = counted.clone();
        async move {
            let look = async || {
                looks.fetch_add(1, Ordering::SeqCst);
                Ok(mail.body.read(&cx).clone())
            };
            let code: String = cx.step("look", look).await?;
            // The first go is well behaved, and dies.
            let note = match looks.fetch_add(1, Ordering::SeqCst) {
                1 => cx.labeled(code),
                _ => bare(&code),
            };
            Ok(Command::update(MailUpdate::default().notes(note)))
        }
    });
    let died = AtomicU32::new(0);
    let stopped = run(&graph, &Memory::new(), || {
        died.fetch_add(1, Ordering::SeqCst) == 0
    });
    assert!(lost(stopped).contains("`private`"));
    // Looked once, and came to the end twice.
    assert_eq!(looks.load(Ordering::SeqCst), 3);
}

/// The form is held by the golden file of [`labeled_step_record`].
#[test]
fn what_a_step_has_read_is_stored_with_its_record() {
    let graph = graph(|mail, cx| async move {
        let body = mail.body.clone().with(Label::UNTRUSTED);
        let look = async || Ok(body.read(&cx).len());
        let length = cx.step("look", look).await?;
        Ok(Command::update(
            MailUpdate::default().notes(cx.labeled(length.to_string())),
        ))
    });
    let store = Memory::new();
    let seen = AtomicU32::new(0);
    let looks_at_records = || {
        for row in block_on(store.export(&thread())).unwrap().records {
            if row.key == "look" {
                let record = Record::unseal(&row.body, &thread(), Seq(0)).unwrap();
                assert_eq!(record.extensions, labeled_step_record().extensions);
                seen.fetch_add(1, Ordering::SeqCst);
            }
        }
        false
    };
    assert_eq!(run(&graph, &store, looks_at_records), Outcome::Finished);
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

/// Labels that make no sense are refused by name, and not taken for none.
#[test]
fn a_record_whose_labels_are_damaged_is_not_used() {
    let graph = graph(|mail, cx| async move {
        let look = async || Ok(mail.body.read(&cx).len());
        let length = cx.step("look", look).await?;
        Ok(Command::update(
            MailUpdate::default().notes(cx.labeled(length.to_string())),
        ))
    });
    let store = Memory::new();
    let damaged = Memory::new();
    let dies = || {
        // Another store with the same thread, but for one record.
        let mut archive = block_on(store.export(&thread())).unwrap();
        for row in archive.records.iter_mut().filter(|row| row.key == "look") {
            let record = Record::unseal(&row.body, &thread(), Seq(0)).unwrap();
            let extensions = extensions(Extensions::LABELS);
            row.body = Record {
                extensions,
                ..record
            }
            .seal(&thread(), Seq(0));
        }
        block_on(damaged.import(&thread(), &archive)).unwrap();
        false
    };
    assert_eq!(run(&graph, &store, dies), Outcome::Finished);
    let loaded = block_on(damaged.load(&thread())).unwrap();
    let moment = Moment {
        now: Timestamp(0),
        entropy: 9,
    };
    let (options, recover) = (RunOptions::default(), ThreadRequest::Recover);
    let opened = Run::open(
        graph.definition(),
        &thread(),
        loaded,
        recover,
        options,
        moment,
    );
    assert!(opened.is_err_and(|error| {
        error.to_string().contains("extension 1")
            || std::error::Error::source(&error)
                .is_some_and(|e| e.to_string().contains("extension 1"))
    }));
}

#[test]
fn taking_a_label_away_needs_a_reason_and_is_in_the_log() {
    let graph = graph(|mail, cx| async move {
        let body = mail.body.read(&cx).len();
        let private = Labels::from(Label::PRIVATE);
        assert!(cx.labeled(1).declassify(&private, " ", &cx).is_err());
        let length = cx.labeled(body.to_string());
        let length = length.declassify(&private, "a length tells nothing", &cx)?;
        Ok(Command::update(MailUpdate::default().notes(length)))
    });
    let store = Memory::new();
    assert_eq!(run(&graph, &store, || false), Outcome::Finished);
    let entries = block_on(store.entries(&thread(), Seq(0), 100)).unwrap();
    let entries = entries
        .iter()
        .map(|e| Entry::unseal(&e.body, &thread(), e.seq).unwrap());
    let changes: Vec<Change> = entries.flat_map(|entry| entry.changes).collect();
    let writes = changes.iter().filter_map(|change| match change {
        Change::FrameAdvanced(advanced) => Some(&advanced.writes),
        _ => None,
    });
    let write = writes
        .flatten()
        .find(|write| !write.events.is_empty())
        .unwrap();
    let mut event: Json = write.events[0].decode().unwrap();
    let told: Declassified = serde_json::from_value(event["declassified"].take()).unwrap();
    assert_eq!(told.labels, Label::PRIVATE.into());
    assert_eq!(told.reason, "a length tells nothing");
    // In the same commit as what was written.
    let update: Json = write.updates[0].decode().unwrap();
    assert_eq!(
        update,
        json!({ "notes": [{ "labels": [], "value": "16" }] })
    );
}

#[test]
fn the_stored_form_has_its_labels_and_nothing_reads_without() {
    let labeled = Labeled::new(7, [Label::PRIVATE, Label::UNTRUSTED]);
    let stored = serde_json::to_string(&labeled).unwrap();
    assert_eq!(stored, r#"{"labels":["private","untrusted"],"value":7}"#);
    assert_eq!(
        serde_json::from_str::<Labeled<i32>>(&stored).unwrap(),
        labeled
    );
    let none = serde_json::to_string(&Labeled::new(7, Labels::NONE)).unwrap();
    assert_eq!(none, r#"{"labels":[],"value":7}"#);
    for stripped in [
        r#"{"value":7}"#,
        "7",
        r#"{"labels":null,"value":7}"#,
        r#"{"labels":{},"value":7}"#,
        r#"{"labels":[null],"value":7}"#,
        r#"{"labels":["Private"],"value":7}"#,
        r#"{"labels":[""],"value":7}"#,
        r#"{"Labels":["private"],"value":7}"#,
        r#"{"labels":["private"],"labels":[],"value":7}"#,
        r#"{"labels":["private"],"value":7,"other":1}"#,
        r#"{"labels":["private"]}"#,
    ] {
        assert!(
            serde_json::from_str::<Labeled<Option<i32>>>(stripped).is_err(),
            "{stripped}"
        );
        assert!(
            serde_json::from_str::<Labeled<Json>>(stripped).is_err(),
            "{stripped}"
        );
    }
}

#[test]
fn a_log_shows_no_value_that_has_labels() {
    let secret = Labeled::new("4711", Label::SECRET);
    assert_eq!(format!("{secret:?}"), r#"Labeled({"secret"}, ..)"#);
    assert_eq!(
        format!("{:?}", Labeled::new("4711", Labels::NONE)),
        r#"Labeled("4711")"#
    );
}

/// Somebody with the database and our code takes the labels out of every value, and seals it properly.
#[test]
fn a_thread_whose_labels_were_stripped_is_not_opened() {
    let graph = graph(|mail, cx| async move {
        let code = mail.body.read(&cx).clone();
        Ok(Command::update(
            MailUpdate::default().notes(cx.labeled(code)),
        ))
    });
    let store = Memory::new();
    assert_eq!(run(&graph, &store, || false), Outcome::Finished);
    let whole = block_on(store.export(&thread())).unwrap();
    assert!(opens(&graph, &whole), "it is read as it is");
    let mut stripped = 0;
    for at in 0..whole.entries.len() {
        let mut archive = whole.clone();
        let stored = &mut archive.entries[at];
        let mut entry = Entry::unseal(&stored.body, &thread(), stored.seq).unwrap();
        for value in entry.changes.iter_mut().flat_map(values_of) {
            let json = String::from_utf8(value.json().unwrap().to_vec()).unwrap();
            let without = json.replace(r#""labels":["private"],"#, "");
            stripped += u32::from(without != json);
            *value = Value::from_json_bytes(without.as_bytes());
        }
        let resealed = entry.seal(&thread(), stored.seq);
        let changed = resealed != stored.body;
        stored.body = resealed;
        assert_eq!(opens(&graph, &archive), !changed, "entry {at}");
    }
    assert_eq!(stripped, 2, "the input and the note");
}

/// And without our code, by cutting bytes out: every cut of every length up to that of the labels, at every place.
#[test]
fn bytes_that_were_cut_out_are_noticed() {
    let entry = {
        let graph = graph(|_, _| async { Ok(Command::update(MailUpdate::default())) });
        let store = Memory::new();
        run(&graph, &store, || false);
        block_on(store.entries(&thread(), Seq(0), 1))
            .unwrap()
            .remove(0)
    };
    let labels = br#""labels":["private"],"#;
    assert!(
        entry
            .body
            .windows(labels.len())
            .any(|bytes| bytes == labels)
    );
    for length in 1..=labels.len() {
        for at in 0..=entry.body.len() - length {
            let mut cut = entry.body.clone();
            cut.drain(at..at + length);
            assert!(
                Entry::unseal(&cut, &thread(), entry.seq).is_err(),
                "{length} at {at}"
            );
        }
    }
}

fn values_of(change: &mut Change) -> Vec<&mut Value> {
    match change {
        Change::FrameOpened(opened) => opened.input.iter_mut().collect(),
        Change::FrameAdvanced(advanced) => {
            let writes = advanced.writes.iter_mut();
            writes.flat_map(|write| &mut write.updates).collect()
        }
        _ => Vec::new(),
    }
}

fn opens(graph: &Graph<Mail>, archive: &Archive) -> bool {
    let store = Memory::new();
    block_on(store.import(&thread(), archive)).unwrap();
    let history = block_on(store.load(&thread())).unwrap().unwrap().history;
    read_state(graph.definition(), &thread(), &history).is_ok()
}

#[test]
fn a_label_is_a_short_plain_name() {
    for good in [
        "untrusted",
        "a",
        "source:mail",
        "of.acme-2_x",
        &"x".repeat(64),
    ] {
        assert_eq!(Label::new(good).unwrap().as_str(), good);
    }
    for bad in [
        "",
        "Private",
        "pri vate",
        "privé",
        "a,b",
        "a\u{0}",
        "`x`",
        &"x".repeat(65),
    ] {
        assert_eq!(Label::new(bad).unwrap_err().code(), "name-label", "{bad:?}");
    }
    assert_eq!(Label::new("private").unwrap(), Label::PRIVATE);
}

/// Against a model that goes through every rule for every subset of labels.
#[test]
fn policies_say_what_a_naive_model_says() {
    let names = ["a", "b", "c", "d"];
    let set = |bits: usize| -> Labels {
        let chosen = (0..4).filter(|bit| bits >> bit & 1 == 1);
        chosen.map(|bit| Label::new(names[bit]).unwrap()).collect()
    };
    let mut entropy = Prng::new(0x9011c);
    let mut verdicts = [0; 3];
    for _ in 0..2_000 {
        let rules: Vec<(usize, usize)> = (0..entropy.index(6))
            .map(|_| (entropy.index(16), entropy.index(3)))
            .collect();
        let policy = rules
            .iter()
            .fold(Policy::new(), |policy, (bits, rule)| match rule {
                0 => policy.accepts(set(*bits)),
                1 => policy.asks(set(*bits)),
                _ => policy.refuses(set(*bits)),
            });
        // Of several rules for the very same set the last one counts; accepting a set accepts each of it.
        let mut latest = [None; 16];
        for (bits, rule) in rules.iter().filter(|(bits, _)| *bits > 0) {
            latest[*bits] = Some(*rule);
            if *rule == 0 {
                (0..4)
                    .filter(|bit| bits >> bit & 1 == 1)
                    .for_each(|bit| latest[1 << bit] = Some(0));
            }
        }
        for bits in 0..16 {
            let applying = |rule| {
                (1..16)
                    .filter(move |of| bits & of == *of)
                    .filter(move |of| latest[*of] == Some(rule))
            };
            let because = |rule| applying(rule).fold(0, |all, of| all | of);
            let unnamed = (0..4)
                .map(|bit| 1 << bit)
                .filter(|one| bits & one > 0 && latest[*one].is_none());
            let asked = because(1) | unnamed.sum::<usize>();
            let wanted = match (because(2), asked) {
                (0, 0) => Verdict::Accepted,
                (0, asked) => Verdict::NeedsApproval(set(asked)),
                (refused, _) => Verdict::Refused(set(refused)),
            };
            assert_eq!(
                policy.check(&set(bits)),
                wanted,
                "{rules:?} of {:?}",
                set(bits)
            );
            verdicts[match wanted {
                Verdict::Accepted => 0,
                Verdict::NeedsApproval(_) => 1,
                Verdict::Refused(_) => 2,
            }] += 1;
        }
    }
    assert!(verdicts.iter().all(|count| *count > 2_000), "{verdicts:?}");
}
