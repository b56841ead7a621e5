//! Interrupts raised by calls that run concurrently in one node.

use std::fmt;
use std::sync::Mutex;

use serde::de::DeserializeOwned;
use superstep_core::__private::lock;
use superstep_core::node::Hold;
use superstep_core::{Interrupt, NodeCx, NodeError};

/// Holds its node while a call is in progress, and releases it while the call waits for a person.
///
/// So a node with several calls pauses only when each of them is done or waits: calls that need no person are finished and
/// recorded, and all interrupts are shown together.
pub(crate) struct Asking<'a> {
    pub(crate) cx: &'a NodeCx,
    hold: Mutex<Option<Hold>>,
}

impl<'a> Asking<'a> {
    pub(crate) fn holding(cx: &'a NodeCx) -> Self {
        Self {
            cx,
            hold: Mutex::new(Some(cx.hold())),
        }
    }

    pub(crate) async fn ask<A: DeserializeOwned>(
        &self,
        question: Interrupt,
    ) -> Result<A, NodeError> {
        self.set(None);
        let answer = self.cx.interrupt(question).await;
        self.set(Some(self.cx.hold()));
        answer
    }

    fn set(&self, hold: Option<Hold>) {
        let former = {
            let mut held = lock(&self.hold);
            std::mem::replace(&mut *held, hold)
        };
        drop(former);
    }
}

impl fmt::Debug for Asking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").finish_non_exhaustive()
    }
}
