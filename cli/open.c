/* What is asked for → the library's objects. */
#include "request.h"

static int archives_join(const struct request *r, struct hr_archive **all, struct hr_archive **out,
                         struct hr_error *e)
{
    if (r->concat)
        return hr_archive_concat(all, r->n_urls, r->concat, out, e);
    if (r->names[0])
        return hr_archive_combine(all, r->names, r->n_urls, out, e);
    *out = hr_archive_ref(all[0]);
    return 0;
}

static int archives_open(const struct request *r, struct hr_archive **out, struct hr_error *e)
{
    struct hr_archive *all[REQUEST_MOST_ARCHIVES] = {0};
    int rc = 0;
    for (int i = 0; i < r->n_urls && rc >= 0; i++)
        rc = hr_open(r->urls[i], r->storage, &all[i], e);
    if (rc >= 0)
        rc = archives_join(r, all, out, e);
    for (int i = 0; i < r->n_urls; i++)
        hr_archive_unref(all[i]);
    return rc;
}

int request_open(const struct request *r, struct opened *o)
{
    struct hr_error e;
    int rc = EXIT_OK;
    struct hr_loader_options loader = r->loader;
    *o = (struct opened){0};
    if (archives_open(r, &o->archive, &e) < 0 ||
        hr_samples_new(o->archive, NULL, &o->samples, &e) < 0)
        rc = cli_fail(&e);
    if (!rc)
        rc = along_add(r, o->samples);
    for (int i = 0; !rc && i < r->n_views; i++)
        rc = view_add(r, r->views[i], o->samples);
    if (!rc && r->isel)
        rc = view_keep(r, "--isel", r->isel, true, &o->samples);
    if (!rc && r->sel)
        rc = view_keep(r, "--sel", r->sel, false, &o->samples);
    if (!rc)
        rc = sampling_add(r, o, &loader);
    if (!rc && hr_loader_open(o->samples, &loader, &o->loader, &e) < 0)
        rc = cli_fail(&e);
    if (rc)
        request_close(o);
    return rc;
}

void request_close(struct opened *o)
{
    hr_loader_unref(o->loader);
    hr_samples_unref(o->samples);
    hr_archive_unref(o->archive);
    *o = (struct opened){0};
}
