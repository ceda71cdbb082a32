/* What the two halves of the C test share. */
#ifndef RONDO_TESTS_C_API_H
#define RONDO_TESTS_C_API_H
#include <stdio.h>
#include <string.h>

#include "rondo/rondo.h"

extern int checks, failures;
#define CHECK(condition)                                                                                  \
  do {                                                                                                    \
    checks++;                                                                                             \
    if (!(condition)) {                                                                                   \
      failures++;                                                                                         \
      fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, rondo_last_error()); \
    }                                                                                                     \
  } while (0)

extern int rank, works; /* works: whether operations run with one */

/* Runs an operation, blocking or with a work. */
#define RUN(operation, ...)                                                                                 \
  (works ? (submitted = rondo_async_##operation(__VA_ARGS__, &work_of_run), finish(submitted, work_of_run)) \
         : rondo_##operation(__VA_ARGS__))
extern rondo_work* work_of_run;
extern rondo_status submitted;
rondo_status finish(rondo_status begun, rondo_work* work);

/* Of c_api_errors.c. */
void check_arguments(rondo_comm* comm);
void check_nothing(void);
void check_failures(rondo_comm* comm);
void* first_error(void* none); /* in a thread of its own */

#endif
