//! Retries, then fallback models.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::{StreamExt, stream};

use crate::error::ModelError;
use crate::model::{BoxFuture, Model};
use crate::name::ModelName;
use crate::reply::{Chunk, ReplyStream};
use crate::request::Request;

/// A model that retries transient failures, then falls back to the next model.
///
/// Every repeated call is reported as [`Chunk::Again`], before the wait. Chunks before it are void: the reader discards them.
#[derive(Debug, Clone)]
pub struct Retrying {
    models: Vec<Arc<dyn Model>>,
    patience: Patience,
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
    /// Longest time without data before the call counts as failed. Default: 5 minutes.
    pub silence_max: Duration,
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
            models: vec![model],
            patience: Patience::default(),
        }
    }

    /// Adds a fallback model, tried after the ones before it fail.
    #[must_use]
    pub fn then(mut self, model: Arc<dyn Model>) -> Self {
        self.models.push(model);
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
        self.models[0].name()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            let mut tries = Tries {
                models: self.models.clone(),
                patience: self.patience.clone(),
                request: request.clone(),
                model: 0,
                tried: 0,
                current: None,
                pending: None,
                is_over: false,
            };
            match tries.attempt().await {
                Ok(()) => {}
                Err(error) if tries.may_go_on(&error) => {
                    tries.pending = Some(Pending::Report(error));
                }
                Err(error) => return Err(error),
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
            for model in &self.models {
                let size = model.context_size().await?;
                least = match (least, size) {
                    (Some(one), Some(other)) => Some(u64::min(one, other)),
                    (one, other) => one.or(other),
                };
            }
            Ok(least)
        })
    }
}

struct Tries {
    models: Vec<Arc<dyn Model>>,
    patience: Patience,
    request: Request,
    /// Index of the current model.
    model: usize,
    /// Number of attempts with the current model.
    tried: u32,
    current: Option<ReplyStream>,
    pending: Option<Pending>,
    is_over: bool,
}

/// What is left to do after a failed attempt that is not the last one.
enum Pending {
    /// Report the failure to the reader.
    Report(ModelError),
    /// Wait, and try again.
    Retry(ModelError),
}

impl Tries {
    /// Calls the model once.
    async fn attempt(&mut self) -> Result<(), ModelError> {
        self.tried += 1;
        let model = self.models[self.model].clone();
        let silence = self.patience.silence_max;
        let begun = match tokio::time::timeout(silence, model.stream(&self.request)).await {
            Ok(begun) => begun,
            Err(_) => Err(self.silent()),
        };
        self.current = Some(begun?);
        Ok(())
    }

    /// Reports a failure: as a repetition if there is another attempt, else as the last error.
    fn report(&mut self, error: ModelError) -> Result<Chunk, ModelError> {
        if !self.may_go_on(&error) {
            self.is_over = true;
            return Err(error);
        }
        let why = error.to_string();
        self.pending = Some(Pending::Retry(error));
        Ok(Chunk::Again { why })
    }

    async fn next(&mut self) -> Option<Result<Chunk, ModelError>> {
        if self.is_over {
            return None;
        }
        match self.pending.take() {
            Some(Pending::Report(error)) => return Some(self.report(error)),
            Some(Pending::Retry(error)) => {
                let again = match self.failed(error).await {
                    Ok(()) => self.attempt().await,
                    Err(error) => Err(error),
                };
                if let Err(error) = again {
                    return Some(self.report(error));
                }
            }
            None => {}
        }
        let silence = self.patience.silence_max;
        let stream = self.current.as_mut()?;
        let error = match tokio::time::timeout(silence, stream.next()).await {
            Ok(Some(Ok(chunk))) => {
                self.is_over = matches!(chunk, Chunk::End(_));
                return Some(Ok(chunk));
            }
            Ok(Some(Err(error))) => error,
            Ok(None) => ModelError::Cut,
            Err(_) => self.silent(),
        };
        // Dropped before the wait, so the call at the server ends now.
        self.current = None;
        Some(self.report(error))
    }

    /// Returns whether there is another attempt after this failure, with the same model or the next one.
    fn may_go_on(&self, error: &ModelError) -> bool {
        self.may_retry(error) || self.may_fall_back(error)
    }

    fn may_retry(&self, error: &ModelError) -> bool {
        let asked = error.retry_after();
        let is_short = asked.is_none_or(|wait| wait <= self.patience.wait_max);
        error.is_retryable() && self.tried < self.patience.tries && is_short
    }

    fn may_fall_back(&self, error: &ModelError) -> bool {
        self.model + 1 < self.models.len() && !is_our_fault(error)
    }

    /// Waits for the next attempt, or moves on to the next model. Returns the error if there is none.
    async fn failed(&mut self, error: ModelError) -> Result<(), ModelError> {
        if self.may_retry(&error) {
            let wait = error.retry_after().unwrap_or_else(|| self.wait());
            tracing::debug!(model = %self.models[self.model].name(), %error, ?wait, "a model is tried again");
            tokio::time::sleep(wait).await;
            return Ok(());
        }
        if self.may_fall_back(&error) {
            tracing::warn!(model = %self.models[self.model].name(), %error, "the next model is asked");
            self.model += 1;
            self.tried = 0;
            return Ok(());
        }
        Err(error)
    }

    /// Doubles each time, then takes between half and all of it, so clients that failed together do not retry together.
    fn wait(&self) -> Duration {
        let doublings = self.tried.saturating_sub(1).min(16);
        let whole = (self.patience.first_wait * 2u32.pow(doublings)).min(self.patience.wait_max);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let part = f64::from(now.subsec_nanos() % 1_000) / 1_000.0;
        whole.mul_f64(0.5 + part / 2.0)
    }

    fn silent(&self) -> ModelError {
        ModelError::TimedOut {
            model: self.models[self.model].name().clone(),
            waited: self.patience.silence_max,
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
