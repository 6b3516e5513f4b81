//! The subcommand `healthcheck`, for health checks of containers without an HTTP client.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::arguments::{HealthcheckArguments, Probe};

/// Timeout of the connection and of the response. `/readyz` may take a second, to check the database.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Requests a health endpoint of the private listener. Any status other than 200 is an error.
pub(crate) fn run(arguments: &HealthcheckArguments) -> anyhow::Result<()> {
    let address = connect_address(arguments.admin.admin_listen);
    let path = match arguments.probe {
        Probe::Livez => "/livez",
        Probe::Readyz => "/readyz",
    };
    let status_line =
        get(address, path).with_context(|| format!("no response from http://{address}{path}"))?;
    ensure!(status_line.starts_with("HTTP/1.1 200 "), "http://{address}{path} responded with {status_line}");
    Ok(())
}

/// The address to connect to: the loopback address for a listener on all addresses.
fn connect_address(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut status_line = String::new();
    BufReader::new(stream).read_line(&mut status_line)?;
    Ok(status_line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use crate::arguments::AdminListen;

    #[test]
    fn listener_on_all_addresses_is_reached_on_loopback() {
        for (listen, expected) in [
            ("0.0.0.0:9090", "127.0.0.1:9090"),
            ("[::]:9090", "[::1]:9090"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("10.0.0.7:9090", "10.0.0.7:9090"),
        ] {
            assert_eq!(
                connect_address(listen.parse().unwrap()),
                expected.parse::<SocketAddr>().unwrap(),
                "{listen}"
            );
        }
    }

    #[test]
    fn only_200_is_healthy() {
        for (response, is_healthy) in [
            ("HTTP/1.1 200 OK\r\n\r\n", true),
            ("HTTP/1.1 503 Service Unavailable\r\n\r\n", false),
            ("", false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let admin = AdminListen { admin_listen: listener.local_addr().unwrap() };
            let server = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                // Reads all of it: closing a socket with unread data resets the connection.
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    request.extend(byte);
                }
                stream.write_all(response.as_bytes()).unwrap();
                request
            });
            let checked = run(&HealthcheckArguments { probe: Probe::Readyz, admin });
            assert_eq!(checked.is_ok(), is_healthy, "{response:?}: {checked:?}");
            assert!(server.join().unwrap().starts_with(b"GET /readyz "));
        }
    }
}
