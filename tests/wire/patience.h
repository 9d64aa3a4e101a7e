/* Waiting times of tests that count requests: as short as can be where a server speaks, and longer than a busy machine
 * takes where it does not. */
#ifndef TESTS_WIRE_PATIENCE_H
#define TESTS_WIRE_PATIENCE_H

#define UNHURRIED                                                                                  \
    {                                                                                              \
        .connect_ms = 10000, .first_byte_ms = 10000, .stall_ms = 10000, .max_retries = 4,          \
        .retry_total_ms = 30000, .backoff_ms = 2, .backoff_max_ms = 20,                            \
        .retry_after_max_ms = 60000, .concurrency = 64, .concurrency_max = 256                     \
    }

#endif
