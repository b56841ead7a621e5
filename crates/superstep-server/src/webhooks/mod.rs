//! Webhooks: a run's end is delivered to the address that its request names.
//!
//! [`end_hook`] decides what to deliver, and the run queue stores that in the same write as the end of the run. [`sender`] sends what
//! is stored until a receiver confirms it. Addresses come from callers, so a [`Connector`] vets each of them, at each attempt.

mod end_hook;
mod secret;
mod sender;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use superstep_http::{AllowedHost, AllowedOrigins, Connector, Http, NameResolver, SystemNames};
use tokio::sync::{Notify, watch};

use crate::error::{ApiError, ApiResult};

pub(crate) use end_hook::{EndHook, has_webhook};
pub use secret::{BadWebhookSecret, WebhookSecret};
pub(crate) use sender::start_sender;

/// How often and how patiently a delivery is attempted. See [`ServerBuilder::webhook_attempts`](crate::ServerBuilder::webhook_attempts).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookAttempts {
    /// After this many failed attempts the delivery is dead. Default: 10.
    pub max: u32,
    /// Longest time of one attempt. Default: 10 seconds.
    pub timeout: Duration,
    /// Pause after the first failed attempt, about. Each pause is four times as long as the one before it. Default: 1 second.
    pub shortest_pause: Duration,
    /// Longest pause, also if the receiver asks for a longer one. Default: 1 hour.
    pub longest_pause: Duration,
}

impl Default for WebhookAttempts {
    fn default() -> Self {
        Self {
            max: 10,
            timeout: Duration::from_secs(10),
            shortest_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(60 * 60),
        }
    }
}

/// What a program sets about webhooks.
pub(crate) struct WebhookSettings {
    /// Hosts that may be private.
    pub(crate) hosts: Vec<AllowedHost>,
    pub(crate) is_https_required: bool,
    /// Each signs every delivery: receivers change from one to the next.
    pub(crate) secrets: Vec<WebhookSecret>,
    pub(crate) attempts: WebhookAttempts,
    pub(crate) names: Arc<dyn NameResolver>,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            is_https_required: false,
            secrets: Vec::new(),
            attempts: WebhookAttempts::default(),
            names: Arc::new(SystemNames),
        }
    }
}

/// Which addresses are delivered to, and how.
pub(crate) struct Webhooks {
    allowed: AllowedOrigins,
    connector: Connector,
    secrets: Vec<WebhookSecret>,
    attempts: WebhookAttempts,
    /// Notified when there is a delivery to send.
    pub(crate) changed: Arc<Notify>,
    phase: watch::Sender<SenderPhase>,
}

/// What the sender of this process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SenderPhase {
    Sending,
    /// It takes no further deliveries, and attempts are in progress.
    Stopping,
    Stopped,
}

impl Webhooks {
    pub(crate) fn new(settings: WebhookSettings) -> Self {
        let allowed = AllowedOrigins::internet(settings.hosts);
        let http = Http {
            bytes_max: ANSWER_BYTES_MAX,
            timeout: settings.attempts.timeout,
            is_cut: true,
            ..Http::default()
        };
        Self {
            allowed: match settings.is_https_required {
                true => allowed.require_https(),
                false => allowed,
            },
            connector: Connector::over(settings.names, Arc::new(http)),
            secrets: settings.secrets,
            attempts: settings.attempts,
            changed: Arc::default(),
            phase: watch::Sender::new(SenderPhase::Sending),
        }
    }

    /// Takes no further deliveries, and returns when the attempts in progress have ended, or after some seconds. An attempt that is
    /// cut off instead is repeated by another server after its lease.
    pub(crate) async fn stop_sending(&self) {
        self.phase.send_if_modified(|phase| {
            let is_sending = *phase == SenderPhase::Sending;
            if is_sending {
                *phase = SenderPhase::Stopping;
            }
            is_sending
        });
        let mut phase = self.phase.subscribe();
        let stopped = phase.wait_for(|phase| *phase == SenderPhase::Stopped);
        if tokio::time::timeout(LAST_ATTEMPTS, stopped).await.is_err() {
            tracing::warn!("deliveries to webhooks were cut off; another server repeats them");
        }
        self.phase.send_replace(SenderPhase::Stopped);
    }

    /// Refuses an address that cannot be delivered to, as far as it shows without resolving a name.
    pub(crate) fn check(&self, address: &str) -> ApiResult<()> {
        if address.len() > ADDRESS_BYTES_MAX {
            return Err(ApiError::invalid(format!(
                "`webhook` is longer than {ADDRESS_BYTES_MAX} bytes"
            )));
        }
        match self.allowed.check(address) {
            Ok(_) => Ok(()),
            Err(fault) => Err(ApiError::invalid(format!("Webhook host blocked: {fault}"))),
        }
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks")
            .field("allowed", &self.allowed)
            .field("secrets", &self.secrets.len())
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

/// How long attempts in progress may take to end while the server drains.
const LAST_ATTEMPTS: Duration = Duration::from_secs(10);
/// Longest address.
const ADDRESS_BYTES_MAX: usize = 2_048;
/// How much of an answer is read. What it says does not matter, but a connection that breaks before its end confirms nothing.
const ANSWER_BYTES_MAX: usize = 4_096;
