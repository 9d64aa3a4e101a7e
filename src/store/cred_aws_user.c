/* What the user has set up: the environment, copied in the thread that opens a store, and the two
 * files of ~/.aws. The whole environment is kept, since credential_process inherits it. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/cred_aws_in.h"

extern char **environ;

const char *aws_env(const struct aws_user *u, const char *name)
{
    size_t n = strlen(name);
    for (char **v = u->environment; v && *v; v++)
        if (!strncmp(*v, name, n) && (*v)[n] == '=')
            return (*v)[n + 1] ? *v + n + 1 : NULL;
    return NULL;
}

bool aws_env_true(const struct aws_user *u, const char *name)
{
    const char *v = aws_env(u, name);
    return v && !strcasecmp(v, "true");
}

static int copy_environment(struct aws_user *u)
{
    size_t n = 0;
    while (environ && environ[n])
        n++;
    u->environment = arena_array(&u->arena, n + 1, sizeof *u->environment);
    for (size_t i = 0; u->environment && i < n; i++)
        if (!(u->environment[i] = arena_strdup(&u->arena, environ[i])))
            return -1;
    return u->environment ? 0 : -1;
}

static const char *find_home(struct aws_user *u)
{
    const char *home = aws_env(u, "HOME");
    char space[1024];
    struct passwd entry, *found = NULL;
    if (home)
        return home;
    if (getpwuid_r(getuid(), &entry, space, sizeof space, &found) || !found)
        return NULL;
    return arena_strdup(&u->arena, found->pw_dir);
}

int aws_user_init(struct aws_user *u, const char *profile, struct hr_error *e)
{
    *u = (struct aws_user){.explicit = profile, .named = true};
    arena_init(&u->arena);
    if (copy_environment(u) < 0)
        return error_nomem(e, u->arena.total, "the environment");
    u->home = find_home(u);
    const char *wanted = profile;
    if (!wanted)
        wanted = aws_env(u, "AWS_DEFAULT_PROFILE");
    if (!wanted)
        wanted = aws_env(u, "AWS_PROFILE");
    if (!wanted) {
        u->named = false;
        wanted = "default";
    }
    u->profile = arena_strdup(&u->arena, wanted);
    return u->profile ? 0 : error_nomem(e, u->arena.total, "the environment");
}

void aws_user_dispose(struct aws_user *u)
{
    for (char **v = u->environment; v && *v; v++)
        explicit_bzero(*v, strlen(*v));
    arena_dispose(&u->arena);
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *file_path(struct aws_files *f, const struct aws_user *u, const char *variable,
                             const char *usual)
{
    const char *path = aws_env(u, variable);
    if (!path)
        path = usual;
    if (path[0] == '~' && path[1] == '/' && u->home)
        return arena_printf(&f->arena, "%s%s", u->home, path + 1);
    return arena_strdup(&f->arena, path);
}

static int read_ini(struct aws_files *f, const char *path, struct ini *ini, bool *there,
                    struct hr_error *e)
{
    struct buf text;
    buf_init(&text);
    int rc = path ? secret_read(path, &text) : -ENOMEM;
    *there = rc == 0;
    if (rc == -ENOENT || rc == -ENOTDIR)
        rc = 0;
    else if (rc == -ENOMEM)
        rc = error_nomem(e, text.size, "the files of ~/.aws");
    else if (rc < 0)
        rc = error_set(e, HR_ESTORE, "%s: %s", path, strerror(-rc));
    else
        rc = ini_parse(ini, text.size ? text.data : "", text.size, path, &f->arena, e);
    secret_wipe(&text);
    return rc;
}

int aws_files_read(struct aws_files *f, const struct aws_user *u, struct hr_error *e)
{
    *f = (struct aws_files){.has_config = false};
    arena_init(&f->arena);
    f->credentials_path = file_path(f, u, "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials");
    f->config_path = file_path(f, u, "AWS_CONFIG_FILE", "~/.aws/config");
    TRY(read_ini(f, f->credentials_path, &f->credentials, &f->has_credentials, e));
    return read_ini(f, f->config_path, &f->config, &f->has_config, e);
}

void aws_files_dispose(struct aws_files *f)
{
    for (struct ini_section *s = f->credentials.sections; s; s = s->next)
        for (struct ini_value *v = s->values; v; v = v->next)
            explicit_bzero((char *)v->value, strlen(v->value));
    arena_dispose(&f->arena);
}

/* ---- profiles -------------------------------------------------------------------------------- */

const struct ini_section *aws_config_section(const struct aws_files *f, const char *profile)
{
    const struct ini_section *s = ini_section(&f->config, "profile", profile);
    return s || strcmp(profile, "default") != 0 ? s : ini_section(&f->config, NULL, "default");
}

bool aws_profile_exists(const struct aws_files *f, const char *profile)
{
    return ini_section(&f->credentials, NULL, profile) || aws_config_section(f, profile);
}

int aws_user_check(const struct aws_user *u, const struct aws_files *f, struct hr_error *e)
{
    if (!u->named || aws_profile_exists(f, u->profile))
        return 0;
    return error_set(e, HR_EINVAL, "the AWS profile \"%s\" is neither in %s nor in %s", u->profile,
                     f->config_path, f->credentials_path);
}

const char *aws_profile_get(const struct aws_files *f, const char *profile, const char *name)
{
    const char *v = ini_get(ini_section(&f->credentials, NULL, profile), name);
    return v ? v : ini_get(aws_config_section(f, profile), name);
}

static const char *configured(const struct aws_user *u, const struct aws_files *f,
                              const char *profile, const char *service, size_t *n)
{
    char name[64];
    snprintf(name, sizeof name, "AWS_ENDPOINT_URL_%s", service);
    for (char *c = name; *c; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    const char *services = aws_profile_get(f, profile, "services");
    const char *url = aws_env(u, name);
    if (!url)
        url = aws_env(u, "AWS_ENDPOINT_URL");
    if (!url && services)
        url = ini_nested(ini_section(&f->config, "services", services), service, "endpoint_url", n);
    if (url && *n)
        return url;
    if (!url)
        url = aws_profile_get(f, profile, "endpoint_url");
    *n = url ? strlen(url) : 0;
    return url;
}

int aws_endpoint(const struct aws_user *u, const struct aws_files *f, const char *profile,
                 const char *service, struct arena *a, const char **url, struct hr_error *e)
{
    size_t n = 0;
    const char *off = aws_profile_get(f, profile, "ignore_configured_endpoint_urls");
    *url = NULL;
    if (aws_env_true(u, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") || (off && !strcasecmp(off, "true")))
        return 0;
    const char *found = configured(u, f, profile, service, &n);
    if (found && !(*url = arena_strndup(a, found, n)))
        return error_nomem(e, n, "a request");
    return 0;
}

/* ---- times ----------------------------------------------------------------------------------- */

bool aws_time(const char *text, int64_t *unix_s)
{
    struct tm t = {0};
    int n = 0, hours = 0, minutes = 0;
    if (sscanf(text, "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
               &t.tm_hour, &t.tm_min, &t.tm_sec, &n) != 6 ||
        !n || t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 || t.tm_mday > 31 || t.tm_hour > 23 ||
        t.tm_min > 59 || t.tm_sec > 60)
        return false;
    text += n;
    if (*text == '.')
        text += 1 + strspn(text + 1, "0123456789");
    char sign = *text;
    if (sign == '+' || sign == '-') {
        n = 0;
        if (sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &n) != 2 || text[1 + n])
            return false;
    } else if (strcmp(text, "Z") != 0 && strcmp(text, "UTC") != 0 && *text) {
        return false;
    }
    t.tm_year -= 1900;
    t.tm_mon--;
    int64_t offset = (hours * 60 + minutes) * 60;
    *unix_s = (int64_t)timegm(&t) - (sign == '-' ? -offset : offset);
    return true;
}
