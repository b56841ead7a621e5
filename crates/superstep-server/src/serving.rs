//! Serves HTTP/1.1 over TCP: accepts connections, and ends them when the server stops.

mod connection;
mod socket;
mod stream_writer;

use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Serves connections, at most `connections_max` at once, until `stop` resolves; then accepts no more and waits for those that are
/// open, at most this long. What is open after that is cut.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()>,
    last_replies: Duration,
    connections_max: usize,
) {
    let (stopping, is_stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            // Those over the limit wait in the system's own queue.
            accepted = listener.accept(), if connections.len() < connections_max => match accepted {
                Ok((socket, _)) => {
                    // Events are small, and the kernel must not wait for more of them. It fails for a connection that is gone already.
                    let _ = socket.set_nodelay(true);
                    connections.spawn(connection::serve(
                        socket,
                        router.clone(),
                        is_stopping.clone(),
                    ));
                }
                Err(error) => pause_after(&error).await,
            },
            // A handler that panics has ended its connection, and the panic was reported.
            Some(_) = connections.join_next() => {}
            () = &mut stop => break,
        }
    }
    drop(listener);
    stopping.send_replace(true);
    let all_end = async { while connections.join_next().await.is_some() {} };
    // The rest is cut when the set is dropped.
    let _ = tokio::time::timeout(last_replies, all_end).await;
}

/// Waits after an error that concerns more than one connection, most likely too many open files.
async fn pause_after(error: &io::Error) {
    let is_of_connection = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    );
    if !is_of_connection {
        tracing::error!(%error, "connections cannot be accepted; if too many files are open, raise the limit (`ulimit -n`)");
        tokio::time::sleep(PAUSE_AFTER_ERROR).await;
    }
}

const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);
