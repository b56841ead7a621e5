//! Wire format of a live message: a version, then its fields.
//!
//! Workers of two versions may run at the same time during a deployment. A reader skips messages it does not know, and its
//! subscriber reads the log.

use serde::{Deserialize, Serialize};
use superstep::driver::LiveEvent;
use superstep::{Epoch, FramePath, LiveMessage, NodeName, Seq, TaskId, Value};

const VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
enum Packet {
    Entry(Seq),
    Live(Live),
}

#[derive(Serialize, Deserialize)]
struct Live {
    frame: FramePath,
    node: NodeName,
    task: TaskId,
    step: u64,
    attempt: u32,
    epoch: Epoch,
    go: u64,
    index: u64,
    stored: bool,
    payload: Value,
}

pub(crate) fn encode(notice: &LiveMessage) -> Vec<u8> {
    let packet = match notice {
        LiveMessage::Entry(seq) => Packet::Entry(*seq),
        LiveMessage::Live(event) => Packet::Live(Live {
            frame: event.frame.clone(),
            node: event.node.clone(),
            task: event.task,
            step: event.step,
            attempt: event.attempt,
            epoch: event.epoch,
            go: event.go,
            index: event.index,
            stored: event.stored,
            payload: event.payload.clone(),
        }),
    };
    postcard::to_extend(&packet, vec![VERSION]).expect("a notice always encodes")
}

/// Decodes a live message; `None` if this version does not know it.
pub(crate) fn decode(bytes: &[u8]) -> Option<LiveMessage> {
    let (&VERSION, packet) = bytes.split_first()? else {
        return None;
    };
    Some(match postcard::from_bytes(packet).ok()? {
        Packet::Entry(seq) => LiveMessage::Entry(seq),
        Packet::Live(live) => LiveMessage::Live(LiveEvent {
            frame: live.frame,
            node: live.node,
            task: live.task,
            step: live.step,
            attempt: live.attempt,
            epoch: live.epoch,
            go: live.go,
            index: live.index,
            stored: live.stored,
            payload: live.payload,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_read_and_what_is_unknown_is_passed_over() {
        let live = LiveMessage::Live(LiveEvent {
            frame: FramePath::root(),
            node: NodeName::new("says").expect("a name"),
            task: TaskId::from_bytes([7; 16]),
            step: 3,
            attempt: 2,
            epoch: Epoch(u64::MAX),
            go: 9,
            index: 4,
            stored: true,
            payload: Value::from_json_bytes(b"\"token\""),
        });
        for notice in [live, LiveMessage::Entry(Seq(300))] {
            let mut bytes = encode(&notice);
            assert_eq!(decode(&bytes), Some(notice));
            bytes[0] = VERSION + 1;
            assert_eq!(decode(&bytes), None);
        }
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[VERSION, 200]), None);
    }
}
