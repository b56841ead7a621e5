//! Retries, then fallback models.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::{StreamExt, stream};
use tokio::sync::OnceCell;

use crate::error::ModelError;
use crate::fit::request_tokens;
use crate::model::{BoxFuture, Model};
use crate::name::ModelName;
use crate::reply::{Chunk, ReplyStream};
use crate::request::Request;
use crate::slots::{Slot, Slots};

/// A model that retries transient failures, then falls back to the next model.
///
/// A failed attempt is told before the wait for the next one, with [`Chunk::Again`]; chunks before it are void.
///
/// A server has only so many slots, and lets further requests wait without a word. So a `Retrying` keeps to the number that
/// [`Model::slots`] tells, and holds further requests back, where no time limit runs. After each time-out, it sends one request
/// less at once.
#[derive(Debug, Clone)]
pub struct Retrying {
    models: Vec<Candidate>,
    patience: Patience,
    parallel: Option<usize>,
}

/// A model, and how many requests it may process at once. Copies of a [`Retrying`] share the count.
#[derive(Debug, Clone)]
struct Candidate {
    model: Arc<dyn Model>,
    slots: Arc<OnceCell<Slots>>,
}

impl Candidate {
    fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            slots: Arc::default(),
        }
    }

    /// Waits for a free slot of the server.
    async fn slot(&self, parallel: Option<usize>) -> Slot {
        let slots = self.slots.get_or_init(|| async {
            let told = match parallel {
                Some(parallel) => Some(parallel),
                None => self.model.slots().await,
            };
            Slots::new(told.unwrap_or(SLOTS_DEFAULT))
        });
        slots.await.acquire().await
    }
}

/// How often and how long [`Retrying`] tries a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// Maximum number of attempts per model. Default: 4.
    pub tries: u32,
    /// Wait before the second attempt; doubles each time, with jitter. Default: 500 ms.
    pub first_wait: Duration,
    /// Longest wait. If `Retry-After` asks for more, the next model is tried at once. Default: 60 seconds.
    pub wait_max: Duration,
    /// Longest time without data before the call counts as failed. Starts again whenever data arrives. A server is silent
    /// while it reads the request, so the first data may take longer by the time in which a slow local server reads it.
    /// Default: 5 minutes.
    pub silence_max: Duration,
}

impl Patience {
    /// Returns the longest time to the first data.
    fn first_data_max(&self, request: &Request) -> Duration {
        let seconds = request_tokens(request) / SLOW_SERVER_TOKENS_PER_SECOND;
        self.silence_max + Duration::from_secs(seconds)
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            tries: 4,
            first_wait: Duration::from_millis(500),
            wait_max: Duration::from_secs(60),
            silence_max: Duration::from_secs(300),
        }
    }
}

impl Retrying {
    /// Wraps a model, without fallbacks.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self {
            models: vec![Candidate::new(model)],
            patience: Patience::default(),
            parallel: None,
        }
    }

    /// Adds a fallback model, tried after the ones before it fail.
    #[must_use]
    pub fn then(mut self, model: Arc<dyn Model>) -> Self {
        self.models.push(Candidate::new(model));
        self
    }

    /// Sets how many requests each server gets at once, instead of asking it.
    #[must_use]
    pub fn parallel(mut self, requests_max: usize) -> Self {
        self.parallel = Some(requests_max);
        self
    }

    /// Sets how often and how long to retry.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }
}

impl Model for Retrying {
    fn name(&self) -> &ModelName {
        self.models[0].model.name()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            let mut tries = Tries {
                retrying: self.clone(),
                request: request.clone(),
                model: 0,
                tried: 0,
                tried_before: 0,
                wait: None,
                current: None,
                told: None,
                is_over: false,
            };
            // The caller learns at once of a failure that ends the call. One that does not is told in the stream, because
            // the wait for the next attempt may be long.
            if let Err(error) = tries.begin().await {
                tries.told = Some(tries.failed(error)?);
            }
            let chunks = stream::unfold(tries, |mut tries| async move {
                let chunk = tries.next().await?;
                Some((chunk, tries))
            });
            Ok(Box::pin(chunks) as ReplyStream)
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        Box::pin(async move {
            // A conversation that is cut to fit must fit every model that may be called.
            let mut least = None;
            for candidate in &self.models {
                let size = candidate.model.context_size().await?;
                least = match (least, size) {
                    (Some(one), Some(other)) => Some(u64::min(one, other)),
                    (one, other) => one.or(other),
                };
            }
            Ok(least)
        })
    }

    fn slots(&self) -> BoxFuture<'_, Option<usize>> {
        match self.parallel {
            Some(parallel) => Box::pin(async move { Some(parallel) }),
            None => self.models[0].model.slots(),
        }
    }
}

struct Tries {
    retrying: Retrying,
    request: Request,
    /// Index of the current model.
    model: usize,
    /// Number of attempts with the current model.
    tried: u32,
    /// Number of attempts with the models before it.
    tried_before: u32,
    /// Wait before the next attempt.
    wait: Option<Duration>,
    /// The reply, and the server's slot, which is free again when both are dropped.
    current: Option<(ReplyStream, Slot)>,
    /// Failure to tell before anything else.
    told: Option<Chunk>,
    is_over: bool,
}

impl Tries {
    /// Makes an attempt: waits for its time and for a slot, and calls the current model.
    async fn begin(&mut self) -> Result<(), ModelError> {
        if let Some(wait) = self.wait.take() {
            tokio::time::sleep(wait).await;
        }
        self.tried += 1;
        let candidate = &self.retrying.models[self.model];
        let slot = candidate.slot(self.retrying.parallel).await;
        let first_data_max = self.retrying.patience.first_data_max(&self.request);
        let begun =
            tokio::time::timeout(first_data_max, candidate.model.stream(&self.request)).await;
        match begun {
            Ok(stream) => {
                self.current = Some((stream?, slot));
                Ok(())
            }
            Err(_) => Err(self.silent(first_data_max, slot)),
        }
    }

    async fn next(&mut self) -> Option<Result<Chunk, ModelError>> {
        if self.is_over {
            return None;
        }
        if let Some(told) = self.told.take() {
            return Some(Ok(told));
        }
        let error = match self.next_chunk().await {
            Ok(chunk) => {
                self.is_over = matches!(chunk, Chunk::End(_));
                return Some(Ok(chunk));
            }
            Err(error) => error,
        };
        // Dropped before the wait, so the call at the server ends now.
        self.current = None;
        let goes_on = self.failed(error);
        self.is_over = goes_on.is_err();
        Some(goes_on)
    }

    async fn next_chunk(&mut self) -> Result<Chunk, ModelError> {
        if self.current.is_none() {
            self.begin().await?;
        }
        let Some((mut stream, slot)) = self.current.take() else {
            return Err(ModelError::Cut);
        };
        let silence_max = self.retrying.patience.silence_max;
        match tokio::time::timeout(silence_max, stream.next()).await {
            Ok(chunk) => {
                self.current = Some((stream, slot));
                chunk.unwrap_or(Err(ModelError::Cut))
            }
            Err(_) => Err(self.silent(silence_max, slot)),
        }
    }

    /// Decides whether another attempt follows, and says so. Returns the error if none does.
    fn failed(&mut self, error: ModelError) -> Result<Chunk, ModelError> {
        let patience = &self.retrying.patience;
        let asked = error.retry_after();
        let is_short = asked.is_none_or(|wait| wait <= patience.wait_max);
        let name = self.retrying.models[self.model].model.name();
        if error.is_retryable() && self.tried < patience.tries && is_short {
            let wait = asked.unwrap_or_else(|| self.wait());
            tracing::debug!(model = %name, %error, ?wait, "a model is tried again");
            self.wait = Some(wait);
            return Ok(self.again(&error));
        }
        if self.model + 1 < self.retrying.models.len() && !is_our_fault(&error) {
            tracing::warn!(model = %name, %error, "the next model is asked");
            self.model += 1;
            self.tried_before += self.tried;
            self.tried = 0;
            return Ok(self.again(&error));
        }
        Err(error)
    }

    /// Returns the news that another attempt follows.
    fn again(&self, error: &ModelError) -> Chunk {
        let made = self.tried_before + self.tried;
        let tries = self.retrying.patience.tries;
        let models_left = (self.retrying.models.len() - self.model - 1) as u32;
        Chunk::Again {
            why: error.to_string(),
            attempt: made + 1,
            attempts_max: self.tried_before + tries * (models_left + 1),
        }
    }

    /// Doubles each time, then takes between half and all of it, so clients that failed together do not retry together.
    fn wait(&self) -> Duration {
        let doublings = self.tried.saturating_sub(1).min(16);
        let patience = &self.retrying.patience;
        let whole = (patience.first_wait * 2u32.pow(doublings)).min(patience.wait_max);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let part = f64::from(now.subsec_nanos() % 1_000) / 1_000.0;
        whole.mul_f64(0.5 + part / 2.0)
    }

    /// The server may have more requests than it can process, ours among them.
    fn silent(&self, waited: Duration, slot: Slot) -> ModelError {
        slot.give_up();
        ModelError::TimedOut {
            model: self.retrying.models[self.model].model.name().clone(),
            waited,
        }
    }
}

/// A script that does not match its program is a bug, which another model cannot fix.
fn is_our_fault(error: &ModelError) -> bool {
    matches!(
        error,
        ModelError::Unexpected { .. } | ModelError::BadFile { .. }
    )
}

/// Requests at once to a server that does not tell how many it can process.
const SLOTS_DEFAULT: usize = 8;
/// How fast a slow server reads a request: a model of 1.5 billion parameters on one busy core.
const SLOW_SERVER_TOKENS_PER_SECOND: u64 = 5;
