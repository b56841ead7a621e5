//! Encrypted connections, as the client library wants them.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use superstep_core::checkpoint::BoxFuture;
use superstep_tls::{TlsClient, TlsError, TlsStream, server_end_point};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{self, ChannelBinding, MakeTlsConnect, TlsConnect};

/// Encrypts connections to a database.
#[derive(Debug, Clone)]
pub(crate) struct Encryption(pub(crate) TlsClient);

/// Encrypts one connection, once the server has agreed to.
pub(crate) struct Handshake {
    client: TlsClient,
    host: String,
}

/// An encrypted connection. Boxed, because it is large and moves through many futures.
pub(crate) struct EncryptedStream(Box<TlsStream<Socket>>);

impl MakeTlsConnect<Socket> for Encryption {
    type Stream = EncryptedStream;
    type TlsConnect = Handshake;
    type Error = Infallible;

    // Also called for sockets without a host, on which no handshake follows.
    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Infallible> {
        Ok(Handshake {
            client: self.0.clone(),
            host: host.to_owned(),
        })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = EncryptedStream;
    type Error = TlsError;
    type Future = BoxFuture<'static, Result<EncryptedStream, TlsError>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let stream = self.client.connect(&self.host, stream).await?;
            Ok(EncryptedStream(Box::new(stream)))
        })
    }
}

impl tls::TlsStream for EncryptedStream {
    fn channel_binding(&self) -> ChannelBinding {
        let (_, session) = self.0.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        match certificate.and_then(server_end_point) {
            Some(digest) => ChannelBinding::tls_server_end_point(digest),
            None => ChannelBinding::none(),
        }
    }
}

impl AsyncRead for EncryptedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for EncryptedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
