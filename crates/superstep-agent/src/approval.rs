//! When a person must approve a tool call, and which answers they may give.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep_core::Labels;

/// Rule for when a person must approve a call of a tool, and which answers they may give.
///
/// The interrupt has the form that LangGraph inboxes read: `{"action_request": {"action", "args"}, "config": {"allow_accept",
/// "allow_edit", "allow_respond", "allow_ignore"}, "description"}`, plus the `digest` of tool and arguments. If the person may
/// edit, `optional_args` holds the schemas of the arguments that they may add, by name. The answer is
/// `{"type": "accept" | "edit" | "response" | "ignore", "args"}`. The digest is part of the interrupt's key, so an approval
/// is valid once, for that call with those arguments. Edited arguments are checked against the tool's schema, as the model's
/// are; if they do not fit, the person is asked again.
#[derive(Clone)]
pub struct Approval {
    when: When,
    edit: bool,
    respond: bool,
    ignore: bool,
    pub(crate) within: Option<Duration>,
    description: Option<Describe>,
}

type Describe = Arc<dyn Fn(&Json) -> String + Send + Sync>;
type Needs = Arc<dyn Fn(&Json, &Labels) -> bool + Send + Sync>;

#[derive(Clone)]
pub(crate) enum When {
    Always,
    /// Decided by a predicate over the arguments and their labels.
    If(Needs),
    /// Only when the tool's label policy requires it, which is checked for every call in any case.
    ByLabels,
}

impl Approval {
    /// Requires approval for every call.
    pub fn always() -> Self {
        Self::of(When::Always)
    }

    /// Requires approval for calls whose arguments and labels match the predicate. The result is recorded, so the decision
    /// for a call does not change when its node runs again.
    pub fn when(needs: impl Fn(&Json, &Labels) -> bool + Send + Sync + 'static) -> Self {
        Self::of(When::If(Arc::new(needs)))
    }

    /// Requires approval only for calls whose labels the tool does not [accept](crate::Tool::takes). A tool without an
    /// `Approval` behaves the same; use this to restrict the answers or to set a time limit.
    pub fn by_labels() -> Self {
        Self::of(When::ByLabels)
    }

    fn of(when: When) -> Self {
        Self {
            when,
            edit: true,
            respond: true,
            ignore: true,
            within: None,
            description: None,
        }
    }

    /// Removes the option to edit the arguments. Default: allowed.
    #[must_use]
    pub fn without_edit(mut self) -> Self {
        self.edit = false;
        self
    }

    /// Removes the option to answer in the tool's place. Default: allowed.
    #[must_use]
    pub fn without_response(mut self) -> Self {
        self.respond = false;
        self
    }

    /// Removes the option to refuse, for forms that only collect data. Default: allowed.
    #[must_use]
    pub fn without_ignore(mut self) -> Self {
        self.ignore = false;
        self
    }

    /// Limits how long the person has to answer. After that the call is not made, and its result tells the model that the
    /// request expired. Default: no limit.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.within = Some(limit);
        self
    }

    /// Sets the text shown to the person, computed from the arguments. Default: "May `tool` be called?"
    #[must_use]
    pub fn described(mut self, words: impl Fn(&Json) -> String + Send + Sync + 'static) -> Self {
        self.description = Some(Arc::new(words));
        self
    }

    pub(crate) fn need(&self) -> &When {
        &self.when
    }

    pub(crate) fn description(&self, args: &Json) -> Option<String> {
        self.description.as_ref().map(|words| words(args))
    }

    /// Returns whether a person may change the arguments.
    pub(crate) fn allows_edit(&self) -> bool {
        self.edit
    }

    /// Returns which answers are allowed, in the form that inboxes read.
    pub(crate) fn config(&self) -> Json {
        json!({
            "allow_ignore": self.ignore,
            "allow_respond": self.respond,
            "allow_edit": self.edit,
            "allow_accept": true,
        })
    }

    /// Returns the JSON Schema of an answer.
    pub(crate) fn schema(&self) -> Json {
        let all = [
            (true, "accept"),
            (self.edit, "edit"),
            (self.respond, "response"),
            (self.ignore, "ignore"),
        ];
        let types = all.iter().filter(|(may, _)| *may).map(|(_, word)| *word);
        json!({
            "type": "object",
            "properties": {
                "type": { "enum": types.collect::<Vec<_>>() },
                "args": { "type": ["object", "string", "null"] },
            },
            "required": ["type"],
            "additionalProperties": false,
        })
    }
}

impl Default for Approval {
    fn default() -> Self {
        Self::by_labels()
    }
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = match self.when {
            When::Always => "always",
            When::If(_) => "if",
            When::ByLabels => "by labels",
        };
        f.debug_struct("Approval")
            .field("when", &when)
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}
