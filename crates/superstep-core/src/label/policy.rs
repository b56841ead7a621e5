//! What a sink takes: a rule for labels, decided by comparing sets and by nothing else.

use std::collections::BTreeMap;

use crate::label::{Label, Labels};

/// Which labels a sink accepts without approval, for which it needs one, and which it refuses.
///
/// A label that no rule names needs approval: a policy that was written before a label existed does not let
/// it through. Rules may also name labels that are harmless alone and not together. Of all rules that apply
/// the strictest counts.
///
/// ```
/// use superstep_core::label::{Label, Labels, Policy, Verdict};
///
/// // Sends mail: takes what strangers wrote, and what is private, but not both at once.
/// let policy = Policy::new()
///     .accepts(Label::UNTRUSTED)
///     .accepts(Label::PRIVATE)
///     .refuses(Label::SECRET)
///     .asks([Label::UNTRUSTED, Label::PRIVATE]);
/// assert_eq!(policy.check(&Label::PRIVATE.into()), Verdict::Accepted);
/// let both = Labels::from([Label::PRIVATE, Label::UNTRUSTED]);
/// assert_eq!(policy.check(&both), Verdict::NeedsApproval(both.clone()));
/// let all = both.with(Label::SECRET);
/// assert_eq!(policy.check(&all), Verdict::Refused(Label::SECRET.into()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    rules: BTreeMap<Labels, Rule>,
}

/// From lenient to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    Accept,
    Ask,
    Refuse,
}

/// What a policy says of a set of labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Go ahead.
    Accepted,
    /// A person must agree, because of these.
    NeedsApproval(Labels),
    /// Nobody may agree, because of these.
    Refused(Labels),
}

impl Policy {
    /// Asks for every label. Without labels there is nothing to ask.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes values with these labels, together or one of them, without asking.
    #[must_use]
    pub fn accepts(self, labels: impl Into<Labels>) -> Self {
        let labels: Labels = labels.into();
        let singles = labels.iter().cloned().map(Labels::from);
        let all = std::iter::once(labels.clone());
        // Also the set itself, so that it lifts what an earlier rule said of just this set.
        all.chain(singles)
            .fold(self, |policy, labels| policy.rule(labels, Rule::Accept))
    }

    /// Needs approval for values that have all of these labels.
    #[must_use]
    pub fn asks(self, labels: impl Into<Labels>) -> Self {
        self.rule(labels.into(), Rule::Ask)
    }

    /// Refuses values that have all of these labels.
    #[must_use]
    pub fn refuses(self, labels: impl Into<Labels>) -> Self {
        self.rule(labels.into(), Rule::Refuse)
    }

    fn rule(mut self, labels: Labels, rule: Rule) -> Self {
        // No labels are on every value: a rule for them would be a rule for the sink, which is not ours.
        if !labels.is_empty() {
            self.rules.insert(labels, rule);
        }
        self
    }

    /// What it says of values with these labels.
    pub fn check(&self, labels: &Labels) -> Verdict {
        let refused = self.because(labels, Rule::Refuse);
        if !refused.is_empty() {
            return Verdict::Refused(refused);
        }
        let mut asked = self.because(labels, Rule::Ask);
        asked.add(
            &labels
                .iter()
                .filter(|label| !self.names(label))
                .cloned()
                .collect(),
        );
        if asked.is_empty() {
            Verdict::Accepted
        } else {
            Verdict::NeedsApproval(asked)
        }
    }

    /// The labels of all rules of this kind that apply.
    fn because(&self, labels: &Labels, rule: Rule) -> Labels {
        let applying = self
            .rules
            .iter()
            .filter(|(named, of)| **of == rule && labels.covers(named));
        applying.fold(Labels::NONE, |all, (named, _)| all.join(named))
    }

    /// Whether a rule is about this label alone.
    fn names(&self, label: &Label) -> bool {
        self.rules.contains_key(&Labels::from(label.clone()))
    }
}
