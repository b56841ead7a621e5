//! What we ask over HTTP: does this address say that it is well, or anything at all?

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Whether a GET of this path is answered with 200, on loopback.
pub(super) fn is_ok(port: u16, path: &str) -> bool {
    ask(port, path).is_ok_and(|start| start.starts_with(b"HTTP/1.1 200"))
}

/// Whether a GET of this path is answered, on loopback.
pub(super) fn answers(port: u16, path: &str) -> bool {
    ask(port, path).is_ok_and(|start| start.starts_with(b"HTTP/1.1 "))
}

fn ask(port: u16, path: &str) -> std::io::Result<[u8; 12]> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    // At once: `write!` would send it piece by piece.
    stream.write_all(request.as_bytes())?;
    let mut start = [0; 12];
    stream.read_exact(&mut start)?;
    Ok(start)
}

const TIMEOUT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn answered_with(status: &'static str) -> bool {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 512];
            let length = stream.read(&mut request).unwrap();
            assert!(request[..length].starts_with(b"GET /health HTTP/1.1\r\n"));
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let ok = is_ok(port, "/health");
        server.join().unwrap();
        ok
    }

    #[test]
    fn only_200_is_well() {
        assert!(answered_with("200 OK"));
        assert!(!answered_with("503 Service Unavailable"));
    }

    #[test]
    fn nobody_there_is_not_well() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        assert!(!is_ok(port, "/health"));
    }
}
