//! The socket of a connection, which knows whether everything was sent that was written to it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A socket that passes from the HTTP library to a stream and back.
#[derive(Debug)]
pub(super) struct ClientSocket {
    pub(super) tcp: TcpStream,
    /// What the client has sent and nothing has read yet. It comes before what the system has received.
    early: Vec<u8>,
    /// Whether everything was flushed that was written.
    is_flushed: Arc<AtomicBool>,
}

impl ClientSocket {
    pub(super) fn new(tcp: TcpStream) -> Self {
        Self {
            tcp,
            early: Vec::new(),
            is_flushed: Arc::new(AtomicBool::new(true)),
        }
    }

    /// Returns what says whether everything was flushed, for those who do not hold the socket.
    pub(super) fn flushed(&self) -> Arc<AtomicBool> {
        self.is_flushed.clone()
    }

    /// Gives back what was read and not used.
    pub(super) fn unread(&mut self, bytes: &[u8]) {
        let later = std::mem::replace(&mut self.early, bytes.to_vec());
        self.early.extend(later);
    }

    /// Waits until the client has sent something or has gone away, and returns whether it is still there. Cancel-safe.
    pub(super) async fn watch(&mut self) -> bool {
        if self.early.len() >= EARLY_BYTES_MAX {
            // A client that is gone is found out when something is written to it.
            return std::future::pending().await;
        }
        if self.tcp.readable().await.is_err() {
            return false;
        }
        let mut read = Vec::with_capacity(EARLY_BYTES_AT_ONCE);
        match self.tcp.try_read_buf(&mut read) {
            Ok(0) => false,
            Ok(_) => {
                self.early.append(&mut read);
                true
            }
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.tcp).poll_read(cx, into);
        }
        let read = self.early.len().min(into.remaining());
        into.put_slice(&self.early[..read]);
        self.early.drain(..read);
        if self.early.is_empty() {
            self.early = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_flushed.store(false, Ordering::Relaxed);
        Pin::new(&mut self.tcp).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.is_flushed.store(false, Ordering::Relaxed);
        Pin::new(&mut self.tcp).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    /// The HTTP library flushes after it has written all that it has.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_flushed.store(true, Ordering::Relaxed);
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

/// How much of further requests is read while a stream is sent.
const EARLY_BYTES_MAX: usize = 64 * 1024;
const EARLY_BYTES_AT_ONCE: usize = 1_024;
