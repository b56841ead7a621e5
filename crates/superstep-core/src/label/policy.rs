//! What a sink accepts: rules for labels, decided by comparing sets and by nothing else.

use std::collections::BTreeMap;

use crate::label::{Label, Labels};

/// Which labels a sink accepts without approval, for which it needs one, and which it refuses.
///
/// A label that no rule names needs approval: a policy written before a label existed does not let it through. Rules may also
/// name labels that are harmless alone but not together. Of all rules that apply, the strictest counts.
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

/// Ordered from lenient to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    Accept,
    Ask,
    Refuse,
}

/// The decision of a policy about a set of labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The sink accepts the values.
    Accepted,
    /// A person must approve, because of these labels.
    NeedsApproval(Labels),
    /// The sink refuses the values, because of these labels. No approval can change that.
    Refused(Labels),
}

impl Policy {
    /// Creates a policy that needs approval for every label. Values without labels are accepted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts values with these labels, together or alone, without approval.
    #[must_use]
    pub fn accepts(self, labels: impl Into<Labels>) -> Self {
        let labels: Labels = labels.into();
        let singles = labels.iter().cloned().map(Labels::from);
        let all = std::iter::once(labels.clone());
        // The set itself as well, so that it overrides an earlier rule for exactly this set.
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
        // Every value has the empty set: a rule for it would be a rule for the sink, which a policy for labels cannot express.
        if !labels.is_empty() {
            self.rules.insert(labels, rule);
        }
        self
    }

    /// Decides about values with these labels.
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

    /// Returns the labels of all rules of this kind that apply.
    fn because(&self, labels: &Labels, rule: Rule) -> Labels {
        let applying = self
            .rules
            .iter()
            .filter(|(named, of)| **of == rule && labels.covers(named));
        applying.fold(Labels::NONE, |all, (named, _)| all.join(named))
    }

    /// Whether a rule names this label alone.
    fn names(&self, label: &Label) -> bool {
        self.rules.contains_key(&Labels::from(label.clone()))
    }
}
