//! Spending limits of an agent: reserves before a model call, settles after it, and asks a person at the limit.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep_core::store::Store;
use superstep_core::{Interrupt, NodeCx, NodeError};
use superstep_llm::fit::tokens_of;
use superstep_llm::{Cost, Model, Prices, Reply, Request, Usage};

use crate::asking::MODEL_ASKER;
use crate::budget::{Amounts, Budgets, CallKey, Level, Limits, Meter, Scope};
use crate::call::Asking;
use crate::spans::now;

/// Limits on what an agent may spend per run, per thread and per tenant.
///
/// Before a model call, the node reserves what the answer may cost; afterwards it settles the actual cost. At a limit it
/// interrupts for a person (kind `budget`), who answers `{"type": "raise", "by": n}` or `{"type": "stop"}`; the run then
/// resumes where it stopped.
#[derive(Clone)]
pub struct Spending {
    store: Arc<dyn Store>,
    limits: Vec<(Level, Limits)>,
    prices: Prices,
}

/// A limit that the call does not fit under, as recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Over {
    level: Level,
    meter: Meter,
    limit: u64,
    short_by: u64,
    pub(crate) why: String,
}

/// Whether a person chose to stop.
pub(crate) enum Stop {
    Yes,
    No,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Answered {
    Raise { by: u64 },
    Stop,
}

impl Spending {
    /// Creates a counter in this store, with no limits yet.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            limits: Vec::new(),
            prices: Prices::known(),
        }
    }

    /// Limits each run.
    #[must_use]
    pub fn per_run(self, limits: Limits) -> Self {
        self.at(Level::Run, limits)
    }

    /// Limits all runs of each thread together.
    #[must_use]
    pub fn per_thread(self, limits: Limits) -> Self {
        self.at(Level::Thread, limits)
    }

    /// Limits all threads of each tenant together.
    #[must_use]
    pub fn per_tenant(self, limits: Limits) -> Self {
        self.at(Level::Tenant, limits)
    }

    fn at(mut self, level: Level, limits: Limits) -> Self {
        self.limits.push((level, limits));
        self
    }

    /// Sets the prices that estimates use. Default: the known list prices.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// Reserves what an answer may cost. Returns the limit that it does not fit under, if there is one.
    pub(crate) async fn reserve(
        &self,
        cx: &NodeCx,
        call: &str,
        asked: (&dyn Model, &Request),
    ) -> Result<Option<Over>, NodeError> {
        let estimate = self.estimate(asked);
        let key = CallKey::of(cx, call);
        let reserved = self.budgets(cx).reserve(&key, &estimate, now()).await;
        match reserved {
            Ok(()) => Ok(None),
            Err(error) => match error.reached() {
                Some(reached) => Ok(Some(Over {
                    level: reached.scope.level(),
                    meter: reached.over.meter,
                    limit: reached.over.limit,
                    short_by: reached.over.short_by(),
                    why: error.to_string(),
                })),
                None => Err(error.into()),
            },
        }
    }

    /// Settles the actual cost. Idempotent, because a node that runs again settles again.
    ///
    /// Where usage or cost is unknown, the reserved amount counts: unknown is not zero.
    pub(crate) async fn settle(
        &self,
        cx: &NodeCx,
        call: &str,
        asked: (&dyn Model, &Request),
        reply: &Reply,
    ) -> Result<(), NodeError> {
        let mut cost = self.estimate(asked);
        if let Some(usage) = reply.usage {
            cost = cost.and(Meter::Tokens, usage.total_tokens());
        }
        if let Cost::NanoDollars(nano) = reply.cost {
            cost = cost.and(Meter::NanoDollars, nano);
        }
        let key = CallKey::of(cx, call);
        Ok(self.budgets(cx).settle(&key, &cost, now()).await?)
    }

    /// Asks a person, and raises the limit if they agree.
    pub(crate) async fn ask_for_more(
        &self,
        over: &Over,
        asker: &str,
        asking: &Asking<'_>,
    ) -> Result<Stop, NodeError> {
        let level = match over.level {
            Level::Run => "run",
            Level::Thread => "thread",
            Level::Tenant => "tenant",
        };
        // The key contains the limit, so reaching a raised limit is a new interrupt; and the asker, because two askers of one
        // node may reach the same limit. The model's has no name in it: threads wait under that key.
        let mut key = format!("budget:{level}:{:?}:{}", over.meter, over.limit);
        if asker != MODEL_ASKER {
            key = format!("{asker}:{key}");
        }
        let request = json!({
            "description": over.why,
            "level": level,
            "meter": over.meter,
            "limit": over.limit,
            "short_by": over.short_by,
        });
        let schema = json!({
            "type": "object",
            "properties": {
                "type": { "enum": ["raise", "stop"] },
                "by": { "type": "integer", "minimum": over.short_by },
            },
            "required": ["type"],
        });
        let question = Interrupt::new(key, request).kind("budget").schema(schema);
        match asking.ask(question).await? {
            Answered::Stop => Ok(Stop::Yes),
            Answered::Raise { by } => {
                // Raises to a fixed value, so repeating it changes nothing.
                let limits = Limits::of(over.meter, over.limit.saturating_add(by));
                let scope = scope(asking.cx, over.level);
                let budgets = self.budgets(asking.cx);
                budgets.raise(&scope, &limits, now()).await?;
                Ok(Stop::No)
            }
        }
    }

    fn budgets(&self, cx: &NodeCx) -> Budgets {
        let none = Budgets::new(self.store.clone());
        self.limits.iter().fold(none, |budgets, (level, limits)| {
            budgets.within(scope(cx, *level), limits.clone())
        })
    }

    /// Estimates the maximum cost, as far as it can be known before the call.
    fn estimate(&self, (model, request): (&dyn Model, &Request)) -> Amounts {
        let output_tokens = u64::from(request.tokens_max.unwrap_or(ANSWER_TOKENS));
        let usage = Usage {
            input_tokens: request.messages.iter().map(tokens_of).sum(),
            output_tokens,
            cached_tokens: 0,
        };
        let estimate = Amounts::of(Meter::Calls, 1)
            .and(Meter::Steps, 1)
            .and(Meter::Tokens, usage.total_tokens());
        match self.prices.cost(model.name(), Some(&usage)) {
            Cost::NanoDollars(nano) => estimate.and(Meter::NanoDollars, nano),
            Cost::Unknown => estimate,
        }
    }
}

fn scope(cx: &NodeCx, level: Level) -> Scope {
    match level {
        Level::Run => Scope::run(cx.thread(), cx.run()),
        Level::Thread => Scope::thread(cx.thread()),
        Level::Tenant => Scope::tenant(cx.thread()),
    }
}

/// Output tokens reserved for a request without `tokens_max`.
const ANSWER_TOKENS: u32 = 4_096;

impl fmt::Debug for Spending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spending")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
