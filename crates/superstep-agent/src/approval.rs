//! When a person must agree to a call, and what they may do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep_core::Labels;

/// When a person must agree to a call of a tool, and what they may do with it.
///
/// The question has the form that inboxes for LangGraph read: `{"action_request": {"action", "args"}, "config":
/// {"allow_accept", "allow_edit", "allow_respond", "allow_ignore"}, "description"}`, and beside it the `digest` of tool and
/// arguments. The answer is `{"type": "accept" | "edit" | "response" | "ignore", "args"}`. The digest is part of the
/// question's key: an approval counts for that call, with those arguments, once, and for nothing else. Edited arguments are
/// checked as the model's were; if they do not fit, the person is asked again.
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
    /// By arguments and labels.
    If(Needs),
    /// Only when the labels of the arguments say so, which is looked at anyway.
    ByLabels,
}

impl Approval {
    /// For every call.
    pub fn always() -> Self {
        Self::of(When::Always)
    }

    /// For calls with such arguments and labels. What it said is recorded, so that it is asked once per call.
    pub fn when(needs: impl Fn(&Json, &Labels) -> bool + Send + Sync + 'static) -> Self {
        Self::of(When::If(Arc::new(needs)))
    }

    /// For calls whose labels the tool does not [take](crate::Tool::takes) without asking, which is so without this, too:
    /// to say what the person may do then, and how long they have.
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

    /// The person cannot change the arguments.
    #[must_use]
    pub fn without_edit(mut self) -> Self {
        self.edit = false;
        self
    }

    /// The person cannot answer in the tool's place.
    #[must_use]
    pub fn without_response(mut self) -> Self {
        self.respond = false;
        self
    }

    /// The person cannot say no. For forms that only collect.
    #[must_use]
    pub fn without_ignore(mut self) -> Self {
        self.ignore = false;
        self
    }

    /// How long the person has. Then the call is not made, and the model is told that nobody agreed in time.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.within = Some(limit);
        self
    }

    /// What the person is told of a call, from its arguments.
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

    /// What the person may do, as an inbox reads it.
    pub(crate) fn config(&self) -> Json {
        json!({
            "allow_ignore": self.ignore,
            "allow_respond": self.respond,
            "allow_edit": self.edit,
            "allow_accept": true,
        })
    }

    /// The form of an answer.
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
