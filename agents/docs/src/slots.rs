//! How many calls a model gets at a time. A server with few slots lets the others wait, until they time out and are sent again;
//! so calls wait here instead, and after a call that had to be repeated there are fewer at a time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use superstep::NodeCx;
use superstep_agent::AgentEvent;
use superstep_llm::{
    Address, BoxFuture, Chunk, Model, ModelError, ModelName, Provider, ReplyStream, Request,
};
use tokio::sync::Semaphore;

/// Slots of the models that this process calls, by name.
#[derive(Debug, Default)]
pub struct ModelSlots {
    lanes: Mutex<BTreeMap<(String, usize), Arc<Lane>>>,
}

impl ModelSlots {
    /// Returns a model that calls `model` at most `parallel` times at once, over all who ask for this model. Without a number,
    /// once if its server is on this machine or in this network, else four times.
    pub fn limited(
        &self,
        model: Arc<dyn Model>,
        parallel: Option<u32>,
        notice: CallNotice,
    ) -> SlottedModel {
        let most = parallel.unwrap_or_else(|| default_parallel(model.name()));
        let most = usize::try_from(most.max(1)).unwrap_or(1).min(SLOTS_MAX);
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.entry((model.name().to_string(), most));
        let lane = lane.or_insert_with(|| Arc::new(Lane::new(most)));
        SlottedModel {
            model,
            lane: lane.clone(),
            notice,
        }
    }
}

/// Slots of one model.
#[derive(Debug)]
struct Lane {
    free: Semaphore,
    /// Number of calls that may run at a time.
    limit: AtomicUsize,
    /// Number of slots to take away when they become free.
    excess: AtomicUsize,
}

impl Lane {
    fn new(most: usize) -> Self {
        Self {
            free: Semaphore::new(most),
            limit: AtomicUsize::new(most),
            excess: AtomicUsize::new(0),
        }
    }

    async fn enter(self: &Arc<Self>) -> Slot {
        // The semaphore is never closed, so the only error cannot happen.
        if let Ok(permit) = self.free.acquire().await {
            permit.forget();
        }
        Slot(self.clone())
    }

    /// Halves the limit. Returns it, or `None` if there is one slot only.
    fn shrink(&self) -> Option<usize> {
        let halved = |limit: usize| (limit > 1).then_some(limit / 2);
        let before = self
            .limit
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, halved)
            .ok()?;
        self.excess.fetch_add(before - before / 2, Ordering::SeqCst);
        Some(before / 2)
    }
}

/// A slot that a call occupies until it is dropped.
struct Slot(Arc<Lane>);

impl Drop for Slot {
    fn drop(&mut self) {
        let one_less = |excess: usize| excess.checked_sub(1);
        let is_taken_away =
            self.0
                .excess
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        if is_taken_away.is_err() {
            self.0.free.add_permits(1);
        }
    }
}

/// Tells the person who watches a run that a call is repeated.
#[derive(Clone)]
pub struct CallNotice {
    cx: NodeCx,
    label: String,
}

impl CallNotice {
    pub(super) fn new(cx: &NodeCx, label: &str) -> Self {
        Self {
            cx: cx.clone(),
            label: label.to_owned(),
        }
    }

    fn repeated(&self, why: &str, limit: Option<usize>) {
        let fewer = match limit {
            Some(1) => "; from now on one call at a time".to_owned(),
            Some(limit) => format!("; from now on {limit} calls at a time"),
            None => String::new(),
        };
        let text = format!("{}: asking again ({why}){fewer}", self.label);
        // Best effort, as all live events are: nobody may be watching.
        let _ = self.cx.emit_live(AgentEvent::progress(text));
    }
}

/// A model whose calls wait for a free slot.
pub struct SlottedModel {
    model: Arc<dyn Model>,
    lane: Arc<Lane>,
    notice: CallNotice,
}

impl Model for SlottedModel {
    fn name(&self) -> &ModelName {
        self.model.name()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            let slot = self.lane.enter().await;
            let chunks = self.model.stream(request).await?;
            let notice = self.notice.clone();
            let chunks = chunks.inspect(move |chunk| {
                if let Ok(Chunk::Again { why }) = chunk {
                    notice.repeated(why, slot.0.shrink());
                }
            });
            Ok(Box::pin(chunks) as ReplyStream)
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        self.model.context_size()
    }
}

impl fmt::Debug for SlottedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlottedModel")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CallNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallNotice")
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

/// Returns how many calls a model gets at a time if nobody said.
fn default_parallel(name: &ModelName) -> u32 {
    let is_file = matches!(name.provider(), Provider::Script | Provider::Cassette);
    let address = Address::from_env(name.provider());
    let is_near = address.is_some_and(|address| is_near(&address.url));
    match is_near && !is_file {
        true => 1,
        false => 4,
    }
}

/// Returns whether a server is on this machine or in this network, by its address.
fn is_near(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    if let Some(six) = host.strip_prefix('[') {
        let address = six.split(']').next().unwrap_or(six);
        let address = address.parse::<std::net::Ipv6Addr>();
        return address.is_ok_and(|address| address.is_loopback() || address.is_unique_local());
    }
    let host = host.split(':').next().unwrap_or(host);
    match host.parse::<std::net::Ipv4Addr>() {
        Ok(address) => address.is_loopback() || address.is_private() || address.is_unspecified(),
        // A name without a dot, such as `localhost` or that of a container, is one of this network.
        Err(_) => !host.contains('.') || host.ends_with(".local") || host.ends_with(".localhost"),
    }
}

/// Upper limit of `--parallel`.
const SLOTS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_near_by_its_address() {
        for near in [
            "http://127.0.0.1:8080/v1",
            "http://localhost:11434",
            "http://192.168.1.7/v1/",
            "http://[::1]:8080",
            "http://llama:8080/v1",
        ] {
            assert!(is_near(near), "{near}");
        }
        for far in [
            "https://api.openai.com/v1",
            "https://8.8.8.8/v1",
            "https://me@example.org",
        ] {
            assert!(!is_near(far), "{far}");
        }
        let script = ModelName::new(Provider::Script, "test");
        assert_eq!(default_parallel(&script), 4);
    }

    #[tokio::test]
    async fn slots_are_taken_away_when_they_become_free() {
        let lane = Arc::new(Lane::new(4));
        let held = [lane.enter().await, lane.enter().await, lane.enter().await];
        assert_eq!(lane.shrink(), Some(2));
        assert_eq!(lane.free.available_permits(), 1);
        drop(held);
        assert_eq!(
            lane.free.available_permits(),
            2,
            "two of the three are gone"
        );
        assert_eq!(lane.shrink(), Some(1));
        assert_eq!(lane.shrink(), None, "one is always left");
        drop(lane.enter().await);
        assert_eq!(lane.free.available_permits(), 1);
    }
}
