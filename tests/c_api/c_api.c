/* Every function of rondo.h, as one of three ranks: `rondo run -n 3 -- c_api`. Each operation runs twice, blocking and
 * with a work, on the same data. Ends with "c_api: N checks" and 0, or tells what was wrong and exits with 1. */
#include "c_api.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

int checks = 0, failures = 0, rank, works;
rondo_work* work_of_run;
rondo_status submitted;

rondo_status finish(rondo_status begun, rondo_work* work) {
  rondo_status outcome = begun;
  if (begun == RONDO_OK) {
    outcome = rondo_work_wait(work);
    CHECK(rondo_work_test(work) == 1);
    CHECK(rondo_work_wait_for(work, 0) == outcome);
  } else {
    CHECK(work == NULL);
  }
  rondo_work_destroy(work);
  return outcome;
}

static int same(const int32_t* data, const int32_t* expected, size_t count) {
  return memcmp(data, expected, count * sizeof(*data)) == 0;
}

/* ---- Reductions. Rank r has (r + 1) * (i + 1) at i, so the sum is 6 * (i + 1). */

static void fill(int32_t* data, size_t count) {
  for (size_t i = 0; i < count; i++) data[i] = (int32_t)((size_t)(rank + 1) * (i + 1));
}

static void check_all_reduce(rondo_comm* comm) {
  int32_t data[7], sum[7];
  const int32_t expected[7] = {6, 12, 18, 24, 30, 36, 42};
  fill(data, 7);
  CHECK(RUN(all_reduce, comm, data, sum, 7, RONDO_I32, RONDO_SUM, NULL) == RONDO_OK);
  CHECK(same(sum, expected, 7));
  CHECK(data[6] == (rank + 1) * 7);
  CHECK(RUN(all_reduce, comm, data, data, 7, RONDO_I32, RONDO_SUM, NULL) == RONDO_OK);
  CHECK(same(data, expected, 7));

  int8_t wraps = (int8_t)(rank == 0 ? 120 : rank == 1 ? 100 : 0);
  CHECK(RUN(all_reduce, comm, &wraps, &wraps, 1, RONDO_I8, RONDO_SUM, NULL) == RONDO_OK);
  CHECK(wraps == -36);
  uint16_t narrow = rank == 0 ? 0x4380 : 0x3f80; /* bf16: 256, 1, 1 */
  CHECK(RUN(all_reduce, comm, &narrow, &narrow, 1, RONDO_BF16, RONDO_SUM, NULL) == RONDO_OK);
  CHECK(narrow == 0x4381); /* 258; 256 where every addition is rounded */
  uint64_t bits = UINT64_C(1) << (20 * rank + 13);
  CHECK(RUN(all_reduce, comm, &bits, &bits, 1, RONDO_U64, RONDO_BIT_XOR, NULL) == RONDO_OK);
  CHECK(bits == ((UINT64_C(1) << 13) | (UINT64_C(1) << 33) | (UINT64_C(1) << 53)));
}

static void check_call_options(rondo_comm* comm) {
  rondo_call_options options = RONDO_CALL_OPTIONS_INIT;
  /* Three tokens of mean 2, one of 10, and a rank that has none. */
  double mean = rank == 0 ? 2 : rank == 1 ? 10 : NAN;
  options.weight = rank == 0 ? 3 : rank == 1 ? 1 : 0;
  CHECK(RUN(all_reduce, comm, &mean, &mean, 1, RONDO_F64, RONDO_WEIGHTED_AVG, &options) == RONDO_OK);
  CHECK(mean == 4);
  double scaled = 5;
  options.weight = rank + 1;
  CHECK(RUN(all_reduce, comm, &scaled, &scaled, 1, RONDO_F64, RONDO_PREMUL_SUM, &options) == RONDO_OK);
  CHECK(scaled == 30);
  options.algorithm = "ring";
  CHECK(RUN(all_reduce, comm, &scaled, &scaled, 1, RONDO_F64, RONDO_MAX, &options) == RONDO_OK);
  CHECK(scaled == 30 && strcmp(rondo_comm_last_algorithm(comm), "ring") == 0);
  options.algorithm = "direct";
  options.tag = 5;
  CHECK(RUN(all_reduce, comm, &scaled, &scaled, 1, RONDO_F64, RONDO_MAX, &options) == RONDO_OK);
  CHECK(strcmp(rondo_comm_last_algorithm(comm), "direct") == 0);
  if (rank == 1) scaled = NAN;
  CHECK(RUN(all_reduce, comm, &scaled, &scaled, 1, RONDO_F64, RONDO_MIN_NUM, &options) == RONDO_OK);
  CHECK(scaled == 30);
  if (rank == 0) scaled = NAN;
  CHECK(RUN(all_reduce, comm, &scaled, &scaled, 1, RONDO_F64, RONDO_MAX_NUM, &options) == RONDO_OK);
  CHECK(scaled == 30);
  options.algorithm = "waltz";
  CHECK(RUN(barrier, comm, &options) == RONDO_INVALID_ARGUMENT);
  options.algorithm = NULL;

  /* (1e8 + 1) + -1e8 in the order of the canonical tree; a ring takes another one for each element. */
  const float value = rank == 0 ? 1e8f : rank == 1 ? 1.0f : -1e8f;
  float absorbed[3] = {value, value, value};
  options.reproducible = 1;
  options.timeout_ms = 60000;
  CHECK(RUN(all_reduce, comm, absorbed, absorbed, 3, RONDO_F32, RONDO_SUM, &options) == RONDO_OK);
  CHECK(absorbed[0] == 0 && absorbed[1] == 0 && absorbed[2] == 0);
}

static void check_reductions(rondo_comm* comm) {
  const int32_t expected[7] = {6, 12, 18, 24, 30, 36, 42};
  int32_t data[7], sum[7] = {0};
  const rondo_extent own = rondo_shard(7, 3, (uint32_t)rank);
  CHECK(own.first == (rank == 0 ? 0u : rank == 1 ? 3u : 5u) && own.count == (rank == 0 ? 3u : 2u));
  fill(data, 7);
  CHECK(RUN(reduce_scatter, comm, data, sum, 7, RONDO_I32, RONDO_SUM, NULL) == RONDO_OK);
  CHECK(same(sum, expected + own.first, own.count));

  const size_t counts[3] = {0, 4, 3}, first[3] = {0, 0, 4};
  CHECK(RUN(reduce_scatter_v, comm, data, sum, counts, RONDO_I32, RONDO_SUM, NULL) == RONDO_OK);
  CHECK(same(sum, expected + first[rank], counts[rank]));

  memset(sum, 0, sizeof(sum));
  CHECK(RUN(reduce, comm, data, rank == 1 ? sum : NULL, 7, RONDO_I32, RONDO_SUM, 1, NULL) == RONDO_OK);
  CHECK(same(sum, rank == 1 ? expected : (const int32_t[7]){0}, 7));

  int32_t other[2];
  fill(other, 2);
  const rondo_tensor group[2] = {{data, data, 7}, {other, other, 2}};
  CHECK(RUN(all_reduce_group, comm, group, 2, RONDO_I32, RONDO_SUM, NULL) == RONDO_OK);
  CHECK(same(data, expected, 7));
  CHECK(same(other, expected, 2));
}

/* ---- Movements */

static void check_gathers(rondo_comm* comm) {
  const int32_t seven[7] = {1, 2, 3, 4, 5, 6, 7};
  const rondo_extent own = rondo_shard(7, 3, (uint32_t)rank);
  int32_t all[7] = {0};
  CHECK(RUN(all_gather, comm, seven + own.first, all, 7, RONDO_I32, NULL) == RONDO_OK);
  CHECK(same(all, seven, 7));

  const size_t counts[3] = {5, 0, 2}, first[3] = {0, 5, 5};
  memset(all, 0, sizeof(all));
  CHECK(RUN(all_gather_v, comm, seven + first[rank], all, counts, RONDO_I32, NULL) == RONDO_OK);
  CHECK(same(all, seven, 7));

  int32_t each[6] = {0};
  CHECK(RUN(gather, comm, seven + 2 * rank, rank == 2 ? each : NULL, 2, RONDO_I32, 2, NULL) == RONDO_OK);
  CHECK(same(each, rank == 2 ? seven : (const int32_t[6]){0}, 6));

  int32_t part[2] = {0};
  CHECK(RUN(scatter, comm, rank == 1 ? seven : NULL, part, 2, RONDO_I32, 1, NULL) == RONDO_OK);
  CHECK(same(part, seven + 2 * rank, 2));

  int32_t data[3] = {0};
  if (rank == 2) memcpy(data, seven, sizeof(data));
  CHECK(RUN(broadcast, comm, data, 3, RONDO_I32, 2, NULL) == RONDO_OK);
  CHECK(same(data, seven, 3));
}

static void check_exchanges(rondo_comm* comm) {
  /* What r sends to q is 10 * r + q. */
  int32_t out[3], in[3] = {0};
  for (int q = 0; q < 3; q++) out[q] = 10 * rank + q;
  CHECK(RUN(all_to_all, comm, out, in, 1, RONDO_I32, NULL) == RONDO_OK);
  for (int r = 0; r < 3; r++) CHECK(in[r] == 10 * r + rank);

  /* r sends q of them to rank q: nothing to 0, one to 1, two to 2. */
  const size_t sends[3] = {0, 1, 2}, own = (size_t)rank, recvs[3] = {own, own, own};
  const int32_t data[3] = {10 * rank + 1, 10 * rank + 2, 10 * rank + 2};
  int32_t got[6] = {0};
  CHECK(RUN(all_to_all_v, comm, data, sends, got, recvs, RONDO_I32, NULL) == RONDO_OK);
  for (int i = 0; i < 3 * rank; i++) CHECK(got[i] == 10 * (i / rank) + rank);

  int32_t number = rank == 0 ? 4711 : 0;
  if (rank == 0) CHECK(RUN(send, comm, &number, 1, RONDO_I32, 2, NULL) == RONDO_OK);
  if (rank == 2) CHECK(RUN(recv, comm, &number, 1, RONDO_I32, 0, NULL) == RONDO_OK);
  CHECK(number == (rank == 1 ? 0 : 4711));

  const int32_t mine = rank;
  int32_t before = -1;
  CHECK(RUN(send_recv, comm, &mine, 1, (uint32_t)(rank + 1) % 3, &before, 1, (uint32_t)(rank + 2) % 3,
            RONDO_I32, NULL) == RONDO_OK);
  CHECK(before == (rank + 2) % 3);
  CHECK(RUN(barrier, comm, NULL) == RONDO_OK);
}

/* ---- Works */

static void count(void* context) { ++*(int*)context; }

static void check_works(rondo_comm* comm) {
  rondo_comm* other = NULL;
  CHECK(rondo_comm_duplicate(comm, NULL, &other) == RONDO_OK);
  CHECK(rondo_comm_rank(other) == (uint32_t)rank && rondo_comm_world(other) == 3);
  int32_t go = 0;
  if (rank == 0) {
    int ended = 0;
    rondo_work* work = NULL;
    CHECK(rondo_async_barrier(other, NULL, &work) == RONDO_OK);
    CHECK(rondo_work_on_end(work, count, &ended) == RONDO_OK);
    /* The others wait for the broadcast, so this cannot end. */
    CHECK(rondo_work_wait_for(work, 20) == RONDO_TIMEOUT);
    CHECK(rondo_work_test(work) == 0 && ended == 0);
    go = 1;
    CHECK(rondo_broadcast(comm, &go, 1, RONDO_I32, 0, NULL) == RONDO_OK);
    CHECK(rondo_work_wait(work) == RONDO_OK);
    rondo_work_destroy(work);
    CHECK(ended == 1);
  } else {
    CHECK(rondo_broadcast(comm, &go, 1, RONDO_I32, 0, NULL) == RONDO_OK && go == 1);
    CHECK(rondo_barrier(other, NULL) == RONDO_OK);
  }
  /* A work outlives its communicator. */
  rondo_work* work = NULL;
  if (rank == 0) CHECK(rondo_async_barrier(other, NULL, &work) == RONDO_OK);
  rondo_comm_destroy(other);
  if (rank == 0) CHECK(rondo_work_wait(work) == RONDO_ABORTED);
  rondo_work_destroy(work);
}

/* ---- Communicators */

static void check_split(rondo_comm* comm) {
  rondo_comm* part = comm;
  CHECK(rondo_comm_split(comm, rank == 1 ? RONDO_NO_COLOR : 7, -rank, NULL, &part) == RONDO_OK);
  if (rank == 1) {
    CHECK(part == NULL);
  } else {
    CHECK(rondo_comm_world(part) == 2 && rondo_comm_rank(part) == (rank == 2 ? 0u : 1u));
    int32_t data = rank;
    CHECK(rondo_broadcast(part, &data, 1, RONDO_I32, 0, NULL) == RONDO_OK && data == 2);
  }
  rondo_comm_destroy(part);
  CHECK(rondo_comm_split(comm, INT64_C(1) << 32, 0, NULL, &part) == RONDO_INVALID_ARGUMENT && part == NULL);
}

static void check_counters(rondo_comm* comm) {
  rondo_counters before = RONDO_COUNTERS_INIT, after = RONDO_COUNTERS_INIT;
  uint8_t data[1000] = {0};
  CHECK(rondo_comm_counters(comm, &before) == RONDO_OK);
  if (rank == 0) CHECK(rondo_send(comm, data, 1000, RONDO_U8, 1, NULL) == RONDO_OK);
  if (rank == 1) CHECK(rondo_recv(comm, data, 1000, RONDO_U8, 0, NULL) == RONDO_OK);
  CHECK(rondo_comm_counters(comm, &after) == RONDO_OK);
  CHECK(after.operations - before.operations == (rank == 2 ? 0u : 1u));
  CHECK(after.payload_bytes_sent - before.payload_bytes_sent == (rank == 0 ? 1000u : 0u));
  CHECK(after.header_bytes_sent >= before.header_bytes_sent && before.header_bytes_sent > 0);
  before.size = 8;
  CHECK(rondo_comm_counters(comm, &before) == RONDO_INVALID_ARGUMENT);
}

static void check_alone(void) {
  rondo_options options = RONDO_OPTIONS_INIT;
  rondo_comm* alone = NULL;
  options.rank = 0;
  CHECK(rondo_comm_create(&options, &alone) == RONDO_INVALID_ARGUMENT && alone == NULL); /* no world */
  options.world = 1;
  options.algorithm = "ring";
  CHECK(rondo_comm_create(&options, &alone) == RONDO_OK);
  CHECK(rondo_comm_world(alone) == 1 && strcmp(rondo_comm_transport(alone), "local") == 0);
  double value = 2.5;
  CHECK(rondo_all_reduce(alone, &value, &value, 1, RONDO_F64, RONDO_AVG, NULL) == RONDO_OK && value == 2.5);
  rondo_comm_destroy(alone);

  options.algorithm = "waltz";
  CHECK(rondo_comm_create(&options, &alone) == RONDO_INVALID_ARGUMENT && alone == NULL);
  CHECK(strstr(rondo_last_error(), "waltz") != NULL);
  options.algorithm = NULL;
  options.rank = INT64_C(1) << 32;
  CHECK(rondo_comm_create(&options, &alone) == RONDO_INVALID_ARGUMENT);
  options.rank = 0;
  options.timeout_ms = -1;
  CHECK(rondo_comm_create(&options, &alone) == RONDO_INVALID_ARGUMENT);
  options.timeout_ms = 0;
  options.heartbeat_ms = -2;
  CHECK(rondo_comm_create(&options, &alone) == RONDO_INVALID_ARGUMENT);
  CHECK(strstr(rondo_last_error(), "heartbeat_ms is -2") != NULL);
  options.heartbeat_ms = -1;
  options.tls = 2;
  CHECK(rondo_comm_create(&options, &alone) == RONDO_INVALID_ARGUMENT);
  CHECK(strstr(rondo_last_error(), "tls is 2") != NULL);
  options.tls = 1;
  options.world = 2;
  options.root = "127.0.0.1:1";
  CHECK(rondo_comm_create(&options, &alone) == RONDO_INVALID_ARGUMENT); /* no secret */
  CHECK(strstr(rondo_last_error(), "Options::tls=1") != NULL);
  options.tls = -1;
  options.root = NULL;
  options.world = 1; /* nobody to tell */
  options.advertise = "nowhere";
  CHECK(rondo_comm_create(&options, &alone) == RONDO_INVALID_ARGUMENT);
  CHECK(strstr(rondo_last_error(), "Options::advertise=nowhere") != NULL);
  options.advertise = NULL;
  options.listen = "nowhere";
  CHECK(rondo_comm_create(&options, &alone) == RONDO_INVALID_ARGUMENT);
  CHECK(strstr(rondo_last_error(), "Options::listen=nowhere") != NULL);
  options.listen = NULL;
  options.fault = "nonsense";
  CHECK(rondo_comm_create(&options, &alone) == RONDO_INVALID_ARGUMENT);
  CHECK(strstr(rondo_last_error(), "Options::fault=nonsense") != NULL);
  options.fault = NULL;
  options.size = 4;
  CHECK(rondo_comm_create(&options, &alone) == RONDO_INVALID_ARGUMENT);
}

/* Everything by options: a job beside the one that the launcher set up. */
static void check_create(void) {
  char root[100];
  rondo_options options = RONDO_OPTIONS_INIT;
  rondo_comm* comm = NULL;
  snprintf(root, sizeof(root), "unix:@rondo-c-api-%.60s", getenv("RONDO_JOB"));
  options.rank = 2 - rank;
  options.world = 3;
  options.root = root;
  options.secret = "known to these three ranks alone";
  options.transport = "tcp";
  options.algorithm = "direct";
  options.reproducible = 1;
  options.init_timeout_ms = 20000;
  options.timeout_ms = 20000;
  options.heartbeat_ms = 5000;
  CHECK(rondo_comm_create(&options, &comm) == RONDO_OK);
  CHECK(rondo_comm_rank(comm) == (uint32_t)(2 - rank) && strcmp(rondo_comm_transport(comm), "tcp") == 0);
  int32_t own = rank, sum = 0;
  CHECK(rondo_all_reduce(comm, &own, &sum, 1, RONDO_I32, RONDO_SUM, NULL) == RONDO_OK && sum == 3);
  CHECK(strcmp(rondo_comm_last_algorithm(comm), "direct") == 0);
  rondo_comm_destroy(comm);
}

static void check_memory(rondo_comm* comm) {
  enum { elements = 100003 };
  void* memory = NULL;
  CHECK(rondo_allocate(elements * sizeof(float), &memory) == RONDO_OK && (uintptr_t)memory % 4096 == 0);
  float* data = memory;
  int right = 1;
  for (int i = 0; i < elements; i++) right &= data[i] == 0, data[i] = (float)(i % 1000 + rank);
  CHECK(right);
  CHECK(rondo_all_reduce(comm, data, data, elements, RONDO_F32, RONDO_AVG, NULL) == RONDO_OK);
  for (int i = 0; i < elements; i++) right &= data[i] == (float)(i % 1000 + 1);
  CHECK(right);
  rondo_free(memory);
  CHECK(rondo_allocate(0, &memory) == RONDO_OK && memory == NULL);
  rondo_free(NULL);
  CHECK(rondo_allocate(SIZE_MAX, &memory) == RONDO_SYSTEM && memory == NULL);
  CHECK(rondo_allocate(1, NULL) == RONDO_INVALID_ARGUMENT);
}

int main(void) {
  rondo_options options = RONDO_OPTIONS_INIT;
  rondo_comm* comm = NULL;
  options.timeout_ms = 20000;
  if (rondo_comm_from_environment(&options, &comm) != RONDO_OK) {
    fprintf(stderr, "%s\n", rondo_last_error());
    return 2;
  }
  if (rondo_comm_world(comm) != 3) return fprintf(stderr, "c_api: needs three ranks\n"), 2;
  rank = (int)rondo_comm_rank(comm);
  CHECK(strcmp(rondo_comm_transport(comm), "shm") == 0 || strcmp(rondo_comm_transport(comm), "tcp") == 0);

  for (works = 0; works < 2; works++) {
    check_all_reduce(comm);
    check_call_options(comm);
    check_reductions(comm);
    check_gathers(comm);
    check_exchanges(comm);
    check_arguments(comm);
    check_failures(comm);
  }
  CHECK(strlen(rondo_comm_last_algorithm(comm)) > 0);
  check_works(comm);
  check_split(comm);
  check_counters(comm);
  check_alone();
  check_create();
  check_memory(comm);
  check_nothing();
  pthread_t thread;
  if (pthread_create(&thread, NULL, first_error, NULL) == 0) pthread_join(thread, NULL);

  CHECK(rondo_barrier(comm, NULL) == RONDO_OK);
  rondo_comm_destroy(comm);
  printf("c_api: %d checks\n", checks);
  return failures == 0 ? 0 : 1;
}
