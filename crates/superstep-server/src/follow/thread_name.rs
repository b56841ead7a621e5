//! Threads that clients name as they like.

use superstep::ThreadId;
use uuid::{Uuid, uuid};

use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::wire;

/// Namespace of the threads whose names are not UUIDs.
const NAMESPACE: Uuid = uuid!("5a2c64b6-5c1e-4f0a-9f7e-6f3f8f2b7c11");
/// Longest name of a thread.
const NAME_BYTES_MAX: usize = 1_024;

/// Returns the thread of the caller's tenant with this name. A name that is not a UUID stands for one, always the same.
pub(crate) fn thread_named(caller: &Caller, name: &str) -> ApiResult<ThreadId> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(ApiError::invalid(format!(
            "The name of a thread must have 1 to {NAME_BYTES_MAX} bytes"
        )));
    }
    caller.thread(name).or_else(|_| {
        let derived = wire::uuid_of_name(NAMESPACE.into_bytes(), name.as_bytes());
        caller.thread(&derived.to_string())
    })
}

#[test]
fn a_thread_may_have_any_name() {
    let caller = Caller::default();
    let named = |name: &str| thread_named(&caller, name);
    let id = "0190a6b2-0000-7000-8000-00000000000a";
    assert_eq!(named(id).unwrap().name(), id);
    assert_eq!(named("my chat").unwrap(), named("my chat").unwrap());
    assert_ne!(named("my chat").unwrap(), named("my chat 2").unwrap());
    assert!(named("").is_err());
    assert!(named(&"x".repeat(2_000)).is_err());
}
