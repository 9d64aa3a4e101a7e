/* See cred_env.h. Names and order are curl's, and HTTP_PROXY in upper case is heeded as Python's own clients do: not where
 * REQUEST_METHOD says that this is a CGI program, whose server turns a "Proxy:" request header into it. */
#include "store/cred_env.h"

#include <stdlib.h>
#include <unistd.h>

static const char *first_set(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *v = getenv(names[i]);
        if (v && *v)
            return v;
    }
    return NULL;
}

const char *env_proxy(bool tls)
{
    static const char *const plain[] = {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"};
    static const char *const cgi[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    static const char *const secure[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    return tls                        ? first_set(secure, 4)
           : getenv("REQUEST_METHOD") ? first_set(cgi, 3)
                                      : first_set(plain, 4);
}

const char *env_no_proxy(void)
{
    static const char *const names[] = {"no_proxy", "NO_PROXY"};
    return first_set(names, 2);
}

const char *env_ca_file(void)
{
    static const char *const names[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE"};
    static const char *const known[] = {
        "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch */
        "/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora, RHEL */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL 9 */
        "/etc/ssl/ca-bundle.pem",                            /* SUSE */
        "/etc/ssl/cert.pem",                                 /* Alpine, macOS */
    };
    const char *set = first_set(names, 2);
    if (set && access(set, R_OK) == 0)
        return set;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (access(known[i], R_OK) == 0)
            return known[i];
    return NULL;
}
