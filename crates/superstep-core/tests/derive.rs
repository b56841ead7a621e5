//! What `#[derive(State)]` writes, through the public traits, and what it says to those it refuses.

#![cfg(feature = "derive")]

use std::collections::BTreeSet;
use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep_core::channel::{ChannelKind, ChannelSet};
use superstep_core::error::{InvalidUpdate, MigrationError};
use superstep_core::state::{Fields, MessageIds};
use superstep_core::{Message, State, StateUpdate};

#[derive(Clone, Debug, PartialEq, State)]
#[state(crate = superstep_core, version = 3, rename_all = "camelCase")]
#[state(migrate = migrate, check = check, removed("oldField"))]
struct Review {
    topic: String,
    verdict: Option<String>,
    #[state(append)]
    side_notes: Vec<String>,
    #[state(messages)]
    messages: Vec<Msg>,
    #[state(reduce = add)]
    score: i64,
    #[state(topic)]
    alerts: Vec<String>,
    #[state(ephemeral)]
    hint: Option<String>,
    #[state(untracked)]
    scratch: Vec<u8>,
    #[state(name = "input")]
    user_input: String,
}

impl Default for Review {
    fn default() -> Self {
        Self {
            topic: "untitled".into(),
            verdict: None,
            side_notes: vec![],
            messages: vec![],
            score: 10,
            alerts: vec![],
            hint: None,
            scratch: vec![],
            user_input: String::new(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Msg {
    id: Option<String>,
    text: String,
}

impl Message for Msg {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn set_id(&mut self, id: String) {
        self.id = Some(id);
    }
}

impl From<&str> for Msg {
    fn from(text: &str) -> Self {
        Self {
            id: None,
            text: text.into(),
        }
    }
}

fn msg(id: &str, text: &str) -> Msg {
    Msg {
        id: Some(id.into()),
        text: text.into(),
    }
}

fn add(total: i64, write: i64) -> i64 {
    total + write
}

/// Version 1 called the side notes `notes`; version 2 stored the score as text.
fn migrate(from: u32, fields: &mut Fields) -> Result<(), MigrationError> {
    match from {
        1 => fields.rename("notes", "sideNotes"),
        2 => fields.change("score", |score| {
            json!(score.as_str().and_then(|text| text.parse::<i64>().ok()))
        }),
        _ => {
            return Err(MigrationError::Failed {
                from,
                why: "never released".into(),
            });
        }
    }
    Ok(())
}

fn check(review: &Review, update: &ReviewUpdate) -> Result<(), InvalidUpdate> {
    match update.written_score() {
        Some(score) if review.score + score < 0 => {
            Err(InvalidUpdate::rule("the score stays above zero"))
        }
        _ => Ok(()),
    }
}

fn update() -> ReviewUpdate {
    ReviewUpdate::default()
}

fn applied(update: ReviewUpdate) -> Review {
    let mut review = Review::default();
    review.apply(update);
    review
}

fn stored(value: &impl Serialize) -> Json {
    serde_json::to_value(value).expect("what was derived can be written")
}

fn read<T: DeserializeOwned>(json: Json) -> T {
    serde_json::from_value(json).expect("the JSON fits the type")
}

fn refusal<T: DeserializeOwned + Debug>(json: Json) -> String {
    serde_json::from_value::<T>(json)
        .expect_err("the JSON does not fit the type")
        .to_string()
}

fn names(channels: ChannelSet) -> Vec<&'static str> {
    channels
        .iter()
        .map(|index| Review::CHANNELS[index as usize].name)
        .collect()
}

fn set(name: &str) -> ChannelSet {
    let index = Review::CHANNELS
        .iter()
        .position(|channel| channel.name == name)
        .expect("a channel of the state");
    ChannelSet::EMPTY.with(index as u32, true)
}

#[test]
fn channels_are_the_fields_in_order_under_their_wire_names() {
    use ChannelKind::*;
    let table: Vec<_> = Review::CHANNELS
        .iter()
        .map(|channel| (channel.name, channel.kind))
        .collect();
    assert_eq!(
        table,
        [
            ("topic", Last),
            ("verdict", Last),
            ("sideNotes", Append),
            ("messages", Messages),
            ("score", Reduce),
            ("alerts", Topic),
            ("hint", Ephemeral),
            ("scratch", Untracked),
            ("input", Last),
        ]
    );
    assert_eq!(Review::VERSION, 3);
}

#[test]
fn a_state_is_stored_under_wire_names_and_without_what_is_untracked() {
    let review = Review {
        scratch: vec![1],
        ..Review::default()
    };
    assert_eq!(
        stored(&review),
        json!({
            "topic": "untitled", "verdict": null, "sideNotes": [], "messages": [], "score": 10,
            "alerts": [], "hint": null, "input": "",
        })
    );
}

#[test]
fn a_stored_state_reads_back_as_it_was() {
    let review = Review {
        verdict: Some("good".into()),
        messages: vec![msg("a", "hi")],
        ..Review::default()
    };
    assert_eq!(read::<Review>(stored(&review)), review);
}

#[test]
fn a_missing_field_is_that_of_the_default_state() {
    assert_eq!(
        read::<Review>(json!({ "input": "x" })),
        Review {
            user_input: "x".into(),
            ..Review::default()
        }
    );
}

#[test]
fn null_is_a_value_for_an_option_and_nothing_else() {
    assert_eq!(read::<Review>(json!({ "verdict": null })).verdict, None);
    assert_eq!(
        refusal::<Review>(json!({ "topic": null })),
        "invalid type: null, expected a string"
    );
}

#[test]
fn an_unknown_field_is_refused() {
    assert!(
        refusal::<Review>(json!({ "subject": "x" }))
            .starts_with("unknown field `subject`, expected one of `topic`")
    );
    assert!(
        refusal::<ReviewUpdate>(json!({ "subject": "x" })).starts_with("unknown field `subject`")
    );
    assert!(
        refusal::<ReviewUpdate>(json!({ "=topic": "x" })).starts_with("unknown field `=topic`")
    );
}

#[test]
fn a_removed_field_is_ignored() {
    assert_eq!(
        read::<Review>(json!({ "oldField": { "any": [1] } })),
        Review::default()
    );
    let update: ReviewUpdate = read(json!({ "oldField": 1, "=oldField": [2], "score": 1 }));
    assert_eq!(stored(&update), json!({ "score": 1 }));
}

#[test]
fn an_update_stores_only_what_it_writes() {
    assert_eq!(stored(&update()), json!({}));
    let update = update()
        .topic("t")
        .side_notes("n")
        .score(2)
        .alerts("a")
        .hint("h".to_owned())
        .user_input("i");
    assert_eq!(
        stored(&update),
        json!({ "topic": "t", "sideNotes": ["n"], "score": 2, "alerts": ["a"], "hint": "h", "input": "i" })
    );
}

#[test]
fn absent_changes_nothing_and_null_sets_to_none() {
    let judged = Review {
        verdict: Some("good".into()),
        ..Review::default()
    };
    let after = |json| {
        let mut review = judged.clone();
        review.apply(read(json));
        review.verdict
    };
    assert_eq!(after(json!({})), Some("good".into()));
    assert_eq!(after(json!({ "verdict": null })), None);
    assert_eq!(stored(&update().verdict(None)), json!({ "verdict": null }));
}

#[test]
fn a_write_replaces_adds_or_folds_by_the_kind_of_its_channel() {
    let mut review = applied(
        update()
            .topic("one")
            .side_notes("a")
            .score(2)
            .alerts("x")
            .hint("h".to_owned()),
    );
    review.apply(
        update()
            .topic("two")
            .side_notes_all(["b".into(), "c".into()])
            .score(3)
            .alerts("y"),
    );
    assert_eq!(review.topic, "two");
    assert_eq!(review.side_notes, ["a", "b", "c"]);
    assert_eq!(review.score, 15);
    assert_eq!(review.alerts, ["x", "y"]);
    assert_eq!(review.hint.as_deref(), Some("h"));
}

#[test]
fn a_superstep_begins_without_topics_and_ephemeral_values() {
    let mut review = applied(update().alerts("x").hint("h".to_owned()).side_notes("a"));
    review.begin_step();
    assert_eq!(review, applied(update().side_notes("a")));
}

#[test]
fn an_overwrite_comes_before_the_writes_of_the_same_update() {
    let update = update()
        .side_notes("b")
        .overwrite_side_notes(["a".to_owned()])
        .score(1)
        .overwrite_score(100);
    assert_eq!(
        stored(&update),
        json!({ "sideNotes": ["b"], "=sideNotes": ["a"], "score": 1, "=score": 100 })
    );
    let mut review = applied(self::update().side_notes("gone").score(5));
    review.apply(read(stored(&update)));
    assert_eq!(review.side_notes, ["a", "b"]);
    assert_eq!(review.score, 101);
}

#[test]
fn an_overwrite_with_an_empty_list_empties_the_channel() {
    let update = update().overwrite_alerts([]);
    assert_eq!(stored(&update), json!({ "=alerts": [] }));
    let mut review = applied(self::update().alerts("x"));
    review.apply(read(stored(&update)));
    assert!(review.alerts.is_empty());
}

#[test]
fn an_update_knows_what_it_writes_and_what_it_overwrites() {
    let update = update()
        .verdict(None)
        .overwrite_score(1)
        .scratch([1])
        .remove_messages("a");
    assert_eq!(
        names(update.written()),
        ["verdict", "messages", "score", "scratch"]
    );
    assert_eq!(names(update.overwritten()), ["score"]);
    assert!(self::update().written().is_empty());
}

#[test]
fn discarded_channels_are_neither_written_nor_overwritten() {
    let mut update = update()
        .topic("t")
        .side_notes("n")
        .overwrite_side_notes([])
        .score(1);
    update.discard(set("sideNotes").union(set("score")));
    assert_eq!(names(update.written()), ["topic"]);
    assert_eq!(stored(&update), json!({ "topic": "t" }));
}

#[test]
fn a_message_with_a_known_id_replaces_in_place_and_a_new_one_is_added() {
    let mut review = applied(update().messages_all([msg("a", "one"), msg("b", "two")]));
    review.apply(
        update()
            .messages(msg("a", "uno"))
            .messages(msg("c", "three")),
    );
    assert_eq!(
        review.messages,
        [msg("a", "uno"), msg("b", "two"), msg("c", "three")]
    );
}

#[test]
fn a_message_is_removed_by_its_id() {
    let mut review = applied(update().messages_all([msg("a", "one"), msg("b", "two")]));
    let update = update().remove_messages("a");
    assert_eq!(stored(&update), json!({ "messages": [{ "remove": "a" }] }));
    review.apply(read(stored(&update)));
    assert_eq!(review.messages, [msg("b", "two")]);
}

#[test]
fn a_message_without_an_id_gets_one_overwrites_first() {
    let mut update = update()
        .messages("written")
        .messages(msg("mine", "kept"))
        .overwrite_messages([Msg::from("whole")]);
    update.name_messages(&mut MessageIds::of("task"));
    let review = applied(update);
    assert_eq!(
        review.messages,
        [
            msg("task-0", "whole"),
            msg("task-1", "written"),
            msg("mine", "kept")
        ]
    );
}

#[test]
fn removing_a_message_that_nobody_sees_is_refused() {
    let review = applied(update().messages(msg("a", "one")));
    assert!(review.check(&update().remove_messages("a")).is_ok());
    let fault = review.check(&update().remove_messages("b")).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "channel `messages` has no message `b` to remove"
    );
    // The overwrite takes `a` away and brings `b`.
    assert!(
        review
            .check(
                &update()
                    .overwrite_messages([msg("b", "two")])
                    .remove_messages("b")
            )
            .is_ok()
    );
    assert!(
        review
            .check(
                &update()
                    .overwrite_messages([msg("b", "two")])
                    .remove_messages("a")
            )
            .is_err()
    );
}

#[test]
fn the_rule_of_the_state_is_asked_too() {
    let review = Review::default();
    assert!(review.check(&update().score(-10)).is_ok());
    let fault = review.check(&update().score(-11)).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "the update breaks a rule of the state: the score stays above zero"
    );
}

#[test]
fn an_update_shows_what_it_writes() {
    let update = update()
        .topic("t")
        .side_notes("n")
        .remove_messages("a")
        .overwrite_alerts([]);
    assert_eq!(update.written_topic().map(String::as_str), Some("t"));
    assert_eq!(update.written_verdict(), None);
    assert_eq!(update.written_side_notes(), ["n"]);
    assert_eq!(update.written_messages().len(), 1);
    assert!(update.written_alerts().is_empty());
}

#[test]
fn an_untracked_write_is_never_stored_and_moves_beside_the_rest() {
    let mut written = update().topic("t").scratch([1, 2]);
    assert_eq!(stored(&written), json!({ "topic": "t" }));
    assert!(
        refusal::<ReviewUpdate>(json!({ "scratch": [1] })).starts_with("unknown field `scratch`")
    );
    let mut update: ReviewUpdate = read(stored(&written));
    update.move_untracked(&mut written);
    assert_eq!(applied(update).scratch, [1, 2]);
    assert_eq!(names(written.written()), ["topic"]);
}

fn migrated<T: DeserializeOwned>(from: u32, json: Json) -> T {
    let Json::Object(object) = json else {
        panic!("fields are a JSON object")
    };
    let mut fields = Fields::new(object);
    for version in from..Review::VERSION {
        Review::migrate(version, &mut fields).expect("the migration knows every older version");
    }
    read(Json::Object(fields.into_inner()))
}

#[test]
fn a_migration_sees_states_and_updates_alike() {
    let review: Review = migrated(1, json!({ "notes": ["a"], "score": "4" }));
    assert_eq!(
        review,
        Review {
            side_notes: vec!["a".into()],
            score: 4,
            ..Review::default()
        }
    );
    let update: ReviewUpdate = migrated(1, json!({ "notes": ["a"], "=notes": [], "=score": "4" }));
    assert_eq!(
        stored(&update),
        json!({ "sideNotes": ["a"], "=sideNotes": [], "=score": 4 })
    );
}

#[test]
fn a_migration_may_refuse() {
    let fault = Review::migrate(0, &mut Fields::new(Default::default())).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "the migration from version 0 failed: never released"
    );
}

#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(crate = superstep_core)]
struct Nothing {}

#[test]
fn a_state_may_have_no_channels() {
    assert!(Nothing::CHANNELS.is_empty());
    assert_eq!(read::<Nothing>(stored(&Nothing {})), Nothing {});
    assert!(read::<NothingUpdate>(json!({})).written().is_empty());
    assert_eq!(
        refusal::<Nothing>(json!({ "x": 1 })),
        "unknown field `x`, there are no fields"
    );
}

#[test]
fn without_a_migration_an_older_version_cannot_be_read() {
    assert_eq!(Nothing::VERSION, 1);
    assert!(matches!(
        Nothing::migrate(0, &mut Fields::new(Default::default())),
        Err(MigrationError::Missing { from: 0, to: 1 })
    ));
}

#[test]
fn wire_names_follow_the_case_that_is_asked_for() {
    #[derive(Clone, Debug, Default, State)]
    #[state(crate = superstep_core, rename_all = "camelCase")]
    struct Camel {
        _max_tool_calls: u8,
        r#type: u8,
    }
    #[derive(Clone, Debug, Default, State)]
    #[state(crate = superstep_core, rename_all = "PascalCase")]
    struct Pascal {
        tool_calls: u8,
    }
    #[derive(Clone, Debug, Default, State)]
    #[state(crate = superstep_core, rename_all = "SCREAMING_SNAKE_CASE")]
    struct Screaming {
        tool_calls: u8,
    }
    assert_eq!(
        stored(&Camel::default()),
        json!({ "maxToolCalls": 0, "type": 0 })
    );
    assert_eq!(
        stored(&CamelUpdate::default().r#type(1)),
        json!({ "type": 1 })
    );
    assert_eq!(stored(&Pascal::default()), json!({ "ToolCalls": 0 }));
    assert_eq!(stored(&Screaming::default()), json!({ "TOOL_CALLS": 0 }));
}

#[test]
fn names_of_the_user_do_not_get_in_the_way_of_the_code_that_is_written() {
    mod shadows {
        use superstep_core::State;

        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        pub(super) struct Result;
        type D = Result;

        #[derive(Clone, Debug, Default, PartialEq, State)]
        #[state(crate = superstep_core, check = Self::update)]
        pub(super) struct Shadows {
            option: D,
            #[state(reduce = value)]
            value: u8,
            #[state(reduce = u8::max, name = "stored")]
            whole: u8,
        }

        fn value(old: u8, new: u8) -> u8 {
            old * 10 + new
        }

        impl Shadows {
            fn update(
                &self,
                _: &ShadowsUpdate,
            ) -> std::result::Result<(), superstep_core::error::InvalidUpdate> {
                Ok(())
            }
        }
    }
    let mut shadows = shadows::Shadows::default();
    shadows.apply(shadows::ShadowsUpdate::default().value(4).whole(7));
    shadows.apply(
        shadows::ShadowsUpdate::default()
            .value(2)
            .whole(3)
            .option(shadows::Result),
    );
    assert_eq!(
        stored(&shadows),
        json!({ "option": null, "value": 42, "stored": 7 })
    );
}

/// The listing in the documentation of the derive.
#[path = "../../superstep-macros/docs/by_hand.rs"]
#[expect(unreachable_pub, reason = "the listing shows a public state")]
mod by_hand;

mod derived {
    use superstep_core::State;

    #[derive(Clone, Debug, Default, PartialEq, State)]
    #[state(crate = superstep_core)]
    pub(crate) struct Review {
        verdict: Option<String>,
        #[state(append)]
        notes: Vec<String>,
        #[state(reduce = add)]
        score: i64,
    }

    fn add(total: i64, write: i64) -> i64 {
        total + write
    }
}

#[test]
fn a_state_written_by_hand_is_the_same_as_a_derived_one() {
    assert_eq!(by_hand::Review::CHANNELS, derived::Review::CHANNELS);
    assert_eq!(by_hand::Review::VERSION, derived::Review::VERSION);
    assert_eq!(by_hand::Review::schema(), derived::Review::schema());
    let by_hand = by_hand::ReviewUpdate::default()
        .verdict(None)
        .notes("b")
        .overwrite_notes(["a".into()])
        .score(2);
    let derived = derived::ReviewUpdate::default()
        .verdict(None)
        .notes("b")
        .overwrite_notes(["a".into()])
        .score(2);
    assert_eq!(stored(&by_hand), stored(&derived));
    assert_eq!(by_hand.written(), derived.written());
    assert_eq!(by_hand.overwritten(), derived.overwritten());
    let (mut one, mut other) = (by_hand::Review::default(), derived::Review::default());
    one.apply(read(stored(&by_hand)));
    other.apply(read(stored(&derived)));
    assert_eq!(stored(&one), stored(&other));
    assert!(refusal::<by_hand::Review>(json!({ "x": 1 })).starts_with("unknown field `x`"));
}

mod many_types {
    use std::collections::{BTreeMap, BTreeSet, VecDeque};

    use superstep_core::State;

    #[derive(Clone, Debug, Default, State)]
    #[state(crate = superstep_core, rename_all = "camelCase")]
    pub(crate) struct Shapes {
        /// What it is about,
        /// in a few words.
        topic: std::string::String,
        is_open: bool,
        ratio: f32,
        counts: Vec<u16>,
        past: VecDeque<Option<char>>,
        tags: BTreeSet<String>,
        scores: BTreeMap<String, Vec<f64>>,
        by_number: BTreeMap<u8, String>,
        free: serde_json::Value,
        #[state(name = "pair")]
        two: (u8, u8),
    }
}

#[test]
fn the_schema_follows_from_how_the_types_are_written() {
    let integers = json!({ "type": "array", "items": { "type": "integer" } });
    let numbers = json!({ "type": "array", "items": { "type": "number" } });
    let letter = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
    let expected = json!({
        "title": "Shapes",
        "type": "object",
        "properties": {
            "topic": { "type": "string", "description": "What it is about,\nin a few words." },
            "isOpen": { "type": "boolean" },
            "ratio": { "type": "number" },
            "counts": integers,
            "past": { "type": "array", "items": letter },
            "tags": { "type": "array", "items": { "type": "string" } },
            "scores": { "type": "object", "additionalProperties": numbers },
            "byNumber": {},
            "free": {},
            "pair": {},
        },
    });
    assert_eq!(many_types::Shapes::schema(), expected);
}

#[test]
fn the_schema_has_the_channels_that_are_stored_between_supersteps() {
    let schema = Review::schema();
    let properties = schema["properties"].as_object().expect("an object");
    let names: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
    let shown = [
        "topic",
        "verdict",
        "sideNotes",
        "messages",
        "score",
        "alerts",
        "input",
    ];
    assert_eq!(names, BTreeSet::from(shown));
    let messages = json!({ "type": "array", "items": { "type": "object" } });
    assert_eq!(properties["messages"], messages);
}

#[test]
fn what_is_refused_is_refused_in_words_of_our_domain() {
    trybuild::TestCases::new().compile_fail("tests/derive/*.rs");
}

mod exact {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use superstep_core::State;

    /// Named like the standard one, and stores less than it holds.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub(crate) struct String(pub(crate) u8);

    impl Serialize for String {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_u8(self.0 / 2)
        }
    }

    impl<'de> Deserialize<'de> for String {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            u8::deserialize(deserializer).map(Self)
        }
    }

    #[derive(Clone, Debug, Default, State)]
    #[state(crate = superstep_core)]
    pub(crate) struct Shadowed {
        own: String,
        #[state(append)]
        many: Vec<String>,
    }

    type Text = std::string::String;

    #[derive(Clone, Debug, Default, State)]
    #[state(crate = superstep_core)]
    pub(crate) struct Mixed {
        text: Text,
        #[state(append)]
        notes: Vec<Text>,
        maybe: Option<u64>,
        #[state(reduce = i64::max)]
        top: i64,
        ratio: f64,
        nested: Option<Option<u8>>,
        by_name: BTreeMap<Text, u8>,
        #[state(untracked)]
        pub(crate) local: u8,
    }
}

#[test]
fn only_channels_that_read_back_as_they_were_written_are_known_to_by_their_type_and_not_its_name() {
    let known = |names: &[u32]| {
        let add = |set: ChannelSet, index: &u32| set.with(*index, true);
        names.iter().fold(ChannelSet::EMPTY, add)
    };
    assert_eq!(exact::Mixed::default().local, 0);
    assert_eq!(exact::Mixed::READ_BACK_EXACTLY, known(&[0, 1, 2, 3]));
    assert_eq!(exact::Shadowed::READ_BACK_EXACTLY, ChannelSet::EMPTY);
    assert_eq!(by_hand::Review::READ_BACK_EXACTLY, ChannelSet::EMPTY);
}
