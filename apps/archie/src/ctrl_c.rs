//! Ctrl-C: what the program does when the person presses it.
//!
//! Who waits for it through the async runtime replaces the signal's default action, permanently: after the wait, Ctrl-C would do
//! nothing, neither at a prompt nor in work that does not wait for it. So every wait is a [`Watch`], and without one the default
//! applies: the process ends. A thread survives that as it survives every kill.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// Waits until the person presses Ctrl-C at the terminal.
pub(crate) async fn pressed() {
    let _watch = Watch::start();
    // Without a handler there is nothing to wait for, and the default applies.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

/// As long as it lives, Ctrl-C does not end the process.
#[derive(Debug)]
pub(crate) struct Watch(());

impl Watch {
    pub(crate) fn start() -> Self {
        let signal = &*SIGNAL;
        if signal.watches.fetch_add(1, Ordering::SeqCst) == 0 {
            signal.is_unwatched.store(false, Ordering::SeqCst);
        }
        signal.is_pressed.store(false, Ordering::SeqCst);
        Self(())
    }

    /// Whether Ctrl-C was pressed since the newest watch began.
    pub(crate) fn is_pressed(&self) -> bool {
        SIGNAL.is_pressed.load(Ordering::SeqCst)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if SIGNAL.watches.fetch_sub(1, Ordering::SeqCst) == 1 {
            SIGNAL.is_unwatched.store(true, Ordering::SeqCst);
        }
    }
}

#[derive(Debug)]
struct InterruptSignal {
    watches: AtomicUsize,
    is_unwatched: Arc<AtomicBool>,
    is_pressed: Arc<AtomicBool>,
}

static SIGNAL: LazyLock<InterruptSignal> = LazyLock::new(|| {
    let signal = InterruptSignal {
        watches: AtomicUsize::new(0),
        is_unwatched: Arc::new(AtomicBool::new(true)),
        is_pressed: Arc::default(),
    };
    // If they cannot be registered, the default action of the signal stays.
    let _ = flag::register_conditional_default(SIGINT, signal.is_unwatched.clone());
    let _ = flag::register(SIGINT, signal.is_pressed.clone());
    signal
});
