/* Rondo for C, and through it for other languages: the operations of <rondo/communicator.hpp>, where each is
 * described in full. What is said here is what differs.
 *
 * - Every function that can fail returns a rondo_status: 0 is RONDO_OK. What went wrong is then told by
 *   rondo_last_error(). Results come through the last parameter, which is set to NULL or left alone on failure.
 * - NULL for a communicator, a work or a result is RONDO_INVALID_ARGUMENT; destroying NULL does nothing.
 * - Structures begin with their size. Begin each with its RONDO_..._INIT, then set what you need: so programs go on
 *   working with later versions, which have more fields.
 * - Counts are in elements: of the whole vector in all_reduce, reduce, reduce_scatter, all_gather and broadcast, of
 *   one rank's part in gather, scatter and all_to_all. Arrays of counts have one number for each rank.
 * - No C++ exception leaves a function. Any thread may call; a handle may not be destroyed while it is in use. A thread
 *   inside a call may not be cancelled (pthread_cancel).
 */
#ifndef RONDO_RONDO_H
#define RONDO_RONDO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Values. Integers of 32 bits, not C enums, so that every language passes them alike. */

typedef int32_t rondo_status;
enum {
  RONDO_OK = 0,
  RONDO_INVALID_ARGUMENT = 1, /* arguments, options or environment are wrong; nothing was sent */
  RONDO_TIMEOUT = 2,          /* a deadline passed; the message says who has not arrived */
  RONDO_PEER_LOST = 3,        /* a rank died or closed its connection */
  RONDO_MISMATCH = 4,         /* ranks called with different operation, count, type, reduction or root */
  RONDO_REFUSED = 5,          /* the other side did not prove the secret, or speaks another version */
  RONDO_ABORTED = 6,          /* the communicator was aborted or had failed before */
  RONDO_SYSTEM = 7            /* the operating system refused something, or memory is short */
};

typedef int32_t rondo_type;
enum {
  RONDO_F64 = 0,
  RONDO_F32 = 1,
  RONDO_F16 = 2,
  RONDO_BF16 = 3,
  RONDO_F8E4M3 = 4,
  RONDO_F8E5M2 = 5,
  RONDO_I8 = 6,
  RONDO_U8 = 7,
  RONDO_I16 = 8,
  RONDO_U16 = 9,
  RONDO_I32 = 10,
  RONDO_U32 = 11,
  RONDO_I64 = 12,
  RONDO_U64 = 13
};

typedef int32_t rondo_reduction;
enum {
  RONDO_SUM = 0,
  RONDO_PROD = 1,
  RONDO_MIN = 2,
  RONDO_MAX = 3,
  RONDO_AVG = 4,
  RONDO_BIT_AND = 5,
  RONDO_BIT_OR = 6,
  RONDO_BIT_XOR = 7,
  RONDO_PREMUL_SUM = 8,
  RONDO_WEIGHTED_AVG = 9,
  RONDO_MIN_NUM = 10,
  RONDO_MAX_NUM = 11
};

/* ---- Errors */

/* The message of the last call of this thread that failed; "" if none has. Complete for a person: who, with whom, in
 * which operation, what to do. Valid until the next failure in this thread. */
const char* rondo_last_error(void);
/* The rank to blame for it, or -1 where none is known. */
int64_t rondo_last_error_peer(void);
/* "ok", "timeout", ... */
const char* rondo_status_name(rondo_status status);
/* Bytes of one element; 0: there is no such type. */
size_t rondo_type_size(rondo_type type);

/* ---- Communicators */

typedef struct rondo_comm rondo_comm;

/* What is left as in RONDO_OPTIONS_INIT is not set: it comes from the environment, or has its default.
 * <rondo/options.hpp> says what each is. */
typedef struct rondo_options {
  uint32_t size;
  int32_t reproducible; /* 0, 1, or -1: not set */
  int64_t rank;         /* -1: not set */
  int64_t world;        /* -1: not set */
  int64_t node;         /* -1: not set */
  const char* root;     /* this and all other strings: NULL: not set */
  const char* secret;
  const char* interfaces;
  const char* ports;
  const char* transport;
  const char* algorithm;
  const char* tuning;
  const char* advertise;
  const char* listen;
  const char* fault;
  int64_t init_timeout_ms; /* 0: not set */
  int64_t timeout_ms;      /* 0: not set */
  int64_t heartbeat_ms;    /* -1: not set, 0: never */
  int32_t tls;             /* 0, 1, or -1: not set */
  int32_t state_signal;    /* 0, 1, or -1: not set */
} rondo_options;
/* clang-format off */
#define RONDO_OPTIONS_INIT \
  { (uint32_t)sizeof(rondo_options), -1, -1, -1, -1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
    0, 0, -1, -1, -1 }
/* clang-format on */

/* Of one call; a pointer to it may be NULL. */
typedef struct rondo_call_options {
  uint32_t size;
  int32_t reproducible;  /* 0, 1, or -1: as the communicator is */
  int64_t timeout_ms;    /* 0: the communicator's */
  double weight;         /* this rank's, in RONDO_PREMUL_SUM and RONDO_WEIGHTED_AVG; 1 */
  const char* algorithm; /* what to run, as "ring"; the same on every rank. NULL: what is quickest */
  uint64_t tag;          /* yours; the same on every rank, or the call is a mismatch. 0 */
} rondo_call_options;
/* clang-format off */
#define RONDO_CALL_OPTIONS_INIT { (uint32_t)sizeof(rondo_call_options), -1, 0, 1.0, NULL, 0 }
/* clang-format on */

/* What this rank has sent in all operations that have ended. */
typedef struct rondo_counters {
  uint32_t size;
  uint32_t reserved;
  uint64_t operations;
  uint64_t payload_bytes_sent;
  uint64_t header_bytes_sent;
} rondo_counters;
/* clang-format off */
#define RONDO_COUNTERS_INIT { (uint32_t)sizeof(rondo_counters), 0, 0, 0, 0 }
/* clang-format on */

/* Joins the job that the environment describes, as `rondo run` or torchrun has set it; `options` may be NULL, and
 * win where they are set. */
rondo_status rondo_comm_from_environment(const rondo_options* options, rondo_comm** comm);
/* Joins with `options` alone; rank and world must be set, and root unless world is 1. */
rondo_status rondo_comm_create(const rondo_options* options, rondo_comm** comm);
/* Local: never waits for peers. Works of this communicator that are under way end with RONDO_ABORTED, and stay
 * to be destroyed. */
void rondo_comm_destroy(rondo_comm* comm);

/* Rank 0 of a world of 0 where comm is NULL. */
uint32_t rondo_comm_rank(const rondo_comm* comm);
uint32_t rondo_comm_world(const rondo_comm* comm);
/* "shm", "tcp" or "local"; "" where comm is NULL. */
const char* rondo_comm_transport(const rondo_comm* comm);
/* "ring", "direct", ...: what the last operation that has begun runs. */
const char* rondo_comm_last_algorithm(const rondo_comm* comm);
rondo_status rondo_comm_counters(const rondo_comm* comm, rondo_counters* counters);
/* Fails every pending and later call, here and on the peers. Any thread; never waits. */
void rondo_comm_abort(rondo_comm* comm);

#define RONDO_NO_COLOR (-1)
/* The ranks that give the same color become a communicator, ordered by key. A rank that gives RONDO_NO_COLOR gets
 * NULL and RONDO_OK. A color has 32 bits. */
rondo_status rondo_comm_split(rondo_comm* comm, int64_t color, int64_t key, const rondo_call_options* options,
                              rondo_comm** part);
rondo_status rondo_comm_duplicate(rondo_comm* comm, const rondo_call_options* options, rondo_comm** copy);
/* After a failure: the ranks that are left, in the same order. All of them must call it. */
rondo_status rondo_comm_shrink(rondo_comm* comm, const rondo_call_options* options, rondo_comm** rest);
/* The same ranks and `newcomers` more, which join with root `root` (NULL: that of the job), the next ranks, and a world
 * that counts them. */
rondo_status rondo_comm_grow(rondo_comm* comm, uint32_t newcomers, const char* root,
                             const rondo_call_options* options, rondo_comm** grown);
/* Of a communicator that came of split, duplicate or shrink: the rank in the one that it came from, or -1. */
int64_t rondo_comm_parent_rank(const rondo_comm* comm, uint32_t rank);

/* ---- Where things lie */

typedef struct rondo_extent {
  uint64_t first;
  uint64_t count;
} rondo_extent;
/* The part of `count` elements that belongs to `rank` in reduce_scatter and all_gather; empty where there is no
 * such rank. */
rondo_extent rondo_shard(uint64_t count, uint32_t world, uint32_t rank);

/* Zeroed, page-aligned memory that other ranks of the machine read where it lies, for use as buffers; 0 bytes: NULL.
 * Each holds one file descriptor, so make few large ones. Operations on it must have ended before it is freed. */
rondo_status rondo_allocate(size_t bytes, void** memory);
void rondo_free(void* memory);

/* ---- Operations that block */

typedef struct rondo_tensor {
  const void* input;
  void* output;
  size_t count;
} rondo_tensor;

rondo_status rondo_all_reduce(rondo_comm* comm, const void* input, void* output, size_t count,
                              rondo_type type, rondo_reduction reduction, const rondo_call_options* options);
rondo_status rondo_all_reduce_group(rondo_comm* comm, const rondo_tensor* tensors, size_t tensor_count,
                                    rondo_type type, rondo_reduction reduction,
                                    const rondo_call_options* options);
rondo_status rondo_reduce_scatter(rondo_comm* comm, const void* input, void* output, size_t count,
                                  rondo_type type, rondo_reduction reduction,
                                  const rondo_call_options* options);
rondo_status rondo_reduce_scatter_v(rondo_comm* comm, const void* input, void* output, const size_t* counts,
                                    rondo_type type, rondo_reduction reduction,
                                    const rondo_call_options* options);
rondo_status rondo_reduce(rondo_comm* comm, const void* input, void* output, size_t count, rondo_type type,
                          rondo_reduction reduction, uint32_t root, const rondo_call_options* options);
rondo_status rondo_all_gather(rondo_comm* comm, const void* input, void* output, size_t count,
                              rondo_type type, const rondo_call_options* options);
rondo_status rondo_all_gather_v(rondo_comm* comm, const void* input, void* output, const size_t* counts,
                                rondo_type type, const rondo_call_options* options);
rondo_status rondo_broadcast(rondo_comm* comm, void* data, size_t count, rondo_type type, uint32_t root,
                             const rondo_call_options* options);
rondo_status rondo_gather(rondo_comm* comm, const void* input, void* output, size_t count, rondo_type type,
                          uint32_t root, const rondo_call_options* options);
rondo_status rondo_scatter(rondo_comm* comm, const void* input, void* output, size_t count, rondo_type type,
                           uint32_t root, const rondo_call_options* options);
rondo_status rondo_all_to_all(rondo_comm* comm, const void* input, void* output, size_t count,
                              rondo_type type, const rondo_call_options* options);
rondo_status rondo_all_to_all_v(rondo_comm* comm, const void* input, const size_t* send_counts, void* output,
                                const size_t* recv_counts, rondo_type type,
                                const rondo_call_options* options);
rondo_status rondo_send(rondo_comm* comm, const void* data, size_t count, rondo_type type, uint32_t to,
                        const rondo_call_options* options);
rondo_status rondo_recv(rondo_comm* comm, void* data, size_t count, rondo_type type, uint32_t from,
                        const rondo_call_options* options);
rondo_status rondo_send_recv(rondo_comm* comm, const void* input, size_t send_count, uint32_t to,
                             void* output, size_t recv_count, uint32_t from, rondo_type type,
                             const rondo_call_options* options);
rondo_status rondo_barrier(rondo_comm* comm, const rondo_call_options* options);

/* ---- The same, but they return at once with a work. Buffers belong to Rondo until it has ended; arrays of counts and
 * of tensors, and options, only until the call returns. Every work must be destroyed. */

typedef struct rondo_work rondo_work;

/* Until the operation has ended; its outcome, every time. */
rondo_status rondo_work_wait(rondo_work* work);
/* For at most `limit_ms`. When that has passed, RONDO_TIMEOUT, and the operation goes on; rondo_work_test tells this
 * from an operation that timed out. */
rondo_status rondo_work_wait_for(rondo_work* work, int64_t limit_ms);
/* 1: it has ended, or work is NULL. 0: it goes on. Never blocks. */
int rondo_work_test(const rondo_work* work);
/* Calls `callback(context)` once when the operation has ended, on any thread, or now if it has. It must be short and
 * must not wait for an operation or destroy a handle. One for each work. */
rondo_status rondo_work_on_end(rondo_work* work, void (*callback)(void* context), void* context);
/* Waits for an operation that has not ended. */
void rondo_work_destroy(rondo_work* work);

rondo_status rondo_async_all_reduce(rondo_comm* comm, const void* input, void* output, size_t count,
                                    rondo_type type, rondo_reduction reduction,
                                    const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_all_reduce_group(rondo_comm* comm, const rondo_tensor* tensors, size_t tensor_count,
                                          rondo_type type, rondo_reduction reduction,
                                          const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_reduce_scatter(rondo_comm* comm, const void* input, void* output, size_t count,
                                        rondo_type type, rondo_reduction reduction,
                                        const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_reduce_scatter_v(rondo_comm* comm, const void* input, void* output,
                                          const size_t* counts, rondo_type type, rondo_reduction reduction,
                                          const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_reduce(rondo_comm* comm, const void* input, void* output, size_t count,
                                rondo_type type, rondo_reduction reduction, uint32_t root,
                                const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_all_gather(rondo_comm* comm, const void* input, void* output, size_t count,
                                    rondo_type type, const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_all_gather_v(rondo_comm* comm, const void* input, void* output, const size_t* counts,
                                      rondo_type type, const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_broadcast(rondo_comm* comm, void* data, size_t count, rondo_type type, uint32_t root,
                                   const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_gather(rondo_comm* comm, const void* input, void* output, size_t count,
                                rondo_type type, uint32_t root, const rondo_call_options* options,
                                rondo_work** work);
rondo_status rondo_async_scatter(rondo_comm* comm, const void* input, void* output, size_t count,
                                 rondo_type type, uint32_t root, const rondo_call_options* options,
                                 rondo_work** work);
rondo_status rondo_async_all_to_all(rondo_comm* comm, const void* input, void* output, size_t count,
                                    rondo_type type, const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_all_to_all_v(rondo_comm* comm, const void* input, const size_t* send_counts,
                                      void* output, const size_t* recv_counts, rondo_type type,
                                      const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_send(rondo_comm* comm, const void* data, size_t count, rondo_type type, uint32_t to,
                              const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_recv(rondo_comm* comm, void* data, size_t count, rondo_type type, uint32_t from,
                              const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_send_recv(rondo_comm* comm, const void* input, size_t send_count, uint32_t to,
                                   void* output, size_t recv_count, uint32_t from, rondo_type type,
                                   const rondo_call_options* options, rondo_work** work);
rondo_status rondo_async_barrier(rondo_comm* comm, const rondo_call_options* options, rondo_work** work);

#ifdef __cplusplus
}
#endif

#endif
