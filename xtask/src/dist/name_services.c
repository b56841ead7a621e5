/* Linked into the static program before anything else of it runs.
 *
 * The host's /etc/nsswitch.conf may name services, such as `mdns4_minimal` or `sss`, that glibc would load as shared libraries. They
 * belong to the host's glibc, and a program with another glibc inside must not load them. These two are inside. */
#include <nss.h>

__attribute__((constructor)) static void use_what_is_inside(void)
{
    __nss_configure_lookup("hosts", "files dns");
    __nss_configure_lookup("passwd", "files");
    __nss_configure_lookup("group", "files");
}
