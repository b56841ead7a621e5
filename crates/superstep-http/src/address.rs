//! Addresses that a program which reads untrusted documents must never call.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns why an address must not be called, or `None` if it may be.
pub fn denied(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => denied_v4(v4),
        IpAddr::V6(v6) => denied_v6(v6),
    }
}

fn denied_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = u32::from(address);
    DENIED_V4
        .iter()
        .find(|(net, length, _)| {
            let mask = u32::MAX << (32 - length);
            bits & mask == u32::from(*net) & mask
        })
        .map(|(_, _, why)| *why)
}

fn denied_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(inner) = embedded(address) {
        return denied_v4(inner);
    }
    let segments = address.segments();
    // All addresses that are routed on the internet are in 2000::/3.
    if segments[0] & 0xe000 != 0x2000 {
        return Some(match segments[0] {
            0xff00..=0xffff => "multicast",
            0xfe80..=0xfebf => "link-local",
            0xfc00..=0xfdff => "private",
            _ if address.is_loopback() => "loopback",
            _ if address.is_unspecified() => "unspecified",
            _ => "not of the internet",
        });
    }
    match (segments[0], segments[1]) {
        (0x2001, 0x0000..=0x01ff) => Some("reserved for protocols"),
        (0x2001, 0x0db8) | (0x3fff, 0x0000..=0x0fff) => Some("for documentation"),
        // The relay of the outer address decides where the packet goes.
        (0x2002, _) => Some("6to4"),
        _ => None,
    }
}

/// Returns the IPv4 address that an IPv6 address embeds (mapped or NAT64).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let is_mapped = segments[..5] == [0; 5] && segments[5] == 0xffff;
    let is_nat64 = segments[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
    let [high, low] = [segments[6], segments[7]];
    (is_mapped || is_nat64).then(|| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
}

/// Denied networks: address, prefix length, and why.
const DENIED_V4: [(Ipv4Addr, u32, &str); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "unspecified"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared by carriers"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved for protocols"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "6to4"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_the_internet_may_be_called_and_no_others() {
        let may = [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::5db8:d822",
            "::ffff:8.8.8.8",
        ];
        for address in may {
            assert_eq!(denied(address.parse().unwrap()), None, "{address}");
        }
        let must_not = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for address in must_not {
            assert!(denied(address.parse().unwrap()).is_some(), "{address}");
        }
    }
}
