/* What the environment says to GCS stores: see cred_gcs.h. */
#include <pwd.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "store/cred_gcs.h"

#define GCLOUD_FILE "application_default_credentials.json"

/* The first that is set and not empty, copied. */
static const char *first_set(struct arena *a, const char *const *names, bool *failed)
{
    for (; *names; names++) {
        const char *v = getenv(*names);
        if (!v || !*v)
            continue;
        const char *copy = arena_strdup(a, v);
        *failed |= !copy;
        return copy;
    }
    return NULL;
}
#define FIRST(...) first_set(a, (const char *const[]){__VA_ARGS__, NULL}, &failed)

static enum maybe truth(const char *v)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    for (size_t i = 0; v && i < sizeof yes / sizeof *yes; i++)
        if (!strcasecmp(v, yes[i]))
            return MAYBE_YES;
    return v ? MAYBE_NO : MAYBE_UNSAID;
}

static const char *home_of(struct arena *a, bool *failed)
{
    char space[1024];
    struct passwd entry, *found = NULL;
    const char *home = first_set(a, (const char *const[]){"HOME", NULL}, failed);
    if (home || getpwuid_r(getuid(), &entry, space, sizeof space, &found) || !found)
        return home;
    home = arena_strdup(a, found->pw_dir);
    *failed |= !home;
    return home;
}

int gcs_env_read(struct gcs_env *out, struct arena *a, struct hr_error *e)
{
    bool failed = false;
    *out = (struct gcs_env){
        .emulator = FIRST("STORAGE_EMULATOR_HOST"),
        .project = FIRST("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"),
        .key = FIRST("GOOGLE_SERVICE_ACCOUNT_KEY"),
        .key_file = FIRST("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"),
        .application_file = FIRST("GOOGLE_APPLICATION_CREDENTIALS"),
        .home = home_of(a, &failed),
        .metadata = FIRST("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"),
        .no_metadata = truth(FIRST("NO_GCE_CHECK")) == MAYBE_YES,
        .anonymous = truth(FIRST("GOOGLE_SKIP_SIGNATURE")),
    };
    const char *config = FIRST("CLOUDSDK_CONFIG");
    if (config)
        out->gcloud_file = arena_printf(a, "%s/" GCLOUD_FILE, config);
    else if (out->home)
        out->gcloud_file = arena_printf(a, "%s/.config/gcloud/" GCLOUD_FILE, out->home);
    failed |= (config || out->home) && !out->gcloud_file;
    return failed ? error_nomem(e, a->total, "the environment") : 0;
}
