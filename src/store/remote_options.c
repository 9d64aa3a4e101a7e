/* See remote_options.h. */
#include "store/remote_options.h"

#include <stdio.h>
#include <unistd.h>

#include "store/cred_env.h"

void remote_options_init(struct remote_options *o, const struct store_env *env)
{
    *o = (struct remote_options){.policy = NET_POLICY};
    if (env->policy)
        o->policy = *env->policy;
}

int remote_options_check(struct remote_options *o, const char *shown, struct hr_error *e)
{
    static const struct option_spec client[] = {
        {"", OPTION_FOREIGN, offsetof(struct remote_options, others), FOREIGN_OBSTORE, 0}};
    char where[320];
    snprintf(where, sizeof where, "%s: client_options", shown);
    TRY(options_object(o->client, where, client, 1, o, e));
    if (o->concurrency)
        o->policy.concurrency = o->policy.concurrency_max = o->concurrency;
    if (o->ca_file && access(o->ca_file, R_OK) < 0)
        return error_set(e, HR_EINVAL, "%s: storage option ca_file: %s cannot be read", shown,
                         o->ca_file);
    return 0;
}

void remote_options_apply(const struct remote_options *o, bool tls, struct net_config *c)
{
    c->proxy = o->proxy ? o->proxy : env_proxy(tls);
    c->no_proxy = o->proxy ? NULL : env_no_proxy();
    c->ca_file = !tls ? NULL : o->ca_file ? o->ca_file : env_ca_file();
    c->policy = o->policy;
}

void remote_options_say(const struct remote_options *o, const char *shown, struct net *net)
{
    char text[640];
    if (!net || !o->others.text[0])
        return;
    snprintf(text, sizeof text, "%.300s: options that change nothing here, passed over: %s", shown,
             o->others.text);
    net_say(net, 20, text);
}

int remote_options_headers(const struct remote_options *o, struct net_wire *w)
{
    int rc = 0;
    for (uint32_t i = 0; o->headers && i < o->headers->size; i++) {
        const struct json_member *m = &o->headers->members[i];
        rc |= net_wire_header(w, m->key, m->value.string);
    }
    return rc;
}
