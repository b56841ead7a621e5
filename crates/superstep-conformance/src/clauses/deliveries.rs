//! The registry: the outbox of deliveries to webhooks.

use std::collections::BTreeSet;

use superstep_core::checkpoint::Page;
use superstep_core::registry::{
    AttemptEnd, CreatedRun, Delivery, DeliveryAttempt, DeliveryQuery, DeliveryStatus, NewDelivery,
    Registry, RunEnd, RunStatus,
};
use superstep_core::{DeliveryId, ThreadId, Timestamp};

use super::registry::{NONE, NOW, STRANGERS, TENANTS, later, new_run, run_id};
use super::security::hostile_texts;
use crate::poll::join_all;
use crate::report::{Fault, Verdict, ensure, ensure_eq};
use crate::sample::{ALL, thread, thread_of};

pub(super) async fn empty_outbox_has_no_deliveries(db: &dyn Registry) -> Verdict {
    ensure_eq!(listed(db, all("")).await?, NONE, "the deliveries");
    ensure_eq!(take(db, NOW, 10).await?, NONE, "the deliveries taken");
    ensure_eq!(db.next_delivery_due().await?, None, "when one is due");
    ensure_eq!(db.sweep_deliveries(NOW, 10).await?, 0, "deliveries swept");
    let repeated = db.repeat_delivery("", delivery_id(1), NOW).await?;
    ensure_eq!(repeated, None, "a delivery that never was");
    ensure!(
        !end_attempt(db, 1, 0, &AttemptEnd::Delivered, NOW).await?,
        "an attempt ended that never began"
    );
    end(db, &thread("a"), 1, &[]).await?;
    ensure_eq!(listed(db, all("")).await?, NONE, "deliveries of a run");
    Ok(())
}

pub(super) async fn end_of_a_run_stores_its_deliveries(db: &dyn Registry) -> Verdict {
    let a = thread_of("acme", "a");
    let first = NewDelivery {
        address: "https://example.org/hook?x=1".into(),
        event: "run.ended".into(),
        body: "{\"run\":1,\"values\":null}".into(),
        at: later(7),
        ..new_delivery(&a, 1, 2)
    };
    let second = NewDelivery {
        event: "thread.idle".into(),
        body: "x".repeat(200_000),
        ..new_delivery(&a, 1, 1)
    };
    end(db, &a, 1, &[first.clone(), second.clone()]).await?;
    let wanted = [Delivery::pending(&second), Delivery::pending(&first)];
    ensure_eq!(
        db.deliveries(&all("acme")).await?,
        wanted,
        "the deliveries as they are read"
    );
    Ok(())
}

pub(super) async fn second_end_stores_no_deliveries(db: &dyn Registry) -> Verdict {
    let a = thread("a");
    end(db, &a, 1, &[new_delivery(&a, 1, 1)]).await?;
    let second = run_end(&[new_delivery(&a, 1, 1), new_delivery(&a, 1, 2)]);
    ensure!(
        !db.end_run("", run_id(1), &second).await?,
        "a run was ended twice"
    );
    ensure_eq!(listed(db, all("")).await?, [1], "the deliveries");
    let none = run_end(&[new_delivery(&a, 9, 9)]);
    ensure!(
        !db.end_run("", run_id(9), &none).await?,
        "a run that never was has ended"
    );
    ensure_eq!(listed(db, all("")).await?, [1], "the deliveries after it");
    Ok(())
}

pub(super) async fn racing_ends_store_the_deliveries_of_one(db: &dyn Registry) -> Verdict {
    let a = thread("a");
    for round in 0..8u8 {
        db.create_run(&new_run(&a, round + 1)).await?;
        let ends: Vec<_> = (1..=16u8)
            .map(|n| run_end(&[new_delivery(&a, round + 1, round * 16 + n)]))
            .collect();
        let id = run_id(round + 1);
        let results = join_all(ends.iter().map(|end| db.end_run("", id, end))).await;
        let mut won = Vec::new();
        for (n, result) in (1..).zip(results) {
            if result? {
                won.push(round * 16 + n);
            }
        }
        ensure_eq!(won.len(), 1, "winners of round {round}");
        let query = DeliveryQuery {
            run: Some(id),
            ..all("")
        };
        ensure_eq!(listed(db, query).await?, won, "deliveries of round {round}");
    }
    Ok(())
}

pub(super) async fn delivery_with_a_known_id_is_not_stored_again(db: &dyn Registry) -> Verdict {
    let a = thread("a");
    let first = new_delivery(&a, 1, 1);
    end(db, &a, 1, &[first.clone(), first.clone()]).await?;
    let same = NewDelivery {
        body: "other".into(),
        ..new_delivery(&a, 2, 1)
    };
    end(db, &a, 2, &[same, new_delivery(&a, 2, 2)]).await?;
    ensure_eq!(listed(db, all("")).await?, [2, 1], "the deliveries");
    let found = delivery(db, "", 1).await?;
    ensure_eq!(found, Delivery::pending(&first), "the first delivery");
    Ok(())
}

pub(super) async fn taken_delivery_counts_an_attempt_and_is_due_again(
    db: &dyn Registry,
) -> Verdict {
    let a = thread_of("acme", "a");
    let new = NewDelivery {
        at: later(10),
        ..new_delivery(&a, 1, 1)
    };
    end(db, &a, 1, std::slice::from_ref(&new)).await?;
    let early = db.take_deliveries(later(9), later(500), 10, &[]).await?;
    ensure_eq!(early, [], "a delivery that is not due yet");
    for attempt in 1..=3u32 {
        let now = later(u64::from(attempt) * 100);
        let again = later(u64::from(attempt) * 100 + 50);
        let wanted = Delivery {
            attempts: attempt,
            due: again,
            updated: now,
            ..Delivery::pending(&new)
        };
        let taken = db.take_deliveries(now, again, 10, &[]).await?;
        ensure_eq!(
            taken,
            std::slice::from_ref(&wanted),
            "what attempt {attempt} took"
        );
        let found = delivery(db, "acme", 1).await?;
        ensure_eq!(found, wanted, "the delivery as it is read");
        let early = db
            .take_deliveries(Timestamp(again.0 - 1), again, 10, &[])
            .await?;
        ensure_eq!(early, [], "a delivery that is being attempted");
    }
    Ok(())
}

pub(super) async fn take_gives_the_oldest_of_each_run(db: &dyn Registry) -> Verdict {
    let (a, b) = (thread("a"), thread_of("acme", "a"));
    let three = [3, 1, 2].map(|n| new_delivery(&a, 1, n));
    end(db, &a, 1, &three).await?;
    // The same run of another tenant, and another run of the same thread.
    end(db, &b, 1, &[9, 8].map(|n| new_delivery(&b, 1, n))).await?;
    end(db, &a, 2, &[5, 4].map(|n| new_delivery(&a, 2, n))).await?;
    ensure_eq!(take(db, NOW, 10).await?, [3, 9, 5], "the deliveries taken");
    ensure_eq!(take(db, NOW, 10).await?, NONE, "those taken again");
    Ok(())
}

pub(super) async fn take_gives_the_longest_due_first(db: &dyn Registry) -> Verdict {
    for (n, ms) in [(1, 30), (2, 10), (3, 20), (4, 10), (5, 99)] {
        let thread = thread(&format!("t{n}"));
        let new = NewDelivery {
            at: later(ms),
            ..new_delivery(&thread, n, n)
        };
        end(db, &thread, n, &[new]).await?;
    }
    ensure_eq!(take(db, later(50), 3).await?, [2, 4, 3], "the first three");
    ensure_eq!(take(db, later(50), 0).await?, NONE, "none of them");
    ensure_eq!(take(db, later(50), 3).await?, [1], "the next ones");
    Ok(())
}

pub(super) async fn take_of_deliveries_skips_tenants(db: &dyn Registry) -> Verdict {
    for tenant in TENANTS {
        let thread = thread_of(tenant, "x");
        end(db, &thread, 1, &[new_delivery(&thread, 1, 1)]).await?;
    }
    let taken = async |skipped: &[&str]| {
        let skipped: Vec<String> = skipped.iter().map(|name| (*name).to_owned()).collect();
        let taken = db.take_deliveries(NOW, later(AGAIN_MS), 10, &skipped);
        let mut tenants: Vec<String> = taken.await?.iter().map(tenant_of).collect();
        tenants.sort();
        Ok::<_, Fault>(tenants)
    };
    let all: Vec<&str> = TENANTS.iter().copied().chain(["nobody\0"]).collect();
    ensure_eq!(
        taken(&all).await?,
        [""; 0],
        "what is left if all are skipped"
    );
    let mut rest = TENANTS[1..].to_vec();
    rest.sort_unstable();
    let tenants = taken(&[TENANTS[0], "nobody\0"]).await?;
    ensure_eq!(tenants, rest, "the tenants whose deliveries were taken");
    let tenants = taken(&[]).await?;
    ensure_eq!(tenants, TENANTS[..1], "the tenants of the rest");
    // Of the other tenants, those that are due the longest come first, whosever they are.
    for (tenant, n, ms) in [(0, 2, 1), (1, 3, 30), (2, 4, 10), (1, 5, 20), (2, 6, 99)] {
        let thread = thread_of(TENANTS[tenant], &format!("t{n}"));
        let new = NewDelivery {
            at: later(ms),
            ..new_delivery(&thread, n, n)
        };
        end(db, &thread, n, &[new]).await?;
    }
    let skipped = [TENANTS[0].to_owned()];
    for wanted in [[4_u8, 5].as_slice(), &[3], &[]] {
        let taken = db.take_deliveries(later(50), later(AGAIN_MS), 2, &skipped);
        ensure_eq!(numbers(&taken.await?), wanted, "those of other tenants");
    }
    Ok(())
}

fn tenant_of(delivery: &Delivery) -> String {
    delivery.new.thread.tenant().to_owned()
}

pub(super) async fn delivery_behind_another_waits_for_its_end(db: &dyn Registry) -> Verdict {
    let a = thread("a");
    end(db, &a, 1, &[3, 2, 1].map(|n| new_delivery(&a, 1, n))).await?;
    ensure_eq!(take(db, NOW, 10).await?, [3], "the first delivery");
    let retry = AttemptEnd::Retry {
        error: "503".into(),
        due: later(60),
    };
    ensure!(end_attempt(db, 3, 1, &retry, NOW).await?, "no retry");
    ensure_eq!(take(db, later(59), 10).await?, NONE, "what waits for it");
    ensure_eq!(take(db, later(60), 10).await?, [3], "the second attempt");
    let dead = AttemptEnd::Dead {
        error: "404".into(),
    };
    ensure!(end_attempt(db, 3, 2, &dead, NOW).await?, "no end");
    ensure_eq!(take(db, NOW, 10).await?, [2], "what is behind a dead one");
    ensure!(
        end_attempt(db, 2, 1, &AttemptEnd::Delivered, NOW).await?,
        "no end"
    );
    ensure_eq!(take(db, NOW, 10).await?, [1], "what is behind a delivered");
    Ok(())
}

pub(super) async fn racing_takes_give_each_delivery_once(db: &dyn Registry) -> Verdict {
    let a = thread("a");
    for n in 1..=40u8 {
        // Two of each run, of which the second must not be taken.
        let both = [n, n + 100].map(|id| new_delivery(&a, n, id));
        end(db, &a, n, &both).await?;
    }
    let mut taken = Vec::new();
    for _ in 0..40 {
        let takes = (0..8).map(|_| db.take_deliveries(NOW, later(1_000), 3, &[]));
        for result in join_all(takes).await {
            taken.extend(numbers(&result?));
        }
        if taken.len() >= 40 {
            break;
        }
    }
    let set: BTreeSet<u8> = taken.iter().copied().collect();
    ensure_eq!(
        taken.len(),
        set.len(),
        "deliveries taken, against different"
    );
    ensure_eq!(
        set,
        (1..=40).collect::<BTreeSet<u8>>(),
        "the deliveries taken"
    );
    ensure_eq!(take(db, NOW, 100).await?, NONE, "those taken after all");
    Ok(())
}

pub(super) async fn end_of_an_attempt_is_stored(db: &dyn Registry) -> Verdict {
    let a = thread_of("acme", "a");
    let new = new_delivery(&a, 1, 1);
    end(db, &a, 1, std::slice::from_ref(&new)).await?;
    let mut row = Delivery::pending(&new);
    let retry = AttemptEnd::Retry {
        error: "the receiver answered 503".into(),
        due: later(90),
    };
    let repeats = [retry.clone(), retry, AttemptEnd::Delivered];
    for (attempt, attempt_end) in (1..).zip(&repeats) {
        let now = later(u64::from(attempt) * 100);
        db.take_deliveries(now, now.plus_ms(50), 1, &[]).await?;
        row.attempts = attempt;
        row.due = now.plus_ms(50);
        row = row.after_attempt(attempt_end, now.plus_ms(1));
        let id = delivery_id(1);
        let taken = attempt_of(db, "acme", 1, attempt).await?;
        let ended = db.end_attempt("acme", id, taken, attempt_end, now.plus_ms(1));
        ensure!(ended.await?, "the end of attempt {attempt} was not stored");
        let found = delivery(db, "acme", 1).await?;
        ensure_eq!(found, row, "the delivery after attempt {attempt}");
    }
    ensure_eq!(
        (row.status, row.error.as_str(), row.updated),
        (DeliveryStatus::Delivered, "", later(301)),
        "the delivery after all"
    );
    end(db, &a, 2, &[new_delivery(&a, 2, 2)]).await?;
    db.take_deliveries(NOW, later(50), 1, &[]).await?;
    let dead = AttemptEnd::Dead {
        error: "410".into(),
    };
    let taken = attempt_of(db, "acme", 2, 1).await?;
    ensure!(
        db.end_attempt("acme", delivery_id(2), taken, &dead, later(7))
            .await?,
        "the last end was not stored"
    );
    let found = delivery(db, "acme", 2).await?;
    ensure_eq!(
        (found.status, found.error.as_str(), found.updated),
        (DeliveryStatus::Dead, "410", later(7)),
        "a delivery that was given up"
    );
    Ok(())
}

pub(super) async fn attempt_that_was_overtaken_ends_nothing(db: &dyn Registry) -> Verdict {
    let a = thread("a");
    end(db, &a, 1, &[new_delivery(&a, 1, 1)]).await?;
    db.take_deliveries(NOW, later(50), 1, &[]).await?;
    db.take_deliveries(later(50), later(100), 1, &[]).await?;
    let before = delivery(db, "", 1).await?;
    let late = [
        AttemptEnd::Delivered,
        AttemptEnd::Dead { error: "x".into() },
        AttemptEnd::Retry {
            error: "x".into(),
            due: later(51),
        },
    ];
    for attempt_end in &late {
        for attempts in [0, 1, 3] {
            ensure!(
                !end_attempt(db, 1, attempts, attempt_end, later(60)).await?,
                "attempt {attempts} of 2 ended the delivery"
            );
        }
    }
    let found = delivery(db, "", 1).await?;
    ensure_eq!(found, before, "the delivery after late ends");
    ensure!(
        end_attempt(db, 1, 2, &AttemptEnd::Delivered, later(70)).await?,
        "the current attempt did not end it"
    );
    let before = delivery(db, "", 1).await?;
    for attempt_end in &late {
        ensure!(
            !end_attempt(db, 1, 2, attempt_end, later(80)).await?,
            "a delivery that was confirmed ended again"
        );
    }
    let found = delivery(db, "", 1).await?;
    ensure_eq!(found, before, "the delivery that was confirmed");
    Ok(())
}

pub(super) async fn ended_delivery_is_not_taken(db: &dyn Registry) -> Verdict {
    let ends = [
        AttemptEnd::Delivered,
        AttemptEnd::Dead { error: "x".into() },
    ];
    for (n, attempt_end) in (1..).zip(&ends) {
        let a = thread("a");
        end(db, &a, n, &[new_delivery(&a, n, n)]).await?;
        ensure_eq!(take(db, NOW, 10).await?, [n], "the delivery");
        ensure!(end_attempt(db, n, 1, attempt_end, NOW).await?, "no end");
        let again = take(db, later(1_000_000), 10).await?;
        ensure_eq!(again, NONE, "the delivery after {attempt_end:?}");
        ensure_eq!(db.next_delivery_due().await?, None, "when one is due");
    }
    Ok(())
}

pub(super) async fn repeated_delivery_is_sent_from_the_beginning(db: &dyn Registry) -> Verdict {
    let a = thread_of("acme", "a");
    let new = new_delivery(&a, 1, 1);
    end(db, &a, 1, std::slice::from_ref(&new)).await?;
    let ends = [
        AttemptEnd::Dead { error: "x".into() },
        AttemptEnd::Delivered,
        AttemptEnd::Retry {
            error: "x".into(),
            due: later(100_000),
        },
    ];
    for (n, attempt_end) in (1..).zip(&ends) {
        let now = later(n * 100);
        db.take_deliveries(now, later(90_000), 1, &[]).await?;
        let taken = attempt_of(db, "acme", 1, 1).await?;
        let ended = db.end_attempt("acme", new.id, taken, attempt_end, now);
        ensure!(ended.await?, "attempt {n} did not end");
        let now = now.plus_ms(10);
        let repeated = db.repeat_delivery("acme", new.id, now).await?;
        let wanted = Delivery {
            due: now,
            updated: now,
            ..Delivery::pending(&new)
        };
        ensure_eq!(repeated, Some(wanted.clone()), "after {attempt_end:?}");
        let found = delivery(db, "acme", 1).await?;
        ensure_eq!(found, wanted, "the delivery after {attempt_end:?}");
    }
    let other = db.repeat_delivery("acme", delivery_id(2), NOW).await?;
    ensure_eq!(other, None, "a delivery that never was");
    Ok(())
}

pub(super) async fn attempt_from_before_a_repetition_ends_nothing(db: &dyn Registry) -> Verdict {
    let a = thread("a");
    end(db, &a, 1, &[new_delivery(&a, 1, 1)]).await?;
    let ends = [
        AttemptEnd::Delivered,
        AttemptEnd::Dead { error: "x".into() },
        AttemptEnd::Retry {
            error: "x".into(),
            due: later(51),
        },
    ];
    let mut late = Vec::new();
    // All within one millisecond, in which times alone tell nothing.
    for n in 1..=3 {
        let taken = db.take_deliveries(NOW, later(1_000), 1, &[]).await?;
        let Some(taken) = taken.first() else {
            return Err(Fault::new(format!("delivery {n} was not taken")));
        };
        ensure_eq!(taken.attempts, 1, "the attempt after {late:?}");
        for attempt in &late {
            for attempt_end in &ends {
                let ended = db.end_attempt("", delivery_id(1), *attempt, attempt_end, NOW);
                ensure!(!ended.await?, "{attempt:?} ended {:?}", taken.attempt());
            }
        }
        let found = delivery(db, "", 1).await?;
        ensure_eq!(found, *taken, "the delivery after late ends");
        late.push(taken.attempt());
        db.repeat_delivery("", delivery_id(1), NOW).await?;
    }
    let taken = db.take_deliveries(NOW, later(1_000), 1, &[]).await?;
    let Some(current) = taken.first().map(Delivery::attempt) else {
        return Err(Fault::new("the last repetition was not taken".to_owned()));
    };
    let ended = db.end_attempt("", delivery_id(1), current, &ends[0], NOW);
    ensure!(ended.await?, "the current attempt did not end");
    Ok(())
}

pub(super) async fn next_delivery_due_is_of_the_first_of_each_run(db: &dyn Registry) -> Verdict {
    let a = thread("a");
    let at = |n: u8, ms: u64| NewDelivery {
        at: later(ms),
        ..new_delivery(&a, 1, n)
    };
    end(db, &a, 1, &[at(1, 300), at(2, 100)]).await?;
    let due = db.next_delivery_due().await?;
    ensure_eq!(due, Some(later(300)), "what is behind the first counts");
    let b = thread_of("acme", "b");
    let new = NewDelivery {
        at: later(200),
        ..new_delivery(&b, 2, 3)
    };
    end(db, &b, 2, &[new]).await?;
    let due = db.next_delivery_due().await?;
    ensure_eq!(due, Some(later(200)), "when that of another tenant is due");
    ensure_eq!(take(db, later(300), 10).await?, [3, 1], "those taken");
    let due = db.next_delivery_due().await?;
    ensure_eq!(due, Some(later(AGAIN_MS)), "when they are due again");
    ensure!(
        end_attempt(db, 1, 1, &AttemptEnd::Delivered, later(301)).await?,
        "no end"
    );
    let due = db.next_delivery_due().await?;
    ensure_eq!(due, Some(later(100)), "when the second of the run is due");
    Ok(())
}

pub(super) async fn deliveries_outlive_their_run(db: &dyn Registry) -> Verdict {
    let (a, b) = (thread("a"), thread("b"));
    end(db, &a, 1, &[new_delivery(&a, 1, 1)]).await?;
    end(db, &b, 2, &[new_delivery(&b, 2, 2)]).await?;
    ensure!(db.delete_run("", run_id(1)).await?, "there is no run 1");
    ensure_eq!(db.delete_runs(&b).await?, 1, "runs deleted");
    ensure_eq!(listed(db, all("")).await?, [2, 1], "the deliveries");
    ensure_eq!(take(db, NOW, 10).await?, [1, 2], "those taken");
    Ok(())
}

pub(super) async fn deliveries_by_run_status_and_page(db: &dyn Registry) -> Verdict {
    let a = thread("a");
    end(db, &a, 1, &[5, 1].map(|n| new_delivery(&a, 1, n))).await?;
    end(db, &a, 2, &[4].map(|n| new_delivery(&a, 2, n))).await?;
    end(db, &a, 3, &[2, 3].map(|n| new_delivery(&a, 3, n))).await?;
    ensure_eq!(take(db, NOW, 2).await?, [5, 4], "those taken");
    let dead = AttemptEnd::Dead { error: "x".into() };
    ensure!(end_attempt(db, 5, 1, &dead, NOW).await?, "no end");
    ensure!(
        end_attempt(db, 4, 1, &AttemptEnd::Delivered, NOW).await?,
        "no end"
    );
    let (pending, delivered) = (DeliveryStatus::Pending, DeliveryStatus::Delivered);
    let dead = DeliveryStatus::Dead;
    let of = |run: Option<u8>, statuses: &[DeliveryStatus]| DeliveryQuery {
        run: run.map(run_id),
        statuses: statuses.to_vec(),
        ..all("")
    };
    for (query, wanted) in [
        (of(None, &[]), &[3u8, 2, 4, 1, 5] as &[u8]),
        (of(Some(1), &[]), &[1, 5]),
        (of(Some(9), &[]), &[]),
        (of(None, &[pending]), &[3, 2, 1]),
        (of(None, &[dead, delivered]), &[4, 5]),
        (of(Some(1), &[pending]), &[1]),
        (of(Some(1), &[delivered]), &[]),
    ] {
        let what = format!("{query:?}");
        ensure_eq!(listed(db, query).await?, wanted, "the deliveries of {what}");
    }
    for (id, run, wanted) in [
        (4u8, None, &[4u8] as &[u8]),
        (4, Some(2), &[4]),
        (4, Some(1), &[]),
        (9, None, &[]),
    ] {
        let query = DeliveryQuery {
            id: Some(delivery_id(id)),
            ..of(run, &[])
        };
        let what = format!("{query:?}");
        ensure_eq!(listed(db, query).await?, wanted, "the deliveries of {what}");
    }
    let page = |offset, limit| DeliveryQuery {
        page: Page { limit, offset },
        ..of(None, &[pending])
    };
    ensure_eq!(listed(db, page(0, 2)).await?, [3, 2], "the first page");
    ensure_eq!(listed(db, page(2, 2)).await?, [1], "the second page");
    ensure_eq!(listed(db, page(3, 2)).await?, NONE, "the page after it");
    Ok(())
}

pub(super) async fn sweep_deletes_old_confirmed_deliveries(db: &dyn Registry) -> Verdict {
    let dead = AttemptEnd::Dead { error: "x".into() };
    for n in 1..=6u8 {
        let thread = thread_of(["", "acme"][usize::from(n) % 2], "a");
        end(db, &thread, n, &[new_delivery(&thread, n, n)]).await?;
        let attempt_end = match n {
            1 => continue,
            2 => &dead,
            _ => &AttemptEnd::Delivered,
        };
        db.take_deliveries(NOW, later(AGAIN_MS), 10, &[]).await?;
        let now = later(u64::from(n) * 10);
        let taken = attempt_of(db, thread.tenant(), n, 1).await?;
        let ended = db.end_attempt(thread.tenant(), delivery_id(n), taken, attempt_end, now);
        ensure!(ended.await?, "attempt {n} did not end");
    }
    let left = async || -> Result<Vec<u8>, Fault> {
        let mut left = listed(db, all("")).await?;
        left.extend(listed(db, all("acme")).await?);
        left.sort_unstable();
        Ok(left)
    };
    ensure_eq!(db.sweep_deliveries(later(29), 10).await?, 0, "swept early");
    ensure_eq!(
        db.sweep_deliveries(later(50), 1).await?,
        1,
        "swept of three"
    );
    ensure_eq!(left().await?.len(), 5, "deliveries left");
    ensure_eq!(db.sweep_deliveries(later(50), 10).await?, 2, "swept then");
    ensure_eq!(left().await?, [1, 2, 6], "those left");
    ensure_eq!(db.sweep_deliveries(later(60), 10).await?, 1, "swept last");
    ensure_eq!(left().await?, [1, 2], "those that are not confirmed");
    Ok(())
}

pub(super) async fn tenants_are_apart_in_deliveries(db: &dyn Registry) -> Verdict {
    let own = thread_of("acme", "x");
    let new = new_delivery(&own, 1, 1);
    end(db, &own, 1, std::slice::from_ref(&new)).await?;
    db.take_deliveries(NOW, later(AGAIN_MS), 1, &[]).await?;
    let before = delivery(db, "acme", 1).await?;
    for tenant in STRANGERS {
        let by_id = DeliveryQuery {
            id: Some(new.id),
            ..all(tenant)
        };
        ensure_eq!(
            listed(db, by_id).await?,
            NONE,
            "the delivery, by tenant `{tenant}`"
        );
        let by_run = DeliveryQuery {
            run: Some(new.run),
            ..all(tenant)
        };
        for query in [all(tenant), by_run] {
            let found = listed(db, query).await?;
            ensure_eq!(found, NONE, "the deliveries of tenant `{tenant}`");
        }
        let ended = db.end_attempt(
            tenant,
            new.id,
            before.attempt(),
            &AttemptEnd::Delivered,
            NOW,
        );
        ensure!(!ended.await?, "tenant `{tenant}` ended the attempt");
        let repeated = db.repeat_delivery(tenant, new.id, NOW).await?;
        ensure_eq!(repeated, None, "repeated by tenant `{tenant}`");
    }
    let found = delivery(db, "acme", 1).await?;
    ensure_eq!(found, before, "the delivery after all of that");
    // The same ids under another tenant.
    let other = thread_of("acme-corp", "x");
    let same = new_delivery(&other, 1, 1);
    end(db, &other, 1, std::slice::from_ref(&same)).await?;
    let found = delivery(db, "acme-corp", 1).await?;
    ensure_eq!(found, Delivery::pending(&same), "that of the other tenant");
    ensure_eq!(take(db, NOW, 10).await?, [1], "taken of the other tenant");
    let taken = attempt_of(db, "acme-corp", 1, 1).await?;
    let ended = db.end_attempt("acme-corp", same.id, taken, &AttemptEnd::Delivered, NOW);
    ensure!(ended.await?, "the attempt of the other tenant did not end");
    let found = delivery(db, "acme", 1).await?;
    ensure_eq!(found, before, "the delivery after that of the other tenant");
    Ok(())
}

pub(super) async fn hostile_texts_of_deliveries_survive(db: &dyn Registry) -> Verdict {
    let a = thread("a");
    let texts = hostile_texts();
    for (n, text) in (1..).zip(&texts) {
        let new = NewDelivery {
            address: text.clone(),
            event: text.clone(),
            body: text.clone(),
            ..new_delivery(&a, n, n)
        };
        end(db, &a, n, std::slice::from_ref(&new)).await?;
        let taken = db.take_deliveries(NOW, later(AGAIN_MS), 1, &[]).await?;
        let found = taken.into_iter().map(|taken| taken.new);
        ensure_eq!(found.collect::<Vec<_>>(), [new], "taken of {text:?}");
        let dead = AttemptEnd::Dead {
            error: text.clone(),
        };
        ensure!(end_attempt(db, n, 1, &dead, NOW).await?, "no end");
        let found = delivery(db, "", n).await?;
        ensure_eq!(found.error, *text, "why it was given up");
    }
    Ok(())
}

/// When [`take`] makes deliveries due again, in milliseconds after [`NOW`].
const AGAIN_MS: u64 = 50_000;

fn delivery_id(n: u8) -> DeliveryId {
    DeliveryId::from_bytes([n; 16])
}

pub(super) fn new_delivery(thread: &ThreadId, run: u8, n: u8) -> NewDelivery {
    NewDelivery {
        id: delivery_id(n),
        run: run_id(run),
        thread: thread.clone(),
        address: "https://example.org/hook".into(),
        event: "run.ended".into(),
        body: format!("{{\"n\":{n}}}"),
        at: NOW,
    }
}

fn run_end(deliveries: &[NewDelivery]) -> RunEnd {
    RunEnd {
        status: RunStatus::Success,
        error: serde_json::Value::Null,
        at: NOW,
        deliveries: deliveries.to_vec(),
    }
}

pub(super) fn all(tenant: &str) -> DeliveryQuery {
    DeliveryQuery {
        tenant: tenant.to_owned(),
        page: ALL,
        ..DeliveryQuery::default()
    }
}

/// Returns the numbers that the suite gave deliveries.
fn numbers(found: &[Delivery]) -> Vec<u8> {
    let ids = found.iter().map(|found| found.new.id.to_bytes()[0]);
    ids.collect()
}

/// Creates a run that must be stored, and ends it.
pub(super) async fn end(
    db: &dyn Registry,
    thread: &ThreadId,
    run: u8,
    deliveries: &[NewDelivery],
) -> Verdict {
    let created = db.create_run(&new_run(thread, run)).await?;
    ensure_eq!(created, CreatedRun::Stored(vec![]), "the run {run}");
    let end = run_end(deliveries);
    ensure!(
        db.end_run(thread.tenant(), run_id(run), &end).await?,
        "the run {run} was not active"
    );
    Ok(())
}

async fn take(db: &dyn Registry, now: Timestamp, limit: u32) -> Result<Vec<u8>, Fault> {
    let taken = db.take_deliveries(now, later(AGAIN_MS), limit, &[]).await?;
    Ok(numbers(&taken))
}

/// Ends an attempt of the unnamed tenant.
async fn end_attempt(
    db: &dyn Registry,
    n: u8,
    attempts: u32,
    end: &AttemptEnd,
    now: Timestamp,
) -> Result<bool, Fault> {
    let attempt = attempt_of(db, "", n, attempts).await?;
    let ended = db.end_attempt("", delivery_id(n), attempt, end, now);
    Ok(ended.await?)
}

/// Returns the attempt with this number, as if the delivery had last been taken for it.
async fn attempt_of(
    db: &dyn Registry,
    tenant: &str,
    n: u8,
    number: u32,
) -> Result<DeliveryAttempt, Fault> {
    let all = db.deliveries(&all(tenant)).await?;
    let found = all.iter().find(|found| found.new.id == delivery_id(n));
    let taken = found.map_or(NOW, |found| found.updated);
    Ok(DeliveryAttempt { number, taken })
}

async fn listed(db: &dyn Registry, query: DeliveryQuery) -> Result<Vec<u8>, Fault> {
    Ok(numbers(&db.deliveries(&query).await?))
}

async fn delivery(db: &dyn Registry, tenant: &str, n: u8) -> Result<Delivery, Fault> {
    let found = db.deliveries(&all(tenant)).await?;
    let found = found
        .into_iter()
        .find(|found| found.new.id == delivery_id(n));
    found.ok_or_else(|| Fault::new(format!("there is no delivery {n} of tenant `{tenant}`")))
}
