/* What rondo.h answers to rubbish, to NULL and when ranks fail. */
#include <stdint.h>

#include "c_api.h"

void* first_error(void* none) {
  CHECK(strcmp(rondo_last_error(), "") == 0 && rondo_last_error_peer() == -1);
  return none;
}

void check_arguments(rondo_comm* comm) {
  int32_t data[3] = {0};
  size_t counts[3] = {SIZE_MAX, 1, 1};
  rondo_call_options wrong = RONDO_CALL_OPTIONS_INIT;
  const rondo_status invalid = RONDO_INVALID_ARGUMENT;
  CHECK(RUN(all_reduce, NULL, data, data, 3, RONDO_I32, RONDO_SUM, NULL) == invalid);
  CHECK(strstr(rondo_last_error(), works ? "rondo_async_all_reduce: " : "rondo_all_reduce: ") != NULL);
  CHECK(rondo_last_error_peer() == -1);
  CHECK(RUN(barrier, NULL, NULL) == invalid);
  CHECK(RUN(all_reduce, comm, data, data, 3, RONDO_U64 + 1, RONDO_SUM, NULL) == invalid);
  CHECK(RUN(all_reduce, comm, data, data, 3, RONDO_I32 + 256, RONDO_SUM, NULL) == invalid);
  CHECK(RUN(all_reduce, comm, data, data, 3, -1, RONDO_SUM, NULL) == invalid);
  CHECK(RUN(all_reduce, comm, data, data, 3, RONDO_I32, RONDO_MAX_NUM + 1, NULL) == invalid);
  CHECK(RUN(all_reduce, comm, NULL, data, 3, RONDO_I32, RONDO_SUM, NULL) == invalid);
  CHECK(RUN(all_reduce_group, comm, NULL, 1, RONDO_I32, RONDO_SUM, NULL) == invalid);
  CHECK(RUN(broadcast, comm, data, 3, RONDO_I32, 3, NULL) == invalid);
  CHECK(RUN(all_gather_v, comm, data, data, NULL, RONDO_I32, NULL) == invalid);
  CHECK(RUN(all_gather_v, comm, data, data, counts, RONDO_I32, NULL) == invalid);
  wrong.reproducible = 2;
  CHECK(RUN(barrier, comm, &wrong) == invalid);
  wrong.reproducible = -1, wrong.timeout_ms = -5;
  CHECK(RUN(barrier, comm, &wrong) == invalid);
  wrong.timeout_ms = 0, wrong.size = 0;
  CHECK(RUN(barrier, comm, &wrong) == invalid);
}

static void nothing(void* context) { (void)context; }

void check_nothing(void) {
  rondo_comm* comm = NULL;
  CHECK(rondo_comm_from_environment(NULL, NULL) == RONDO_INVALID_ARGUMENT);
  CHECK(rondo_comm_split(NULL, 0, 0, NULL, &comm) == RONDO_INVALID_ARGUMENT);
  CHECK(rondo_comm_duplicate(NULL, NULL, &comm) == RONDO_INVALID_ARGUMENT);
  CHECK(rondo_comm_shrink(NULL, NULL, &comm) == RONDO_INVALID_ARGUMENT);
  CHECK(rondo_comm_grow(NULL, 1, NULL, NULL, &comm) == RONDO_INVALID_ARGUMENT);
  CHECK(rondo_comm_parent_rank(NULL, 0) == -1);
  CHECK(rondo_comm_counters(NULL, NULL) == RONDO_INVALID_ARGUMENT);
  CHECK(rondo_comm_rank(NULL) == 0 && rondo_comm_world(NULL) == 0);
  CHECK(strcmp(rondo_comm_transport(NULL), "") == 0 && strcmp(rondo_comm_last_algorithm(NULL), "") == 0);
  rondo_comm_abort(NULL);
  rondo_comm_destroy(NULL);
  CHECK(rondo_work_wait(NULL) == RONDO_INVALID_ARGUMENT);
  CHECK(rondo_work_wait_for(NULL, 1) == RONDO_INVALID_ARGUMENT);
  CHECK(rondo_work_on_end(NULL, nothing, NULL) == RONDO_INVALID_ARGUMENT);
  CHECK(rondo_work_test(NULL) == 1);
  rondo_work_destroy(NULL);
  CHECK(rondo_shard(7, 0, 0).count == 0 && rondo_shard(7, 3, 3).count == 0);
  CHECK(rondo_type_size(RONDO_BF16) == 2 && rondo_type_size(RONDO_F64) == 8 && rondo_type_size(14) == 0);
  CHECK(strcmp(rondo_status_name(RONDO_OK), "ok") == 0 &&
        strcmp(rondo_status_name(RONDO_SYSTEM), "system") == 0);
  CHECK(strcmp(rondo_status_name(8), "?") == 0 && strcmp(rondo_status_name(-1), "?") == 0);
}

void check_failures(rondo_comm* comm) {
  int32_t data[3] = {0};
  rondo_comm* other = NULL;
  /* Rank 2 asks for something else: it is named everywhere. */
  CHECK(rondo_comm_duplicate(comm, NULL, &other) == RONDO_OK);
  CHECK(RUN(all_reduce, other, data, data, rank == 2 ? 2 : 3, RONDO_I32, RONDO_SUM, NULL) == RONDO_MISMATCH);
  CHECK(strstr(rondo_last_error(), "rank 2") != NULL);
  CHECK(RUN(barrier, other, NULL) == RONDO_ABORTED);
  rondo_comm_destroy(other);

  /* One rank does not come. */
  rondo_call_options options = RONDO_CALL_OPTIONS_INIT;
  options.timeout_ms = 500;
  CHECK(rondo_comm_duplicate(comm, NULL, &other) == RONDO_OK);
  if (rank != 1) {
    CHECK(RUN(barrier, other, &options) == RONDO_TIMEOUT);
    CHECK(strstr(rondo_last_error(), "rank 1") != NULL);
  }
  CHECK(rondo_barrier(comm, NULL) == RONDO_OK); /* `comm` has not failed */
  rondo_comm_destroy(other);

  CHECK(rondo_comm_duplicate(comm, NULL, &other) == RONDO_OK);
  if (rank == 0) rondo_comm_abort(other);
  CHECK(RUN(barrier, other, NULL) == RONDO_ABORTED);
  CHECK(rondo_last_error_peer() == 0);
  CHECK(rondo_barrier(comm, NULL) == RONDO_OK);
  /* All ranks are still there, so all go on. */
  rondo_comm* rest = NULL;
  CHECK(rondo_comm_shrink(other, NULL, &rest) == RONDO_OK);
  CHECK(rondo_comm_world(rest) == 3 && rondo_comm_parent_rank(rest, 2) == 2 &&
        rondo_comm_parent_rank(rest, 3) == -1);
  CHECK(RUN(barrier, rest, NULL) == RONDO_OK);
  rondo_comm_destroy(rest);
  rondo_comm_destroy(other);
}
