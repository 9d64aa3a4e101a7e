/* Functions that no source of the library may call, after git's banned.h: using one does not compile, and the error names
 * what to use. Put before every file of src/ by the build (-include), so it cannot be forgotten. The headers that declare
 * the functions come first; the macros after them catch calls only, not a struct member or a comment of that name. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H
#ifdef __linux__
#include <alloca.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* No bound on what is written. */
#undef strcpy
#undef strcat
#undef sprintf
#undef vsprintf
#undef gets
#define strcpy(...)   strcpy_is_banned__use_snprintf_or_memcpy
#define strcat(...)   strcat_is_banned__use_snprintf_or_buf_puts
#define sprintf(...)  sprintf_is_banned__use_snprintf_or_buf_printf
#define vsprintf(...) vsprintf_is_banned__use_vsnprintf
#define gets(...)     gets_is_banned

/* Bounds that are misread: no NUL at the end, or zeros to it. */
#undef strncpy
#undef strncat
#define strncpy(...) strncpy_is_banned__use_snprintf_or_memcpy
#define strncat(...) strncat_is_banned__use_snprintf

/* A stack that a file's contents can overflow. */
#undef alloca
#undef strdupa
#undef strndupa
#define alloca(...)   alloca_is_banned__use_mem_alloc
#define strdupa(...)  strdupa_is_banned__use_mem_strdup
#define strndupa(...) strndupa_is_banned__use_mem_strndup

/* State shared by all threads of the host process. */
#undef strtok
#undef gmtime
#undef localtime
#undef ctime
#undef asctime
#undef rand
#undef srand
#undef tmpnam
#undef mktemp
#define strtok(...)    strtok_is_banned__use_strcspn
#define gmtime(...)    gmtime_is_banned__use_gmtime_r
#define localtime(...) localtime_is_banned__use_gmtime_r
#define ctime(...)     ctime_is_banned__use_strftime
#define asctime(...)   asctime_is_banned__use_strftime
#define rand(...)      rand_is_banned__use_keyed_word
#define srand(...)     srand_is_banned__use_keyed_word
#define tmpnam(...)    tmpnam_is_banned__use_mkstemp
#define mktemp(...)    mktemp_is_banned__use_mkstemp

/* Text that is not a number, or too large a one, passes unseen. */
#undef atoi
#undef atol
#undef atoll
#undef atof
#define atoi(...)  atoi_is_banned__use_strtoll
#define atol(...)  atol_is_banned__use_strtoll
#define atoll(...) atoll_is_banned__use_strtoll
#define atof(...)  atof_is_banned__use_decimal_read

/* The decimal point of the host's locale. */
#undef strtod
#undef strtof
#define strtod(...) strtod_is_banned__use_decimal_read
#define strtof(...) strtof_is_banned__use_decimal_read_or_strtof_l

#endif
