//! Suppresses the `tracing` output of dependencies.
//!
//! The provider library logs raw server text at level error, which may contain the API key that was sent. We report the same
//! text ourselves, with the key removed.

use std::pin::Pin;
use std::task::{Context, Poll};

use tracing::Dispatch;
use tracing::level_filters::LevelFilter;

/// Runs work with `tracing` disabled.
pub(crate) fn quietly<T>(work: impl FnOnce() -> T) -> T {
    match LevelFilter::current() == LevelFilter::OFF {
        true => work(),
        false => tracing::dispatcher::with_default(&Dispatch::none(), work),
    }
}

/// Awaits a future with `tracing` disabled.
pub(crate) async fn quiet<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    let poll = move |cx: &mut Context<'_>| -> Poll<F::Output> {
        let future: Pin<&mut F> = future.as_mut();
        quietly(|| future.poll(cx))
    };
    std::future::poll_fn(poll).await
}
