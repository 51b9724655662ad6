// What a kernel is given: one struct, passed by value, mirrored field by field in backend_gpu/abi.py.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

enum { CUSIM_SLOTS = 4, CUSIM_STAMP_WORDS = 8 };

// Bits of CusimParams::flags.
enum {
    CUSIM_REORDER = 1,       // R: operand B is loaded before the semaphores of A are waited for
    CUSIM_TICKETED = 2,      // a block takes the next ticket; without it (flag T) the ticket is the block's index
    CUSIM_STORE_POST = 4,    // A: post by a release store; only where a semaphore has one poster
    CUSIM_PDL_TRIGGER = 8,   // let the next kernel be placed as soon as all blocks of this one have started
    CUSIM_PDL_WAIT_END = 16, // the last ticket waits for the kernel before, when it is done
    CUSIM_PDL_WAIT_START = 32,
    CUSIM_REVERSE = 64,      // check runs: tickets are taken from the last to the first
    CUSIM_NO_WAIT = 128      // check runs: a planted fault, semaphores are not waited for
};

// Why a run was given up; words of CusimFault::kind.
enum { CUSIM_FAULT_NONE = 0, CUSIM_FAULT_SEMAPHORE = 1, CUSIM_FAULT_PIPELINE = 2, CUSIM_FAULT_STARTED = 3 };

// One for the whole program. `abort` is set once, by the first block that gives up; it alone writes the rest.
struct CusimFault {
    u32 abort;
    u32 kind;
    u32 kernel; // CusimParams::kernel_id
    u32 block;  // blockIdx.x
    u32 slot;   // which incoming dependence
    u32 index;  // which of its semaphores
    u32 value;  // last seen
    u32 target;
};

// Words of a ticket's stamps: nanoseconds of the global timer, unless said otherwise.
enum {
    CUSIM_STAMP_PLACED = 0,     // the block started
    CUSIM_STAMP_READY = 1,      // the ticket was taken
    CUSIM_STAMP_FIRST_LOAD = 2, // the first load of operand A was allowed
    CUSIM_STAMP_END = 3,        // all stores of the tile are done
    CUSIM_STAMP_POSTED = 4,     // all semaphores have been posted (= end for a split-K slice that does not post)
    CUSIM_STAMP_WHERE = 5,      // %smid | blockIdx.x << 32
    CUSIM_STAMP_WAITED = 6,     // how long loads of A were held back by semaphores, in all
    CUSIM_STAMP_RESERVED = 7
};

// Counters only grow and are compared as signed differences. In run number e (1 is the first) of a program the epoch
// counter holds e, a semaphore that receives `total` a run starts at (e - 1) * total, and so on for the others.
struct CusimParams {
    const void* a;              // m x k (m x 2k with SwiGLU), row-major, lda elements a row
    const void* b;              // k x n, row-major, ldb
    void* c;                    // m x n, row-major, ldc
    float* partials;            // split-K: tickets x tile area; 0 without
    u32* sem_in[CUSIM_SLOTS];   // one array an incoming dependence
    u32* sem_out[CUSIM_SLOTS];
    u32* arrivals;              // split-K: a counter an output tile, grows by the number of slices a run
    const u32* epoch;
    u32* tickets;               // grows by cusim_tickets a run, and by gridDim.x more for a persistent kernel
    u32* started;               // grows by gridDim.x a run; 0: not counted
    CusimFault* fault;
    u64* stamps;                // tickets x CUSIM_STAMP_WORDS; 0: none
    u64 spin_budget_ns;         // a spin that lasts longer sets the abort flag
    u64 delay_seed;
    int m, n, k;
    int lda, ldb, ldc;          // multiples of 8
    u32 kernel_id;
    u32 delay_max_ns;           // check runs: a tile is stored, and posted, up to this much late
    u32 flags;
    u32 reserved;
};

// CUtensorMap of the driver; kernels with TMA take two more arguments, `a` and `b`, after CusimParams.
struct alignas(64) CusimTensorMap { u64 words[16]; };

static_assert(sizeof(CusimFault) == 32, "abi.py");
static_assert(sizeof(CusimParams) == 200, "abi.py");
