//! Keeps what others tell with `tracing` to themselves.
//!
//! The library that speaks to providers logs the words of a server as they came, at level error; such words may hold the
//! key that was sent. We tell them, too, without it.

use std::pin::Pin;
use std::task::{Context, Poll};

use tracing::Dispatch;
use tracing::level_filters::LevelFilter;

/// Does something that nobody hears.
pub(crate) fn quietly<T>(work: impl FnOnce() -> T) -> T {
    match LevelFilter::current() == LevelFilter::OFF {
        true => work(),
        false => tracing::dispatcher::with_default(&Dispatch::none(), work),
    }
}

/// A future that nobody hears.
pub(crate) async fn quiet<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    let poll = move |cx: &mut Context<'_>| -> Poll<F::Output> {
        let future: Pin<&mut F> = future.as_mut();
        quietly(|| future.poll(cx))
    };
    std::future::poll_fn(poll).await
}
