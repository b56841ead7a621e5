//! Waiting without a runtime: one future on this thread, and several at once within one.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Runs a future to its end on this thread, which sleeps while there is nothing to do.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Lets everybody else go first.
pub async fn give_way() {
    let mut given = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Runs futures at the same time, and gives their outputs in the order of the futures.
pub async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, output) in running.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *output = Some(ready);
            }
        }
        if outputs.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// Runs two futures at the same time.
pub(crate) async fn join<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut a_output, mut b_output) = (None, None);
    poll_fn(|cx| {
        if a_output.is_none()
            && let Poll::Ready(ready) = a.as_mut().poll(cx)
        {
            a_output = Some(ready);
        }
        if b_output.is_none()
            && let Poll::Ready(ready) = b.as_mut().poll(cx)
        {
            b_output = Some(ready);
        }
        match (a_output.take(), b_output.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (a_output, b_output) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Is ready at its second poll, and is woken for that from another thread.
    async fn woken_from_elsewhere<T>(output: T) -> T {
        let mut polled = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut polled, true) {
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            thread::spawn(move || waker.wake());
            Poll::Pending
        })
        .await;
        output
    }

    #[test]
    fn block_on_sleeps_until_it_is_woken() {
        assert_eq!(block_on(woken_from_elsewhere(1)), 1);
    }

    #[test]
    fn joined_futures_run_at_the_same_time() {
        let (sender, receiver) = mpsc::channel();
        let first = async {
            let told = poll_fn(|cx| match receiver.try_recv() {
                Ok(told) => Poll::Ready(told),
                Err(_) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            });
            told.await
        };
        let second = async { sender.send(2).is_ok() };
        assert_eq!(block_on(join(first, second)), (2, true));
    }

    #[test]
    fn outputs_stand_in_the_order_of_their_futures() {
        let futures = (0..5).map(woken_from_elsewhere);
        assert_eq!(block_on(join_all(futures)), [0, 1, 2, 3, 4]);
    }
}
