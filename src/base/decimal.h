/* Decimal text to double, whatever the locale of the host: strtod itself takes "1,5" for 1.5 once a program has called
 * setlocale, and is banned (banned.h). Thread-safe. */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

/* As strtod in the C locale: the nearest double; *end (if not NULL) is `text` when there is no number. */
double decimal_read(const char *text, char **end);

#endif
